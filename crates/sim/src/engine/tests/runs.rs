//! A run is nothing but its steps.

use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::{Just, Strategy, any, prop_oneof};
use proptest::{prop_assert_eq, proptest};
use types::Timestamp;

use super::books::audit;
use super::{request, small, with_adapter};
use crate::engine::{
    Decoded, Engine, EngineSpec, EngineStats, Event, RequestId, RequestSpec, Reservation,
};

#[derive(Clone, Debug)]
enum Call {
    Submit(Box<RequestSpec>),
    Cancel(RequestId),
    Look,
}

/// What somebody who looks sees.
#[derive(Debug, PartialEq, Eq)]
struct Look {
    at: Timestamp,
    running: u32,
    waiting: u32,
    blocks_used: u32,
    /// Blocks in use at the end of the last step.
    blocks_used_at_last_end: u32,
    tokens: u64,
    step_end: Option<Timestamp>,
}

#[derive(Debug, Default, PartialEq)]
struct Played {
    log: Vec<(Timestamp, Event)>,
    looks: Vec<Look>,
    stats: EngineStats,
    /// Hashes in the order in which they would be evicted.
    free: Vec<Option<u64>>,
}

/// Plays the calls, each at its time, step by step or by runs. Also how often a step or run began.
fn play(
    spec: &EngineSpec,
    calls: &[(Timestamp, Call)],
    until: Option<Duration>,
) -> (Played, usize) {
    let mut engine = Engine::new(spec.clone(), 9);
    let mut played = Played::default();
    let (mut decoded, mut events) = (Decoded::default(), Vec::new());
    let (mut step_end, mut used_at_last_end, mut begun) = (None, 0, 0);
    let mut calls = calls.iter().peekable();
    let mut now = Timestamp::ZERO;
    loop {
        // At one instant: calls, then ends, then beginnings.
        while let Some((_, call)) = calls.next_if(|(at, _)| *at <= now) {
            match call {
                Call::Submit(spec) => {
                    let _ = engine.submit((**spec).clone());
                }
                Call::Cancel(id) => {
                    let view = engine.run_at(now);
                    let last_used = view.and_then(|view| view.blocks_used_at_last_end);
                    used_at_last_end = last_used.unwrap_or(used_at_last_end);
                    engine.cut(now, &mut decoded);
                    note_decoded(&mut played.log, &decoded);
                    engine.cancel(*id);
                }
                Call::Look => {
                    let tokens = played.log.iter().filter(|(_, event)| {
                        matches!(event, Event::Token { .. } | Event::FirstToken { .. })
                    });
                    let mut tokens = tokens.count() as u64;
                    let gauges = engine.gauges();
                    let (mut used, mut last_used) = (gauges.blocks_used, used_at_last_end);
                    if let Some(view) = engine.run_at(now) {
                        tokens += u64::from(view.steps_ended) * u64::from(gauges.running);
                        used = view.blocks_used;
                        last_used = view.blocks_used_at_last_end.unwrap_or(last_used);
                        step_end = Some(view.step_end);
                    }
                    played.looks.push(Look {
                        at: now,
                        running: gauges.running,
                        waiting: gauges.waiting(),
                        blocks_used: used,
                        blocks_used_at_last_end: last_used,
                        tokens,
                        step_end,
                    });
                }
            }
            step_end = engine.run_end().or(step_end);
        }
        if step_end.is_some_and(|end| end <= now) {
            if until.is_some() {
                engine.finish_run(&mut decoded, &mut events);
                note_decoded(&mut played.log, &decoded);
            } else {
                engine.finish_step(now, &mut events);
            }
            played.log.extend(events.drain(..).map(|event| (now, event)));
            used_at_last_end = engine.gauges().blocks_used;
            step_end = None;
            audit(&engine);
        }
        if step_end.is_none() {
            step_end = match until {
                Some(until) => engine.begin_run(now, now + until).map(|run| run.end),
                None => engine.step(now).map(|step| now + step.duration),
            };
            begun += usize::from(step_end.is_some());
            audit(&engine);
        }
        let ready = engine.next_ready().filter(|_| step_end.is_none());
        let next = [step_end, ready, calls.peek().map(|(at, _)| *at)].into_iter().flatten().min();
        let Some(next) = next else { break };
        now = now.max(next);
    }
    played.stats = engine.stats();
    played.free = engine.blocks.free_hashes();
    (played, begun)
}

fn note_decoded(log: &mut Vec<(Timestamp, Event)>, decoded: &Decoded) {
    for end in &decoded.ends {
        log.extend(decoded.requests.iter().map(|id| (*end, Event::Token { id: *id })));
    }
}

