use std::sync::Arc;
use std::time::Duration;

use rand::SeedableRng;
use rand_pcg::Pcg64Mcg;
use types::{AdapterId, EndpointId, EndpointMetrics, LoraMetrics, Ratio, Slot, Timestamp};

use super::{Profile, ScheduleError, Scratch, Weights};
use crate::{
    Candidate, EndpointState, Health, LoraFit, Outcome, Receipt, RequestView, Reservation, Signals,
    saturation,
};

/// The field's weights on accounted signals.
const FIELD: Weights = Weights { signals: Signals::Accounted, ..Weights::REFERENCE };
const LIMIT: Duration = Duration::from_millis(1000);

/// A pool under one profile, as the gateway drives it.
struct Pool {
    endpoints: Vec<Arc<EndpointState>>,
    profile: Profile,
    scratch: Scratch,
    rng: Pcg64Mcg,
}

impl Pool {
    fn new(endpoints: u32, profile: Profile) -> Self {
        let state = |n| Arc::new(EndpointState::new(EndpointId(n), Slot(n as u16)));
        Self {
            endpoints: (0..endpoints).map(state).collect(),
            profile,
            scratch: Scratch::default(),
            rng: Pcg64Mcg::seed_from_u64(7),
        }
    }

    fn scrape(&self, endpoint: usize, waiting: u32, running: u32, now: Timestamp) {
        let metrics = EndpointMetrics {
            waiting: Some(waiting),
            running: Some(running),
            kv_usage: Some(Ratio::ZERO),
            ..EndpointMetrics::default()
        };
        self.endpoints[endpoint].record_scrape(&metrics, now, LIMIT);
    }

    /// * `matched`: blocks by endpoint.
    fn pick(&mut self, request: &RequestView<'_>, matched: &[u32]) -> Result<usize, ScheduleError> {
        let observed = self.endpoints.iter().enumerate().map(|(n, endpoint)| {
            let mut candidate = endpoint.observe(request.adapter, request.now);
            candidate.matched_blocks = matched.get(n).copied().unwrap_or(0);
            candidate
        });
        let mut candidates: Vec<_> = observed.collect();
        let order =
            self.profile.pick(request, &mut candidates, &mut self.scratch, &mut self.rng, None)?;
        Ok(candidates[order[0] as usize].endpoint.0 as usize)
    }

    fn send(&mut self, request: &RequestView<'_>, matched: &[u32]) -> (usize, Reservation) {
        let picked = self.pick(request, matched).unwrap();
        (picked, self.endpoints[picked].reserve(request.prompt_tokens, request.now))
    }
}

fn at(millis: u64) -> RequestView<'static> {
    let now = Timestamp::from_millis(millis);
    RequestView { now, prompt_blocks: 20, prompt_tokens: 1280, ..RequestView::default() }
}

fn weighted() -> Profile {
    Profile::from_weights(&FIELD)
}

fn idle(n: u32) -> Vec<Candidate> {
    (0..n).map(|n| Candidate::idle(EndpointId(n), Slot(n as u16))).collect()
}

fn pick_ids(profile: &Profile, candidates: &mut [Candidate]) -> Result<Vec<u32>, ScheduleError> {
    let mut rng = Pcg64Mcg::seed_from_u64(1);
    let mut scratch = Scratch::default();
    let order = profile.pick(&at(0), candidates, &mut scratch, &mut rng, None)?;
    Ok(order.iter().map(|at| candidates[*at as usize].endpoint.0).collect())
}

/// HERD-1.
#[test]
fn two_hundred_cold_requests_between_two_scrapes_spread_evenly_over_eight_endpoints() {
    let mut pool = Pool::new(8, weighted());
    for endpoint in 0..8 {
        pool.scrape(endpoint, 0, 0, Timestamp::ZERO);
    }
    let mut counts = [0_i32; 8];
    let sent: Vec<_> = (0..200).map(|n| pool.send(&at(n / 10), &[])).collect();
    sent.iter().for_each(|(picked, _)| counts[*picked] += 1);
    assert!(counts.iter().all(|count| (count - 25).abs() <= 3), "{counts:?}");
}

/// HERD-3: the scraped queue of a hot prefix's holder is not all there is.
#[test]
fn a_prefix_with_most_of_the_traffic_spreads_before_its_holder_drowns() {
    let mut pool = Pool::new(8, weighted());
    for endpoint in 0..8 {
        pool.scrape(endpoint, 0, 0, Timestamp::ZERO);
    }
    let mut counts = [0_u32; 8];
    let mut matched = [0; 8];
    let mut sent = Vec::new();
    for n in 0..200 {
        let hot = n % 5 != 0;
        let (picked, reservation) = pool.send(&at(n / 10), if hot { &matched } else { &[] });
        if hot {
            matched[picked] = 20;
        }
        counts[picked] += 1;
        sent.push(reservation);
    }
    assert!(counts.iter().all(|count| *count <= 2 * 25), "{counts:?}");
}

