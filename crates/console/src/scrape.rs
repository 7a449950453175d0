//! A gateway's `/metrics`, summed over what nobody here asks about.

mod histogram;

use std::collections::HashMap;

use engines::exposition::{Labels, Sample, lines, split_name};

pub(crate) use histogram::{Histogram, quantile};

/// Series of the gateway's own page.
#[derive(Clone, Debug, Default)]
pub(crate) struct Page {
    /// By metric: labels as written, and the value.
    series: HashMap<String, Vec<(Vec<u8>, f64)>>,
}

impl Page {
    /// Reads the series of the metrics that begin with one of `wanted`; the others, on a page of
    /// thousands of endpoints nearly all, are passed over.
    pub(crate) fn read(page: &[u8], wanted: &[&str]) -> Self {
        let mut series: HashMap<String, Vec<(Vec<u8>, f64)>> = HashMap::new();
        for line in lines(page) {
            if !wanted.iter().any(|start| line.starts_with(start.as_bytes())) {
                continue;
            }
            let (name, rest) = split_name(line);
            let Some(sample) = Sample::parse(rest) else { continue };
            let Ok(name) = std::str::from_utf8(name) else { continue };
            let entry = (sample.labels.0.to_vec(), sample.value);
            match series.get_mut(name) {
                Some(known) => known.push(entry),
                None => {
                    series.insert(name.to_owned(), vec![entry]);
                }
            }
        }
        Self { series }
    }

    /// The page apart by a label's values; series without it are in none.
    pub(crate) fn by(&self, label: &str) -> HashMap<String, Self> {
        let mut parts: HashMap<String, Self> = HashMap::new();
        for (name, series) in &self.series {
            for entry in series {
                let Some(value) = text(Labels(&entry.0), label) else { continue };
                let part = parts.entry(value).or_default();
                part.series.entry(name.clone()).or_default().push(entry.clone());
            }
        }
        parts
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.series.contains_key(name)
    }

    /// The sum of all series of a metric with these labels; `None` if there is no such series.
    pub(crate) fn sum(&self, name: &str, labels: &[(&str, &str)]) -> Option<f64> {
        let mut found = None;
        for (_, value) in self.matching(name, labels) {
            *found.get_or_insert(0.0) += value;
        }
        found
    }

    /// The value of `label` on the metric's first series.
    pub(crate) fn label(&self, name: &str, label: &str) -> Option<String> {
        let (labels, _) = self.series.get(name)?.first()?;
        text(Labels(labels), label)
    }

    /// The buckets of a histogram, summed over all series with these labels.
    pub(crate) fn histogram(&self, name: &str, labels: &[(&str, &str)]) -> Histogram {
        let bucket = format!("{name}_bucket");
        let buckets = self.matching(&bucket, labels).filter_map(|(labels, value)| {
            let bound = text(labels, "le")?.parse().ok()?;
            Some((bound, value))
        });
        Histogram::new(buckets)
    }

    fn matching<'a>(
        &'a self,
        name: &str,
        wanted: &'a [(&str, &str)],
    ) -> impl Iterator<Item = (Labels<'a>, f64)> {
        let series = self.series.get(name).map_or(&[][..], Vec::as_slice);
        series.iter().map(|(labels, value)| (Labels(labels), *value)).filter(move |(labels, _)| {
            let holds = |(key, value): &(&str, &str)| {
                labels.get(key.as_bytes()).is_some_and(|found| *found == *value.as_bytes())
            };
            wanted.iter().all(holds)
        })
    }
}

fn text(labels: Labels<'_>, key: &str) -> Option<String> {
    String::from_utf8(labels.get(key.as_bytes())?.into_owned()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &[u8] = b"# HELP w_requests_total x\n\
        w_requests_total{pool=\"a\",outcome=\"ok\"} 7\n\
        w_requests_total{pool=\"a\",outcome=\"shed\"} 2\n\
        w_requests_total{pool=\"b\\\"\",outcome=\"ok\"} 5\n\
        w_ttft_seconds_bucket{pool=\"a\",le=\"0.1\"} 3\n\
        w_ttft_seconds_bucket{pool=\"a\",le=\"+Inf\"} 4\n\
        other 9\n";

    #[test]
    fn series_are_summed_over_labels_that_nobody_names() {
        let page = Page::read(PAGE, &["w_"]);
        assert_eq!(page.sum("w_requests_total", &[]), Some(14.0));
        assert_eq!(page.sum("w_requests_total", &[("pool", "a")]), Some(9.0));
        assert_eq!(page.sum("w_requests_total", &[("pool", "b\"")]), Some(5.0));
        assert_eq!(page.sum("w_requests_total", &[("pool", "c")]), None);
        assert_eq!(page.histogram("w_ttft_seconds", &[("pool", "a")]).count(), 4.0);
        assert!(!page.has("other"));
        let parts = page.by("pool");
        assert_eq!(parts["b\""].sum("w_requests_total", &[]), Some(5.0));
        assert_eq!(parts.len(), 2);
    }
}
