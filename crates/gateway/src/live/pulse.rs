//! From counters that only grow to what happens now.

use std::time::Duration;

use serde::Serialize;
use telemetry::PoolMetrics;
use telemetry::metrics::labels::{Label, Outcome, Route};

/// After this time a request counts half in ratios and percentiles.
const HALF_LIFE: Duration = Duration::from_secs(5);
/// Weight of samples below which a percentile or a ratio would be an accident.
const WEIGHT_MIN: f64 = 0.5;

/// Sums since the start of the process. Only grows.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Totals {
    pub(super) requests: u64,
    /// By an endpoint or by us; clients' mistakes and clients that left are not here.
    pub(super) failed: u64,
    /// 429, and 503 for want of capacity.
    pub(super) shed: u64,
    /// Refused before their pool was known.
    pub(super) refused: u64,
    pub(super) tokens_in: u64,
    pub(super) tokens_cached: u64,
    pub(super) tokens_out: u64,
    pub(super) blocks_looked_up: u64,
    pub(super) blocks_matched: u64,
    /// Values in each bucket of the time to the first token.
    pub(super) ttft: Vec<u64>,
    /// Upper bounds of these buckets, seconds.
    pub(super) ttft_bounds: &'static [f64],
}

impl Totals {
    /// Adds what a pool has counted.
    pub(super) fn add(&mut self, pool: &PoolMetrics) {
        for route in Route::ALL {
            let by_outcome = pool.requests.of(*route);
            for outcome in Outcome::ALL {
                let count = by_outcome.of(*outcome).get();
                self.requests += count;
                match outcome {
                    Outcome::EndpointError | Outcome::GatewayError => self.failed += count,
                    Outcome::Shed => self.shed += count,
                    Outcome::Ok | Outcome::ClientError | Outcome::Cancelled => {}
                }
            }
        }
        self.tokens_in += pool.input_tokens.get();
        self.tokens_cached += pool.cached_input_tokens.get();
        self.tokens_out += pool.output_tokens.get();
        self.blocks_looked_up += pool.prefix_blocks_looked_up.get();
        self.blocks_matched += pool.prefix_blocks_matched.get();
        self.ttft_bounds = pool.request_ttft.bounds();
        self.ttft.resize(self.ttft_bounds.len() + 1, 0);
        for (sum, count) in self.ttft.iter_mut().zip(pool.request_ttft.counts()) {
            *sum += count;
        }
    }
}

/// What happened of late. Rates are over the last beat; percentiles and ratios fade with a half-life of
/// five seconds, and are `None` where nothing was to be measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(super) struct Pulse {
    /// Requests that came to their end, whatever it was, a second.
    pub(super) requests: f32,
    pub(super) failed: f32,
    pub(super) shed: f32,
    pub(super) refused: f32,
    pub(super) tokens_in: f32,
    /// Counted when a request ends, hence in jumps where answers are long.
    pub(super) tokens_out: f32,
    pub(super) ttft_p50_ms: Option<f32>,
    pub(super) ttft_p95_ms: Option<f32>,
    /// Prompt blocks that the chosen endpoint was believed to hold, of all that were looked up.
    pub(super) hit_ratio: Option<f32>,
    /// Prompt tokens that engines said were cached, of all.
    pub(super) cached_ratio: Option<f32>,
    pub(super) in_flight: i64,
}

/// Turns successive [`Totals`] into [`Pulse`]s.
#[derive(Clone, Debug, Default)]
pub(super) struct Meter {
    last: Option<Totals>,
    ttft: Vec<f64>,
    looked_up: f64,
    matched: f64,
    tokens_in: f64,
    tokens_cached: f64,
}

impl Meter {
    /// * `elapsed`: since the last call. The first call gives nothing but the requests in flight.
    pub(super) fn beat(&mut self, totals: Totals, in_flight: i64, elapsed: Duration) -> Pulse {
        let mut pulse = Pulse { in_flight, ..Pulse::default() };
        let seconds = elapsed.as_secs_f64();
        if let Some(last) = &self.last
            && seconds > 0.0
        {
            let grown = |now: u64, then: u64| now.saturating_sub(then) as f64;
            let rate = |now: u64, then: u64| round((grown(now, then) / seconds) as f32, 10.0);
            pulse.requests = rate(totals.requests, last.requests);
            pulse.failed = rate(totals.failed, last.failed);
            pulse.shed = rate(totals.shed, last.shed);
            pulse.refused = rate(totals.refused, last.refused);
            pulse.tokens_in = rate(totals.tokens_in, last.tokens_in);
            pulse.tokens_out = rate(totals.tokens_out, last.tokens_out);

            let keep = (-seconds / HALF_LIFE.as_secs_f64()).exp2();
            let fade =
                |kept: &mut f64, now: u64, then: u64| *kept = *kept * keep + grown(now, then);
            fade(&mut self.looked_up, totals.blocks_looked_up, last.blocks_looked_up);
            fade(&mut self.matched, totals.blocks_matched, last.blocks_matched);
            fade(&mut self.tokens_in, totals.tokens_in, last.tokens_in);
            fade(&mut self.tokens_cached, totals.tokens_cached, last.tokens_cached);
            self.ttft.resize(totals.ttft.len(), 0.0);
            let then = last.ttft.iter().copied().chain(std::iter::repeat(0));
            for ((kept, now), then) in self.ttft.iter_mut().zip(&totals.ttft).zip(then) {
                fade(kept, *now, then);
            }
        }
        pulse.hit_ratio = ratio(self.matched, self.looked_up);
        pulse.cached_ratio = ratio(self.tokens_cached, self.tokens_in);
        let percentile = |share| percentile(&self.ttft, totals.ttft_bounds, share);
        pulse.ttft_p50_ms = percentile(0.5);
        pulse.ttft_p95_ms = percentile(0.95);
        self.last = Some(totals);
        pulse
    }
}

