//! The values behind series: atomics, written on the request path, read when a page is asked for.
//!
//! All orderings are relaxed: each cell stands alone, and only the exporter reads it.

use std::marker::PhantomData;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use super::labels::Label;
use crate::names::{Kind, Metric};

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
}

impl Histogram {
    /// Empty, with the buckets of `metric`; a metric that is no histogram gives one bucket.
    pub fn of(metric: &Metric) -> Self {
        let bounds = match metric.kind {
            Kind::Histogram(bounds) => bounds,
            Kind::Counter | Kind::Gauge => &[],
        };
        let counts = (0..=bounds.len()).map(|_| AtomicU64::new(0)).collect();
        Self { bounds, counts, sum_nanos: AtomicU64::new(0) }
    }

    pub fn observe(&self, value: Duration) {
        let seconds = value.as_secs_f64();
        let bucket = self.bounds.partition_point(|bound| *bound < seconds);
        self.counts[bucket].fetch_add(1, Relaxed);
        self.sum_nanos.fetch_add(u64::try_from(value.as_nanos()).unwrap_or(u64::MAX), Relaxed);
    }

    pub fn count(&self) -> u64 {
        self.counts.iter().map(|count| count.load(Relaxed)).sum()
    }

    pub fn sum(&self) -> Duration {
        Duration::from_nanos(self.sum_nanos.load(Relaxed))
    }

    /// Upper bound and values in that bucket alone, ascending; the last bound is infinity, which
    /// the encoder writes as `+Inf`.
    pub(super) fn buckets(&self) -> Vec<(f64, u64)> {
        let bounds = self.bounds.iter().copied().chain([f64::INFINITY]);
        bounds.zip(self.counts.iter().map(|count| count.load(Relaxed))).collect()
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
    pub fn of(&self, label: L) -> &Cell {
        &self.cells[label.index()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::labels::Retry;
    use crate::names::{REQUEST_TTFT, RETRIES};

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
        assert_eq!(counts, [0, 0, 3]);
    }
}
