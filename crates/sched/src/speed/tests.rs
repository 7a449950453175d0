use std::sync::Arc;
use std::time::Duration;

use proptest::collection;
use proptest::prelude::{any, prop_assert, proptest};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use types::{EndpointId, Slot, Timestamp};

use super::{Company, Dispatch, Learner, Speed};
use crate::EndpointState;

const FAST: f32 = 0.03;
const SLOW: f32 = 0.3;
const BASE: f32 = 20.0;

fn at(millis: f32) -> Timestamp {
    Timestamp::ZERO + Duration::from_secs_f32(millis / 1000.0)
}

fn state() -> Arc<EndpointState> {
    Arc::new(EndpointState::new(EndpointId(1), Slot(1)))
}

fn rng() -> Pcg64Mcg {
    Pcg64Mcg::seed_from_u64(3)
}

/// An endpoint that answers one request at a time, asked again when it has answered.
fn answer_idle(state: &Arc<EndpointState>, from: f32, tokens: &[u32], ms: impl Fn(f32) -> f32) {
    let mut now = from;
    for tokens in tokens {
        let mut reservation = state.reserve(*tokens, at(now));
        now += ms(*tokens as f32);
        reservation.first_token(at(now));
        now += 10.0;
    }
}

fn lengths(count: usize, rng: &mut Pcg64Mcg) -> Vec<u32> {
    (0..count).map(|_| rng.random_range(50..4000)).collect()
}

fn assert_near(value: f32, expected: f32, share: f32) {
    assert!((value / expected - 1.0).abs() <= share, "{value} is not near {expected}");
}

#[test]
fn two_endpoints_ten_times_apart_are_told_apart_within_twenty_requests() {
    let (fast, slow) = (state(), state());
    let lengths = lengths(20, &mut rng());
    answer_idle(&fast, 0.0, &lengths, |tokens| BASE + FAST * tokens);
    answer_idle(&slow, 0.0, &lengths, |tokens| BASE + SLOW * tokens);
    let end = at(60_000.0);
    let (fast, slow) = (fast.speed(end), slow.speed(end));
    assert_near(fast.prefill_ms_per_token, FAST, 0.1);
    assert_near(slow.prefill_ms_per_token, SLOW, 0.1);
    assert_near(fast.base_ms, BASE, 0.3);
    assert!(fast.prefill_trust() > 0.9 && slow.prefill_trust() > 0.9);
}

/// First come, first served: most of each first token's time is other requests' prefill, and the
/// gateway's own count says so.
#[test]
fn queueing_does_not_look_like_slowness() {
    let state = state();
    let mut rng = rng();
    let mut queue = std::collections::VecDeque::new();
    let (mut now, mut free_at, mut waited) = (0.0_f32, 0.0_f32, 0);
    for tokens in lengths(600, &mut rng) {
        // Load 0.9: nine in ten find someone before them.
        now += -(1.0 - rng.random::<f32>()).ln() * (2025.0 * SLOW + BASE) / 0.9;
        while queue.front().is_some_and(|(done, _)| *done <= now) {
            let (done, mut reservation): (f32, crate::Reservation) = queue.pop_front().unwrap();
            reservation.first_token(at(done));
        }
        waited += u32::from(!queue.is_empty());
        free_at = free_at.max(now) + BASE + SLOW * tokens as f32;
        queue.push_back((free_at, state.reserve(tokens, at(now))));
    }
    assert!(waited > 500, "only {waited} of 600 find someone before them");
    assert_near(state.speed(at(now)).prefill_ms_per_token, SLOW, 0.25);
}

/// Work that we cannot see: other gateways' requests, or a wait for memory.
#[test]
fn waits_that_nobody_announced_in_every_third_answer_do_not_look_like_slowness() {
    let learner = Learner::default();
    let mut rng = rng();
    for (n, tokens) in lengths(60, &mut rng).into_iter().enumerate() {
        let hidden = if n % 3 == 0 { rng.random_range(500.0..5000.0) } else { 0.0 };
        let ms = BASE + FAST * tokens as f32 + hidden;
        let dispatch = Dispatch { uncached_tokens: tokens, ..Dispatch::default() };
        learner.first_token(&dispatch, Duration::from_secs_f32(ms / 1000.0), at(0.0));
    }
    assert_near(learner.speed(at(0.0)).prefill_ms_per_token, FAST, 0.15);
}

