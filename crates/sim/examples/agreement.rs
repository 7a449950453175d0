//! Whether real time agrees with virtual time: the same engine, arrivals and lengths should give
//! the same waits (within 3 % at P50 and 8 % at P95). A measurement, hence no test: a busy machine
//! ends steps late.
//!
//! `cargo run --release -p wicketgate-sim --example agreement`

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a measurement at the command line"
)]

#[path = "../tests/http/client.rs"]
#[allow(dead_code, unreachable_pub)]
mod client;

use std::time::Duration;

use types::{EngineKind, Timestamp};
use wicketgate_sim::ServerSpec;
use wicketgate_sim::engine::{Engine, EngineSpec, Event, Hardware, RequestId, RequestSpec};

use client::{CHAT, Live, chat, get, start};

const HARDWARE: &str = "llama-3.1-8b/a10g";
const REQUESTS: u64 = 25;
/// Real time for modelled time: slow enough that timers of 1 ms do not show.
const SCALE: f64 = 2.0;

/// Arrival and prompt length of each request: six requests a second of 300 to 1,500 tokens, more
/// than this engine can bear for long, so that waits are real.
fn trace() -> Vec<(Duration, u32)> {
    let mut at = 0.0;
    (0..REQUESTS)
        .map(|n| {
            let draw = |salt: u64| {
                let mixed = (n * 2 + salt + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
                ((mixed ^ mixed >> 29).wrapping_mul(0xBF58_476D_1CE4_E5B9) >> 40) as f64
                    / f64::from(1 << 24)
            };
            at += -(1.0 - draw(0)).ln() / 6.0;
            (Duration::from_secs_f64(at), 300 + (draw(1) * 1200.0) as u32)
        })
        .collect()
}

/// TTFT of each request in virtual time, seconds, sorted.
fn virtual_ttfts() -> Vec<f64> {
    let hardware = Hardware::find(HARDWARE).unwrap();
    let mut engine = Engine::new(EngineSpec::new(EngineKind::Vllm, hardware, 0, 0), 0);
    for (id, (arrived, prompt_tokens)) in trace().into_iter().enumerate() {
        engine
            .submit(RequestSpec {
                id: RequestId(id as u64),
                prompt_blocks: vec![],
                answer_blocks: vec![],
                prompt_tokens,
                output_tokens: 5,
                output_tokens_max: 5,
                adapter: None,
                arrived: Timestamp::from_duration(arrived),
            })
            .unwrap();
    }
    let (mut now, mut events) = (Timestamp::ZERO, Vec::new());
    while let Some(ready) = engine.next_ready() {
        now = now.max(ready);
        now = now + engine.step(now).unwrap().duration;
        engine.finish_step(now, &mut events);
    }
    let mut ttfts: Vec<f64> = events
        .iter()
        .filter_map(|event| match event {
            Event::Finished { times, .. } => {
                Some(times.first_token.since(times.arrived).as_secs_f64())
            }
            _ => None,
        })
        .collect();
    ttfts.sort_by(f64::total_cmp);
    ttfts
}

/// The same over HTTP, divided by the scale; `None`: the machine was too busy to tell.
async fn real_ttfts() -> Option<Vec<f64>> {
    let spec = ServerSpec::new(EngineKind::Vllm, HARDWARE);
    let fleet = start(ServerSpec { time_scale: SCALE, ..spec }).await;
    let address = fleet.server(0).address();
    let begun = tokio::time::Instant::now();
    let mut calls = tokio::task::JoinSet::new();
    for (id, (arrival, prompt_tokens)) in trace().into_iter().enumerate() {
        calls.spawn(async move {
            let due = begun + arrival.mul_f64(SCALE);
            tokio::time::sleep_until(due).await;
            // Unique from the first block on; three tokens are the template's.
            let content: String = format!("{id:04}").repeat(prompt_tokens as usize - 3);
            let mut live = Live::post(address, CHAT, &chat(&content, 5, true)).await;
            live.until("\"content\":", 2).await;
            due.elapsed().as_secs_f64() / SCALE
        });
    }
    let mut ttfts = calls.join_all().await;
    ttfts.sort_by(f64::total_cmp);
    let state = get(address, "/admin/state").await.json();
    let late = state["step_lateness_ms_p99"].as_f64().unwrap();
    (late <= 4.0).then_some(ttfts)
}

#[tokio::main]
async fn main() {
    let modelled = virtual_ttfts();
    let Some(measured) = real_ttfts().await else {
        println!("not judged: steps ended late, the machine is too busy");
        return;
    };
    for share in [0.5, 0.95] {
        let at = (REQUESTS as f64 * share) as usize;
        let error = (measured[at] / modelled[at] - 1.0) * 100.0;
        let (modelled, measured) = (modelled[at], measured[at]);
        println!(
            "TTFT P{:.0}: {modelled:.3} s modelled, {measured:.3} s measured, {error:+.1} %",
            share * 100.0
        );
    }
}
