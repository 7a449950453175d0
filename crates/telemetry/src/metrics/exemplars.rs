//! Traces in which the values of a histogram were observed, the last one of each bucket.

use std::collections::HashMap;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::SystemTime;

use crate::clock;
use crate::trace::TraceId;

/// Empty, and a few bytes, until the first trace is kept.
#[derive(Debug, Default)]
pub(super) struct Exemplars(OnceLock<Box<[Mutex<Option<Seen>>]>>);

#[derive(Clone, Copy, Debug)]
struct Seen {
    value: f64,
    trace: TraceId,
    at: SystemTime,
}

impl Exemplars {
    /// Only traces that are kept come here: one request in a hundred, or a failed one. Never waits: of
    /// two that come at once, one is enough.
    pub(super) fn put(
        &self,
        bucket: usize,
        buckets: usize,
        value: f64,
        trace: TraceId,
        at: SystemTime,
    ) {
        let cells = self.0.get_or_init(|| (0..buckets).map(|_| Mutex::default()).collect());
        if let Some(Ok(mut cell)) = cells.get(bucket).map(Mutex::try_lock) {
            *cell = Some(Seen { value, trace, at });
        }
    }

    /// By bucket, as they stand behind a bucket's value on an OpenMetrics page; empty if there are none.
    pub(super) fn texts(&self) -> Vec<Option<String>> {
        let cells = self.0.get().map(|cells| &cells[..]).unwrap_or_default();
        let text = |cell: &Mutex<Option<Seen>>| {
            let Seen { value, trace, at } = (*cell.lock().unwrap_or_else(PoisonError::into_inner))?;
            let at = clock::unix_seconds(at);
            Some(format!(" # {{trace_id=\"{trace}\"}} {value} {at:.3}"))
        };
        cells.iter().map(text).collect()
    }
}

/// The exemplars of one histogram of one pool.
pub(super) struct Marked {
    metric: &'static str,
    /// As they stand on the page, `le` left out.
    labels: String,
    texts: std::vec::IntoIter<Option<String>>,
}

impl Marked {
    pub(super) fn new(metric: &'static str, pool: &str, texts: Vec<Option<String>>) -> Self {
        let mut labels = String::from("pool=\"");
        for char in pool.chars() {
            match char {
                '\\' => labels.push_str("\\\\"),
                '"' => labels.push_str("\\\""),
                '\n' => labels.push_str("\\n"),
                other => labels.push(other),
            }
        }
        labels.push('"');
        Self { metric, labels, texts: texts.into_iter() }
    }
}

/// Puts exemplars on a page. The encoder's own have no public constructor (prometheus-client 0.26), so
/// they are appended to the lines of their buckets, which come in order.
pub(super) fn mark(page: &str, marked: Vec<Marked>) -> String {
    let mut out = String::with_capacity(page.len() + 128 * marked.len());
    let mut by_metric: HashMap<&str, HashMap<String, _>> = HashMap::new();
    for one in marked {
        by_metric.entry(one.metric).or_default().insert(one.labels, one.texts);
    }
    for line in page.lines() {
        out.push_str(line);
        let text = bucket_of(line).and_then(|(metric, labels)| {
            by_metric.get_mut(metric)?.get_mut(labels)?.next().flatten()
        });
        out.extend(text);
        out.push('\n');
    }
    out
}

/// The metric of a bucket's line and its labels, `le` left out, which the encoder writes first.
fn bucket_of(line: &str) -> Option<(&str, &str)> {
    let (metric, rest) = line.split_once("_bucket{le=\"")?;
    let (_, labels) = rest.split_once("\",")?;
    let (labels, _) = labels.rsplit_once("} ")?;
    Some((metric, labels))
}
