//! One pool, or several side by side.

use super::{Dashboard, Kind, OF_POOL, Query, Row, Unit, panel, query};

pub(super) static POOL: Dashboard = Dashboard {
    uid: "wicketgate-pool",
    title: "Wicketgate: pool",
    about: "How a pool's requests fare, and what the picker knows.",
    variables: &[OF_POOL],
    rows: &[
        Row {
            title: "Requests",
            panels: &[
                panel(
                    "Outcomes",
                    Kind::Stack,
                    Unit::RequestsPerSecond,
                    "How requests end.",
                    OUTCOMES,
                ),
                panel(
                    "Status codes",
                    Kind::Stack,
                    Unit::RequestsPerSecond,
                    "499 is a client that left before an answer.",
                    CODES,
                ),
                panel("In flight", Kind::Lines, Unit::Count, "Placed and not finished.", IN_FLIGHT),
                panel(
                    "429 by reason",
                    Kind::Stack,
                    Unit::RequestsPerSecond,
                    "saturated: the pool is full; endpoint: an engine's own refusal; the others are flow control's and the rate limits'.",
                    REJECTED,
                ),
                panel(
                    "Time in the queue, P95",
                    Kind::Lines,
                    Unit::Seconds,
                    "By band, with flow control; zero for requests that found room at once.",
                    QUEUED,
                ),
                panel(
                    "Retries",
                    Kind::Stack,
                    Unit::RequestsPerSecond,
                    "Sent to another endpoint before the first byte.",
                    RETRIES,
                ),
                panel(
                    "Streams that broke off",
                    Kind::Stack,
                    Unit::RequestsPerSecond,
                    "By reason.",
                    ABORTED,
                ),
            ],
        },
        Row {
            title: "Latency",
            panels: &[
                panel("Time to first token", Kind::Lines, Unit::Seconds, "Streams only.", TTFT),
                panel("Duration", Kind::Lines, Unit::Seconds, "Received to last byte.", DURATION),
                panel(
                    "Time per output token",
                    Kind::Lines,
                    Unit::Seconds,
                    "After the first; one value a request.",
                    TPOT,
                ),
                panel(
                    "Gap between events",
                    Kind::Lines,
                    Unit::Seconds,
                    "What a reader feels; an event may carry several tokens.",
                    GAP,
                ),
            ],
        },
        Row {
            title: "Tokens and cache",
            panels: &[
                panel(
                    "Tokens",
                    Kind::Lines,
                    Unit::TokensPerSecond,
                    "As endpoints report them.",
                    TOKENS,
                ),
                panel(
                    "Prefix hits",
                    Kind::Lines,
                    Unit::Share,
                    "Believed: prompt blocks that the chosen endpoint holds. Cached: what engines report.",
                    HITS,
                ),
                panel("Length of prompts", Kind::Lines, Unit::Count, "Tokens.", PROMPTS),
                panel("Length of answers", Kind::Lines, Unit::Count, "Tokens.", ANSWERS),
            ],
        },
        Row {
            title: "GPU time",
            panels: &[
                panel(
                    "Endpoints at work",
                    Kind::Stack,
                    Unit::Count,
                    "GPU time of finished requests a second, by what it went into; by estimate, and in whole endpoints.",
                    GPU_TIME,
                ),
                panel(
                    "Saved by the cache",
                    Kind::Lines,
                    Unit::Count,
                    "Endpoints that would have been at work besides, had nothing been cached.",
                    GPU_SAVED,
                ),
                panel(
                    "Computed again",
                    Kind::Lines,
                    Unit::Count,
                    "Prompt tokens an hour that are computed because templates began to share less than they did.",
                    REGRESSIONS,
                ),
                panel(
                    "Templates that share less",
                    Kind::Lines,
                    Unit::Count,
                    "Prompt templates with an open regression.",
                    REGRESSIONS_OPEN,
                ),
            ],
        },
        Row {
            title: "The picker",
            panels: &[
                panel(
                    "Saturation",
                    Kind::Lines,
                    Unit::Share,
                    "At 100 % requests wait or get 429.",
                    SATURATION,
                ),
                panel("Endpoints", Kind::Stack, Unit::Count, "By state.", ENDPOINTS),
                panel(
                    "Prediction error",
                    Kind::Lines,
                    Unit::Share,
                    "Difference of expected and real time to first token, over the real one.",
                    ERROR,
                ),
                panel(
                    "Waiting and running",
                    Kind::Lines,
                    Unit::Count,
                    "In the engines, as they report.",
                    WAITING,
                ),
            ],
        },
    ],
};

