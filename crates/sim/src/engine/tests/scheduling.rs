//! Who runs, who waits, who yields; what the prefix cache finds.

use std::time::Duration;

use types::{AdapterId, Timestamp};

use super::{finished, request, run, small, with_adapter};
use crate::engine::{Engine, Event, RequestId, SubmitError};

fn admitted(events: &[Event]) -> Vec<(u64, u32)> {
    let pick = |event: &Event| match event {
        Event::Admitted { id, cached_tokens } => Some((id.0, *cached_tokens)),
        _ => None,
    };
    events.iter().filter_map(pick).collect()
}

#[test]
fn a_prompt_that_was_seen_is_found_except_for_its_last_block() {
    let mut engine = Engine::new(small(100), 0);
    engine.submit(request(1, 7, 160, 1)).unwrap();
    engine.submit(request(2, 7, 165, 1)).unwrap();
    let mut events = Vec::new();
    for _ in 0..2 {
        let (more, _) = run(&mut engine, Timestamp::ZERO);
        events.extend(more);
        engine.submit(request(3, 7, 160, 1)).unwrap();
    }
    // 160 tokens are ten full blocks; computing nothing would give no token.
    assert_eq!(admitted(&events), [(1, 0), (2, 160), (3, 144)]);
    let stats = engine.stats();
    assert_eq!((stats.prefix_query_tokens, stats.prefix_hit_tokens), (485, 304));
    assert_eq!(stats.prompt_tokens_cached, 304);
}

#[test]
fn the_answer_of_one_turn_is_found_by_the_next() {
    let mut engine = Engine::new(small(100), 0);
    engine.submit(request(1, 7, 40, 60)).unwrap();
    run(&mut engine, Timestamp::ZERO);
    engine.submit(request(2, 7, 120, 1)).unwrap();
    let (events, _) = run(&mut engine, Timestamp::ZERO);
    // 99 of the first turn's 100 tokens were computed: the last one was never fed back.
    assert_eq!(admitted(&events), [(2, 96)]);
}

#[test]
fn an_idle_engine_with_a_warm_cache_reports_no_usage() {
    let mut engine = Engine::new(small(100), 0);
    engine.submit(request(1, 7, 320, 10)).unwrap();
    run(&mut engine, Timestamp::ZERO);
    let stats = engine.stats();
    assert_eq!(stats.kv_usage(), 0.0);
    assert_eq!(stats.blocks_cached, 20);
}

#[test]
fn the_least_recently_used_blocks_are_evicted_and_of_those_the_last_first() {
    let mut engine = Engine::new(small(20), 0);
    for (id, content) in [(1, 1), (2, 2)] {
        engine.submit(request(id, content, 160, 1)).unwrap();
        run(&mut engine, Timestamp::ZERO);
    }
    // Four blocks of the first prompt make room; its end goes, its beginning stays.
    engine.submit(request(3, 3, 60, 1)).unwrap();
    run(&mut engine, Timestamp::ZERO);
    engine.submit(request(4, 1, 176, 1)).unwrap();
    let (events, _) = run(&mut engine, Timestamp::ZERO);
    assert_eq!(admitted(&events), [(4, 96)]);
}

#[test]
fn a_long_prompt_is_computed_in_chunks_while_others_go_on() {
    let mut engine = Engine::new(small(200), 0);
    engine.submit(request(1, 1, 16, 20)).unwrap();
    let mut events = Vec::new();
    let mut now = Timestamp::ZERO;
    let mut step = |engine: &mut Engine, events: &mut Vec<Event>| {
        let step = engine.step(now).unwrap();
        now = now + step.duration;
        engine.finish_step(now, events);
        step.work
    };
    step(&mut engine, &mut events);
    engine.submit(request(2, 2, 1200, 2)).unwrap();
    let sizes: Vec<u32> = (0..3).map(|_| step(&mut engine, &mut events).tokens).collect();
    assert_eq!(sizes, [512, 512, 1 + 1200 - 2 * 511]);
    let tokens_of_first = events.iter().filter(|event| {
        matches!(event, Event::Token { id } | Event::FirstToken { id } if *id == RequestId(1))
    });
    assert_eq!(tokens_of_first.count(), 4);
    assert!(events.contains(&Event::FirstToken { id: RequestId(2) }));
}

#[test]
fn the_last_running_request_yields_when_blocks_run_out_and_finishes_later() {
    let mut engine = Engine::new(small(20), 0);
    engine.submit(request(1, 1, 150, 100)).unwrap();
    engine.submit(request(2, 2, 150, 100)).unwrap();
    let (events, _) = run(&mut engine, Timestamp::ZERO);
    let preempted: Vec<_> =
        events.iter().filter(|event| matches!(event, Event::Preempted { .. })).collect();
    assert!(!preempted.is_empty());
    assert!(preempted.iter().all(|event| **event == Event::Preempted { id: RequestId(2) }));
    let finished = finished(&events);
    assert_eq!(finished.iter().map(|(id, _)| id.0).collect::<Vec<_>>(), [1, 2]);
    assert_eq!(finished[1].1.preemptions as usize, preempted.len());
    assert_eq!(engine.stats().preemptions as usize, preempted.len());
}

#[test]
fn a_request_whose_adapter_has_no_slot_is_passed_by_others() {
    let mut engine = Engine::new(small(200), 0);
    for (id, adapter) in [(1, "a"), (2, "b"), (3, "c"), (4, "a")] {
        engine.submit(with_adapter(request(id, id, 16, 4), adapter)).unwrap();
    }
    let step = engine.step(Timestamp::ZERO).unwrap();
    assert_eq!(step.work.adapters, 2);
    let stats = engine.stats();
    assert_eq!((stats.running, stats.waiting_deferred, stats.waiting_capacity), (3, 1, 0));
    assert_eq!(stats.running_adapters, [AdapterId::of("a"), AdapterId::of("b")]);
    assert_eq!(stats.waiting_adapters, [AdapterId::of("c")]);
    let mut events = Vec::new();
    engine.finish_step(Timestamp::ZERO + step.duration, &mut events);
    let (rest, _) = run(&mut engine, Timestamp::ZERO + step.duration);
    events.extend(rest);
    assert_eq!(finished(&events).len(), 4);
}

