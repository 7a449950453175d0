//! Endpoints, as engines say and as we book them.

use super::{Kind, Metric, Unit, metric};

const ENDPOINT_LABELS: &[&str] = &["pool", "endpoint"];

pub static ENDPOINT: &[&Metric] = &[
    &ENDPOINT_UP,
    &ENDPOINT_WAITING,
    &ENDPOINT_RUNNING,
    &ENDPOINT_KV_USAGE,
    &ENDPOINT_RESIDENT_ADAPTERS,
    &ENDPOINT_IN_FLIGHT,
    &ENDPOINT_SATURATION,
    &ENDPOINT_PREFILL_TOKENS,
    &ENDPOINT_PREFILL_SPEED,
    &ENDPOINT_STEP,
    &ENDPOINT_SIGNAL_AGE,
    &ENDPOINT_PICKS,
    &ENDPOINT_EJECTIONS,
    &ENDPOINT_SCRAPE_AGE,
    &ENDPOINT_SCRAPES,
    &ENDPOINT_SCRAPE_FAILURES,
    &ENDPOINT_SCRAPE_ANOMALIES,
];

pub static ENDPOINT_UP: Metric = metric(
    "wicketgate_endpoint_up",
    Kind::Gauge,
    Unit::Count,
    ENDPOINT_LABELS,
    "1 if the endpoint may get requests, else 0.",
);

pub static ENDPOINT_WAITING: Metric = metric(
    "wicketgate_endpoint_waiting_requests",
    Kind::Gauge,
    Unit::Count,
    ENDPOINT_LABELS,
    "Requests waiting in the endpoint, as last scraped; absent if it does not say.",
);

pub static ENDPOINT_RUNNING: Metric = metric(
    "wicketgate_endpoint_running_requests",
    Kind::Gauge,
    Unit::Count,
    ENDPOINT_LABELS,
    "Requests in the endpoint's running batch, as last scraped; absent if it does not say.",
);

pub static ENDPOINT_KV_USAGE: Metric = metric(
    "wicketgate_endpoint_kv_usage_ratio",
    Kind::Gauge,
    Unit::Ratio,
    ENDPOINT_LABELS,
    "Share of KV blocks in use, as last scraped; absent if the endpoint does not say.",
);

pub static ENDPOINT_RESIDENT_ADAPTERS: Metric = metric(
    "wicketgate_endpoint_resident_adapters",
    Kind::Gauge,
    Unit::Count,
    ENDPOINT_LABELS,
    "LoRA adapters believed to be loaded; absent without LoRA.",
);

pub static ENDPOINT_IN_FLIGHT: Metric = metric(
    "wicketgate_endpoint_in_flight_requests",
    Kind::Gauge,
    Unit::Count,
    ENDPOINT_LABELS,
    "Requests that this gateway placed on the endpoint and that have not finished.",
);

pub static ENDPOINT_PICKS: Metric = metric(
    "wicketgate_endpoint_picks_total",
    Kind::Counter,
    Unit::Count,
    ENDPOINT_LABELS,
    "Requests placed on the endpoint.",
);

pub static ENDPOINT_EJECTIONS: Metric = metric(
    "wicketgate_endpoint_ejections_total",
    Kind::Counter,
    Unit::Count,
    ENDPOINT_LABELS,
    "Times the endpoint was taken out because it failed.",
);

pub static ENDPOINT_SCRAPE_AGE: Metric = metric(
    "wicketgate_endpoint_scrape_age_seconds",
    Kind::Gauge,
    Unit::Seconds,
    ENDPOINT_LABELS,
    "Age of the last good scrape; absent before the first.",
);

pub static ENDPOINT_SCRAPES: Metric = metric(
    "wicketgate_endpoint_scrapes_total",
    Kind::Counter,
    Unit::Count,
    ENDPOINT_LABELS,
    "Good scrapes of the endpoint.",
);

pub static ENDPOINT_SCRAPE_FAILURES: Metric = metric(
    "wicketgate_endpoint_scrape_failures_total",
    Kind::Counter,
    Unit::Count,
    &["pool", "endpoint", "reason"],
    "Failed scrapes of the endpoint by reason.",
);

pub static ENDPOINT_SCRAPE_ANOMALIES: Metric = metric(
    "wicketgate_endpoint_scrape_anomalies_total",
    Kind::Counter,
    Unit::Count,
    &["pool", "endpoint", "kind"],
    "Values on scraped pages that were ignored because they cannot be right, by kind.",
);

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