#[test]
fn one_outlier_however_far_off_moves_nothing() {
    let state = state();
    answer_idle(&state, 0.0, &lengths(20, &mut rng()), |tokens| BASE + FAST * tokens);
    let before = state.speed(at(10_000.0));
    answer_idle(&state, 10_000.0, &[100], |_| 60_000.0);
    let after = state.speed(at(71_000.0));
    assert_near(after.prefill_ms_per_token, before.prefill_ms_per_token, 0.05);
    assert_near(after.base_ms, before.base_ms, 0.1);
}

#[test]
fn a_slow_first_answer_convicts_nobody() {
    let state = state();
    answer_idle(&state, 0.0, &[500], |_| 30_000.0);
    let speed = state.speed(at(30_000.0));
    let company = company(&[speed]);
    assert_eq!(company.settle(&speed).prefill_ms_per_token, 0.1);
}

#[test]
fn a_change_of_speed_either_way_is_learned_within_thirty_two_answers() {
    for (before, after) in [(FAST, 3.0 * FAST), (SLOW, SLOW / 3.0)] {
        let state = state();
        let mut rng = rng();
        answer_idle(&state, 0.0, &lengths(100, &mut rng), |tokens| BASE + before * tokens);
        answer_idle(&state, 1e5, &lengths(32, &mut rng), |tokens| BASE + after * tokens);
        assert_near(state.speed(at(1.5e5)).prefill_ms_per_token, after, 0.2);
    }
}

/// Busy answers weigh little beside clean ones; they must prevail all the same if they go on.
#[test]
fn a_change_of_speed_under_load_is_learned_although_clean_samples_contradict() {
    let state = state();
    answer_idle(&state, 0.0, &lengths(40, &mut rng()), |tokens| BASE + FAST * tokens);
    for tokens in lengths(128, &mut rng()) {
        let tokens_ahead = 8000.0;
        let dispatch = Dispatch { uncached_tokens: tokens, tokens_ahead, ..Dispatch::default() };
        let ms = BASE + 3.0 * FAST * (tokens as f32 + tokens_ahead);
        let elapsed = Duration::from_secs_f32(ms / 1000.0);
        state.learner().first_token(&dispatch, elapsed, at(10_000.0));
    }
    assert_near(state.speed(at(10_000.0)).prefill_ms_per_token, 3.0 * FAST, 0.1);
}

#[test]
fn steps_shared_with_running_answers_do_not_look_like_a_slow_endpoint() {
    let learner = Learner::default();
    let dispatch =
        |tokens| Dispatch { uncached_tokens: tokens, decoding: 500.0, ..Dispatch::default() };
    for tokens in lengths(30, &mut rng()) {
        // 1.5 steps, each 500 times 0.078 ms longer than that of an empty batch.
        let ms = BASE + FAST * tokens as f32 + 58.5;
        learner.first_token(&dispatch(tokens), Duration::from_secs_f32(ms / 1000.0), at(0.0));
    }
    assert_near(learner.speed(at(0.0)).base_ms, BASE, 0.1);
}

#[test]
fn what_was_learned_is_trusted_less_with_time_and_forgotten_after_ten_minutes() {
    let state = state();
    answer_idle(&state, 0.0, &lengths(20, &mut rng()), |tokens| BASE + FAST * tokens);
    let trust = |minutes: f32| state.speed(at(minutes * 60_000.0)).prefill_trust();
    assert!(trust(1.0) > trust(9.0) && trust(9.0) > trust(9.9));
    assert_eq!(trust(10.5), 0.0);
    answer_idle(&state, 700_000.0, &lengths(4, &mut rng()), |tokens| BASE + SLOW * tokens);
    assert_near(state.speed(at(705_000.0)).prefill_ms_per_token, SLOW, 0.2);
}

#[test]
fn prompts_of_one_length_still_predict_that_length() {
    let state = state();
    answer_idle(&state, 0.0, &[1000; 20], |tokens| BASE + SLOW * tokens);
    let speed = state.speed(at(10_000.0));
    assert_near(speed.base_ms + 1000.0 * speed.prefill_ms_per_token, BASE + 300.0, 0.03);
    assert_near(speed.prefill_ms_per_token, SLOW, 0.15);
}

