//! Whether real time agrees with virtual time: the same engine, arrivals, lengths and shared
//! prefixes give the same waits and cache hits, once in virtual time and once over HTTP. TTFT may
//! differ by 3 % at P50 and 8 % at P95, the hit rate by one point; else the exit code is 1. A
//! measurement, hence no test: a busy machine ends steps late, and then nothing is judged (2).
//!
//! Clients read their answers to the end. One that leaves after its first token cancels the rest,
//! which makes room for the prompts behind it (a test in `engine/tests/scheduling.rs`): that once
//! made P95 15 % less.
//!
//! `cargo run --release -p wicketgate-sim --example agreement [--hardware NAME]`

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a measurement at the command line"
)]

#[path = "../tests/http/client.rs"]
#[allow(dead_code, unreachable_pub)]
mod client;

use std::process::ExitCode;
use std::time::Duration;

use types::{EngineKind, Timestamp};
use wicketgate_sim::ServerSpec;
use wicketgate_sim::engine::{
    BlockHash, Decoded, Engine, EngineSpec, EngineStats, Event, Hardware, RequestId, RequestSpec,
};

use client::{CHAT, Live, chat, get, start};

/// The node, arrivals per second, and real time for modelled time.
struct Setting {
    hardware: &'static str,
    per_second: f64,
    scale: f64,
}

/// Slow enough that timers of a millisecond and the way through HTTP hardly show.
const SETTINGS: [Setting; 2] = [
    Setting { hardware: "llama-3.1-8b/a10g", per_second: 2.2, scale: 0.5 },
    Setting { hardware: "llama-3.1-8b/h100", per_second: 20.0, scale: 4.0 },
];
const REQUESTS: u64 = 150;
const BLOCK: u32 = 16;
/// Tokens at the start of each prompt that a group of requests shares.
const SHARED_TOKENS: u32 = 256;
const GROUPS: u64 = 5;
/// Latest at which a hundredth of the steps may end, milliseconds. A timer of one millisecond is up to
/// one late by itself; the shortest steps here take 17.
const LATENESS_MS_MAX: f64 = 4.0;

struct Planned {
    at: Duration,
    group: u64,
    prompt_tokens: u32,
    output_tokens: u32,
}

