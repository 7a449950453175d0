use std::sync::Arc;
use std::time::Duration;

use proptest::collection;
use proptest::prelude::{any, prop_assert_eq, proptest};
use proptest::sample::Index;
use types::{AdapterId, EndpointId, EndpointMetrics, LoraMetrics, Ratio, Slot, Timestamp};

use crate::{Candidate, EndpointState, LoraFit};

const LIMIT: Duration = Duration::from_millis(1000);

fn at(millis: u64) -> Timestamp {
    Timestamp::from_millis(millis)
}

fn state() -> Arc<EndpointState> {
    Arc::new(EndpointState::new(EndpointId(3), Slot(4)))
}

fn says(waiting: u32, running: u32) -> EndpointMetrics {
    EndpointMetrics { waiting: Some(waiting), running: Some(running), ..EndpointMetrics::default() }
}

fn load(candidate: &Candidate) -> (f32, f32) {
    (candidate.waiting, candidate.running)
}

#[test]
fn a_new_endpoint_is_unknown_and_usable() {
    let candidate = state().observe(None, at(0));
    assert_eq!((candidate.endpoint, candidate.slot), (EndpointId(3), Slot(4)));
    assert_eq!(candidate.age, None);
    assert_eq!(candidate.freshness, 0.0);
    assert!(!candidate.stale && !candidate.ejected && !candidate.asleep);
    assert_eq!(candidate.scraped.waiting, None);
}

#[test]
fn an_endpoint_that_can_never_be_scraped_does_not_become_stale() {
    let state = state();
    for millis in 0..10 {
        state.record_scrape_failure(at(millis * 1000));
    }
    assert_eq!(state.scrape_failures(), 10);
    assert!(!state.observe(None, at(1_000_000)).stale);
}

#[test]
fn a_scrape_is_fresh_for_half_its_limit_then_fades_and_is_stale_past_it() {
    let state = state();
    state.record_scrape(&says(0, 0), at(0), LIMIT);
    let freshness = [0, 500, 750, 1000, 1001].map(|ms| state.observe(None, at(ms)).freshness);
    assert_eq!(freshness, [1.0, 1.0, 0.5, 0.0, 0.0]);
    assert_eq!([1000, 1001].map(|ms| state.observe(None, at(ms)).stale), [false, true]);
}

/// STALE-3: the scraper sets the limit by the interval that it really achieves.
#[test]
fn the_limit_is_the_one_given_with_the_last_scrape() {
    let state = state();
    state.record_scrape(&says(0, 0), at(0), LIMIT);
    state.record_scrape(&says(0, 0), at(0), LIMIT * 10);
    assert!(!state.observe(None, at(9000)).stale);
}

#[test]
fn the_next_good_scrape_brings_a_stale_endpoint_back() {
    let state = state();
    state.record_scrape(&says(0, 0), at(0), LIMIT);
    assert!(state.observe(None, at(5000)).stale);
    state.record_scrape(&says(1, 2), at(5000), LIMIT);
    let candidate = state.observe(None, at(5000));
    assert!(!candidate.stale);
    assert_eq!(load(&candidate), (1.0, 2.0));
}

#[test]
fn requests_sent_since_the_scrape_count_as_waiting_at_once() {
    let state = state();
    state.record_scrape(&says(2, 10), at(0), LIMIT);
    let _sent: Vec<_> = (0..3).map(|_| state.reserve(100, at(1))).collect();
    let candidate = state.observe(None, at(1));
    assert_eq!(load(&candidate), (5.0, 10.0));
    assert_eq!((candidate.in_flight, candidate.prefill_tokens), (3, 300));
}

#[test]
fn requests_that_ended_since_the_scrape_let_waiting_ones_start() {
    let state = state();
    let mut sent: Vec<_> = (0..12).map(|_| state.reserve(0, at(0))).collect();
    state.record_scrape(&says(2, 10), at(0), LIMIT);
    sent.truncate(11);
    assert_eq!(load(&state.observe(None, at(1))), (1.0, 10.0));
    sent.truncate(5);
    assert_eq!(load(&state.observe(None, at(1))), (0.0, 5.0));
}

#[test]
fn load_that_other_gateways_bring_is_seen_and_our_own_not_counted_twice() {
    let state = state();
    let _ours: Vec<_> = (0..4).map(|_| state.reserve(0, at(0))).collect();
    state.record_scrape(&says(0, 10), at(0), LIMIT);
    assert_eq!(load(&state.observe(None, at(0))), (0.0, 10.0));
}

