//! The table itself, in page order.

use super::{Kind, Metric, Unit};

/// Decisions take microseconds; a bucket above a millisecond means something is wrong.
const SCHEDULE_SECONDS: &[f64] =
    &[1e-6, 2e-6, 5e-6, 1e-5, 2e-5, 5e-5, 1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3, 1e-2];

/// vLLM's bounds for the same metric up to a minute, refined where users feel a difference.
const TTFT_SECONDS: &[f64] = &[
    0.001, 0.0025, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.15, 0.25, 0.35, 0.5, 0.75, 1.0, 1.5,
    2.5, 5.0, 7.5, 10.0, 20.0, 40.0, 60.0,
];

const REQUEST_SECONDS: &[f64] = &[
    0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 240.0,
    480.0, 960.0, 1920.0, 3600.0,
];

/// vLLM's bounds for time per output token, continued downwards for chunks that arrive together.
const TOKEN_SECONDS: &[f64] = &[
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5,
    5.0, 10.0, 20.0, 40.0,
];

const fn metric(
    name: &'static str,
    kind: Kind,
    unit: Unit,
    labels: &'static [&'static str],
    help: &'static str,
) -> Metric {
    Metric { name, kind, unit, labels, help }
}

pub static GATEWAY: &[&Metric] = &[
    &BUILD_INFO,
    &CONFIG_INFO,
    &CONFIG_RELOADS,
    &CONFIG_LAST_RELOAD_SUCCESS,
    &CONNECTIONS_OPEN,
    &CONNECTIONS_ACCEPTED,
    &REQUESTS_OPEN,
    &REQUESTS_REFUSED,
    &REQUEST_BYTES,
    &RESPONSE_BYTES,
    &BUFFERED_BODY_BYTES,
    &ACCESS_LOG_DROPPED_LINES,
    &SCHEDULE_DURATION,
    &UPSTREAM_CONNECTS,
    &CERTIFICATE_EXPIRY,
];

pub static BUILD_INFO: Metric = metric(
    "wicketgate_build_info",
    Kind::Gauge,
    Unit::Count,
    &["version", "revision"],
    "Always 1; the labels say which build runs.",
);
pub static CONFIG_INFO: Metric = metric(
    "wicketgate_config_info",
    Kind::Gauge,
    Unit::Count,
    &["hash"],
    "Always 1; the label is the hash of the configuration in force.",
);
pub static CONFIG_RELOADS: Metric = metric(
    "wicketgate_config_reloads_total",
    Kind::Counter,
    Unit::Count,
    &["outcome"],
    "Configuration reloads by outcome; after a rejected one the former stays in force.",
);
pub static CONFIG_LAST_RELOAD_SUCCESS: Metric = metric(
    "wicketgate_config_last_reload_success_timestamp_seconds",
    Kind::Gauge,
    Unit::UnixSeconds,
    &[],
    "When the configuration in force was loaded.",
);
pub static CONNECTIONS_OPEN: Metric = metric(
    "wicketgate_connections_open",
    Kind::Gauge,
    Unit::Count,
    &[],
    "Client connections that are open.",
);
pub static CONNECTIONS_ACCEPTED: Metric = metric(
    "wicketgate_connections_accepted_total",
    Kind::Counter,
    Unit::Count,
    &[],
    "Client connections accepted.",
);
pub static REQUESTS_OPEN: Metric = metric(
    "wicketgate_requests_open",
    Kind::Gauge,
    Unit::Count,
    &[],
    "Requests between their first header byte and the end of their response, over all pools.",
);
pub static REQUESTS_REFUSED: Metric = metric(
    "wicketgate_requests_refused_total",
    Kind::Counter,
    Unit::Count,
    &["reason"],
    "Requests refused before their pool was known, by reason.",
);
pub static REQUEST_BYTES: Metric = metric(
    "wicketgate_request_bytes_total",
    Kind::Counter,
    Unit::Bytes,
    &[],
    "Body bytes received from clients.",
);
pub static RESPONSE_BYTES: Metric = metric(
    "wicketgate_response_bytes_total",
    Kind::Counter,
    Unit::Bytes,
    &[],
    "Body bytes sent to clients.",
);
pub static BUFFERED_BODY_BYTES: Metric = metric(
    "wicketgate_buffered_body_bytes",
    Kind::Gauge,
    Unit::Bytes,
    &[],
    "Request bodies held in memory.",
);
pub static ACCESS_LOG_DROPPED_LINES: Metric = metric(
    "wicketgate_access_log_dropped_lines_total",
    Kind::Counter,
    Unit::Count,
    &[],
    "Access-log lines dropped because their reader was too slow or the write failed.",
);
pub static SCHEDULE_DURATION: Metric = metric(
    "wicketgate_schedule_duration_seconds",
    Kind::Histogram(SCHEDULE_SECONDS),
    Unit::Seconds,
    &[],
    "Time to decide which endpoint gets a request.",
);
pub static UPSTREAM_CONNECTS: Metric = metric(
    "wicketgate_upstream_connects_total",
    Kind::Counter,
    Unit::Count,
    &["outcome"],
    "New connections to endpoints by outcome.",
);
pub static CERTIFICATE_EXPIRY: Metric = metric(
    "wicketgate_certificate_expiry_timestamp_seconds",
    Kind::Gauge,
    Unit::UnixSeconds,
    &[],
    "When the certificate in use expires; absent without TLS.",
);

