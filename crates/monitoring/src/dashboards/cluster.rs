//! All pools at a glance.

use super::{Dashboard, Kind, Query, Row, Unit, panel, query};

pub(super) static OVERVIEW: Dashboard = Dashboard {
    uid: "wicketgate-overview",
    title: "Wicketgate: cluster overview",
    about: "All pools of a cluster: is it well, is it full, which pool is it.",
    variables: &[],
    rows: &[
        Row {
            title: "Now",
            panels: &[
                panel(
                    "Request rate",
                    Kind::Number,
                    Unit::RequestsPerSecond,
                    "Requests that finish, over five minutes.",
                    NOW_RATE,
                ),
                panel(
                    "Errors",
                    Kind::Number,
                    Unit::Share,
                    "Requests that an endpoint or the gateway failed, over five minutes.",
                    NOW_ERRORS,
                ),
                panel(
                    "P99 time to first token",
                    Kind::Number,
                    Unit::Seconds,
                    "Over five minutes, as the gateway works it out.",
                    NOW_TTFT,
                ),
                panel(
                    "P99 duration",
                    Kind::Number,
                    Unit::Seconds,
                    "Over five minutes, as the gateway works it out.",
                    NOW_DURATION,
                ),
                panel(
                    "KV cache in use",
                    Kind::Number,
                    Unit::Share,
                    "Mean over the endpoints that say it.",
                    NOW_KV,
                ),
                panel(
                    "Headroom",
                    Kind::Number,
                    Unit::Count,
                    "Requests that can still be placed before all endpoints are full.",
                    NOW_HEADROOM,
                ),
            ],
        },
        Row {
            title: "Traffic",
            panels: &[
                panel(
                    "Requests by pool",
                    Kind::Stack,
                    Unit::RequestsPerSecond,
                    "Finished requests.",
                    RATE_BY_POOL,
                ),
                panel(
                    "Errors by pool",
                    Kind::Lines,
                    Unit::Share,
                    "Share that an endpoint or the gateway failed; 0.1 % is the objective of the alerts.",
                    ERRORS_BY_POOL,
                ),
                panel(
                    "P99 time to first token by pool",
                    Kind::Lines,
                    Unit::Seconds,
                    "Streams only.",
                    TTFT_BY_POOL,
                ),
                panel(
                    "Tokens",
                    Kind::Lines,
                    Unit::TokensPerSecond,
                    "As endpoints report them, over five minutes.",
                    TOKENS,
                ),
            ],
        },
        Row {
            title: "Capacity",
            panels: &[
                panel(
                    "Saturation by pool",
                    Kind::Lines,
                    Unit::Share,
                    "At 100 % requests wait or get 429.",
                    SATURATION,
                ),
                panel(
                    "Capacity and headroom",
                    Kind::Lines,
                    Unit::Count,
                    "Requests that endpoints can hold, and how many more.",
                    CAPACITY,
                ),
                panel(
                    "Prefill capacity and headroom",
                    Kind::Lines,
                    Unit::TokensPerSecond,
                    "Learned from answers: prompt tokens a second if endpoints did nothing else.",
                    PREFILL,
                ),
                panel(
                    "Endpoints by state",
                    Kind::Stack,
                    Unit::Count,
                    "Each endpoint once.",
                    ENDPOINTS,
                ),
            ],
        },
    ],
};

const NOW_RATE: &[Query] = &[query("sum(wicketgate_cluster_requests_per_second)", "requests")];
const NOW_ERRORS: &[Query] = &[query("max(wicketgate_cluster_error_ratio)", "errors")];
const NOW_TTFT: &[Query] = &[query("max(wicketgate_cluster_ttft_p99_seconds)", "P99")];
const NOW_DURATION: &[Query] =
    &[query("max(wicketgate_cluster_request_duration_p99_seconds)", "P99")];
const NOW_KV: &[Query] = &[query("avg(wicketgate_cluster_kv_usage_ratio)", "KV")];
// Without capacity there are no endpoints: a router of the global tier, or a gateway that has just begun.
const NOW_HEADROOM: &[Query] = &[query(
    "min(wicketgate_cluster_headroom_requests and (wicketgate_cluster_capacity_requests > 0))",
    "headroom",
)];
const RATE_BY_POOL: &[Query] =
    &[query("sum by (pool) (rate(wicketgate_requests_total[$__rate_interval]))", "{{pool}}")];
const ERRORS_BY_POOL: &[Query] =
    &[query("pool:wicketgate_request_errors:ratio_rate5m", "{{pool}}")];
const TTFT_BY_POOL: &[Query] = &[query(
    "histogram_quantile(0.99, sum by (pool, le) (rate(wicketgate_request_ttft_seconds_bucket[$__rate_interval])))",
    "{{pool}}",
)];
const TOKENS: &[Query] = &[
    query("sum(wicketgate_cluster_input_tokens_per_second)", "prompt"),
    query("sum(wicketgate_cluster_output_tokens_per_second)", "generated"),
];
const SATURATION: &[Query] =
    &[query("max by (pool) (wicketgate_pool_saturation_ratio)", "{{pool}}")];
const CAPACITY: &[Query] = &[
    query("min(wicketgate_cluster_capacity_requests > 0)", "capacity"),
    query(
        "min(wicketgate_cluster_headroom_requests and (wicketgate_cluster_capacity_requests > 0))",
        "headroom",
    ),
];
const PREFILL: &[Query] = &[
    query("min(wicketgate_cluster_prefill_capacity_tokens_per_second)", "capacity"),
    query("min(wicketgate_cluster_prefill_headroom_tokens_per_second)", "headroom"),
];
const ENDPOINTS: &[Query] = &[query("max by (state) (wicketgate_cluster_endpoints)", "{{state}}")];