#[test]
fn loading_an_adapter_holds_everyone_up_and_a_resident_one_costs_nothing() {
    let mut engine = Engine::new(small(200), 0);
    engine.fetch_adapter(AdapterId::of("in host memory"));
    let mut load = |id, adapter| {
        engine.submit(with_adapter(request(id, id, 16, 1), adapter)).unwrap();
        let step = engine.step(Timestamp::ZERO).unwrap();
        engine.finish_step(Timestamp::ZERO, &mut Vec::new());
        assert!(step.duration >= step.adapter_load);
        step.adapter_load
    };
    // 84 MB: 30 ms + 84 MB / 8 GB/s from host memory; from disk 0.3 to 2 s + 84 MB / 1 GB/s more.
    assert_eq!(load(1, "in host memory"), Duration::from_micros(40_500));
    assert_eq!(load(2, "in host memory"), Duration::ZERO);
    let from_disk = load(3, "on disk");
    assert!((0.4245..=2.1246).contains(&from_disk.as_secs_f64()), "{from_disk:?}");
    // Two slots: the third adapter evicts the least recently used, which stays in host memory.
    load(4, "another");
    assert_eq!(load(5, "on disk"), Duration::ZERO);
    assert_eq!(load(6, "in host memory"), Duration::from_micros(40_500));
}

#[test]
fn a_cancelled_request_frees_its_blocks_at_once_also_within_a_step() {
    let mut engine = Engine::new(small(100), 0);
    engine.submit(request(1, 1, 320, 50)).unwrap();
    let step = engine.step(Timestamp::ZERO).unwrap();
    assert_eq!(engine.stats().blocks_used, 20);
    assert!(engine.cancel(RequestId(1)));
    assert_eq!(engine.stats().blocks_used, 0);
    let mut events = Vec::new();
    engine.finish_step(Timestamp::ZERO + step.duration, &mut events);
    assert_eq!(admitted(&events), [(1, 0)]);
    assert_eq!((events.len(), engine.next_ready()), (1, None));
    assert!(!engine.cancel(RequestId(1)));
}

#[test]
fn no_more_than_the_allowed_number_wait_or_run() {
    let mut spec = small(400);
    spec.queued_requests_max = Some(3);
    let mut engine = Engine::new(spec, 0);
    let submit = |engine: &mut Engine, ids: std::ops::Range<u64>| {
        ids.map(|id| engine.submit(request(id, id, 16, 100))).collect::<Vec<_>>()
    };
    for start in [0, 3, 6] {
        submit(&mut engine, start..start + 3);
        engine.step(Timestamp::ZERO);
        engine.finish_step(Timestamp::ZERO, &mut Vec::new());
    }
    let stats = engine.stats();
    assert_eq!((stats.running, stats.waiting_capacity), (8, 1));
    assert_eq!(submit(&mut engine, 20..23), [Ok(()), Ok(()), Err(SubmitError::QueueFull)]);
    assert_eq!(engine.stats().rejected, 1);
}

#[test]
fn what_can_never_run_is_refused() {
    let mut engine = Engine::new(small(10), 0);
    assert_eq!(
        engine.submit(request(1, 1, 150, 11)),
        Err(SubmitError::TooLong { tokens: 161, limit: 160 })
    );
    engine.submit(request(2, 1, 150, 10)).unwrap();
    assert_eq!(engine.submit(request(2, 1, 1, 1)), Err(SubmitError::Duplicate));
    let mut spec = small(10);
    spec.lora.gpu_slots = 0;
    let refused = Engine::new(spec, 0).submit(with_adapter(request(1, 1, 1, 1), "a"));
    assert_eq!(refused, Err(SubmitError::LoraDisabled));
}

#[test]
fn a_request_enters_after_the_api_delay() {
    let mut spec = small(10);
    spec.api_delay = Duration::from_millis(15);
    let mut engine = Engine::new(spec, 0);
    engine.submit(request(1, 1, 16, 1)).unwrap();
    assert_eq!(engine.step(Timestamp::from_millis(14)), None);
    assert_eq!(engine.stats().waiting(), 0);
    assert_eq!(engine.next_ready(), Some(Timestamp::from_millis(15)));
    assert!(engine.step(Timestamp::from_millis(15)).is_some());
}

#[test]
fn a_client_that_leaves_after_its_first_token_brings_the_next_prompt_a_step_forward() {
    // A decode that is not there leaves a token of the budget: the prompt behind it that just did
    // not fit into one step fits. So real and virtual time agree only if clients do the same.
    let first_token_ms = |leaves: bool| {
        let mut engine = Engine::new(small(200), 0);
        engine.submit(request(1, 1, 16, 20)).unwrap();
        let first = engine.step(Timestamp::ZERO).unwrap();
        let now = Timestamp::ZERO + first.duration;
        engine.finish_step(now, &mut Vec::new());
        if leaves {
            engine.cancel(RequestId(1));
        }
        engine.submit(request(2, 2, 512, 1)).unwrap();
        let (events, _) = run(&mut engine, now);
        let (_, times) = finished(&events)[0];
        times.first_token.since(now).as_secs_f64() * 1e3
    };
    let (stays, leaves) = (first_token_ms(false), first_token_ms(true));
    assert!(stays > leaves + 8.0, "{stays} {leaves}");
}
