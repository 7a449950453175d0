//! The fleet's pace as one router sees it: what the cluster's gauges are for a cluster.

use super::{Kind, Metric, Unit, metric};

const fn gauge(name: &'static str, unit: Unit, help: &'static str) -> Metric {
    metric(name, Kind::Gauge, unit, &[], help)
}

pub static FLEET_REQUEST_RATE: Metric = gauge(
    "wicketgate_fleet_requests_per_second",
    Unit::Count,
    "Requests that finished at this router, over the last five minutes.",
);
pub static FLEET_ERROR_RATIO: Metric = gauge(
    "wicketgate_fleet_error_ratio",
    Unit::Ratio,
    "Share of these that a member or the router failed; absent without requests.",
);
pub static FLEET_SHED_RATIO: Metric = gauge(
    "wicketgate_fleet_shed_ratio",
    Unit::Ratio,
    "Share of these that were turned away for want of capacity; absent without requests.",
);
pub static FLEET_TTFT_P99: Metric = gauge(
    "wicketgate_fleet_ttft_p99_seconds",
    Unit::Seconds,
    "Time to the first token that 99 of 100 streams kept, over the last five minutes; absent without streams.",
);
pub static FLEET_DURATION_P99: Metric = gauge(
    "wicketgate_fleet_request_duration_p99_seconds",
    Unit::Seconds,
    "Duration that 99 of 100 requests kept, over the last five minutes; absent without requests.",
);
pub static FLEET_INPUT_TOKEN_RATE: Metric = gauge(
    "wicketgate_fleet_input_tokens_per_second",
    Unit::Count,
    "Prompt tokens of finished requests, over the last five minutes, cached ones included.",
);
pub static FLEET_OUTPUT_TOKEN_RATE: Metric = gauge(
    "wicketgate_fleet_output_tokens_per_second",
    Unit::Count,
    "Generated tokens of finished requests, over the last five minutes.",
);
pub static FLEET_CAPACITY_REQUESTS: Metric = gauge(
    "wicketgate_fleet_capacity_requests",
    Unit::Count,
    "Requests that the members which take some can hold at once, by what they last reported.",
);
pub static FLEET_HEADROOM_REQUESTS: Metric =
    gauge("wicketgate_fleet_headroom_requests", Unit::Count, "Of these, the room that is left.");
