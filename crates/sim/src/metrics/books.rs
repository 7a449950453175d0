//! What a server has counted: the engine's gauges as of its last step, and histograms of requests.

use std::collections::BTreeMap;
use std::time::Duration;

use types::{AdapterId, Timestamp};

use crate::engine::{EngineStats, RequestTimes};

use super::histogram::Histogram;

const TTFT: [f64; 22] = [
    0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0,
    20.0, 40.0, 80.0, 160.0, 640.0, 2560.0,
];
const TOKEN: [f64; 19] = [
    0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0,
    40.0, 80.0,
];
const REQUEST: [f64; 21] = [
    0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 50.0, 60.0, 120.0, 240.0,
    480.0, 960.0, 1920.0, 7680.0,
];
const STEP_TOKENS: [f64; 13] =
    [1.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0, 2048.0, 4096.0, 8192.0, 16384.0];
const LATE_MS: [f64; 10] = [0.25, 0.5, 1.0, 1.5, 2.0, 4.0, 8.0, 16.0, 64.0, 256.0];

/// How an answer ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Finish {
    Stop,
    Length,
}

/// Adapters running and waiting, in order.
type AdapterSets = (Vec<AdapterId>, Vec<AdapterId>);

#[derive(Clone, Debug)]
pub(crate) struct Books {
    /// As of the last step, as in life: a request that came since is in no gauge.
    pub(super) stats: EngineStats,
    /// Unix time of the process's start.
    pub(super) created: f64,
    /// Label sets of `lora_requests_info` with the time of their last use; old ones stay.
    pub(super) lora_series: BTreeMap<AdapterSets, f64>,
    pub(super) finished_stop: u64,
    pub(super) finished_length: u64,
    pub(super) aborted: u64,
    pub(super) rejected: u64,
    /// Tokens generated in the second before the last full one ended; SGLang's `gen_throughput`.
    pub(super) throughput: f64,
    /// Share of cached prompt tokens in the last second; SGLang's `cache_hit_rate`.
    pub(super) recent_hits: f64,
    window: Window,
    pub(super) ttft: Histogram,
    pub(super) inter_token: Histogram,
    pub(super) per_output_token: Histogram,
    pub(super) end_to_end: Histogram,
    pub(super) queue: Histogram,
    pub(super) inference: Histogram,
    pub(super) prefill: Histogram,
    pub(super) decode: Histogram,
    pub(super) prompt_tokens: Histogram,
    pub(super) generation_tokens: Histogram,
    pub(super) step_tokens: Histogram,
    pub(super) preemptions: Histogram,
    pub(super) computed_tokens: Histogram,
    /// How late the simulator itself ended its steps; part of no engine's page.
    lateness_ms: Histogram,
}

#[derive(Clone, Copy, Debug, Default)]
struct Window {
    begun: Timestamp,
    generated: u64,
    queried: u64,
    hits: u64,
}

impl Books {
    pub(crate) fn new(stats: EngineStats, created: f64) -> Self {
        let request = || Histogram::new(&REQUEST);
        let tokens = || Histogram::one_two_five(100_000);
        Self {
            stats,
            created,
            lora_series: BTreeMap::new(),
            finished_stop: 0,
            finished_length: 0,
            aborted: 0,
            rejected: 0,
            throughput: 0.0,
            recent_hits: 0.0,
            window: Window::default(),
            ttft: Histogram::new(&TTFT),
            inter_token: Histogram::new(&TOKEN),
            per_output_token: Histogram::new(&TOKEN),
            end_to_end: request(),
            queue: request(),
            inference: request(),
            prefill: request(),
            decode: request(),
            prompt_tokens: tokens(),
            generation_tokens: tokens(),
            step_tokens: Histogram::new(&STEP_TOKENS),
            preemptions: Histogram::new(&[1.0, 2.0, 3.0, 4.0, 5.0, 10.0, 20.0]),
            computed_tokens: tokens(),
            lateness_ms: Histogram::new(&LATE_MS),
        }
    }

    /// Takes the gauges over. `wall`: seconds since 1970.
    pub(crate) fn publish(&mut self, stats: EngineStats, now: Timestamp, wall: f64) {
        let adapters = (stats.running_adapters.clone(), stats.waiting_adapters.clone());
        if !adapters.0.is_empty() || !adapters.1.is_empty() || !self.lora_series.is_empty() {
            self.lora_series.insert(adapters, wall);
        }
        let elapsed = now.since(self.window.begun).as_secs_f64();
        if elapsed >= 1.0 {
            let generated = stats.generation_tokens - self.window.generated;
            let queried = stats.prefix_query_tokens - self.window.queried;
            let hits = stats.prefix_hit_tokens - self.window.hits;
            self.throughput = generated as f64 / elapsed;
            self.recent_hits = if queried == 0 { 0.0 } else { hits as f64 / queried as f64 };
            self.window = Window {
                begun: now,
                generated: stats.generation_tokens,
                queried: stats.prefix_query_tokens,
                hits: stats.prefix_hit_tokens,
            };
        }
        self.stats = stats;
    }

    pub(crate) fn step(&mut self, tokens: u32, late: Duration) {
        self.step_tokens.record(f64::from(tokens));
        self.lateness_ms.record(late.as_secs_f64() * 1e3);
    }

    pub(crate) fn inter_token(&mut self, gap: Duration) {
        self.inter_token.record(gap.as_secs_f64());
    }

    /// `real` turns the engine's time into the time that passed outside.
    pub(crate) fn finished(
        &mut self,
        times: &RequestTimes,
        finish: Finish,
        real: impl Fn(Duration) -> Duration,
    ) {
        match finish {
            Finish::Stop => self.finished_stop += 1,
            Finish::Length => self.finished_length += 1,
        }
        let seconds = |from: Timestamp, to: Timestamp| real(to.since(from)).as_secs_f64();
        let decode = seconds(times.first_token, times.finished);
        self.ttft.record(seconds(times.arrived, times.first_token));
        self.end_to_end.record(seconds(times.arrived, times.finished));
        self.queue.record(seconds(times.arrived, times.admitted));
        self.inference.record(seconds(times.admitted, times.finished));
        self.prefill.record(seconds(times.admitted, times.first_token));
        self.decode.record(decode);
        if times.output_tokens > 1 {
            self.per_output_token.record(decode / f64::from(times.output_tokens - 1));
        }
        self.prompt_tokens.record(f64::from(times.prompt_tokens));
        self.generation_tokens.record(f64::from(times.output_tokens));
        self.preemptions.record(f64::from(times.preemptions));
        self.computed_tokens.record(f64::from(times.prompt_tokens - times.cached_tokens));
    }

    pub(crate) fn aborted(&mut self) {
        self.aborted += 1;
    }

    pub(crate) fn rejected(&mut self) {
        self.rejected += 1;
    }

    /// How late the simulator ended its steps: P99, an upper bound in milliseconds.
    pub(crate) fn lateness_ms_p99(&self) -> f64 {
        self.lateness_ms.quantile(0.99)
    }

    /// Requests with all tokens delivered, and those cancelled.
    pub(crate) fn totals(&self) -> (u64, u64) {
        (self.finished_stop + self.finished_length, self.aborted)
    }
}
