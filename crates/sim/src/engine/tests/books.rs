//! Conservation of blocks and tokens, and determinism, for any sequence of calls.

use proptest::collection::vec;
use proptest::prelude::{Strategy, prop_oneof};
use proptest::proptest;

use super::{finished, request, run, small, with_adapter};
use crate::engine::{Engine, Event, RequestId, Reservation};
use types::Timestamp;

/// A call from outside.
#[derive(Clone, Debug)]
enum Call {
    Submit {
        content: u64,
        prompt: u32,
        output: u32,
        adapter: Option<u8>,
    },
    Cancel(u64),
    Step,
    /// Cancels while a step is under way.
    StepAndCancel(u64),
}

fn calls() -> impl Strategy<Value = Vec<Call>> {
    let adapter = prop_oneof![3 => proptest::strategy::Just(None), 1 => (0_u8..4).prop_map(Some)];
    let submit = (0_u64..6, 1_u32..300, 1_u32..60, adapter).prop_map(
        |(content, prompt, output, adapter)| Call::Submit { content, prompt, output, adapter },
    );
    let call = prop_oneof![
        2 => submit,
        1 => (0_u64..40).prop_map(Call::Cancel),
        6 => proptest::strategy::Just(Call::Step),
        1 => (0_u64..40).prop_map(Call::StepAndCancel),
    ];
    vec(call, 1..120)
}

pub(super) fn audit(engine: &Engine) {
    engine.blocks.audit(engine.requests.iter().flatten().map(|request| &request.blocks));
    let promised: u32 =
        engine.requests.iter().flatten().map(|request| engine.promise(request)).sum();
    assert_eq!(engine.promised, promised);
    assert!(engine.running.len() <= engine.spec.sequences_max as usize);
    assert_eq!(
        engine.places.len(),
        engine.entering.len() + engine.waiting.len() + engine.running.len()
    );
}

/// Plays the calls; returns every event with its time.
fn play(calls: &[Call], reservation: Reservation) -> Vec<(Timestamp, Event)> {
    let mut spec = small(40);
    spec.reservation = reservation;
    let mut engine = Engine::new(spec, 5);
    let (mut now, mut next_id, mut log) = (Timestamp::ZERO, 0, Vec::new());
    let mut events = Vec::new();
    for call in calls {
        let cancel = match call {
            Call::Submit { content, prompt, output, adapter } => {
                let mut spec = request(next_id, *content, *prompt, *output);
                if let Some(adapter) = adapter {
                    spec = with_adapter(spec, &adapter.to_string());
                }
                spec.arrived = now;
                next_id += 1;
                engine.submit(spec).unwrap();
                None
            }
            Call::Cancel(id) => {
                engine.cancel(RequestId(*id));
                None
            }
            Call::Step => Some(None),
            Call::StepAndCancel(id) => Some(Some(*id)),
        };
        if let Some(cancel) = cancel
            && let Some(step) = engine.step(now)
        {
            assert!(step.work.tokens <= engine.spec.batched_tokens_max);
            assert!(step.work.adapters <= engine.spec.lora.gpu_slots);
            assert!(engine.resident_adapters().len() <= engine.spec.lora.gpu_slots as usize);
            assert_eq!(engine.step(now), None, "two steps at once");
            audit(&engine);
            if let Some(id) = cancel {
                engine.cancel(RequestId(id));
                audit(&engine);
            }
            now = now + step.duration;
            engine.finish_step(now, &mut events);
            log.extend(events.drain(..).map(|event| (now, event)));
        }
        audit(&engine);
    }
    let (rest, end) = run(&mut engine, now);
    log.extend(rest.into_iter().map(|event| (end, event)));
    audit(&engine);
    assert_eq!(engine.requests(), 0);
    assert_eq!(engine.stats().blocks_used, 0, "blocks are lost");
    log
}

proptest! {
    #[test]
    fn no_block_is_lost_or_owned_twice(calls in calls()) {
        play(&calls, Reservation::OnDemand);
    }

    #[test]
    fn an_engine_that_reserves_whole_answers_never_preempts(calls in calls()) {
        let log = play(&calls, Reservation::WholeAnswer);
        let preempted = |(_, event): &(Timestamp, Event)| matches!(event, Event::Preempted { .. });
        assert!(!log.iter().any(preempted));
    }

    #[test]
    fn the_same_seed_and_calls_give_the_same_events(calls in calls()) {
        assert_eq!(play(&calls, Reservation::OnDemand), play(&calls, Reservation::OnDemand));
    }

    #[test]
    fn every_request_gets_exactly_its_tokens(lengths in vec((1_u32..400, 1_u32..80), 1..30)) {
        let mut engine = Engine::new(small(40), 1);
        for (id, (prompt, output)) in lengths.iter().enumerate() {
            engine.submit(request(id as u64, id as u64, *prompt, *output)).unwrap();
        }
        let (events, _) = run(&mut engine, Timestamp::ZERO);
        assert_eq!(finished(&events).len(), lengths.len());
        for (id, (_, output)) in lengths.iter().enumerate() {
            let id = RequestId(id as u64);
            let tokens = events.iter().filter(|event| match event {
                Event::FirstToken { id: other } | Event::Token { id: other } => *other == id,
                _ => false,
            });
            assert_eq!(tokens.count() as u32, *output);
        }
        let stats = engine.stats();
        let output: u32 = lengths.iter().map(|(_, output)| output).sum();
        assert_eq!(stats.generation_tokens, u64::from(output));
    }
}