pub static POOL: &[&Metric] = &[
    &REQUESTS,
    &REQUESTS_IN_FLIGHT,
    &REQUEST_DURATION,
    &REQUEST_TTFT,
    &TIME_PER_OUTPUT_TOKEN,
    &STREAM_GAP,
    &INPUT_TOKENS,
    &CACHED_INPUT_TOKENS,
    &OUTPUT_TOKENS,
    &RETRIES,
    &REQUESTS_REJECTED,
    &STREAMS_ABORTED,
    &POOL_SATURATION,
    &POOL_ENDPOINTS,
    &PREFIX_BLOCKS_LOOKED_UP,
    &PREFIX_BLOCKS_MATCHED,
];

pub static REQUESTS: Metric = metric(
    "wicketgate_requests_total",
    Kind::Counter,
    Unit::Count,
    &["pool", "route", "outcome"],
    "Finished requests by route and outcome.",
);
pub static REQUESTS_IN_FLIGHT: Metric = metric(
    "wicketgate_requests_in_flight",
    Kind::Gauge,
    Unit::Count,
    &["pool"],
    "Requests placed on an endpoint and not finished.",
);
pub static REQUEST_DURATION: Metric = metric(
    "wicketgate_request_duration_seconds",
    Kind::Histogram(REQUEST_SECONDS),
    Unit::Seconds,
    &["pool"],
    "Request received to last response byte sent.",
);
pub static REQUEST_TTFT: Metric = metric(
    "wicketgate_request_ttft_seconds",
    Kind::Histogram(TTFT_SECONDS),
    Unit::Seconds,
    &["pool"],
    "Request received to first output token sent.",
);
pub static TIME_PER_OUTPUT_TOKEN: Metric = metric(
    "wicketgate_request_time_per_output_token_seconds",
    Kind::Histogram(TOKEN_SECONDS),
    Unit::Seconds,
    &["pool"],
    "Mean time per output token after the first, one value per request.",
);
pub static STREAM_GAP: Metric = metric(
    "wicketgate_stream_gap_seconds",
    Kind::Histogram(TOKEN_SECONDS),
    Unit::Seconds,
    &["pool"],
    "Time between two events of a stream; an event may carry several tokens.",
);
pub static INPUT_TOKENS: Metric = metric(
    "wicketgate_input_tokens_total",
    Kind::Counter,
    Unit::Count,
    &["pool"],
    "Prompt tokens as endpoints reported them.",
);
pub static CACHED_INPUT_TOKENS: Metric = metric(
    "wicketgate_cached_input_tokens_total",
    Kind::Counter,
    Unit::Count,
    &["pool"],
    "Prompt tokens that endpoints found in their prefix cache, as they reported them.",
);
pub static OUTPUT_TOKENS: Metric = metric(
    "wicketgate_output_tokens_total",
    Kind::Counter,
    Unit::Count,
    &["pool"],
    "Generated tokens as endpoints reported them.",
);
pub static RETRIES: Metric = metric(
    "wicketgate_retries_total",
    Kind::Counter,
    Unit::Count,
    &["pool", "reason"],
    "Requests sent to another endpoint before the first response byte, by reason.",
);
pub static REQUESTS_REJECTED: Metric = metric(
    "wicketgate_requests_rejected_total",
    Kind::Counter,
    Unit::Count,
    &["pool", "reason"],
    "Requests answered 429, by reason.",
);
pub static STREAMS_ABORTED: Metric = metric(
    "wicketgate_streams_aborted_total",
    Kind::Counter,
    Unit::Count,
    &["pool", "reason"],
    "Responses that ended before they were complete, by reason.",
);
pub static POOL_SATURATION: Metric = metric(
    "wicketgate_pool_saturation_ratio",
    Kind::Gauge,
    Unit::Ratio,
    &["pool"],
    "Share of the pool's capacity in use.",
);
pub static POOL_ENDPOINTS: Metric = metric(
    "wicketgate_pool_endpoints",
    Kind::Gauge,
    Unit::Count,
    &["pool", "state"],
    "Endpoints of the pool by state; each is in exactly one.",
);
pub static PREFIX_BLOCKS_LOOKED_UP: Metric = metric(
    "wicketgate_prefix_blocks_looked_up_total",
    Kind::Counter,
    Unit::Count,
    &["pool"],
    "Prefix blocks of prompts looked up in the prefix index.",
);
pub static PREFIX_BLOCKS_MATCHED: Metric = metric(
    "wicketgate_prefix_blocks_matched_total",
    Kind::Counter,
    Unit::Count,
    &["pool"],
    "Prefix blocks that the chosen endpoint was believed to hold.",
);

pub static ENDPOINT: &[&Metric] = &[
    &ENDPOINT_UP,
    &ENDPOINT_WAITING,
    &ENDPOINT_RUNNING,
    &ENDPOINT_KV_USAGE,
    &ENDPOINT_RESIDENT_ADAPTERS,
    &ENDPOINT_IN_FLIGHT,
    &ENDPOINT_PICKS,
    &ENDPOINT_EJECTIONS,
    &ENDPOINT_SCRAPE_AGE,
    &ENDPOINT_SCRAPES,
    &ENDPOINT_SCRAPE_FAILURES,
    &ENDPOINT_SCRAPE_ANOMALIES,
];

const ENDPOINT_LABELS: &[&str] = &["pool", "endpoint"];

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