const OUTCOMES: &[Query] = &[query(
    r#"sum by (outcome) (rate(wicketgate_requests_total{pool=~"$pool"}[$__rate_interval]))"#,
    "{{outcome}}",
)];
const CODES: &[Query] = &[query(
    r#"sum by (code) (rate(wicketgate_responses_total{pool=~"$pool"}[$__rate_interval])) > 0"#,
    "{{code}}",
)];
const IN_FLIGHT: &[Query] =
    &[query(r#"sum by (pool) (wicketgate_requests_in_flight{pool=~"$pool"})"#, "{{pool}}")];
const REJECTED: &[Query] = &[query(
    r#"sum by (reason) (rate(wicketgate_requests_rejected_total{pool=~"$pool"}[$__rate_interval]))"#,
    "{{reason}}",
)];
const QUEUED: &[Query] = &[query(
    r#"histogram_quantile(0.95, sum by (band, le) (rate(wicketgate_flow_queue_duration_seconds_bucket{pool=~"$pool"}[$__rate_interval])))"#,
    "{{band}}",
)];
const RETRIES: &[Query] = &[query(
    r#"sum by (reason) (rate(wicketgate_retries_total{pool=~"$pool"}[$__rate_interval]))"#,
    "{{reason}}",
)];
const ABORTED: &[Query] = &[query(
    r#"sum by (reason) (rate(wicketgate_streams_aborted_total{pool=~"$pool"}[$__rate_interval]))"#,
    "{{reason}}",
)];
const TTFT: &[Query] = &[
    query(
        r#"histogram_quantile(0.5, sum by (le) (rate(wicketgate_request_ttft_seconds_bucket{pool=~"$pool"}[$__rate_interval])))"#,
        "P50",
    ),
    query(
        r#"histogram_quantile(0.95, sum by (le) (rate(wicketgate_request_ttft_seconds_bucket{pool=~"$pool"}[$__rate_interval])))"#,
        "P95",
    ),
    query(
        r#"histogram_quantile(0.99, sum by (le) (rate(wicketgate_request_ttft_seconds_bucket{pool=~"$pool"}[$__rate_interval])))"#,
        "P99",
    ),
];
const DURATION: &[Query] = &[
    query(
        r#"histogram_quantile(0.5, sum by (le) (rate(wicketgate_request_duration_seconds_bucket{pool=~"$pool"}[$__rate_interval])))"#,
        "P50",
    ),
    query(
        r#"histogram_quantile(0.99, sum by (le) (rate(wicketgate_request_duration_seconds_bucket{pool=~"$pool"}[$__rate_interval])))"#,
        "P99",
    ),
];
const TPOT: &[Query] = &[
    query(
        r#"histogram_quantile(0.5, sum by (le) (rate(wicketgate_request_time_per_output_token_seconds_bucket{pool=~"$pool"}[$__rate_interval])))"#,
        "P50",
    ),
    query(
        r#"histogram_quantile(0.99, sum by (le) (rate(wicketgate_request_time_per_output_token_seconds_bucket{pool=~"$pool"}[$__rate_interval])))"#,
        "P99",
    ),
];
const GAP: &[Query] = &[
    query(
        r#"histogram_quantile(0.5, sum by (le) (rate(wicketgate_stream_gap_seconds_bucket{pool=~"$pool"}[$__rate_interval])))"#,
        "P50",
    ),
    query(
        r#"histogram_quantile(0.99, sum by (le) (rate(wicketgate_stream_gap_seconds_bucket{pool=~"$pool"}[$__rate_interval])))"#,
        "P99",
    ),
];
const TOKENS: &[Query] = &[
    query(r#"sum(rate(wicketgate_input_tokens_total{pool=~"$pool"}[$__rate_interval]))"#, "prompt"),
    query(
        r#"sum(rate(wicketgate_cached_input_tokens_total{pool=~"$pool"}[$__rate_interval]))"#,
        "of these cached",
    ),
    query(
        r#"sum(rate(wicketgate_output_tokens_total{pool=~"$pool"}[$__rate_interval]))"#,
        "generated",
    ),
];
const HITS: &[Query] = &[
    query(
        r#"sum(rate(wicketgate_prefix_blocks_matched_total{pool=~"$pool"}[$__rate_interval])) / (sum(rate(wicketgate_prefix_blocks_looked_up_total{pool=~"$pool"}[$__rate_interval])) > 0)"#,
        "believed",
    ),
    query(
        r#"sum(rate(wicketgate_cached_input_tokens_total{pool=~"$pool"}[$__rate_interval])) / (sum(rate(wicketgate_input_tokens_total{pool=~"$pool"}[$__rate_interval])) > 0)"#,
        "cached",
    ),
];
const PROMPTS: &[Query] = &[
    query(
        r#"histogram_quantile(0.5, sum by (le) (rate(wicketgate_request_input_tokens_bucket{pool=~"$pool"}[$__rate_interval])))"#,
        "P50",
    ),
    query(
        r#"histogram_quantile(0.99, sum by (le) (rate(wicketgate_request_input_tokens_bucket{pool=~"$pool"}[$__rate_interval])))"#,
        "P99",
    ),
];
const ANSWERS: &[Query] = &[
    query(
        r#"histogram_quantile(0.5, sum by (le) (rate(wicketgate_request_output_tokens_bucket{pool=~"$pool"}[$__rate_interval])))"#,
        "P50",
    ),
    query(
        r#"histogram_quantile(0.99, sum by (le) (rate(wicketgate_request_output_tokens_bucket{pool=~"$pool"}[$__rate_interval])))"#,
        "P99",
    ),
];
const GPU_TIME: &[Query] = &[query(
    r#"sum by (kind) (rate(wicketgate_gpu_seconds_total{pool=~"$pool"}[$__rate_interval]))"#,
    "{{kind}}",
)];
const GPU_SAVED: &[Query] = &[query(
    r#"sum by (pool) (rate(wicketgate_gpu_saved_seconds_total{pool=~"$pool"}[$__rate_interval]))"#,
    "{{pool}}",
)];
const REGRESSIONS: &[Query] = &[query(
    r#"max by (pool) (wicketgate_prefix_loss_tokens_per_hour{pool=~"$pool"})"#,
    "{{pool}}",
)];
const REGRESSIONS_OPEN: &[Query] =
    &[query(r#"max by (pool) (wicketgate_prefix_regressions_open{pool=~"$pool"})"#, "{{pool}}")];
const SATURATION: &[Query] =
    &[query(r#"max by (pool) (wicketgate_pool_saturation_ratio{pool=~"$pool"})"#, "{{pool}}")];
const ENDPOINTS: &[Query] = &[query(
    r#"sum by (state) (max by (pool, state) (wicketgate_pool_endpoints{pool=~"$pool"}))"#,
    "{{state}}",
)];
const ERROR: &[Query] =
    &[query(r#"pool:wicketgate_prediction_error:ratio_rate5m{pool=~"$pool"}"#, "{{pool}}")];
const WAITING: &[Query] = &[
    query(
        r#"sum(max by (endpoint) (wicketgate_endpoint_waiting_requests{pool=~"$pool"}))"#,
        "waiting",
    ),
    query(
        r#"sum(max by (endpoint) (wicketgate_endpoint_running_requests{pool=~"$pool"}))"#,
        "running",
    ),
];
