use types::{EndpointId, Slot};

use super::Config;
use crate::Candidate;

fn candidate(waiting: u32, running: u32, scraped_in_flight: u32, in_flight: u32) -> Candidate {
    let mut candidate = Candidate::idle(EndpointId(0), Slot(0));
    candidate.scraped.waiting = Some(waiting);
    candidate.scraped.running = Some(running);
    candidate.scraped.in_flight = scraped_in_flight;
    candidate.in_flight = in_flight;
    candidate
}

fn saturation(candidate: &Candidate) -> f32 {
    Config::default().endpoint(candidate)
}

#[test]
fn an_endpoint_is_full_when_the_queue_is_as_deep_as_configured() {
    assert_eq!(saturation(&candidate(0, 500, 0, 0)), 0.0, "a large batch is no queue");
    assert_eq!(saturation(&candidate(16, 200, 0, 0)), 0.5);
    assert_eq!(saturation(&candidate(32, 200, 0, 0)), 1.0);
}

#[test]
fn what_was_sent_since_the_scrape_counts_where_a_queue_was() {
    assert_eq!(saturation(&candidate(16, 200, 200, 216)), 1.0);
    assert_eq!(saturation(&candidate(32, 200, 232, 216)), 0.5, "and so does what ended");
}

#[test]
fn a_burst_onto_an_engine_without_a_queue_first_fills_its_batch() {
    assert_eq!(saturation(&candidate(0, 10, 10, 40)), 0.0);
    assert_eq!(saturation(&candidate(0, 100, 100, 200)), 0.0);
    assert!(saturation(&candidate(0, 100, 100, 300)) >= 1.0);
    let mut known = candidate(0, 10, 10, 40);
    known.scraped.running_max = Some(16);
    assert_eq!(saturation(&known), (30.0 - 6.0) / 32.0, "its size is known: the rest waits");
}

#[test]
fn kv_use_counts_only_where_something_waits() {
    let config = Config { kv_usage: Some(0.8), ..Config::default() };
    let mut busy = candidate(0, 100, 0, 0);
    busy.scraped.kv_usage = Some(0.96);
    assert_eq!(config.endpoint(&busy), 0.0);
    busy.scraped.waiting = Some(1);
    assert_eq!(config.endpoint(&busy), 0.96 / 0.8);
}

#[test]
fn without_a_fresh_scrape_only_our_own_count_says_full() {
    let config = Config { in_flight: Some(10), ..Config::default() };
    let mut stale = candidate(1000, 100, 5, 5);
    stale.stale = true;
    assert_eq!(config.endpoint(&stale), 0.5);
    stale.stale = false;
    stale.age = None;
    assert_eq!(config.endpoint(&stale), 0.5);
    assert_eq!(saturation(&stale), 0.0);
}

#[test]
fn a_pool_is_full_when_every_endpoint_is() {
    let config = Config::default();
    let full = candidate(320, 0, 0, 0);
    let idle = candidate(0, 0, 0, 0);
    assert_eq!(config.pool(&[full.clone(), idle]), 0.5);
    assert_eq!(config.pool(&[full.clone(), full]), 1.0);
    assert_eq!(config.pool(&[]), 1.0);
}

#[test]
fn extreme_settings_divide_by_nothing() {
    let config = Config { queue_depth: 0, kv_usage: Some(0.0), in_flight: Some(0) };
    assert!(!config.endpoint(&candidate(0, 0, 0, 0)).is_nan());
    assert!(config.endpoint(&candidate(u32::MAX, u32::MAX, 0, u32::MAX)) >= 1.0);
}