/// PFX-4.
#[test]
fn turns_of_a_chat_stay_on_their_endpoint_while_it_is_not_overloaded() {
    let mut pool = Pool::new(4, weighted());
    for (endpoint, waiting) in [(0, 0), (1, 2), (2, 1), (3, 0)] {
        pool.scrape(endpoint, waiting, 5, Timestamp::ZERO);
    }
    let picks: Vec<_> = (0..100).map(|_| pool.pick(&at(1), &[0, 19]).unwrap()).collect();
    assert!(picks.iter().filter(|picked| **picked == 1).count() >= 95, "{picks:?}");
}

/// HERD-4.
#[test]
fn a_short_shared_beginning_does_not_outweigh_a_queue() {
    let mut pool = Pool::new(4, weighted());
    for endpoint in 0..4 {
        pool.scrape(endpoint, 0, 0, Timestamp::ZERO);
    }
    let mut counts = [0; 4];
    let sent: Vec<_> = (0..40).map(|_| pool.send(&at(1), &[1, 0, 0, 0])).collect();
    sent.iter().for_each(|(picked, _)| counts[*picked] += 1);
    assert_eq!(counts, [10; 4]);
}

/// STALE-1.
#[test]
fn an_endpoint_whose_metrics_froze_at_zero_gets_nothing_until_they_return() {
    let mut pool = Pool::new(2, weighted());
    pool.scrape(0, 0, 0, Timestamp::ZERO);
    pool.scrape(1, 9, 9, Timestamp::from_millis(5000));
    assert!((0..50).all(|_| pool.pick(&at(5000), &[]) == Ok(1)));
    pool.scrape(0, 0, 0, Timestamp::from_millis(5000));
    assert_eq!(pool.pick(&at(5000), &[]), Ok(0));
}

/// STALE-2 and fault 18.
#[test]
fn when_all_metrics_are_lost_traffic_spreads_by_our_own_count() {
    let mut pool = Pool::new(5, weighted());
    for (endpoint, waiting) in [(0, 0), (1, 50)] {
        pool.scrape(endpoint, waiting, 9, Timestamp::ZERO);
    }
    let mut counts = [0; 5];
    let sent: Vec<_> = (0..90).map(|_| pool.send(&at(60_000), &[])).collect();
    sent.iter().for_each(|(picked, _)| counts[*picked] += 1);
    assert_eq!(counts, [0, 0, 30, 30, 30], "those never scraped are not stale");

    let mut pool = Pool::new(3, weighted());
    for (endpoint, waiting) in [(0, 0), (1, 50), (2, 3)] {
        pool.scrape(endpoint, waiting, 9, Timestamp::ZERO);
    }
    let mut counts = [0; 3];
    let sent: Vec<_> = (0..90).map(|_| pool.send(&at(60_000), &[])).collect();
    sent.iter().for_each(|(picked, _)| counts[*picked] += 1);
    assert_eq!(counts, [30; 3]);
}

/// STALE-4.
#[test]
fn a_pool_of_one_stale_endpoint_is_used() {
    let mut pool = Pool::new(1, weighted());
    pool.scrape(0, 0, 0, Timestamp::ZERO);
    assert_eq!(pool.pick(&at(3_600_000), &[]), Ok(0));
}

/// LORA-1 and LORA-2.
#[test]
fn twice_as_many_adapters_as_slots_find_a_stable_partition() {
    let weights = Weights { lora_affinity: 3.0, ..FIELD };
    let mut pool = Pool::new(2, Profile::from_weights(&weights));
    let metrics = EndpointMetrics {
        waiting: Some(0),
        running: Some(0),
        lora: Some(LoraMetrics { max: 4, ..LoraMetrics::default() }),
        ..EndpointMetrics::default()
    };
    let mut homes = [None; 8];
    let mut moves = 0;
    for round in 0..400_u64 {
        for endpoint in &pool.endpoints {
            endpoint.record_scrape(&metrics, Timestamp::from_millis(round), LIMIT);
        }
        let adapter = (round * 5 % 8) as usize;
        let request = RequestView { adapter: Some(AdapterId(adapter as u64)), ..at(round) };
        let picked = pool.pick(&request, &[]).unwrap();
        drop(pool.endpoints[picked].reserve_with(0, request.adapter, request.now));
        moves += u32::from(homes[adapter].is_some_and(|home| home != picked));
        homes[adapter] = Some(picked);
    }
    assert_eq!(moves, 0, "{homes:?}");
    assert_eq!(homes.iter().filter(|home| **home == Some(0)).count(), 4);
}