#[test]
fn the_step_is_learned_against_the_batch() {
    let state = state();
    let mut rng = rng();
    let mut now = 0.0;
    for n in 0..60 {
        let batch = rng.random_range(1..100_u16);
        let mut sent: Vec<_> = (0..batch).map(|_| state.reserve(10, at(now))).collect();
        sent.iter_mut().for_each(|reservation| reservation.first_token(at(now + 20.0)));
        // An H100 with an 8B model: 8 ms, 0.09 more for each answer. Every tenth waits for memory.
        let wait = if n % 10 == 9 { 60_000.0 } else { 0.0 };
        let elapsed = 200.0 * (8.0 + 0.09 * f32::from(batch)) + wait;
        now += 20.0 + elapsed;
        sent[0].finished(Some(201), at(now));
    }
    let speed = state.speed(at(now));
    assert_near(speed.step_ms_at(1.0), 8.1, 0.2);
    assert_near(speed.step_ms_at(80.0), 15.2, 0.15);
    assert!(speed.output_tokens < 211.0 && speed.output_tokens > 201.0);
}

#[test]
fn an_adapter_load_is_learned_from_answers_that_waited_for_it_and_slows_nothing_else() {
    let state = state();
    answer_idle(&state, 0.0, &lengths(20, &mut rng()), |tokens| BASE + FAST * tokens);
    let metrics = types::EndpointMetrics {
        lora: Some(types::LoraMetrics { max: 100, ..types::LoraMetrics::default() }),
        ..types::EndpointMetrics::default()
    };
    state.record_scrape(&metrics, at(20_000.0), Duration::from_secs(100));
    let before = state.speed(at(20_000.0));
    let mut now = 20_000.0;
    for n in 0..20 {
        let adapter = Some(types::AdapterId(n / 2));
        let mut reservation = state.reserve_with(1000, adapter, at(now));
        // Every second request finds its adapter resident.
        let load = if n % 2 == 0 { 900.0 } else { 0.0 };
        now += BASE + FAST * 1000.0 + load;
        reservation.first_token(at(now));
    }
    let speed = state.speed(at(now));
    assert_near(speed.adapter_load_ms, 900.0, 0.05);
    assert!(speed.adapter_trust() > 0.9 && before.adapter_trust() == 0.0);
    assert_near(speed.prefill_ms_per_token, before.prefill_ms_per_token, 0.05);
    let pool = company(&[speed]);
    assert_near(pool.settle(&Speed::default()).adapter_load_ms, 900.0, 0.05);
}

#[test]
fn an_answer_without_a_count_or_of_one_token_teaches_no_step() {
    let state = state();
    for output_tokens in [None, Some(0), Some(1)] {
        let mut reservation = state.reserve(10, at(0.0));
        reservation.first_token(at(10.0));
        reservation.finished(output_tokens, at(5000.0));
    }
    let mut reservation = state.reserve(10, at(0.0));
    reservation.finished(Some(100), at(5000.0));
    assert_eq!(state.speed(at(5000.0)).step_samples, 0.0);
}

#[test]
fn an_error_or_a_whole_answer_teaches_nothing_and_gives_its_prefill_back() {
    let state = state();
    let mut reservation = state.reserve(1000, at(0.0));
    reservation.answered(at(1.0));
    reservation.first_token(at(2.0));
    reservation.finished(Some(100), at(3.0));
    assert_eq!((state.prefill_tokens(), state.in_flight()), (0, 1));
    let speed = state.speed(at(3.0));
    assert_eq!((speed.prefill_samples, speed.step_samples), (0.0, 0.0));
}

fn known(ms_per_token: f32) -> Speed {
    Speed {
        prefill_ms_per_token: ms_per_token,
        prefill_samples: 1e6,
        step_samples: 1e6,
        ..Speed::default()
    }
}

fn company(speeds: &[Speed]) -> Company {
    let company = Company::default();
    company.renew(speeds.iter(), at(0.0));
    company
}

