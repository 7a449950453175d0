//! What an endpoint was seen to do, beside what it reports of itself ([`super::ENDPOINT`]).

use super::table::{ENDPOINT_LABELS, metric};
use super::{Kind, Metric, Unit};

pub static ENDPOINT_SATURATION: Metric = metric(
    "wicketgate_endpoint_saturation_ratio",
    Kind::Gauge,
    Unit::Ratio,
    ENDPOINT_LABELS,
    "Share of the endpoint's capacity in use, by the measures that decide whether its pool is full.",
);
pub static ENDPOINT_PREFILL_TOKENS: Metric = metric(
    "wicketgate_endpoint_prefill_tokens",
    Kind::Gauge,
    Unit::Count,
    ENDPOINT_LABELS,
    "Prompt tokens that this gateway sent there and that no first token has answered yet.",
);
pub static ENDPOINT_PREFILL_SPEED: Metric = metric(
    "wicketgate_endpoint_prefill_tokens_per_second",
    Kind::Gauge,
    Unit::Count,
    ENDPOINT_LABELS,
    "Prompt tokens that it computes in a second, as learned from its answers over the last minute; absent before the first.",
);
pub static ENDPOINT_STEP: Metric = metric(
    "wicketgate_endpoint_step_seconds",
    Kind::Gauge,
    Unit::Seconds,
    ENDPOINT_LABELS,
    "One step of its empty batch, as learned from its answers; absent before the first.",
);
pub static ENDPOINT_SIGNAL_AGE: Metric = metric(
    "wicketgate_endpoint_signal_age_seconds",
    Kind::Gauge,
    Unit::Seconds,
    &["pool", "endpoint", "signal"],
    "Age of what is known of the endpoint, by signal; absent before the first.",
);
