//! A fixed number of requests kept in flight, as the published measurements did it.

use std::fmt;
use std::time::Duration;

use types::{EngineKind, Timestamp};
use wicketgate_sim::engine::{
    Decoded, Engine, EngineSpec, Event, Hardware, RequestId, RequestSpec, StepCosts,
};

/// One published point.
pub(crate) struct Measured {
    pub(crate) hardware: &'static Hardware,
    pub(crate) prompt_tokens: u32,
    pub(crate) output_tokens: u32,
    pub(crate) concurrency: u32,
    pub(crate) tpot_ms: f64,
}

impl fmt::Display for Measured {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { prompt_tokens, output_tokens, concurrency, tpot_ms, .. } = self;
        let name = self.hardware.name;
        write!(out, "{name} {prompt_tokens}/{output_tokens} x{concurrency} {tpot_ms} ms")
    }
}

/// Mean time per output token, milliseconds. The first arrivals are spread evenly over about the
/// time of an answer; the first round is left out, and so is the last, which runs empty.
pub(crate) fn tpot_ms(measured: &Measured, costs: StepCosts) -> f64 {
    let mut spec = EngineSpec::new(EngineKind::Vllm, measured.hardware, 0, 0);
    spec.costs = costs;
    let mut engine = Engine::new(spec, 0);
    let concurrency = measured.concurrency;
    let submit = |engine: &mut Engine, id: u32, arrived: Timestamp| {
        let request = RequestSpec {
            id: RequestId(u64::from(id)),
            prompt_blocks: Vec::new(),
            answer_blocks: Vec::new(),
            prompt_tokens: measured.prompt_tokens,
            output_tokens: measured.output_tokens,
            output_tokens_max: measured.output_tokens,
            adapter: None,
            arrived,
        };
        engine.submit(request).unwrap();
    };
    let spread = Duration::from_millis(u64::from(measured.output_tokens * 10 / concurrency));
    for id in 0..concurrency {
        submit(&mut engine, id, Timestamp::ZERO + spread * id);
    }
    let (mut next, mut now) = (concurrency, Timestamp::ZERO);
    let (mut decoded, mut events) = (Decoded::default(), Vec::new());
    let (mut seconds, mut requests) = (0.0, 0);
    while let Some(ready) = engine.next_ready() {
        let run = engine.begin_run(now.max(ready), Timestamp(u64::MAX));
        now = run.expect("ready, so there is a step").end;
        engine.finish_run(&mut decoded, &mut events);
        for event in events.drain(..) {
            let Event::Finished { id, times } = event else { continue };
            if next < concurrency * 3 {
                submit(&mut engine, next, now);
                next += 1;
            }
            if (u64::from(concurrency)..u64::from(2 * concurrency)).contains(&id.0) {
                seconds += times.finished.since(times.first_token).as_secs_f64();
                requests += 1;
            }
        }
    }
    seconds * 1e3 / f64::from(requests) / f64::from(measured.output_tokens - 1)
}
