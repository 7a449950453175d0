//! Metrics of rate limits, by rule.

use super::{Kind, Metric, Unit, metric};

pub static RATE_LIMIT: &[&Metric] = &[
    &RATE_LIMIT_REFUSALS,
    &RATE_LIMIT_SHADOW_REFUSALS,
    &RATE_LIMIT_RESERVED_TOKENS,
    &RATE_LIMIT_SETTLED_TOKENS,
    &RATE_LIMIT_BUCKETS,
];

pub static RATE_LIMIT_REFUSALS: Metric = metric(
    "wicketgate_rate_limit_refusals_total",
    Kind::Counter,
    Unit::Count,
    &["rule", "kind"],
    "Requests that the rule refused, by what there was too much of.",
);
pub static RATE_LIMIT_SHADOW_REFUSALS: Metric = metric(
    "wicketgate_rate_limit_shadow_refusals_total",
    Kind::Counter,
    Unit::Count,
    &["rule", "kind"],
    "Requests that the rule would have refused if it were not in shadow mode.",
);
pub static RATE_LIMIT_RESERVED_TOKENS: Metric = metric(
    "wicketgate_rate_limit_reserved_tokens_total",
    Kind::Counter,
    Unit::Count,
    &["rule"],
    "Tokens reserved on arrival by requests that have ended, output unweighted.",
);
pub static RATE_LIMIT_SETTLED_TOKENS: Metric = metric(
    "wicketgate_rate_limit_settled_tokens_total",
    Kind::Counter,
    Unit::Count,
    &["rule"],
    "Tokens that the same requests really used.",
);
pub static RATE_LIMIT_BUCKETS: Metric = metric(
    "wicketgate_rate_limit_buckets",
    Kind::Gauge,
    Unit::Count,
    &["rule"],
    "Buckets that are remembered: tenants, keys, models, … with recent requests.",
);
