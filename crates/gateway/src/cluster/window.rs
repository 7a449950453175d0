//! Counts of the last minutes: a slot for each look, the oldest leave.

use std::collections::VecDeque;
use std::time::Duration;

use telemetry::names::{Kind, Metric, REQUEST_DURATION, REQUEST_TTFT};
use types::Timestamp;

/// What was counted, in all or between two looks.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Totals {
    pub(super) finished: u64,
    pub(super) failed: u64,
    pub(super) shed: u64,
    pub(super) input_tokens: u64,
    pub(super) cached_tokens: u64,
    pub(super) output_tokens: u64,
    /// By bucket of [`REQUEST_TTFT`], each alone; empty: all zero.
    pub(super) ttft: Vec<u64>,
    /// Likewise, of [`REQUEST_DURATION`].
    pub(super) duration: Vec<u64>,
}

impl Totals {
    /// What came since `earlier`; all of it where there is none. Never below zero.
    pub(super) fn since(&self, earlier: Option<&Self>) -> Self {
        let Some(earlier) = earlier else { return self.clone() };
        let buckets = |now: &[u64], then: &[u64]| -> Vec<u64> {
            let then = then.iter().copied().chain(std::iter::repeat(0));
            now.iter().zip(then).map(|(now, then)| now.saturating_sub(then)).collect()
        };
        Self {
            finished: self.finished.saturating_sub(earlier.finished),
            failed: self.failed.saturating_sub(earlier.failed),
            shed: self.shed.saturating_sub(earlier.shed),
            input_tokens: self.input_tokens.saturating_sub(earlier.input_tokens),
            cached_tokens: self.cached_tokens.saturating_sub(earlier.cached_tokens),
            output_tokens: self.output_tokens.saturating_sub(earlier.output_tokens),
            ttft: buckets(&self.ttft, &earlier.ttft),
            duration: buckets(&self.duration, &earlier.duration),
        }
    }

    pub(super) fn add(&mut self, other: &Self) {
        fn buckets(sum: &mut Vec<u64>, other: &[u64]) {
            sum.resize(sum.len().max(other.len()), 0);
            sum.iter_mut().zip(other).for_each(|(sum, other)| *sum += other);
        }
        self.finished += other.finished;
        self.failed += other.failed;
        self.shed += other.shed;
        self.input_tokens += other.input_tokens;
        self.cached_tokens += other.cached_tokens;
        self.output_tokens += other.output_tokens;
        buckets(&mut self.ttft, &other.ttft);
        buckets(&mut self.duration, &other.duration);
    }

    pub(super) fn ttft_quantile(&self, share: f64) -> Option<f64> {
        quantile(&REQUEST_TTFT, &self.ttft, share)
    }

    pub(super) fn duration_quantile(&self, share: f64) -> Option<f64> {
        quantile(&REQUEST_DURATION, &self.duration, share)
    }
}

/// The value below which `share` of the values lie, straight between the bounds of its bucket, as
/// Prometheus' `histogram_quantile` has it; above the last bound, that bound. `None` without values.
fn quantile(metric: &Metric, counts: &[u64], share: f64) -> Option<f64> {
    let Kind::Histogram(bounds) = metric.kind else { return None };
    let all: u64 = counts.iter().sum();
    if all == 0 {
        return None;
    }
    let rank = share * all as f64;
    let mut below = 0.0;
    let mut lower = 0.0;
    for (bound, count) in bounds.iter().zip(counts) {
        let count = *count as f64;
        if below + count >= rank && count > 0.0 {
            return Some(lower + (bound - lower) * (rank - below) / count);
        }
        below += count;
        lower = *bound;
    }
    bounds.last().copied()
}

/// The last minutes.
#[derive(Debug)]
pub(super) struct Window {
    length: Duration,
    /// When the slot's counting ended, and what it counted; ascending.
    slots: VecDeque<(Timestamp, Totals)>,
    /// Where the oldest slot begins.
    begin: Timestamp,
}

impl Window {
    pub(super) fn new(length: Duration, now: Timestamp) -> Self {
        Self { length, slots: VecDeque::new(), begin: now }
    }

    /// What was counted up to `now`. Slots that began before the window leave it.
    pub(super) fn push(&mut self, totals: Totals, now: Timestamp) {
        self.slots.push_back((now, totals));
        while now.since(self.begin) > self.length && self.slots.len() > 1 {
            if let Some((end, _)) = self.slots.pop_front() {
                self.begin = end;
            }
        }
    }

    /// The sum, and the seconds in which it was counted.
    pub(super) fn sum(&self, now: Timestamp) -> (Totals, f64) {
        let mut sum = Totals::default();
        self.slots.iter().for_each(|(_, slot)| sum.add(slot));
        (sum, now.since(self.begin).as_secs_f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Timestamp {
        Timestamp::from_duration(Duration::from_secs(seconds))
    }

    fn finished(count: u64) -> Totals {
        Totals { finished: count, ttft: vec![count], ..Totals::default() }
    }

    #[test]
    fn what_is_older_than_the_window_does_not_count() {
        let mut window = Window::new(Duration::from_secs(10), at(0));
        for second in 1..=30 {
            window.push(finished(second), at(second));
        }
        let (sum, seconds) = window.sum(at(30));
        assert_eq!((sum.finished, seconds), ((21..=30).sum(), 10.0));
        assert_eq!(sum.ttft, [(21..=30).sum::<u64>()]);
    }

    #[test]
    fn a_look_that_came_late_still_counts_with_its_own_time() {
        let mut window = Window::new(Duration::from_secs(10), at(0));
        window.push(finished(5), at(1));
        window.push(finished(50), at(101));
        assert_eq!(window.sum(at(101)), (finished(50), 100.0));
    }

    #[test]
    fn counters_that_fell_count_as_none_and_new_ones_in_full() {
        assert_eq!(finished(3).since(Some(&finished(7))).finished, 0);
        assert_eq!(finished(3).since(None).finished, 3);
    }

    #[test]
    fn a_quantile_lies_straight_between_the_bounds_of_its_bucket() {
        let mut counts = vec![0; 24];
        assert_eq!(quantile(&REQUEST_TTFT, &counts, 0.99), None);
        counts[0] = 50; // up to 1 ms
        counts[1] = 50; // up to 2.5 ms
        let p50 = quantile(&REQUEST_TTFT, &counts, 0.5).unwrap();
        let p75 = quantile(&REQUEST_TTFT, &counts, 0.75).unwrap();
        assert!((p50 - 0.001).abs() < 1e-12 && (p75 - 0.00175).abs() < 1e-12, "{p50} {p75}");
        counts[23] = 1000; // beyond the last bound
        assert_eq!(quantile(&REQUEST_TTFT, &counts, 0.99), Some(60.0));
    }
}
