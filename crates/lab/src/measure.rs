//! What a run measured, and the line it makes.

use std::ops::Range;
use std::time::Duration;

use serde::Serialize;
use sim::engine::EngineStats;
use types::Timestamp;

use crate::scenario::Slo;
use crate::workload::Request;

/// One request's fate, seen from the gateway.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    pub at: Timestamp,
    pub prompt_tokens: u32,
    pub output_tokens: u32,
    /// Where it went; `None`: refused with 429.
    pub endpoint: Option<usize>,
    pub first_token: Option<Timestamp>,
    /// `None`: refused by the gateway or by the engine.
    pub finished: Option<Timestamp>,
    pub cached_tokens: u32,
    pub preemptions: u32,
    /// From reaching the engine to the last token.
    pub inside: Duration,
}

impl Record {
    pub(crate) fn new(request: &Request) -> Self {
        Self {
            at: request.at,
            prompt_tokens: request.prompt_tokens(),
            output_tokens: request.answer.tokens,
            endpoint: None,
            first_token: None,
            finished: None,
            cached_tokens: 0,
            preemptions: 0,
            inside: Duration::ZERO,
        }
    }

    pub fn ttft(&self) -> Option<Duration> {
        Some(self.first_token?.since(self.at))
    }

    pub fn e2e(&self) -> Option<Duration> {
        Some(self.finished?.since(self.at))
    }

    /// Answered in full, first token and mean of the others in time.
    pub fn is_good(&self, slo: &Slo) -> bool {
        let (Some(first), Some(finished)) = (self.first_token, self.finished) else { return false };
        let others = self.output_tokens.saturating_sub(1).max(1);
        first.since(self.at) <= slo.ttft && finished.since(first) / others <= slo.tpot
    }
}

/// An engine's own books at the end of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct EndpointBooks {
    pub stats: EngineStats,
    /// Σ over time of the requests inside.
    pub request_seconds: f64,
    /// Requests still inside: none, if all is well.
    pub requests_left: usize,
}

/// One policy under one load and seed.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// All requests, those of the warm-up too, in order of arrival.
    pub records: Vec<Record>,
    /// What is counted: requests that arrive and tokens that come within.
    pub window: Range<Timestamp>,
    pub endpoints: Vec<EndpointBooks>,
    pub(crate) gaps: Gaps,
    pub(crate) window_tokens: u64,
}

impl Run {
    /// Requests that count.
    pub fn counted(&self) -> impl Iterator<Item = &Record> {
        self.records.iter().filter(|record| self.window.contains(&record.at))
    }

    /// * `capacities`: of the endpoints, requests per second.
    pub(crate) fn result(&self, slo: &Slo, capacities: &[f64]) -> RunResult {
        let ttft = Percentiles::of(self.counted().filter_map(Record::ttft));
        let e2e = Percentiles::of(self.counted().filter_map(Record::e2e));
        let requests = self.counted().count();
        let sum = |of: &dyn Fn(&Record) -> u32| self.counted().map(|r| u64::from(of(r))).sum();
        let finished = |of: fn(&Record) -> u32| {
            let sum: u64 = sum(&|record| if record.finished.is_some() { of(record) } else { 0 });
            sum as f64
        };
        let prompt_tokens = finished(|record| record.prompt_tokens).max(1.0);
        let good = self.counted().filter(|record| record.is_good(slo)).count();
        let seconds = self.window.end.since(self.window.start).as_secs_f64();
        RunResult {
            requests,
            ttft_p50_ms: ttft.at(0.50),
            ttft_p95_ms: ttft.at(0.95),
            ttft_p99_ms: ttft.at(0.99),
            ttft_mean_ms: ttft.mean(),
            itl_p99_ms: rounded(self.gaps.quantile_ms(0.99)),
            e2e_p99_ms: e2e.at(0.99),
            goodput: ratio(good as f64, requests as f64),
            output_tokens_per_second: rounded(self.window_tokens as f64 / seconds),
            prefix_hit_ratio: ratio(finished(|record| record.cached_tokens), prompt_tokens),
            max_over_mean_load: rounded(self.imbalance(capacities)),
            preemptions: sum(&|record| record.preemptions),
            failed: self.counted().filter(|record| record.finished.is_none()).count(),
        }
    }

    /// Each endpoint's requests over its capacity; the largest of these over that of the fleet.
    fn imbalance(&self, capacities: &[f64]) -> f64 {
        let mut sent = vec![0.0_f64; capacities.len()];
        for endpoint in self.counted().filter_map(|record| record.endpoint) {
            sent[endpoint] += 1.0;
        }
        let fleet = sent.iter().sum::<f64>() / capacities.iter().sum::<f64>();
        let loads = sent.iter().zip(capacities).map(|(sent, capacity)| sent / capacity);
        loads.fold(0.0, f64::max) / fleet.max(f64::MIN_POSITIVE)
    }
}

