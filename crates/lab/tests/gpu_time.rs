//! What is booked to requests adds up to what the engine worked, by the speeds that a gateway learns from
//! outside.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test that shows its figures")]

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg32;
use sched::{BusyBook, EndpointState, GpuTime, Reservation, Work};
use sim::engine::{Engine, EngineSpec, Event, Hardware, RequestId, RequestSpec};
use types::{EndpointId, EngineKind, Slot, Timestamp};

const SECONDS: u64 = 240;

struct Open {
    reservation: Reservation,
    prompt_tokens: u32,
    output_tokens: u32,
    batch_at_first: f32,
    sent: Timestamp,
}

/// What came, and how much of it.
struct Load {
    name: &'static str,
    hardware: &'static str,
    per_second: f64,
    prompt: Range<u32>,
    output: Range<u32>,
}

/// Poisson arrivals on one engine; booked and worked endpoint-seconds. The first third, in which speeds are
/// learned, is not counted.
fn booked_and_worked(load: &Load) -> (GpuTime, f64) {
    let mut rng = Pcg32::seed_from_u64(11);
    let hardware = Hardware::find(load.hardware).unwrap();
    let mut engine = Engine::new(EngineSpec::new(EngineKind::Vllm, hardware, 0, 0), 5);
    let state = Arc::new(EndpointState::new(EndpointId(0), Slot(0)));
    let start = Timestamp::from_millis(1000);
    let (mut now, mut next, mut ids) = (start, start, 0);
    let mut open: HashMap<RequestId, Open> = HashMap::new();
    let (mut booked, mut worked) = (GpuTime::default(), 0.0);
    let mut events = Vec::new();
    let book = BusyBook::default();
    while now.since(start) < Duration::from_secs(SECONDS) {
        while next <= now {
            ids += 1;
            let id = RequestId(ids);
            let prompt_tokens = rng.random_range(load.prompt.clone());
            let output_tokens = rng.random_range(load.output.clone());
            let spec = RequestSpec {
                id,
                prompt_blocks: Vec::new(),
                answer_blocks: Vec::new(),
                prompt_tokens,
                output_tokens,
                output_tokens_max: output_tokens,
                adapter: None,
                arrived: next,
            };
            let reservation = state.reserve(prompt_tokens, next);
            engine.submit(spec).unwrap();
            let batch_at_first = 0.0;
            let request =
                Open { reservation, prompt_tokens, output_tokens, batch_at_first, sent: next };
            open.insert(id, request);
            let draw: f64 = rng.random_range(1e-9..1.0);
            next = next + Duration::from_secs_f64(-draw.ln() / load.per_second);
        }
        let Some(step) = engine.step(now) else {
            // Idle, or still unpacking.
            let ready = engine.next_ready().unwrap_or(next).min(next);
            now = ready.max(now + Duration::from_micros(1));
            continue;
        };
        let is_counted = now.since(start) > Duration::from_secs(SECONDS / 3);
        now = now + step.duration;
        if is_counted {
            worked += step.duration.as_secs_f64();
        }
        engine.finish_step(now, &mut events);
        for event in events.drain(..) {
            match event {
                Event::FirstToken { id } => {
                    let request = open.get_mut(&id).unwrap();
                    request.reservation.first_token(now);
                    request.batch_at_first = state.decoding(now);
                }
                Event::Finished { id, .. } => {
                    let mut request = open.remove(&id).unwrap();
                    let batch = f32::midpoint(request.batch_at_first, state.decoding(now));
                    request.reservation.finished(Some(request.output_tokens), now);
                    let work = Work {
                        computed_tokens: f64::from(request.prompt_tokens),
                        cached_tokens: 0.0,
                        output_tokens: f64::from(request.output_tokens),
                        batch: f64::from(batch),
                    };
                    let time = work.gpu_time(&state.speed(now));
                    let time = book.settle(time, request.sent, now);
                    if is_counted {
                        booked.prefill += time.prefill;
                        booked.decode += time.decode;
                    }
                }
                _ => {}
            }
        }
    }
    (booked, worked)
}

#[test]
fn what_is_booked_is_what_the_engine_worked_within_a_fifth() {
    let load = |name, hardware, per_second, prompt, output| Load {
        name,
        hardware,
        per_second,
        prompt,
        output,
    };
    let (h100, a10g) = ("llama-3.1-8b/h100", "llama-3.1-8b/a10g");
    for load in [
        load("chats", h100, 8.0, 400..1600, 100..400),
        load("chats", a10g, 0.8, 400..1600, 100..400),
        load("long prompts, short answers", h100, 2.0, 4000..12_000, 10..60),
        load("short prompts, long answers", h100, 4.0, 50..200, 400..1200),
        load("nearly idle", h100, 0.3, 400..1600, 100..400),
    ] {
        let (booked, worked) = booked_and_worked(&load);
        let quotient = (booked.prefill + booked.decode) / worked;
        println!(
            "{} on {}: prefill {:.1} s and decode {:.1} s booked, {worked:.1} s worked: {quotient:.2}",
            load.name, load.hardware, booked.prefill, booked.decode
        );
        assert!((0.8..1.2).contains(&quotient), "{}: {quotient} of what was worked", load.name);
    }
}