#[test]
fn work_that_other_gateways_bring_is_told_apart_and_teaches_less() {
    let state = state();
    let mut ours = [state.reserve(100, at(0)), state.reserve(100, at(0))];
    state.record_scrape(&says(3, 10), at(0), LIMIT);
    let candidate = state.observe(None, at(0));
    assert_eq!((candidate.foreign_waiting, candidate.decoding), (3.0, 8.0));
    assert_eq!((candidate.prefilling, candidate.tokens_ahead), (2, 200.0));
    let mut third = state.reserve(100, at(0));
    third.first_token(at(50));
    assert_eq!(state.speed(at(50)).prefill_samples, 0.25);
    ours[0].first_token(at(50));
    assert!(state.speed(at(50)).prefill_samples > 1.2);
    assert_eq!(state.observe(None, at(2000)).foreign_waiting, 0.0, "the scrape is past its limit");
}

#[test]
fn the_memory_is_known_where_the_engine_tells_its_blocks() {
    let state = state();
    state.record_scrape(&says(0, 0), at(0), LIMIT);
    assert_eq!(state.observe(None, at(0)).kv_tokens_max, None);
    let blocks =
        EndpointMetrics { block_size_tokens: Some(16), block_count: Some(2000), ..says(0, 0) };
    state.record_scrape(&blocks, at(0), LIMIT);
    assert_eq!(state.observe(None, at(0)).kv_tokens_max, Some(32_000.0));
}

/// Fault 21: metrics say idle but requests queue.
#[test]
fn an_engine_that_lies_about_being_idle_is_still_charged_with_what_we_send() {
    let state = state();
    state.record_scrape(&says(0, 0), at(0), LIMIT);
    let _sent: Vec<_> = (0..50).map(|_| state.reserve(0, at(0))).collect();
    state.record_scrape(&says(0, 0), at(100), LIMIT);
    let candidate = state.observe(None, at(100));
    assert_eq!(candidate.waiting + candidate.running, 50.0);
}

#[test]
fn past_its_limit_a_scrape_has_no_say_and_our_own_count_stands() {
    let state = state();
    state.record_scrape(&says(100, 200), at(0), LIMIT);
    let _sent: Vec<_> = (0..3).map(|_| state.reserve(0, at(0))).collect();
    assert_eq!(load(&state.observe(None, at(2000))), (3.0, 3.0));
}

#[test]
fn extreme_reports_give_finite_loads() {
    let state = state();
    let metrics = EndpointMetrics {
        kv_usage: Some(Ratio::ONE),
        running_max: Some(u32::MAX),
        ..says(u32::MAX, u32::MAX)
    };
    state.record_scrape(&metrics, at(0), Duration::ZERO);
    for millis in [0, 1, u64::MAX / 1_000_000] {
        let candidate = state.observe(None, at(millis));
        assert!(candidate.waiting.is_finite() && candidate.running >= 0.0, "{candidate:?}");
    }
    state.record_scrape(&metrics, Timestamp(u64::MAX), Duration::MAX);
    assert!(state.observe(None, Timestamp(u64::MAX)).age.is_some());
}

#[test]
fn the_first_token_gives_prefill_back_once_and_the_end_the_rest() {
    let state = state();
    let mut first = state.reserve(1000, at(0));
    let second = state.reserve(500, at(0));
    assert_eq!(first.endpoint(), EndpointId(3));
    first.first_token(at(1));
    first.first_token(at(2));
    assert_eq!((state.in_flight(), state.prefill_tokens()), (2, 500));
    drop(second);
    assert_eq!((state.in_flight(), state.prefill_tokens()), (1, 0));
    drop(first);
    assert_eq!((state.in_flight(), state.prefill_tokens()), (0, 0));
}

proptest! {
    #[test]
    fn reservations_leak_nothing_in_any_interleaving(
        steps in collection::vec((0..4_u8, any::<Index>(), any::<u32>()), 0..200),
    ) {
        let state = state();
        let mut live = Vec::new();
        for (step, which, tokens) in steps {
            match step {
                0 | 1 => live.push((state.reserve(tokens, at(0)), tokens)),
                _ if live.is_empty() => {}
                2 => {
                    let at_index = which.index(live.len());
                    let (reservation, tokens) = &mut live[at_index];
                    reservation.first_token(at(1));
                    *tokens = 0;
                }
                _ => drop(live.swap_remove(which.index(live.len()))),
            }
            let prefill: u64 = live.iter().map(|(_, tokens)| u64::from(*tokens)).sum();
            prop_assert_eq!(state.in_flight() as usize, live.len());
            prop_assert_eq!(state.prefill_tokens(), prefill);
        }
        drop(live);
        prop_assert_eq!((state.in_flight(), state.prefill_tokens()), (0, 0));
    }
}

#[test]
fn reservations_of_many_threads_leak_nothing() {
    let state = state();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for round in 0..1000 {
                    let mut reservation = state.reserve(round, at(0));
                    if round % 2 == 0 {
                        reservation.first_token(at(0));
                    }
                }
            });
        }
    });
    assert_eq!((state.in_flight(), state.prefill_tokens()), (0, 0));
}