/// LORA-5.
#[test]
fn an_adapter_that_nobody_serves_is_told_apart_from_a_broken_pool() {
    let mut one = idle(1);
    one[0].lora = LoraFit::NotServed;
    let error = pick_ids(&weighted(), &mut one).unwrap_err();
    assert_eq!(error, ScheduleError::FilteredOut { filter: "not-serving" });
    assert_eq!(pick_ids(&weighted(), &mut []), Err(ScheduleError::NoCandidates));
}

#[test]
fn a_saturated_endpoint_is_passed_over_and_a_saturated_pool_sheds() {
    let full = |candidate: &mut Candidate| candidate.scraped.waiting = Some(32);
    let mut two = idle(2);
    full(&mut two[0]);
    two[0].matched_blocks = 20;
    assert_eq!(pick_ids(&weighted(), &mut two), Ok(vec![1]));
    two.iter_mut().for_each(full);
    assert_eq!(pick_ids(&weighted(), &mut two), Err(ScheduleError::Saturated));
    let never_sheds = Profile { saturation: None, ..weighted() };
    assert!(pick_ids(&never_sheds, &mut two).is_ok());
}

#[test]
fn the_answer_lists_the_next_best_for_a_retry() {
    let mut six = idle(6);
    for (n, candidate) in six.iter_mut().enumerate() {
        candidate.waiting = [5.0, 1.0, 3.0, 0.0, 4.0, 2.0][n];
    }
    assert_eq!(pick_ids(&weighted(), &mut six), Ok(vec![3, 1, 5, 2]));
    let failed = [EndpointId(3)];
    let request = RequestView { excluded: &failed, ..at(0) };
    let mut rng = Pcg64Mcg::seed_from_u64(1);
    let mut scratch = Scratch::default();
    let profile = weighted();
    let order = profile.pick(&request, &mut six, &mut scratch, &mut rng, None).unwrap();
    assert_eq!(six[order[0] as usize].endpoint, EndpointId(1));
}

#[test]
fn survivors_are_indexed_as_the_slice_is_after_the_call() {
    let mut five = idle(5);
    for n in [0, 2, 3] {
        five[n].asleep = true;
    }
    five[1].waiting = 3.0;
    assert_eq!(pick_ids(&weighted(), &mut five), Ok(vec![4, 1]));
    let mut ids: Vec<_> = five.iter().map(|candidate| candidate.endpoint.0).collect();
    ids.sort_unstable();
    assert_eq!(ids, [0, 1, 2, 3, 4], "nobody is lost");
}

#[test]
fn round_robin_takes_each_endpoint_in_turn_and_skips_those_that_are_out() {
    let mut pool = Pool::new(4, Profile::round_robin());
    pool.endpoints[2].record_outcome(Outcome::ConnectFailure, Timestamp::ZERO);
    let picks: Vec<_> = (0..6).map(|_| pool.pick(&at(0), &[9, 9, 0, 0]).unwrap()).collect();
    assert_eq!(picks, [0, 1, 3, 0, 1, 3]);
}

#[test]
fn least_request_goes_where_we_have_fewest_in_flight() {
    let mut pool = Pool::new(3, Profile::least_request());
    let mut counts = [0; 3];
    let sent: Vec<_> = (0..30).map(|_| pool.send(&at(0), &[20])).collect();
    sent.iter().for_each(|(picked, _)| counts[*picked] += 1);
    assert_eq!(counts, [10; 3]);
}

#[test]
fn a_failing_endpoint_comes_back_by_one_trial_and_is_not_flooded() {
    let mut pool = Pool::new(2, weighted());
    for _ in 0..5 {
        pool.endpoints[0].record_outcome(Outcome::Failure, Timestamp::ZERO);
    }
    assert!((0..20).all(|_| pool.pick(&at(29_999), &[]) == Ok(1)));
    let mut sent: Vec<_> = (0..20).map(|_| pool.send(&at(30_000), &[])).collect();
    assert_eq!(sent.iter().filter(|(picked, _)| *picked == 0).count(), 1);
    pool.endpoints[0].record_outcome(Outcome::Success, Timestamp::from_millis(30_100));
    sent.extend((0..40).map(|_| pool.send(&at(31_200), &[])));
    let returned = sent.iter().filter(|(picked, _)| *picked == 0).count();
    assert_eq!(returned, 2, "the cap one second into the ramp");
    assert_eq!(
        pool.endpoints[0].observe(None, Timestamp::from_millis(31_200)).health,
        Health::Held
    );
}

