//! What OpenMetrics forbids and plain text allows.

use crate::names::{self, Kind};

/// Takes `_sum` and `_count` off histograms with buckets below zero: a sum that can sink is none, and a
/// count is not without a sum (OpenMetrics 1.0, "Histogram"). The last bucket says the count all the same.
pub(super) fn strict(page: &str) -> String {
    let forbidden: Vec<String> = names::all()
        .filter(|metric| is_of_both_signs(metric.kind))
        .flat_map(|metric| ["sum", "count"].map(|what| format!("{}_{what}", metric.name)))
        .collect();
    let is_allowed = |line: &&str| {
        let name = line.split(['{', ' ']).next().unwrap_or_default();
        !forbidden.iter().any(|one| one == name)
    };
    let mut out = String::with_capacity(page.len());
    for line in page.lines().filter(is_allowed) {
        out.push_str(line);
        out.push('\n');
    }
    out
}

fn is_of_both_signs(kind: Kind) -> bool {
    match kind {
        Kind::Histogram(bounds) => bounds.first().is_some_and(|bound| *bound < 0.0),
        Kind::Counter | Kind::Gauge => false,
    }
}
