//! Metrics of model rewrites: `docs/canary.md`.

use super::{Kind, Metric, REQUEST_TTFT, Unit};

const fn metric(
    name: &'static str,
    kind: Kind,
    unit: Unit,
    labels: &'static [&'static str],
    help: &'static str,
) -> Metric {
    Metric { name, kind, unit, labels, help }
}

pub static REWRITE: &[&Metric] = &[
    &REWRITE_DECISIONS,
    &REWRITE_REQUESTS,
    &REWRITE_TTFT,
    &REWRITE_SHARE,
    &REWRITE_ROLLED_BACK,
    &REWRITE_ROLLBACKS,
    &REWRITE_MIRRORED,
];

pub static REWRITE_DECISIONS: Metric = metric(
    "wicketgate_rewrite_decisions_total",
    Kind::Counter,
    Unit::Count,
    &["rewrite", "model", "target"],
    "Requests that were given another model; `model` is the rule's match, `*` of a rule without matches.",
);
pub static REWRITE_REQUESTS: Metric = metric(
    "wicketgate_rewrite_requests_total",
    Kind::Counter,
    Unit::Count,
    &["rewrite", "rule", "target", "outcome"],
    "Requests to a target that ended, by how; `rule` is its position in the rewrite.",
);
pub static REWRITE_TTFT: Metric = metric(
    "wicketgate_rewrite_ttft_seconds",
    REQUEST_TTFT.kind,
    Unit::Seconds,
    &["rewrite", "rule", "target"],
    "Time from receiving a request to its first token, of a target's streams.",
);
pub static REWRITE_SHARE: Metric = metric(
    "wicketgate_rewrite_share_ratio",
    Kind::Gauge,
    Unit::Ratio,
    &["rewrite", "rule", "target"],
    "Share of the rule's requests that a target gets now.",
);
pub static REWRITE_ROLLED_BACK: Metric = metric(
    "wicketgate_rewrite_rolled_back",
    Kind::Gauge,
    Unit::Count,
    &["rewrite", "rule", "target"],
    "1 while a target's traffic is taken away, else 0.",
);
pub static REWRITE_ROLLBACKS: Metric = metric(
    "wicketgate_rewrite_rollbacks_total",
    Kind::Counter,
    Unit::Count,
    &["rewrite", "rule", "target", "reason"],
    "Times that a target's traffic was taken away, by what for.",
);
pub static REWRITE_MIRRORED: Metric = metric(
    "wicketgate_rewrite_mirrored_total",
    Kind::Counter,
    Unit::Count,
    &["rewrite", "rule", "target", "outcome"],
    "Copies of requests by what became of them; they count in no other metric of requests.",
);
