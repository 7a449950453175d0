use std::sync::Arc;
use std::time::Duration;

use types::{EndpointId, EndpointMetrics, Slot, Timestamp};

use super::Credit;
use crate::{Candidate, EndpointState};

const LIMIT: Duration = Duration::from_secs(60);
const FLUSH: Duration = Duration::from_millis(50);

fn at(millis: u64) -> Timestamp {
    Timestamp::from_millis(millis)
}

fn state() -> Arc<EndpointState> {
    Arc::new(EndpointState::new(EndpointId(0), Slot(0)))
}

fn scrape(state: &EndpointState, waiting: u32, running: u32, now: Timestamp) {
    let page = EndpointMetrics {
        waiting: Some(waiting),
        running: Some(running),
        ..EndpointMetrics::default()
    };
    state.record_scrape(&page, now, LIMIT);
}

fn requests(requests: u32) -> Credit {
    Credit { requests, ..Credit::default() }
}

/// Requests there in all, by the best estimate.
fn total(candidate: &Candidate) -> f32 {
    candidate.waiting + candidate.running
}

#[test]
fn what_peers_have_there_counts_before_any_scrape() {
    let state = state();
    let theirs = Credit { requests: 3, prefilling: 2, prefill_tokens: 900, tokens_ahead: 700 };
    state.set_peers(theirs, FLUSH, at(0));
    let _own = state.reserve(100, at(0));
    let candidate = state.observe(None, at(0));
    assert_eq!((candidate.in_flight, candidate.peers_in_flight), (4, 3));
    assert_eq!((candidate.prefilling, candidate.prefill_tokens), (3, 1000));
    assert_eq!((candidate.tokens_ahead, candidate.decoding), (800.0, 1.0));
    assert_eq!(state.in_flight(), 1, "our own count is ours alone");
}

#[test]
fn what_a_peer_is_told_is_our_own_part_only() {
    let state = state();
    state.set_peers(requests(9), FLUSH, at(0));
    let _own = state.reserve(100, at(0));
    let own = Credit { requests: 1, prefilling: 1, prefill_tokens: 100, tokens_ahead: 100 };
    assert_eq!(state.credit(at(0)), own);
}

#[test]
fn requests_of_peers_on_a_page_are_not_somebody_elses_too() {
    let state = state();
    state.set_peers(requests(5), FLUSH, at(0));
    scrape(&state, 0, 5, at(100));
    let candidate = state.observe(None, at(100));
    assert_eq!((total(&candidate), candidate.foreign_waiting, candidate.decoding), (5.0, 0.0, 5.0));
}

#[test]
fn requests_that_peers_sent_after_the_scrape_count_at_once() {
    let state = state();
    scrape(&state, 0, 0, at(0));
    state.set_peers(requests(5), FLUSH, at(100));
    assert_eq!(total(&state.observe(None, at(100))), 5.0);
}

#[test]
fn requests_that_peers_end_after_the_scrape_are_gone_at_once() {
    let state = state();
    state.set_peers(requests(5), FLUSH, at(0));
    scrape(&state, 0, 5, at(10));
    state.set_peers(requests(2), FLUSH, at(100));
    assert_eq!(total(&state.observe(None, at(100))), 2.0);
}

#[test]
fn a_peer_heard_for_the_first_time_is_not_counted_twice() {
    let state = state();
    scrape(&state, 0, 7, at(0));
    assert_eq!(total(&state.observe(None, at(0))), 7.0);
    state.set_peers(requests(7), Duration::MAX, at(10));
    assert_eq!(total(&state.observe(None, at(10))), 7.0);
}

#[test]
fn a_peer_that_falls_silent_leaves_what_the_page_counted() {
    let state = state();
    state.set_peers(requests(7), FLUSH, at(0));
    scrape(&state, 0, 7, at(100));
    state.set_peers(Credit::default(), Duration::MAX, at(200));
    let candidate = state.observe(None, at(200));
    assert_eq!((total(&candidate), candidate.peers_in_flight), (7.0, 0));
    scrape(&state, 0, 0, at(300));
    assert_eq!(total(&state.observe(None, at(300))), 0.0);
}

#[test]
fn of_a_change_that_spans_the_scrape_the_part_before_is_on_its_page() {
    let state = state();
    // Eight requests came evenly within 40 ms, the scrape after 30 of them: six are on the page.
    scrape(&state, 0, 6, at(30));
    state.set_peers(requests(8), Duration::from_millis(40), at(40));
    let candidate = state.observe(None, at(40));
    assert_eq!(total(&candidate), 8.0);
    assert_eq!(candidate.scraped.in_flight, 6);
}

#[test]
fn sums_stop_at_the_largest_number() {
    let most =
        Credit { requests: u32::MAX, prefilling: 1, prefill_tokens: u64::MAX, tokens_ahead: 1 };
    assert_eq!(most.plus(most).requests, u32::MAX);
    assert_eq!(most.plus(most).prefill_tokens, u64::MAX);
    let state = state();
    state.set_peers(most, FLUSH, at(0));
    let _own = state.reserve(1, at(0));
    assert_eq!(state.observe(None, at(0)).in_flight, u32::MAX);
}
