//! The cluster as this gateway sees it: sums and means over all pools, rates over a sliding window.

use super::{Kind, Metric, Unit, metric};

/// Seconds that the window of [`CLUSTER`] holds.
pub const CLUSTER_WINDOW_SECONDS: u64 = 300;

pub static CLUSTER: &[&Metric] = &[
    &CLUSTER_ENDPOINTS,
    &CLUSTER_KV_USAGE,
    &CLUSTER_REQUEST_RATE,
    &CLUSTER_ERROR_RATIO,
    &CLUSTER_SHED_RATIO,
    &CLUSTER_TTFT_P99,
    &CLUSTER_DURATION_P99,
    &CLUSTER_INPUT_TOKEN_RATE,
    &CLUSTER_OUTPUT_TOKEN_RATE,
    &CLUSTER_CAPACITY_REQUESTS,
    &CLUSTER_HEADROOM_REQUESTS,
    &CLUSTER_PREFILL_CAPACITY,
    &CLUSTER_PREFILL_HEADROOM,
];

const fn gauge(name: &'static str, unit: Unit, help: &'static str) -> Metric {
    metric(name, Kind::Gauge, unit, &[], help)
}

pub static CLUSTER_ENDPOINTS: Metric = metric(
    "wicketgate_cluster_endpoints",
    Kind::Gauge,
    Unit::Count,
    &["state"],
    "Endpoints of all pools by state; one that is in several pools counts once.",
);
pub static CLUSTER_KV_USAGE: Metric = gauge(
    "wicketgate_cluster_kv_usage_ratio",
    Unit::Ratio,
    "Mean share of KV blocks in use over the endpoints that say it; absent if none does.",
);
pub static CLUSTER_REQUEST_RATE: Metric = gauge(
    "wicketgate_cluster_requests_per_second",
    Unit::Count,
    "Requests that finished, over the last five minutes.",
);
pub static CLUSTER_ERROR_RATIO: Metric = gauge(
    "wicketgate_cluster_error_ratio",
    Unit::Ratio,
    "Share of these that an endpoint or the gateway failed; absent without requests.",
);
pub static CLUSTER_SHED_RATIO: Metric = gauge(
    "wicketgate_cluster_shed_ratio",
    Unit::Ratio,
    "Share of these that were turned away for want of capacity; absent without requests.",
);
pub static CLUSTER_TTFT_P99: Metric = gauge(
    "wicketgate_cluster_ttft_p99_seconds",
    Unit::Seconds,
    "Time to the first token that 99 of 100 streams kept, over the last five minutes; absent without streams.",
);
pub static CLUSTER_DURATION_P99: Metric = gauge(
    "wicketgate_cluster_request_duration_p99_seconds",
    Unit::Seconds,
    "Duration that 99 of 100 requests kept, over the last five minutes; absent without requests.",
);
pub static CLUSTER_INPUT_TOKEN_RATE: Metric = gauge(
    "wicketgate_cluster_input_tokens_per_second",
    Unit::Count,
    "Prompt tokens of finished requests, over the last five minutes, cached ones included.",
);
pub static CLUSTER_OUTPUT_TOKEN_RATE: Metric = gauge(
    "wicketgate_cluster_output_tokens_per_second",
    Unit::Count,
    "Generated tokens of finished requests, over the last five minutes.",
);
pub static CLUSTER_CAPACITY_REQUESTS: Metric = gauge(
    "wicketgate_cluster_capacity_requests",
    Unit::Count,
    "Requests that the endpoints in order can hold before all of them are full: those there now, and the headroom.",
);
pub static CLUSTER_HEADROOM_REQUESTS: Metric = gauge(
    "wicketgate_cluster_headroom_requests",
    Unit::Count,
    "Requests that can still be placed before all endpoints are full.",
);
pub static CLUSTER_PREFILL_CAPACITY: Metric = gauge(
    "wicketgate_cluster_prefill_capacity_tokens_per_second",
    Unit::Count,
    "Prompt tokens that the endpoints in order compute in a second if they do nothing else, as learned; absent before that.",
);
pub static CLUSTER_PREFILL_HEADROOM: Metric = gauge(
    "wicketgate_cluster_prefill_headroom_tokens_per_second",
    Unit::Count,
    "Of these, what the prompt tokens that were not cached left over in the last five minutes, at least 0.",
);

pub static CLOUD_WATCH_REPORTS: Metric = metric(
    "wicketgate_cloudwatch_reports_total",
    Kind::Counter,
    Unit::Count,
    &[],
    "Reports that reached CloudWatch or its agent.",
);
pub static CLOUD_WATCH_FAILURES: Metric = metric(
    "wicketgate_cloudwatch_failures_total",
    Kind::Counter,
    Unit::Count,
    &["reason"],
    "Reports that did not, by reason; the next one is tried at its time.",
);
