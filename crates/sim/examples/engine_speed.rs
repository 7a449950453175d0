//! How many engine steps a second the model plays: step by step, and by runs.
//!
//! `cargo run --release -p wicketgate-sim --example engine_speed`

#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a measurement at the command line"
)]

use std::time::{Duration, Instant};

use rand::{Rng, SeedableRng};
use rand_pcg::Pcg32;
use types::{EngineKind, Timestamp};
use wicketgate_sim::engine::{
    BlockHash, Decoded, Engine, EngineSpec, Event, Hardware, RequestId, RequestSpec,
};

const REQUESTS: u64 = 20_000;

struct Load {
    name: &'static str,
    hardware: &'static str,
    per_second: f64,
    prompt_tokens: u32,
    output_tokens: u32,
}

const LOADS: [Load; 4] = [
    Load {
        name: "conversation at half load",
        hardware: "llama-3.1-8b/h100",
        per_second: 9.0,
        prompt_tokens: 1155,
        output_tokens: 211,
    },
    Load {
        name: "conversation near capacity",
        hardware: "llama-3.1-8b/h100",
        per_second: 16.0,
        prompt_tokens: 1155,
        output_tokens: 211,
    },
    Load {
        name: "long answers, memory short",
        hardware: "qwen3-32b/2xh100",
        per_second: 2.0,
        prompt_tokens: 7200,
        output_tokens: 1000,
    },
    Load {
        name: "few requests",
        hardware: "llama-3.1-8b/a10g",
        per_second: 0.3,
        prompt_tokens: 1155,
        output_tokens: 211,
    },
];

/// SplitMix64's finisher: the engine's tables expect uniform hashes.
fn uniform(value: u64) -> u64 {
    let mixed = (value ^ value >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ mixed >> 31
}

fn requests(load: &Load) -> Vec<RequestSpec> {
    let mut rng = Pcg32::seed_from_u64(7);
    let mut share = || f64::from(rng.next_u32()) / f64::from(u32::MAX);
    let mut at = 0.0;
    let request = |id: u64| {
        at -= (1.0 - share()).max(1e-9).ln() / load.per_second;
        let prompt_tokens = (f64::from(load.prompt_tokens) * (0.5 + share())) as u32;
        let output_tokens = (f64::from(load.output_tokens) * (0.1 + 1.8 * share())) as u32;
        let hash = |block: u32| BlockHash(uniform(id << 32 | u64::from(block)));
        let blocks = prompt_tokens / 16;
        RequestSpec {
            id: RequestId(id),
            prompt_blocks: (0..blocks).map(hash).collect(),
            answer_blocks: (blocks..(prompt_tokens + output_tokens) / 16).map(hash).collect(),
            prompt_tokens,
            output_tokens,
            output_tokens_max: output_tokens,
            adapter: None,
            arrived: Timestamp::from_duration(Duration::from_secs_f64(at)),
        }
    };
    (0..REQUESTS).map(request).collect()
}

/// Steps, calls to begin one or a run of them, and the time at the end.
fn play(load: &Load, by_runs: bool, requests: Vec<RequestSpec>) -> (u64, u64, Timestamp) {
    let hardware = Hardware::find(load.hardware).unwrap();
    let mut engine = Engine::new(EngineSpec::new(EngineKind::Vllm, hardware, 0, 0), 0);
    let mut requests = requests.into_iter().peekable();
    let mut submit = |engine: &mut Engine, until: Timestamp| {
        while let Some(request) = requests.next_if(|request| request.arrived <= until) {
            engine.submit(request).unwrap();
        }
        requests.peek().map(|next| next.arrived)
    };
    let (mut now, mut calls, mut finished, mut tokens) = (Timestamp::ZERO, 0, 0, 0);
    let (mut decoded, mut events) = (Decoded::default(), Vec::new());
    loop {
        let next = submit(&mut engine, now);
        let is_begun = if by_runs {
            engine.begin_run(now, Timestamp(u64::MAX)).is_some()
        } else {
            let step = engine.step(now);
            now = now + step.map_or(Duration::ZERO, |step| step.duration);
            step.is_some()
        };
        if is_begun {
            calls += 1;
            if by_runs {
                // Requests in the order in which they arrive, each of which may cut the run.
                let mut next = next;
                while let (Some(arrival), Some(end)) = (next, engine.run_end())
                    && arrival <= end
                {
                    next = submit(&mut engine, arrival);
                }
                now = engine.run_end().unwrap();
                engine.finish_run(&mut decoded, &mut events);
                tokens += (decoded.ends.len() * decoded.requests.len()) as u64;
            } else {
                engine.finish_step(now, &mut events);
            }
            for event in events.drain(..) {
                match event {
                    Event::Finished { .. } => finished += 1,
                    Event::Token { .. } | Event::FirstToken { .. } => tokens += 1,
                    _ => {}
                }
            }
            continue;
        }
        match (engine.next_ready(), next) {
            (Some(ready), _) => now = ready,
            (None, Some(next)) => now = next,
            (None, None) => break,
        }
    }
    let stats = engine.stats();
    assert_eq!((finished, tokens), (REQUESTS, stats.generation_tokens));
    (stats.steps, calls, now)
}

fn main() {
    for load in &LOADS {
        for (way, by_runs) in [("by steps", false), ("by runs", true)] {
            let requests = requests(load);
            let begun = Instant::now();
            let (steps, calls, end) = play(load, by_runs, requests);
            let took = begun.elapsed();
            println!(
                "{:26} {way:8}: {:6.0} s simulated in {:.3} s, {steps} steps, {calls} calls; \
                 {:.0} ns a step, {:.2} million steps/s",
                load.name,
                end.as_duration().as_secs_f64(),
                took.as_secs_f64(),
                took.as_nanos() as f64 / steps as f64,
                steps as f64 / took.as_secs_f64() / 1e6,
            );
        }
    }
}
