use types::{EndpointId, Slot, Standing};

use super::{Config, Reserve, Room};
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
fn requests_that_only_lack_an_adapter_slot_do_not_fill_an_endpoint() {
    let mut deferred = candidate(40, 100, 0, 0);
    deferred.scraped.waiting_deferred = 24;
    assert_eq!(saturation(&deferred), 0.5);
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
    let config = Config { queue_depth: 0, kv_usage: Some(0.0), in_flight: Some(0), reserve: None };
    assert!(!config.endpoint(&candidate(0, 0, 0, 0)).is_nan());
    assert!(config.endpoint(&candidate(u32::MAX, u32::MAX, 0, u32::MAX)) >= 1.0);
}

fn room(candidate: &Candidate) -> u32 {
    Config { queue_depth: 4, ..Config::default() }.room(candidate)
}

#[test]
fn room_is_what_is_left_of_the_queue_once_something_waits() {
    assert_eq!(room(&candidate(1, 40, 41, 41)), 3);
    assert_eq!(room(&candidate(1, 40, 41, 43)), 1, "sent since the scrape");
    assert_eq!(room(&candidate(1, 40, 41, 39)), 5, "two ended since");
    assert_eq!(room(&candidate(4, 40, 44, 44)), 0);
}

#[test]
fn room_in_an_engine_without_a_queue_is_that_of_the_batch_that_was_seen_full() {
    let mut seen = candidate(0, 30, 30, 30);
    assert_eq!(room(&seen), 226 + 4, "never seen full: the smallest default of the field");
    seen.scraped.running_full = Some(40);
    assert_eq!(room(&seen), 10 + 4);
    seen.scraped.running_max = Some(32);
    assert_eq!(room(&seen), 2 + 4, "what the engine says goes before");
    seen.scraped.running = Some(50);
    assert_eq!(room(&seen), 4, "a batch larger than known is probed further");
}

#[test]
fn a_limit_of_requests_in_flight_bounds_the_room_whatever_else_is_known() {
    let config = Config { in_flight: Some(8), ..Config::default() };
    assert_eq!(config.room(&candidate(0, 1, 1, 5)), 3);
    let mut stale = candidate(0, 1, 1, 9);
    stale.stale = true;
    assert_eq!(config.room(&stale), 0);
    stale.scraped.waiting = None;
    assert_eq!(Config::default().room(&stale), 256, "nothing is known of it");
}

/// An endpoint that computes a prompt of 1,000 tokens in 25 ms beside 25 ms of constant time.
fn learned(tokens_ahead: f32) -> Candidate {
    let mut candidate = candidate(0, 0, 0, 0);
    candidate.speed.prefill_samples = 100.0;
    candidate.speed.base_ms = 25.0;
    candidate.speed.prefill_ms_per_token = 0.025;
    candidate.speed.prompt_tokens = 1000.0;
    candidate.tokens_ahead = tokens_ahead;
    candidate
}

fn reserved() -> Config {
    Config { reserve: Some(Reserve::default()), ..Config::default() }
}

#[test]
fn a_prompt_ahead_lengthens_the_wait_by_its_part_of_an_idle_endpoints_time() {
    assert_eq!(learned(0.0).stretch(), 1.0);
    assert_eq!(learned(1000.0).stretch(), 1.5);
    let unknown = Candidate { speed: crate::Speed::default(), ..learned(9000.0) };
    assert_eq!(unknown.stretch(), 1.0, "nothing is learned of it");
    let mut whole = learned(1000.0);
    (whole.whole, whole.whole_tokens) = (1, 1000);
    assert!(
        whole.stretch() < 1.5,
        "nobody sees when a prompt is computed whose answer comes whole"
    );
}

#[test]
fn those_beyond_their_part_find_a_pool_full_where_others_still_find_room() {
    let room = |ahead: [f32; 2]| Room::of(&reserved(), ahead.map(learned).iter());
    let idle = room([0.0, 0.0]).saturation_after(0);
    assert_eq!((idle.within, idle.beyond), (0.0, 0.0));
    let between = room([2000.0, 1500.0]).saturation_after(0);
    assert!(between.within < 0.1 && between.beyond < 1.0 && between.lower < between.beyond);
    let stretched = room([2000.0, 2000.0]).saturation_after(0);
    assert_eq!(stretched.beyond, 1.0);
    assert!(stretched.within < 0.1 && stretched.lower < 1.0);
    assert_eq!(room([3000.0, 3000.0]).saturation_after(0).lower, 1.0);
}

#[test]
fn what_is_let_go_counts_before_it_is_booked() {
    // Two endpoints: from 1.25 to 2 there is room for three prompts, each of which adds a quarter.
    let room = Room::of(&reserved(), [learned(1000.0), learned(0.0)].iter());
    assert!(room.saturation_after(2).beyond < 1.0);
    assert_eq!(room.saturation_after(3).beyond, 1.0);
    assert!(room.saturation_after(3).within < 0.1);
}

#[test]
fn memory_and_places_are_left_to_those_within_their_part() {
    let config = Config { in_flight: Some(10), ..reserved() };
    let open = |candidate: &Candidate| {
        [Standing::Within, Standing::Lower, Standing::Beyond].map(|s| config.is_open(candidate, s))
    };
    let mut full = learned(0.0);
    assert_eq!(open(&full), [true, true, true]);
    full.scraped.kv_usage = Some(0.9);
    full.kv_tokens_max = Some(1e6);
    assert_eq!(open(&full), [true, true, false]);
    full.scraped.kv_usage = Some(0.95);
    assert_eq!(open(&full), [true, false, false]);
    full.stale = true;
    assert_eq!(open(&full), [true, true, true], "what is stale says nothing");
    full.in_flight = 9;
    assert_eq!(open(&full), [true, true, false], "nine of ten places");
}

#[test]
fn one_endpoint_is_not_filled_for_the_sake_of_a_pools_mean() {
    let config = reserved();
    assert!(config.is_open(&learned(3900.0), Standing::Beyond));
    assert!(!config.is_open(&learned(4100.0), Standing::Beyond), "three times as long as idle");
}