#[test]
fn only_positive_weights_make_scorers() {
    let weights = Weights { kv_cache: 0.0, lora_affinity: f32::NAN, ..FIELD };
    let names: Vec<_> =
        Profile::from_weights(&weights).scorers.iter().map(|s| s.scorer.name()).collect();
    assert_eq!(names, ["queue", "prefix"]);
    let all = Weights {
        running_requests: 1.0,
        lora_affinity: 1.0,
        no_hit_lru: 1.0,
        session_affinity: 1.0,
        signals: Signals::Scraped,
        ..FIELD
    };
    assert_eq!(Profile::from_weights(&all).scorers.len(), 7);
    assert_eq!(Profile::from_weights(&Weights::ZERO).scorers.len(), 0);
}

#[test]
fn a_receipt_has_every_signal_filter_score_and_the_order() {
    let mut four = idle(4);
    four[0].asleep = true;
    four[1].scraped.waiting = Some(99);
    four[2].matched_blocks = 10;
    let mut receipt = Receipt::default();
    let profile = weighted();
    let mut rng = Pcg64Mcg::seed_from_u64(1);
    let mut scratch = Scratch::default();
    for _ in 0..2 {
        four.sort_by_key(|candidate| candidate.endpoint);
        profile.pick(&at(0), &mut four, &mut scratch, &mut rng, Some(&mut receipt)).unwrap();
    }
    assert_eq!((receipt.profile, receipt.picker), ("weighted", "max-score"));
    assert_eq!(receipt.scorers, [("queue", 2.0), ("kv-cache", 2.0), ("prefix", 3.0)]);
    let removed: Vec<_> = receipt.candidates.iter().map(|entry| entry.removed_by).collect();
    assert_eq!(removed, [Some("asleep"), Some("saturated"), None, None]);
    assert_eq!(receipt.removed_by("asleep").collect::<Vec<_>>(), [EndpointId(0)]);
    assert_eq!(receipt.candidates[1].candidate.saturation, 99.0 / 32.0);
    assert_eq!(receipt.candidates[2].scores, [1.0, 1.0, 0.5]);
    assert_eq!(receipt.candidates[2].total, 5.5);
    assert_eq!(receipt.candidates[3].total, 4.0);
    let predicted: Vec<_> = receipt.candidates.iter().map(|entry| entry.predicted_ms).collect();
    assert_eq!(predicted[..2], [None, None]);
    assert!(predicted[2] < predicted[3], "half of the prompt is there: {predicted:?}");
    assert_eq!(receipt.order, [EndpointId(2), EndpointId(3)]);
}

#[test]
fn a_request_whose_turn_has_come_goes_to_a_full_pool_but_not_past_an_endpoint_with_room() {
    let admitted = RequestView { is_admitted: true, ..at(0) };
    let mut two = idle(2);
    two.iter_mut().for_each(|candidate| candidate.scraped.waiting = Some(40));
    let (mut rng, mut scratch) = (Pcg64Mcg::seed_from_u64(1), Scratch::default());
    assert!(weighted().pick(&admitted, &mut two, &mut scratch, &mut rng, None).is_ok());
    two[1].scraped.waiting = Some(1);
    let order = weighted().pick(&admitted, &mut two, &mut scratch, &mut rng, None).unwrap();
    assert_eq!(order.len(), 1);
}

#[test]
fn a_receipt_of_a_failed_pick_says_what_removed_whom() {
    let mut two = idle(2);
    two.iter_mut().for_each(|candidate| candidate.scraped.waiting = Some(40));
    let mut receipt = Receipt::default();
    let mut rng = Pcg64Mcg::seed_from_u64(1);
    let mut scratch = Scratch::default();
    let result = weighted().pick(&at(0), &mut two, &mut scratch, &mut rng, Some(&mut receipt));
    assert_eq!(result, Err(ScheduleError::Saturated));
    assert_eq!(receipt.removed_by("saturated").count(), 2);
    assert!(receipt.order.is_empty());
}

#[test]
fn a_receipt_changes_no_decision() {
    let decide = |with_receipt: bool| {
        let mut rng = Pcg64Mcg::seed_from_u64(5);
        let mut scratch = Scratch::default();
        let profile = weighted();
        let mut receipt = Receipt::default();
        let mut decide_once = |_| {
            let mut candidates = idle(9);
            let receipt = with_receipt.then_some(&mut receipt);
            let order = profile.pick(&at(0), &mut candidates, &mut scratch, &mut rng, receipt);
            order.unwrap().to_vec()
        };
        (0..50).map(&mut decide_once).collect::<Vec<_>>()
    };
    assert_eq!(decide(true), decide(false));
}

#[test]
fn saturation_is_filled_in_from_the_profile() {
    let saturation = saturation::Config { queue_depth: 10, ..saturation::Config::default() };
    let profile = Profile { saturation: Some(saturation), ..weighted() };
    let mut one = idle(1);
    one[0].scraped.waiting = Some(5);
    pick_ids(&profile, &mut one).unwrap();
    assert_eq!(one[0].saturation, 0.5);
}