/// Poisson arrivals, prompts of 300 to 1,500 tokens, answers of 5 to 45.
fn plan(per_second: f64) -> Vec<Planned> {
    let draw = |n: u64, salt: u64| {
        let mixed = (n * 8 + salt + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        ((mixed ^ mixed >> 29).wrapping_mul(0xBF58_476D_1CE4_E5B9) >> 40) as f64
            / f64::from(1 << 24)
    };
    let mut at = 0.0;
    let planned = |n: u64| {
        at += -(1.0 - draw(n, 0)).ln() / per_second;
        Planned {
            at: Duration::from_secs_f64(at),
            group: (draw(n, 1) * GROUPS as f64) as u64,
            prompt_tokens: 300 + (draw(n, 2) * 1200.0) as u32,
            output_tokens: 5 + (draw(n, 3) * 40.0) as u32,
        }
    };
    (0..REQUESTS).map(planned).collect()
}

struct Outcome {
    /// Sorted, seconds.
    ttfts: Vec<f64>,
    hit_percent: f64,
}

impl Outcome {
    fn new(mut ttfts: Vec<f64>, hit_tokens: u64, query_tokens: u64) -> Self {
        ttfts.sort_by(f64::total_cmp);
        Self { ttfts, hit_percent: hit_tokens as f64 / query_tokens as f64 * 100.0 }
    }

    fn ttft_ms(&self, share: f64) -> f64 {
        self.ttfts[(self.ttfts.len() as f64 * share) as usize] * 1e3
    }
}

fn request(id: u64, planned: &Planned) -> RequestSpec {
    let hash = |at: u32| {
        let is_shared = (at + 1) * BLOCK <= SHARED_TOKENS;
        let content = if is_shared { planned.group } else { GROUPS + id };
        BlockHash((content << 32 | u64::from(at)).wrapping_mul(0x9E37_79B9_7F4A_7C15))
    };
    let full = planned.prompt_tokens / BLOCK;
    RequestSpec {
        id: RequestId(id),
        prompt_blocks: (0..full).map(hash).collect(),
        answer_blocks: (full..(planned.prompt_tokens + planned.output_tokens) / BLOCK)
            .map(hash)
            .collect(),
        prompt_tokens: planned.prompt_tokens,
        output_tokens: planned.output_tokens,
        output_tokens_max: planned.output_tokens,
        adapter: None,
        arrived: Timestamp::from_duration(planned.at),
    }
}

fn in_virtual_time(setting: &Setting) -> Outcome {
    let hardware = Hardware::find(setting.hardware).unwrap();
    let mut engine = Engine::new(EngineSpec::new(EngineKind::Vllm, hardware, 0, 0), 0);
    for (id, planned) in plan(setting.per_second).iter().enumerate() {
        engine.submit(request(id as u64, planned)).unwrap();
    }
    let (mut now, mut decoded, mut events) = (Timestamp::ZERO, Decoded::default(), Vec::new());
    while let Some(ready) = engine.next_ready() {
        now = engine.begin_run(now.max(ready), Timestamp(u64::MAX)).unwrap().end;
        engine.finish_run(&mut decoded, &mut events);
    }
    let ttft = |event: &Event| match event {
        Event::Finished { times, .. } => Some(times.first_token.since(times.arrived).as_secs_f64()),
        _ => None,
    };
    let EngineStats { prefix_hit_tokens, prefix_query_tokens, .. } = engine.stats();
    Outcome::new(events.iter().filter_map(ttft).collect(), prefix_hit_tokens, prefix_query_tokens)
}

/// The same over HTTP, divided by the scale, and how late steps ended at P99, milliseconds.
async fn in_real_time(setting: &Setting) -> (Outcome, f64) {
    let spec = ServerSpec::new(EngineKind::Vllm, setting.hardware);
    let scale = setting.scale;
    let fleet = start(ServerSpec { time_scale: scale, ..spec }).await;
    let address = fleet.server(0).address();
    let begun = tokio::time::Instant::now();
    let mut calls = tokio::task::JoinSet::new();
    for (id, planned) in plan(setting.per_second).into_iter().enumerate() {
        // Four bytes are a token; the template takes one before the text and two after it.
        let shared = format!("g{:03}", planned.group).repeat(SHARED_TOKENS as usize - 1);
        let own = (planned.prompt_tokens - SHARED_TOKENS - 2) as usize;
        let body = chat(&(shared + &format!("{id:04}").repeat(own)), planned.output_tokens, true);
        let due = begun + planned.at.mul_f64(scale);
        calls.spawn(async move {
            tokio::time::sleep_until(due).await;
            let mut live = Live::post(address, CHAT, &body).await;
            live.until("\"content\":", 2).await;
            let ttft = due.elapsed().as_secs_f64() / scale;
            live.until("[DONE]", 1).await;
            ttft
        });
    }
    let ttfts = calls.join_all().await;
    let state = get(address, "/admin/state").await.json();
    let number = |name: &str| state[name].as_u64().unwrap();
    let outcome = Outcome::new(ttfts, number("prefix_hit_tokens"), number("prefix_query_tokens"));
    (outcome, state["step_lateness_ms_p99"].as_f64().unwrap())
}

/// Prints a line; true: within the tolerance.
fn compare(what: &str, modelled: f64, measured: f64, difference: f64, tolerance: &str) -> bool {
    let most: f64 = tolerance.split(' ').next().unwrap().parse().unwrap();
    let is_within = difference.abs() <= most;
    let verdict = if is_within { "ok" } else { "DIFFERS" };
    println!(
        "  {what:14} {modelled:12.1} {measured:12.1} {difference:+10.2}  {tolerance:10} {verdict}"
    );
    is_within
}

#[tokio::main]
async fn main() -> ExitCode {
    let chosen: Option<String> = std::env::args().skip_while(|arg| arg != "--hardware").nth(1);
    let (mut agrees, mut is_judged) = (true, true);
    for setting in &SETTINGS {
        if chosen.as_deref().is_some_and(|name| name != setting.hardware) {
            continue;
        }
        let modelled = in_virtual_time(setting);
        let (measured, late_ms) = in_real_time(setting).await;
        println!(
            "{}, {} requests at {}/s, {} s of real time a modelled one, steps late by {late_ms} ms at P99",
            setting.hardware, REQUESTS, setting.per_second, setting.scale
        );
        println!("  {:14} {:>12} {:>12} {:>10}  tolerance", "", "virtual", "real", "difference");
        for (what, share, tolerance) in
            [("TTFT P50, ms", 0.5, "3 %"), ("TTFT P95, ms", 0.95, "8 %")]
        {
            let (virtual_ms, real_ms) = (modelled.ttft_ms(share), measured.ttft_ms(share));
            let difference = (real_ms / virtual_ms - 1.0) * 100.0;
            agrees &= compare(what, virtual_ms, real_ms, difference, tolerance);
        }
        let (virtual_hit, real_hit) = (modelled.hit_percent, measured.hit_percent);
        let difference = real_hit - virtual_hit;
        agrees &= compare("hit rate, %", virtual_hit, real_hit, difference, "1 point");
        if late_ms > LATENESS_MS_MAX {
            println!("  the machine is too busy: not judged");
            is_judged = false;
        }
    }
    match (is_judged, agrees) {
        (false, _) => ExitCode::from(2),
        (true, true) => ExitCode::SUCCESS,
        (true, false) => ExitCode::FAILURE,
    }
}