const SQL: AdapterId = AdapterId(1);
const LAW: AdapterId = AdapterId(2);
const TAX: AdapterId = AdapterId(3);

fn lora(max: u32, running: &[AdapterId], waiting: &[AdapterId]) -> EndpointMetrics {
    let lora = LoraMetrics { max, running: running.to_vec(), waiting: waiting.to_vec() };
    EndpointMetrics { lora: Some(lora), ..says(0, 0) }
}

fn fit(state: &EndpointState, adapter: AdapterId) -> LoraFit {
    state.observe(Some(adapter), at(0)).lora
}

#[test]
fn adapters_fit_as_the_engine_reports_them() {
    let state = state();
    assert_eq!(fit(&state, SQL), LoraFit::Unknown);
    state.record_scrape(&lora(2, &[SQL], &[]), at(0), LIMIT);
    assert_eq!([SQL, LAW].map(|a| fit(&state, a)), [LoraFit::Resident, LoraFit::Room]);
    state.record_scrape(&lora(2, &[SQL, LAW], &[TAX]), at(1), LIMIT);
    assert_eq!(fit(&state, TAX), LoraFit::Waiting);
    assert_eq!(fit(&state, AdapterId(9)), LoraFit::Full);
    assert_eq!(state.observe(None, at(0)).lora, LoraFit::Unknown);
}

/// LORA-1.
#[test]
fn an_adapter_that_is_resident_but_idle_counts_as_resident() {
    let state = state();
    state.record_scrape(&lora(2, &[SQL], &[]), at(0), LIMIT);
    state.record_scrape(&lora(2, &[], &[]), at(100), LIMIT);
    let candidate = state.observe(Some(SQL), at(100));
    assert_eq!(candidate.lora, LoraFit::Resident);
    assert_eq!(candidate.scraped.lora, LoraFit::Room, "the engine alone does not tell");
}

/// LORA-3.
#[test]
fn an_adapter_both_running_and_waiting_is_resident() {
    let state = state();
    state.record_scrape(&lora(1, &[SQL], &[SQL]), at(0), LIMIT);
    assert_eq!(fit(&state, SQL), LoraFit::Resident);
}

#[test]
fn the_least_recently_used_adapter_leaves_when_a_new_one_needs_its_place() {
    let state = state();
    state.record_scrape(&lora(2, &[], &[]), at(0), LIMIT);
    for (millis, adapter) in [(1, SQL), (2, LAW), (3, SQL), (4, TAX)] {
        drop(state.reserve_with(0, Some(adapter), at(millis)));
    }
    let fits = [SQL, LAW, TAX].map(|adapter| fit(&state, adapter));
    assert_eq!(fits, [LoraFit::Resident, LoraFit::Full, LoraFit::Resident]);
}

#[test]
fn an_engine_that_reports_no_adapters_has_those_that_it_was_sent() {
    let state = state();
    drop(state.reserve_with(0, Some(SQL), at(0)));
    assert_eq!([SQL, LAW].map(|a| fit(&state, a)), [LoraFit::Resident, LoraFit::Unknown]);
    for n in 0..1000 {
        drop(state.reserve_with(0, Some(AdapterId(1000 + n)), at(n)));
    }
    assert_eq!(fit(&state, SQL), LoraFit::Unknown, "remembered within a bound");
}

/// LORA-5.
#[test]
fn an_adapter_that_the_endpoint_does_not_list_is_not_served() {
    let state = state();
    drop(state.reserve_with(0, Some(SQL), at(0)));
    state.set_served_adapters(&[TAX, LAW]);
    assert_eq!(fit(&state, SQL), LoraFit::NotServed);
    assert_ne!(fit(&state, LAW), LoraFit::NotServed);
    state.set_served_adapters(&[SQL]);
    assert_eq!(fit(&state, SQL), LoraFit::Resident);
}

#[test]
fn what_the_engine_reports_asleep_is_seen() {
    let state = state();
    let mut metrics = says(0, 0);
    metrics.asleep = true;
    state.record_scrape(&metrics, at(0), LIMIT);
    assert!(state.observe(None, at(0)).asleep);
}

#[test]
fn a_batch_is_known_to_be_full_once_others_waited_beside_it() {
    let state = state();
    let full = |millis, waiting, running| {
        state.record_scrape(&says(waiting, running), at(millis), LIMIT);
        state.observe(None, at(millis)).scraped.running_full
    };
    assert_eq!(full(0, 0, 30), None);
    assert_eq!(full(1, 3, 40), Some(40));
    assert_eq!(full(2, 0, 10), Some(40), "it is not full now, but this is where it ends");
    assert_eq!(full(3, 0, 60), Some(60), "more ran, so there was more room");
    assert_eq!(full(4, 2, 20), Some(20), "long prompts: fewer fill it");
}
