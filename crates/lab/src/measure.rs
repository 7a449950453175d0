//! What a run measured, and the line it makes.

mod decisions;
mod faults;
mod gaps;

use std::ops::Range;
use std::time::Duration;

use serde::Serialize;
use sim::engine::EngineStats;
use types::Timestamp;

use crate::crowd::Waits;
use crate::scenario::{Scenario, Slo};
use crate::workload::Request;
pub(crate) use decisions::SAMPLED;
pub use decisions::Sample;
pub use faults::FaultResult;
pub(crate) use gaps::Gaps;

/// How a request ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fate {
    /// Not yet.
    #[default]
    Open,
    Answered,
    /// Refused by the gateway with 429.
    Refused,
    /// An error came instead of an answer.
    Failed,
    /// The answer broke off.
    Cut,
}

/// One request's fate, seen from the gateway.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    pub at: Timestamp,
    pub prompt_tokens: u32,
    pub output_tokens: u32,
    /// Where it went last; `None`: refused with 429.
    pub endpoint: Option<usize>,
    /// Endpoints that it was sent to.
    pub attempts: u8,
    pub fate: Fate,
    pub first_token: Option<Timestamp>,
    /// `None`: not answered, or not to the end.
    pub finished: Option<Timestamp>,
    /// The least time to a first token, see [`RunResult::ttft_normalised_p99`].
    pub floor: Duration,
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
            attempts: 0,
            fate: Fate::Open,
            floor: Duration::ZERO,
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

    /// Time to the first token over the least that it could have been.
    fn normalised_ttft(&self) -> Option<f64> {
        Some(self.ttft()?.as_secs_f64() / self.floor.as_secs_f64().max(1e-6))
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

/// An engine's own books at the end of a run; those of its last life, if it died.
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
    /// All requests, those of the warm-up too, pool after pool in order of arrival.
    pub records: Vec<Record>,
    /// What is counted: requests that arrive and tokens that come within.
    pub window: Range<Timestamp>,
    pub endpoints: Vec<EndpointBooks>,
    /// Decisions that were looked into.
    pub samples: Vec<Sample>,
    /// What flow control did; `None`: there was none.
    pub waits: Option<Waits>,
    pub(crate) gaps: Gaps,
    pub(crate) window_tokens: u64,
    pub(crate) in_flight_at_deaths: usize,
}

impl Run {
    /// No requests, no endpoints.
    pub(crate) fn empty(window: Range<Timestamp>) -> Self {
        Self {
            records: Vec::new(),
            window,
            endpoints: Vec::new(),
            samples: Vec::new(),
            waits: None,
            gaps: Gaps::default(),
            window_tokens: 0,
            in_flight_at_deaths: 0,
        }
    }

    /// Puts another pool beside those that are here, of the same window.
    pub(crate) fn add(&mut self, pool: Run) {
        let (requests, endpoints) = (self.records.len(), self.endpoints.len());
        self.records.extend(pool.records.into_iter().map(|record| {
            let endpoint = record.endpoint.map(|at| at + endpoints);
            Record { endpoint, ..record }
        }));
        self.samples.extend(pool.samples.into_iter().map(|sample| {
            let request = sample.request + requests as u32;
            Sample { request, ..sample }
        }));
        self.endpoints.extend(pool.endpoints);
        self.gaps.add_all(&pool.gaps);
        self.window_tokens += pool.window_tokens;
        self.in_flight_at_deaths += pool.in_flight_at_deaths;
    }

    /// Requests that count.
    pub fn counted(&self) -> impl Iterator<Item = &Record> {
        self.records.iter().filter(|record| self.window.contains(&record.at))
    }

    /// * `capacities`: of the endpoints, requests per second.
    pub(crate) fn result(&self, scenario: &Scenario, capacities: &[f64]) -> RunResult {
        let slo = &scenario.slo;
        let faults = self.faults(scenario.faults);
        let ttft = Percentiles::of(self.counted().filter_map(Record::ttft));
        let e2e = Percentiles::of(self.counted().filter_map(Record::e2e));
        let requests = self.counted().count();
        let sum = |of: &dyn Fn(&Record) -> u32| self.counted().map(|r| u64::from(of(r))).sum();
        let finished = |of: fn(&Record) -> u32| {
            let sum: u64 = sum(&|record| if record.finished.is_some() { of(record) } else { 0 });
            sum as f64
        };
        let prompt_tokens = finished(|record| record.prompt_tokens).max(1.0);
        let count = |fate: Fate| self.counted().filter(|record| record.fate == fate).count();
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
            refused: count(Fate::Refused),
            cut: count(Fate::Cut),
            retried: self.counted().filter(|record| record.attempts > 1).count(),
            ttft_normalised_p99: rounded(self.normalised_ttft(0.99)),
            adapter_loads: self.endpoints.iter().map(|books| books.stats.adapter_loads).sum(),
            decision_regret_ms: self.decision_regret_ms().map(rounded),
            prediction_error: self.prediction_error().map(rounded),
            prediction_bias: self.prediction_bias().map(rounded),
            in_flight_at_deaths: self.in_flight_at_deaths,
            recovery_seconds: self.recovery_seconds(scenario.faults),
            returning_share: self.returning_share(scenario.faults).map(rounded),
            faults,
        }
    }

    fn normalised_ttft(&self, share: f64) -> f64 {
        let mut all: Vec<f64> = self.counted().filter_map(Record::normalised_ttft).collect();
        all.sort_unstable_by(f64::total_cmp);
        let rank = (share * all.len() as f64).ceil() as usize;
        all.get(rank.saturating_sub(1)).copied().unwrap_or(0.0)
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
    /// Not answered to the end, whatever the reason; `refused` and `cut` are among them.
    pub failed: usize,
    /// Refused by the gateway with 429.
    pub refused: usize,
    /// Broken off after the first token.
    pub cut: usize,
    /// Sent to more than one endpoint.
    pub retried: usize,
    /// P99 of the time to the first token over the least that it could have been: on an idle engine,
    /// of those here that which is fastest for it, holding all that was ever said. So long prompts
    /// do not rule the percentile.
    pub ttft_normalised_p99: f64,
    /// LoRA adapters brought onto a GPU, the warm-up included.
    pub adapter_loads: u64,
    /// Mean over sampled decisions of the clairvoyant's time to a first token where the request went,
    /// less the same where it is least. `None`: nothing was sampled.
    pub decision_regret_ms: Option<f64>,
    /// Mean of |predicted − true| / true time to the first token, of policies that predict.
    pub prediction_error: Option<f64>,
    /// Mean of (predicted − true) / true, likewise: above 0 is too pessimistic.
    pub prediction_bias: Option<f64>,
    /// Requests that dying endpoints had.
    pub in_flight_at_deaths: usize,
    /// From the first death until P95 of the time to the first token, second by second, is within
    /// 1.25 times that of before, three seconds in a row. `None`: nobody died, or it never was.
    pub recovery_seconds: Option<f64>,
    /// Share of the requests that one returning endpoint gets in its first ten seconds.
    pub returning_share: Option<f64>,
    /// Each fault of the scenario.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<FaultResult>,
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
    fn a_request_that_failed_or_was_late_is_not_good() {
        let slo = Slo { ttft: Duration::from_millis(500), tpot: Duration::from_millis(50) };
        let at = |ms| Some(Timestamp::from_millis(ms));
        let record = |first_token, finished| Record {
            at: Timestamp::from_millis(1000),
            prompt_tokens: 10,
            output_tokens: 11,
            endpoint: Some(0),
            attempts: 1,
            fate: Fate::Open,
            floor: Duration::from_millis(1),
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