fn ratio(part: f64, whole: f64) -> Option<f32> {
    (whole >= WEIGHT_MIN).then(|| round((part / whole) as f32, 1000.0))
}

/// The value below which `share` of the weight lies, milliseconds; straight within its bucket. What
/// lies above the last bound counts as that bound.
fn percentile(weights: &[f64], bounds: &[f64], share: f64) -> Option<f32> {
    let whole: f64 = weights.iter().sum();
    if whole < WEIGHT_MIN {
        return None;
    }
    let wanted = whole * share;
    let (mut below, mut lower) = (0.0, 0.0);
    for (weight, upper) in weights.iter().zip(bounds) {
        if *weight > 0.0 && below + weight >= wanted {
            let within = ((wanted - below) / weight).clamp(0.0, 1.0);
            return Some(round(((lower + (upper - lower) * within) * 1000.0) as f32, 10.0));
        }
        below += weight;
        lower = *upper;
    }
    Some((lower * 1000.0) as f32)
}

/// Rounds to so many parts of one: fewer digits to send.
pub(super) fn round(value: f32, parts: f32) -> f32 {
    (value * parts).round() / parts
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// Everything that one request with a first token after so many milliseconds leaves behind.
    fn answered(pool: &PoolMetrics, ttft_ms: u64) {
        pool.requests.of(Route::ChatCompletions).of(Outcome::Ok).inc();
        pool.request_ttft.observe(Duration::from_millis(ttft_ms));
        pool.input_tokens.add(100);
        pool.cached_input_tokens.add(25);
        pool.output_tokens.add(10);
        pool.prefix_blocks_looked_up.add(4);
        pool.prefix_blocks_matched.add(3);
    }

    fn totals(pool: &PoolMetrics) -> Totals {
        let mut totals = Totals::default();
        totals.add(pool);
        totals
    }

    #[test]
    fn what_was_counted_before_the_first_look_is_no_rate() {
        let pool = PoolMetrics::default();
        answered(&pool, 30);
        let pulse = Meter::default().beat(totals(&pool), 7, SECOND);
        assert_eq!(pulse, Pulse { in_flight: 7, ..Pulse::default() });
    }

    #[test]
    fn a_beat_of_two_seconds_halves_the_rates() {
        let (pool, mut meter) = (PoolMetrics::default(), Meter::default());
        meter.beat(totals(&pool), 0, SECOND);
        for _ in 0..10 {
            answered(&pool, 30);
        }
        pool.requests.of(Route::ChatCompletions).of(Outcome::Shed).add(4);
        pool.requests.of(Route::Completions).of(Outcome::EndpointError).add(2);
        let pulse = meter.beat(totals(&pool), 0, 2 * SECOND);
        assert_eq!((pulse.requests, pulse.shed, pulse.failed), (8.0, 2.0, 1.0));
        assert_eq!((pulse.tokens_in, pulse.tokens_out), (500.0, 50.0));
        assert_eq!((pulse.hit_ratio, pulse.cached_ratio), (Some(0.75), Some(0.25)));
        // All in the bucket from 20 to 40 ms.
        assert_eq!((pulse.ttft_p50_ms, pulse.ttft_p95_ms), (Some(30.0), Some(39.0)));
    }

    #[test]
    fn what_was_slow_a_minute_ago_no_longer_shows() {
        let (pool, mut meter) = (PoolMetrics::default(), Meter::default());
        meter.beat(totals(&pool), 0, SECOND);
        for _ in 0..100 {
            answered(&pool, 9_000);
        }
        meter.beat(totals(&pool), 0, SECOND);
        for _ in 0..60 {
            for _ in 0..3 {
                answered(&pool, 30);
            }
            meter.beat(totals(&pool), 0, SECOND);
        }
        let pulse = meter.beat(totals(&pool), 0, SECOND);
        assert!(pulse.ttft_p95_ms.unwrap() < 41.0, "{pulse:?}");
        for _ in 0..60 {
            meter.beat(totals(&pool), 0, SECOND);
        }
        let idle = meter.beat(totals(&pool), 0, SECOND);
        assert_eq!(
            (idle.ttft_p50_ms, idle.hit_ratio),
            (None, None),
            "an idle pool has no percentile"
        );
    }

    #[test]
    fn what_lies_above_the_last_bound_counts_as_that_bound() {
        let (pool, mut meter) = (PoolMetrics::default(), Meter::default());
        meter.beat(totals(&pool), 0, SECOND);
        answered(&pool, 600_000);
        let pulse = meter.beat(totals(&pool), 0, SECOND);
        assert_eq!(pulse.ttft_p95_ms, Some(60_000.0));
    }

    #[test]
    fn time_that_stands_still_gives_no_rate() {
        let (pool, mut meter) = (PoolMetrics::default(), Meter::default());
        meter.beat(totals(&pool), 0, SECOND);
        answered(&pool, 30);
        assert_eq!(meter.beat(totals(&pool), 0, Duration::ZERO).requests, 0.0);
    }
}
