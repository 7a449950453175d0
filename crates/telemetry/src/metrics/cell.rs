//! The values behind series: atomics, written on the request path, read when a page is asked for.
//!
//! All orderings are relaxed: each cell stands alone, and only the exporter reads it.

use std::marker::PhantomData;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, SystemTime};

use super::exemplars::Exemplars;
use super::labels::Label;
use crate::names::{Kind, Metric};
use crate::trace::TraceId;

/// Only grows.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    pub fn inc(&self) {
        self.add(1);
    }

    pub fn add(&self, count: u64) {
        self.0.fetch_add(count, Relaxed);
    }

    pub fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// A number of things at this moment.
#[derive(Debug, Default)]
pub struct Gauge(AtomicI64);

impl Gauge {
    pub fn inc(&self) {
        self.add(1);
    }

    pub fn dec(&self) {
        self.add(-1);
    }

    pub fn add(&self, change: i64) {
        self.0.fetch_add(change, Relaxed);
    }

    pub fn set(&self, value: i64) {
        self.0.store(value, Relaxed);
    }

    pub fn get(&self) -> i64 {
        self.0.load(Relaxed)
    }
}

/// A value that mirrors other state and may be unknown; unknown, it is not on the page.
#[derive(Debug)]
pub struct Reading(AtomicU64);

impl Default for Reading {
    fn default() -> Self {
        Self(AtomicU64::new(f64::NAN.to_bits()))
    }
}

impl Reading {
    /// `None` or a NaN takes the series off the page.
    pub fn set(&self, value: impl Into<Option<f64>>) {
        self.0.store(value.into().unwrap_or(f64::NAN).to_bits(), Relaxed);
    }

    pub fn get(&self) -> Option<f64> {
        Some(f64::from_bits(self.0.load(Relaxed))).filter(|value| !value.is_nan())
    }
}

/// Durations sorted into the buckets that [`crate::names`] states. Two atomic additions a value.
#[derive(Debug)]
pub struct Histogram {
    bounds: &'static [f64],
    /// One per bound and one for what lies above the last; not cumulative.
    counts: Box<[AtomicU64]>,
    sum_nanos: AtomicU64,
    exemplars: Exemplars,
}

impl Histogram {
    /// Empty, with the buckets of `metric`; a metric that is no histogram gives one bucket.
    pub fn of(metric: &Metric) -> Self {
        let bounds = match metric.kind {
            Kind::Histogram(bounds) => bounds,
            Kind::Counter | Kind::Gauge => &[],
        };
        let counts = (0..=bounds.len()).map(|_| AtomicU64::new(0)).collect();
        let exemplars = Exemplars::default();
        Self { bounds, counts, sum_nanos: AtomicU64::new(0), exemplars }
    }

    pub fn observe(&self, value: Duration) {
        let seconds = value.as_secs_f64();
        let bucket = self.bounds.partition_point(|bound| *bound < seconds);
        self.counts[bucket].fetch_add(1, Relaxed);
        self.sum_nanos.fetch_add(u64::try_from(value.as_nanos()).unwrap_or(u64::MAX), Relaxed);
    }

    /// Names a trace in which `value` was observed, in place of the last one of the same bucket.
    pub fn exemplify(&self, value: Duration, trace: TraceId, at: SystemTime) {
        let seconds = value.as_secs_f64();
        let bucket = self.bounds.partition_point(|bound| *bound < seconds);
        self.exemplars.put(bucket, self.counts.len(), seconds, trace, at);
    }

    pub(super) fn exemplars(&self) -> &Exemplars {
        &self.exemplars
    }

    pub fn count(&self) -> u64 {
        self.counts.iter().map(|count| count.load(Relaxed)).sum()
    }

    pub fn sum(&self) -> Duration {
        Duration::from_nanos(self.sum_nanos.load(Relaxed))
    }

    /// Upper bounds of the buckets, seconds, ascending; one more bucket lies above the last.
    pub fn bounds(&self) -> &'static [f64] {
        self.bounds
    }

    /// Values in each bucket alone; one more than [`Self::bounds`].
    pub fn counts(&self) -> impl Iterator<Item = u64> {
        self.counts.iter().map(|count| count.load(Relaxed))
    }

    /// Upper bound and values in that bucket alone, ascending; the last bound is infinity, which
    /// the encoder writes as `+Inf`.
    pub(super) fn buckets(&self) -> Vec<(f64, u64)> {
        let bounds = self.bounds.iter().copied().chain([f64::INFINITY]);
        bounds.zip(self.counts()).collect()
    }
}

/// Numbers of either sign sorted into the buckets that [`crate::names`] states, in the metric's unit.
#[derive(Debug)]
pub struct Distribution {
    bounds: &'static [f64],
    /// As in [`Histogram`].
    counts: Box<[AtomicU64]>,
    sum: AtomicF64,
}