/// Calls of some seconds, most of which let several requests run at once.
fn calls() -> impl Strategy<Value = Vec<(Timestamp, Call)>> {
    let adapter = prop_oneof![4 => Just(None), 1 => (0_u8..4).prop_map(Some)];
    let submit = (0_u64..5, 1_u32..200, 1_u32..120, adapter, any::<bool>()).prop_map(
        |(content, prompt, output, adapter, is_answer_known)| {
            // Turns of a chat: a prompt may hold what another request is just answering.
            let mut spec = request(0, content, prompt, output);
            if !is_answer_known {
                spec.answer_blocks.clear();
            }
            match adapter {
                Some(adapter) => with_adapter(spec, &adapter.to_string()),
                None => spec,
            }
        },
    );
    let call = prop_oneof![
        4 => submit.prop_map(|spec| Call::Submit(Box::new(spec))),
        1 => (0_u64..20).prop_map(|id| Call::Cancel(RequestId(id))),
        4 => Just(Call::Look),
    ];
    vec((0_u64..400_000_000, call), 1..60).prop_map(|gaps| {
        let (mut now, mut next_id) = (0, 0);
        let place = |(gap, mut call)| {
            now += gap;
            if let Call::Submit(spec) = &mut call {
                (spec.id, spec.arrived) = (RequestId(next_id), Timestamp(now));
                next_id += 1;
            }
            (Timestamp(now), call)
        };
        gaps.into_iter().map(place).collect()
    })
}

fn specs() -> impl Strategy<Value = EngineSpec> {
    let reservation = prop_oneof![Just(Reservation::OnDemand), Just(Reservation::WholeAnswer)];
    let block_size = prop_oneof![3 => Just(16_u32), 1 => Just(1), 1 => Just(5)];
    let api_delay_ms = prop_oneof![Just(0_u64), Just(15)];
    let jitter = prop_oneof![Just(0.0), Just(0.3)];
    (reservation, block_size, api_delay_ms, jitter, 2_u32..9, any::<bool>()).prop_map(
        |(reservation, block_size, api_delay_ms, jitter, sequences_max, prefix_caching)| {
            let mut spec = small(640 / block_size);
            spec.block_size = block_size;
            spec.reservation = reservation;
            spec.api_delay = Duration::from_millis(api_delay_ms);
            spec.jitter = jitter;
            spec.sequences_max = sequences_max;
            spec.prefix_caching = prefix_caching;
            spec
        },
    )
}

proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(400))]

    #[test]
    fn runs_give_every_event_at_the_time_at_which_single_steps_give_it(
        spec in specs(), calls in calls(), until_ms in prop_oneof![Just(40_u64), Just(1_000_000)]
    ) {
        let (by_steps, _) = play(&spec, &calls, None);
        let (by_runs, _) = play(&spec, &calls, Some(Duration::from_millis(until_ms)));
        prop_assert_eq!(by_steps.log, by_runs.log);
        prop_assert_eq!(by_steps.looks, by_runs.looks);
        prop_assert_eq!(by_steps.stats, by_runs.stats);
        prop_assert_eq!(by_steps.free, by_runs.free);
    }
}

#[test]
fn a_long_answer_is_played_in_a_few_runs() {
    let spec = small(400);
    let submit = Call::Submit(Box::new(request(1, 1, 16, 1000)));
    let (played, begun) = play(&spec, &[(Timestamp::ZERO, submit)], Some(Duration::from_secs(100)));
    assert_eq!(played.stats.steps, 1000);
    assert!(begun <= 20, "{begun}");
}

#[test]
fn a_request_that_waits_for_memory_does_not_end_the_runs() {
    let spec = small(20);
    let submit = |id| {
        let mut spec = request(id, id, 150, 160);
        spec.answer_blocks.clear();
        (Timestamp::ZERO, Call::Submit(Box::new(spec)))
    };
    let (played, begun) = play(&spec, &[submit(1), submit(2)], Some(Duration::from_secs(100)));
    assert_eq!(played.stats.preemptions, 1);
    assert!(begun <= 20, "{begun} for {} steps", played.stats.steps);
}

#[test]
fn a_run_ends_with_the_step_in_which_a_request_enters() {
    let mut spec = small(400);
    spec.api_delay = Duration::from_millis(15);
    let mut engine = Engine::new(spec, 0);
    engine.submit(request(1, 1, 16, 200)).unwrap();
    let mut now = Timestamp::from_millis(15);
    let (mut decoded, mut events) = (Decoded::default(), Vec::new());
    let prefill = engine.begin_run(now, Timestamp(u64::MAX)).unwrap();
    assert_eq!((prefill.steps, prefill.work.decodes), (1, 0));
    engine.finish_run(&mut decoded, &mut events);
    now = prefill.end;
    let run = engine.begin_run(now, Timestamp(u64::MAX)).unwrap();
    assert_eq!((run.steps, run.work.decodes), (64, 1));
    let mut second = request(2, 2, 16, 1);
    second.arrived = now + Duration::from_millis(20);
    let enters = second.arrived + Duration::from_millis(15);
    engine.submit(second).unwrap();
    let end = engine.run_end().unwrap();
    assert!(end < run.end);
    assert!(enters <= end && end.since(enters) < Duration::from_millis(9), "{enters:?} {end:?}");
    engine.finish_run(&mut decoded, &mut events);
    assert_eq!(decoded.requests, [RequestId(1)]);
    assert!(decoded.ends.last().unwrap() < &enters);
    let next = engine.begin_run(end, Timestamp(u64::MAX)).unwrap();
    assert_eq!((next.steps, next.work.tokens), (1, 17));
}
