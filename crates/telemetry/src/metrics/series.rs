//! Writes the series of one metric.

use std::fmt;

use prometheus_client::encoding::{MetricEncoder, NoLabelSet};

use super::cell::{By, Counter, Distribution, Gauge, Histogram, Reading, Seconds};
use super::labels::Label;
use crate::names::Metric;
use crate::names::field::Alias;

type Labels<'a> = &'a [(&'a str, &'a str)];

/// The page is written metric by metric, while the cells lie owner by owner. So every owner is
/// asked for each metric and names all that it has; those that are not wanted do nothing.
pub(super) struct Series<'e> {
    wanted: &'static Metric,
    renamed: Option<&'static Alias>,
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
        Self { wanted, renamed: None, encoder, result: Ok(()) }
    }

    /// The series of the alias's metric, with labels as the alias has them.
    pub(super) fn under(alias: &'static Alias, encoder: MetricEncoder<'e>) -> Self {
        Self { wanted: alias.of, renamed: Some(alias), encoder, result: Ok(()) }
    }

    /// From now on this alias, which has the same name.
    pub(super) fn rename(&mut self, alias: &'static Alias) {
        (self.wanted, self.renamed) = (alias.of, Some(alias));
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

    pub(super) fn seconds(&mut self, metric: &'static Metric, seconds: &Seconds) {
        self.write(metric, &[], |series| {
            series.encode_counter::<NoLabelSet, f64, f64>(&seconds.get(), None)
        });
    }

    pub(super) fn histogram(&mut self, metric: &'static Metric, histogram: &Histogram) {
        self.buckets(metric, || (histogram.buckets(), histogram.sum().as_secs_f64()));
    }

    pub(super) fn distribution(&mut self, metric: &'static Metric, distribution: &Distribution) {
        self.buckets(metric, || (distribution.buckets(), distribution.sum()));
    }

    fn buckets(&mut self, metric: &'static Metric, read: impl FnOnce() -> (Vec<(f64, u64)>, f64)) {
        self.write(metric, &[], |series| {
            let (buckets, sum) = read();
            // Counted from the same reading as the buckets, or a page could contradict itself.
            let count = buckets.iter().map(|(_, count)| count).sum();
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

    pub(super) fn readings_by<L: Label>(
        &mut self,
        metric: &'static Metric,
        readings: &By<L, Reading>,
    ) {
        let key = metric.labels.last().copied().unwrap_or_default();
        for value in L::ALL {
            if let Some(number) = readings.of(*value).get() {
                self.write(metric, &[(key, value.as_str())], |series| series.encode_gauge(&number));
            }
        }
    }

    pub(super) fn seconds_by<L: Label>(
        &mut self,
        metric: &'static Metric,
        seconds: &By<L, Seconds>,
    ) {
        let key = metric.labels.last().copied().unwrap_or_default();
        for value in L::ALL {
            let sum = seconds.of(*value).get();
            self.write(metric, &[(key, value.as_str())], |series| {
                series.encode_counter::<NoLabelSet, f64, f64>(&sum, None)
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

    pub(super) fn histograms_by<L: Label>(
        &mut self,
        metric: &'static Metric,
        histograms: &By<L, Histogram>,
    ) {
        let key = metric.labels.last().copied().unwrap_or_default();
        for value in L::ALL {
            let histogram = histograms.of(*value);
            self.write(metric, &[(key, value.as_str())], |series| {
                let buckets = histogram.buckets();
                let count = buckets.iter().map(|(_, count)| count).sum();
                series.encode_histogram::<NoLabelSet>(
                    histogram.sum().as_secs_f64(),
                    count,
                    &buckets,
                    None,
                )
            });
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
        if let Some(alias) = series.renamed {
            let Some(labels) = renamed(alias, self.owner.iter().chain(labels)) else { return };
            series.result = if labels.is_empty() {
                value(&mut series.encoder)
            } else {
                series.encoder.encode_family(&labels).and_then(|mut one| value(&mut one))
            };
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

/// The labels as an alias has them; `None` if it does not show this series.
fn renamed<'a>(
    alias: &Alias,
    labels: impl Iterator<Item = &'a (&'a str, &'a str)>,
) -> Option<Vec<(&'a str, &'a str)>> {
    let mut out = Vec::new();
    out.extend(alias.add);
    for &(key, value) in labels {
        match alias.only {
            Some((of, wanted)) if of == key && wanted != value => return None,
            Some((of, _)) if of == key => {}
            _ => {
                let other = alias.labels.iter().find(|(own, _)| *own == key);
                out.push((other.map_or(key, |(_, theirs)| theirs), value));
            }
        }
    }
    Some(out)
}

type NoExemplar = prometheus_client::metrics::exemplar::Exemplar<NoLabelSet, u64>;