impl Distribution {
    /// Empty, with the buckets of `metric`; a metric that is no histogram gives one bucket.
    pub fn of(metric: &Metric) -> Self {
        let Histogram { bounds, counts, .. } = Histogram::of(metric);
        Self { bounds, counts, sum: AtomicF64::default() }
    }

    /// What is not finite is left out.
    pub fn observe(&self, value: f64) {
        if !value.is_finite() {
            return;
        }
        let bucket = self.bounds.partition_point(|bound| *bound < value);
        self.counts[bucket].fetch_add(1, Relaxed);
        self.sum.add(value);
    }

    pub fn count(&self) -> u64 {
        self.counts.iter().map(|count| count.load(Relaxed)).sum()
    }

    pub fn sum(&self) -> f64 {
        self.sum.get()
    }

    /// As [`Histogram::buckets`].
    pub(super) fn buckets(&self) -> Vec<(f64, u64)> {
        let bounds = self.bounds.iter().copied().chain([f64::INFINITY]);
        bounds.zip(self.counts.iter().map(|count| count.load(Relaxed))).collect()
    }
}

/// A time that only grows, counted in seconds.
#[derive(Debug, Default)]
pub struct Seconds(AtomicF64);

impl Seconds {
    pub fn add(&self, time: Duration) {
        self.0.add(time.as_secs_f64());
    }

    pub fn get(&self) -> f64 {
        self.0.get()
    }
}

/// A number that is added to.
#[derive(Debug, Default)]
struct AtomicF64(AtomicU64);

impl AtomicF64 {
    fn add(&self, value: f64) {
        let add = |bits| Some((f64::from_bits(bits) + value).to_bits());
        // Cannot fail: `add` always gives a value.
        let _ = self.0.fetch_update(Relaxed, Relaxed, add);
    }

    fn get(&self) -> f64 {
        f64::from_bits(self.0.load(Relaxed))
    }
}

/// A cell for each value of a closed label.
#[derive(Debug)]
pub struct By<L, Cell> {
    cells: Box<[Cell]>,
    label: PhantomData<fn(L)>,
}

impl<L: Label, Cell: Default> Default for By<L, Cell> {
    fn default() -> Self {
        Self { cells: L::ALL.iter().map(|_| Cell::default()).collect(), label: PhantomData }
    }
}

impl<L: Label, Cell> By<L, Cell> {
    /// For cells that need to be made in a certain way.
    pub(super) fn of_each(mut make: impl FnMut() -> Cell) -> Self {
        Self { cells: L::ALL.iter().map(|_| make()).collect(), label: PhantomData }
    }

    pub fn of(&self, label: L) -> &Cell {
        &self.cells[label.index()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::labels::Retry;
    use crate::names::{REQUEST_TTFT, RETRIES, SHADOW_REGRET};

    #[test]
    fn a_value_on_a_bound_belongs_to_the_bucket_below() {
        let histogram = Histogram::of(&REQUEST_TTFT);
        for millis in [1, 2, 60_000, 60_001] {
            histogram.observe(Duration::from_millis(millis));
        }
        let filled: Vec<_> =
            histogram.buckets().into_iter().filter(|(_, count)| *count > 0).collect();
        assert_eq!(filled, [(0.001, 1), (0.0025, 1), (60.0, 1), (f64::INFINITY, 1)]);
        assert_eq!((histogram.count(), histogram.sum()), (4, Duration::from_millis(120_004)));
    }

    #[test]
    fn a_histogram_of_a_counter_still_counts() {
        let histogram = Histogram::of(&RETRIES);
        histogram.observe(Duration::MAX);
        assert_eq!(histogram.count(), 1);
    }

    #[test]
    fn a_distribution_takes_both_signs_and_leaves_out_what_is_no_number() {
        let regret = Distribution::of(&SHADOW_REGRET);
        for value in [-20.0, -0.02, 0.0, 0.02, f64::NAN, f64::INFINITY] {
            regret.observe(value);
        }
        let filled: Vec<_> = regret.buckets().into_iter().filter(|(_, count)| *count > 0).collect();
        assert_eq!(filled, [(-10.0, 1), (-0.01, 1), (0.0, 1), (0.05, 1)]);
        assert_eq!((regret.count(), regret.sum()), (4, -20.0));
    }

    #[test]
    fn a_reading_that_was_never_set_or_is_nan_is_unknown() {
        let reading = Reading::default();
        assert_eq!(reading.get(), None);
        reading.set(0.5);
        assert_eq!(reading.get(), Some(0.5));
        reading.set(f64::NAN);
        assert_eq!(reading.get(), None);
    }

    #[test]
    fn each_label_value_has_its_own_cell() {
        let retries: By<Retry, Counter> = By::default();
        retries.of(Retry::Unavailable).add(3);
        let counts: Vec<_> = Retry::ALL.iter().map(|reason| retries.of(*reason).get()).collect();
        assert_eq!(counts.iter().sum::<u64>(), 3);
        assert_eq!(retries.of(Retry::Unavailable).get(), 3);
    }
}