#[test]
fn a_stranger_gets_the_middle_of_those_who_know() {
    let stranger = Speed { prefill_ms_per_token: 9.0, ..Speed::default() };
    let pool = company(&[known(0.1), known(0.4), stranger]);
    assert_near(pool.settle(&stranger).prefill_ms_per_token, 0.2, 0.001);
    assert_eq!(company(&[stranger]).settle(&stranger).prefill_ms_per_token, 0.1);
}

#[test]
fn endpoints_that_look_alike_get_one_speed_and_those_that_do_not_keep_theirs() {
    let speeds = [0.095, 0.1, 0.105, 0.11, 0.4, 0.42].map(known);
    let pool = company(&speeds);
    let settled = speeds.map(|speed| pool.settle(&speed).prefill_ms_per_token);
    for (settled, expected) in settled.iter().zip([0.1025, 0.1025, 0.1025, 0.1025, 0.41, 0.41]) {
        assert_near(*settled, expected, 0.02);
    }
}

#[test]
fn an_endpoint_that_becomes_five_times_slower_leaves_its_company() {
    let mut speeds = [0.1; 8].map(known);
    speeds[3].prefill_ms_per_token = 0.5;
    let pool = company(&speeds);
    assert_near(pool.settle(&speeds[3]).prefill_ms_per_token, 0.5, 0.001);
    assert_near(pool.settle(&speeds[0]).prefill_ms_per_token, 0.1, 0.001);
}

#[test]
fn the_means_of_a_pool_are_renewed_four_times_a_second() {
    let company = Company::default();
    company.renew([known(0.1)].iter(), at(0.0));
    let at_first = company.settle(&Speed::default()).prefill_ms_per_token;
    company.renew([known(0.4)].iter(), at(249.0));
    assert_eq!(company.settle(&Speed::default()).prefill_ms_per_token, at_first);
    company.renew([known(0.4)].iter(), at(250.0));
    assert_near(company.settle(&Speed::default()).prefill_ms_per_token, 0.4, 0.001);
}

#[test]
fn an_endpoint_that_answers_nothing_is_stuck_and_one_that_computes_is_not() {
    let state = state();
    answer_idle(&state, 0.0, &lengths(20, &mut rng()), |tokens| BASE + SLOW * tokens);
    let stuck = |ms: f32| state.observe(None, at(100_000.0 + ms)).stuck_ms;
    assert_eq!(stuck(60_000.0), 0.0, "nothing is asked of it");
    let _one = state.reserve(1000, at(100_000.0));
    assert_eq!(stuck(320.0), 0.0, "it computes");
    assert_near(stuck(10_000.0), 9500.0, 0.02);
}

#[test]
fn a_long_prefill_at_the_head_counts_less_the_longer_it_runs() {
    let state = state();
    answer_idle(&state, 0.0, &lengths(20, &mut rng()), |tokens| BASE + SLOW * tokens);
    let _long = state.reserve(10_000, at(100_000.0));
    let ahead = |ms: f32| state.observe(None, at(100_000.0 + ms)).tokens_ahead;
    assert_eq!(ahead(0.0), 10_000.0);
    assert_near(ahead(1520.0), 5000.0, 0.1);
    assert_near(ahead(60_000.0), 1000.0, 0.1);
}

proptest! {
    #[test]
    fn no_sample_makes_a_speed_that_cannot_be(
        samples in collection::vec((any::<u32>(), any::<u64>(), any::<u64>(), 0.0..1e9_f32), 1..80),
    ) {
        let learner = Learner::default();
        for (tokens, elapsed, now, ahead) in samples {
            let dispatch =
                Dispatch { uncached_tokens: tokens, tokens_ahead: ahead, ..Dispatch::default() };
            let elapsed = Duration::from_nanos(elapsed);
            learner.first_token(&dispatch, elapsed, Timestamp(now));
            learner.finished(tokens, elapsed, ahead, Timestamp(now));
            let speed = learner.speed(Timestamp(now));
            let speed = company(&[speed]).settle(&speed);
            for value in [
                speed.base_ms, speed.prefill_ms_per_token, speed.step_ms, speed.output_tokens,
            ] {
                prop_assert!(value.is_finite() && value >= 0.0, "{speed:?}");
            }
            for trust in [speed.prefill_trust(), speed.step_trust()] {
                prop_assert!((0.0..=1.0).contains(&trust), "{speed:?}");
            }
        }
    }
}
