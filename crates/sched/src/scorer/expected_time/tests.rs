//! Scores of single pools, then a toy fleet in virtual time.

mod fleet;

use types::{EndpointId, Slot};

use super::ExpectedTimeScorer;
use crate::{Candidate, Profile, RequestView, Scorer, Speed, Weights};
use fleet::{Fleet, RIGHT};

fn alone() -> Profile {
    Profile {
        saturation: None,
        ..Profile::from_weights(&Weights { expected_time: 1.0, ..Weights::ZERO })
    }
}

fn candidate(n: u16, prefill_ms_per_token: f32) -> Candidate {
    let speed = Speed { prefill_ms_per_token, prefill_samples: 1e6, ..Speed::default() };
    Candidate { speed, ..Candidate::idle(EndpointId(u32::from(n)), Slot(n)) }
}

fn scores(candidates: &[Candidate]) -> Vec<f32> {
    let request = RequestView { prompt_tokens: 100_000, ..RequestView::default() };
    let mut scores = vec![f32::NAN; candidates.len()];
    ExpectedTimeScorer::default().score(&request, candidates, &mut scores);
    scores
}

#[test]
fn the_cheapest_scores_one_and_twice_the_time_half() {
    let [best, double, tenfold] =
        scores(&[candidate(0, 0.1), candidate(1, 0.2), candidate(2, 1.0)])[..]
    else {
        unreachable!()
    };
    assert_eq!(best, 1.0);
    assert!((double - 0.5).abs() < 0.01 && (tenfold - 0.1).abs() < 0.01);
}

#[test]
fn one_hopeless_endpoint_does_not_push_the_others_together() {
    let two = scores(&[candidate(0, 0.1), candidate(1, 0.2)]);
    let three = scores(&[candidate(0, 0.1), candidate(1, 0.2), candidate(2, 1e4)]);
    assert!((two[1] - three[1]).abs() < 0.01, "{two:?}, {three:?}");
}

/// HERD-1.
#[test]
fn two_hundred_equal_cold_requests_spread_evenly_over_eight_idle_endpoints() {
    let mut fleet = Fleet::new(&[0.1; 8], alone());
    let sent: Vec<_> = (0..200).map(|n| fleet.send(f64::from(n) * 0.1, 1280)).collect();
    let mut counts = [0_i32; 8];
    sent.iter().for_each(|(picked, _)| counts[*picked] += 1);
    assert!(counts.iter().all(|count| (count - 25).abs() <= 3), "{counts:?}");
}

#[test]
fn a_fast_endpoint_gets_the_work_that_its_speed_is_worth() {
    let mut fleet = Fleet::new(&[0.03, 0.3], alone());
    fleet.run(0.3, 200, 1);
    fleet.settle();
    let start = fleet.now_ms();
    let sent: Vec<_> = (0..110).map(|_| fleet.send(start, 1000)).collect();
    let fast = sent.iter().filter(|(picked, _)| *picked == 0).count();
    assert!((94..=106).contains(&fast), "{fast} of 110 at ten times the speed");
}

#[test]
fn a_new_endpoint_is_tried_and_not_flooded() {
    let mut fleet = Fleet::new(&[0.1; 4], alone());
    fleet.run(0.5, 400, 1);
    fleet.settle();
    fleet.join(1.0);
    let start = fleet.now_ms();
    let sent: Vec<_> = (0..100).map(|_| fleet.send(start, 1000)).collect();
    let new = sent.iter().filter(|(picked, _)| *picked == 4).count();
    assert!((1..=10).contains(&new), "{new} of 100 in one instant to a stranger");
}

#[test]
fn expected_time_waits_less_than_least_request_and_queue_in_a_mixed_fleet() {
    let queue = Profile {
        saturation: None,
        ..Profile::from_weights(&Weights { queue: 1.0, ..Weights::ZERO })
    };
    let speeds = [0.03, 0.03, 0.3, 0.3, 0.3, 0.3];
    let mut others = [Fleet::new(&speeds, Profile::least_request()), Fleet::new(&speeds, queue)];
    // The higher the load the more even the best must use the slow ones.
    for (load, share) in [(0.3, 0.4), (0.5, 0.45), (0.7, 0.55), (0.85, 0.7)] {
        let ours = Fleet::new(&speeds, alone()).run(load, 3000, 1);
        for fleet in &mut others {
            let theirs = fleet.run(load, 3000, 1);
            assert!(ours < share * theirs, "load {load}: {ours} ms against {theirs} ms");
        }
    }
}

#[test]
fn speeds_wrong_by_a_factor_of_two_still_rank_a_mixed_pool_right_under_load() {
    let speeds = [0.03, 0.03, 0.3, 0.3, 0.3, 0.3];
    let mean = |error, profile, load| {
        let mut fleet = Fleet::new(&speeds, profile);
        fleet.run(0.3, 300, 2);
        fleet.error = error;
        fleet.run(load, 3000, 1)
    };
    for load in [0.5, 0.7] {
        let right = mean(RIGHT, alone(), load);
        let least_request = mean(RIGHT, Profile::least_request(), load);
        for error in [[2.0, 1.0], [0.5, 1.0], [1.0, 2.0], [1.0, 0.5]] {
            let wrong = mean(error, alone(), load);
            assert!(wrong < 1.5 * right, "load {load}, {error:?}: {wrong} ms, not {right} ms");
            assert!(wrong < 0.6 * least_request, "{wrong} ms, not {least_request} ms");
        }
    }
}

/// The fleet's servers are first come, first served, so what is ahead is all there is to know.
#[test]
fn predictions_are_right_within_a_tenth_at_the_median_under_load() {
    let mut fleet = Fleet::new(&[0.03, 0.03, 0.3, 0.3, 0.3, 0.3], alone());
    fleet.run(0.7, 500, 3);
    fleet.errors.clear();
    fleet.run(0.7, 2000, 4);
    fleet.errors.sort_by(f64::total_cmp);
    let median = fleet.errors[fleet.errors.len() / 2];
    assert!(median < 0.1, "{median}");
}
