//! Writes the series of one metric.

use std::fmt;

use prometheus_client::encoding::{MetricEncoder, NoLabelSet};

use super::cell::{By, Counter, Gauge, Histogram, Reading};
use super::labels::Label;
use crate::names::Metric;

type Labels<'a> = &'a [(&'a str, &'a str)];

/// The page is written metric by metric, while the cells lie owner by owner. So every owner is
/// asked for each metric and names all that it has; those that are not wanted do nothing.
pub(super) struct Series<'e> {
    wanted: &'static Metric,
    encoder: MetricEncoder<'e>,
    result: fmt::Result,
}

/// The series of one owner; its labels (which pool, which endpoint) come before the metric's own.
pub(super) struct Owned<'s, 'e> {
    series: &'s mut Series<'e>,
    owner: Labels<'s>,
}

impl<'e> Series<'e> {
    pub(super) fn new(wanted: &'static Metric, encoder: MetricEncoder<'e>) -> Self {
        Self { wanted, encoder, result: Ok(()) }
    }

    pub(super) fn of<'s>(&'s mut self, owner: Labels<'s>) -> Owned<'s, 'e> {
        Owned { series: self, owner }
    }

    pub(super) fn finish(self) -> fmt::Result {
        self.result
    }
}

impl Owned<'_, '_> {
    pub(super) fn counter(&mut self, metric: &'static Metric, counter: &Counter) {
        self.write(metric, &[], |series| {
            series.encode_counter(&counter.get(), None::<&NoExemplar>)
        });
    }

    pub(super) fn gauge(&mut self, metric: &'static Metric, gauge: &Gauge) {
        self.write(metric, &[], |series| series.encode_gauge(&gauge.get()));
    }

    pub(super) fn reading(&mut self, metric: &'static Metric, reading: &Reading) {
        if let Some(value) = reading.get() {
            self.write(metric, &[], |series| series.encode_gauge(&value));
        }
    }

    pub(super) fn histogram(&mut self, metric: &'static Metric, histogram: &Histogram) {
        self.write(metric, &[], |series| {
            let buckets = histogram.buckets();
            // Counted from the same reading as the buckets, or a page could contradict itself.
            let count = buckets.iter().map(|(_, count)| count).sum();
            let sum = histogram.sum().as_secs_f64();
            series.encode_histogram::<NoLabelSet>(sum, count, &buckets, None)
        });
    }

    /// Always 1: the labels are the information.
    pub(super) fn info(&mut self, metric: &'static Metric, labels: Labels<'_>) {
        self.write(metric, labels, |series| series.encode_gauge(&1_i64));
    }

    pub(super) fn counters_by<L: Label>(
        &mut self,
        metric: &'static Metric,
        counters: &By<L, Counter>,
    ) {
        let key = metric.labels.last().copied().unwrap_or_default();
        for value in L::ALL {
            let count = counters.of(*value).get();
            self.write(metric, &[(key, value.as_str())], |series| {
                series.encode_counter(&count, None::<&NoExemplar>)
            });
        }
    }

    pub(super) fn gauges_by<L: Label>(&mut self, metric: &'static Metric, gauges: &By<L, Gauge>) {
        let key = metric.labels.last().copied().unwrap_or_default();
        for value in L::ALL {
            let number = gauges.of(*value).get();
            self.write(metric, &[(key, value.as_str())], |series| series.encode_gauge(&number));
        }
    }

    pub(super) fn counters_by_two<L: Label, M: Label>(
        &mut self,
        metric: &'static Metric,
        counters: &By<L, By<M, Counter>>,
    ) {
        let [.., first, second] = metric.labels else { return };
        for value in L::ALL {
            for inner in M::ALL {
                let count = counters.of(*value).of(*inner).get();
                let labels = [(*first, value.as_str()), (*second, inner.as_str())];
                self.write(metric, &labels, |series| {
                    series.encode_counter(&count, None::<&NoExemplar>)
                });
            }
        }
    }

    fn write(
        &mut self,
        metric: &'static Metric,
        labels: Labels<'_>,
        value: impl FnOnce(&mut MetricEncoder<'_>) -> fmt::Result,
    ) {
        let series = &mut *self.series;
        if series.result.is_err() || !std::ptr::eq(metric, series.wanted) {
            return;
        }
        series.result = if self.owner.is_empty() && labels.is_empty() {
            value(&mut series.encoder)
        } else {
            let all = (self.owner, labels);
            series.encoder.encode_family(&all).and_then(|mut one| value(&mut one))
        };
    }
}

type NoExemplar = prometheus_client::metrics::exemplar::Exemplar<NoLabelSet, u64>;