/// The numbers of one run. Times in milliseconds, over requests that arrived after the warm-up.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunResult {
    pub requests: usize,
    pub ttft_p50_ms: f64,
    pub ttft_p95_ms: f64,
    pub ttft_p99_ms: f64,
    pub ttft_mean_ms: f64,
    /// Of the gaps between any two tokens of an answer.
    pub itl_p99_ms: f64,
    pub e2e_p99_ms: f64,
    /// Share of the requests offered that were answered within the scenario's limits.
    pub goodput: f64,
    /// Tokens that came within the window over its length.
    pub output_tokens_per_second: f64,
    /// Share of prompt tokens found in a cache.
    pub prefix_hit_ratio: f64,
    /// Requests over capacity of the endpoint with most, over the same of the whole fleet. 1.0:
    /// each endpoint gets what it can do.
    pub max_over_mean_load: f64,
    pub preemptions: u64,
    /// Refused by the gateway or an engine.
    pub failed: usize,
}

/// A sample, sorted.
#[derive(Clone, Debug, Default)]
pub struct Percentiles(Vec<Duration>);

impl Percentiles {
    pub fn of(sample: impl Iterator<Item = Duration>) -> Self {
        let mut sorted: Vec<_> = sample.collect();
        sorted.sort_unstable();
        Self(sorted)
    }

    /// Milliseconds at this share of the sample, nearest rank; 0 if it is empty.
    pub fn at(&self, share: f64) -> f64 {
        let rank = (share * self.0.len() as f64).ceil() as usize;
        let value = self.0.get(rank.saturating_sub(1)).copied().unwrap_or_default();
        rounded(value.as_secs_f64() * 1e3)
    }

    /// Milliseconds.
    pub fn mean(&self) -> f64 {
        let sum: Duration = self.0.iter().sum();
        rounded(sum.as_secs_f64() * 1e3 / self.0.len().max(1) as f64)
    }
}

/// Counts of gaps between tokens, in buckets that are half a per cent wide.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Gaps {
    counts: Vec<u64>,
    last: Option<(Duration, usize)>,
}

const GAP_GROWTH: f64 = 1.005;
/// The shortest gap that is told from 0, milliseconds.
const GAP_MIN_MS: f64 = 0.01;

impl Gaps {
    pub(crate) fn add(&mut self, gap: Duration) {
        // All decodes of a step have the same gap.
        let bucket = match self.last {
            Some((last, bucket)) if last == gap => bucket,
            _ => {
                let ms = (gap.as_secs_f64() * 1e3).max(GAP_MIN_MS);
                ((ms / GAP_MIN_MS).ln() / GAP_GROWTH.ln()) as usize
            }
        };
        self.last = Some((gap, bucket));
        if bucket >= self.counts.len() {
            self.counts.resize(bucket + 1, 0);
        }
        self.counts[bucket] += 1;
    }

    fn quantile_ms(&self, share: f64) -> f64 {
        let wanted = share * self.counts.iter().sum::<u64>() as f64;
        let mut seen = 0;
        for (bucket, count) in self.counts.iter().enumerate() {
            seen += count;
            if *count > 0 && seen as f64 >= wanted {
                return GAP_MIN_MS * GAP_GROWTH.powf(bucket as f64 + 0.5);
            }
        }
        0.0
    }
}

fn ratio(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { (part / whole * 1e5).round() / 1e5 } else { 0.0 }
}

/// To a thousandth: more is noise, and longer to read.
fn rounded(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_of_the_nearest_rank() {
        let sample = Percentiles::of((1..=100).rev().map(Duration::from_millis));
        assert_eq!((sample.at(0.5), sample.at(0.99), sample.at(1.0)), (50.0, 99.0, 100.0));
        assert_eq!(Percentiles::default().at(0.5), 0.0);
    }

    #[test]
    fn a_gap_is_found_again_within_half_a_per_cent() {
        for ms in [0.5, 8.0, 33.4, 900.0] {
            let mut gaps = Gaps::default();
            gaps.add(Duration::from_secs_f64(ms * 1e-3));
            assert!((gaps.quantile_ms(0.99) / ms - 1.0).abs() < 0.005, "{ms}");
        }
    }

    #[test]
    fn a_request_that_failed_or_was_late_is_not_good() {
        let slo = Slo { ttft: Duration::from_millis(500), tpot: Duration::from_millis(50) };
        let at = |ms| Some(Timestamp::from_millis(ms));
        let record = |first_token, finished| Record {
            at: Timestamp::from_millis(1000),
            prompt_tokens: 10,
            output_tokens: 11,
            endpoint: Some(0),
            first_token,
            finished,
            cached_tokens: 0,
            preemptions: 0,
            inside: Duration::ZERO,
        };
        assert!(record(at(1500), at(2000)).is_good(&slo));
        assert!(!record(at(1501), at(2001)).is_good(&slo));
        assert!(!record(at(1500), at(2001)).is_good(&slo));
        assert!(!record(None, None).is_good(&slo));
    }
}
