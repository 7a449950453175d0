//! The table itself, in page order.

use super::answers::{REQUEST_INPUT_TOKENS, REQUEST_OUTPUT_TOKENS, RESPONSES};
use super::cluster::{CLOUD_WATCH_FAILURES, CLOUD_WATCH_REPORTS};
use super::pods::{
    ENDPOINT_PREFILL_SPEED, ENDPOINT_PREFILL_TOKENS, ENDPOINT_SATURATION, ENDPOINT_SIGNAL_AGE,
    ENDPOINT_STEP,
};
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

/// Predicted over observed: a twentieth off on either side, then a tenth, a quarter, a half, twice.
const PREDICTION_QUOTIENT: &[f64] =
    &[0.1, 0.25, 0.5, 0.67, 0.8, 0.9, 0.95, 1.05, 1.1, 1.25, 1.5, 2.0, 4.0, 10.0];

/// Both signs; what lies at 0 is in the bucket that ends there.
const REGRET_SECONDS: &[f64] = &[
    -10.0, -2.5, -1.0, -0.5, -0.25, -0.1, -0.05, -0.01, -0.001, 0.0, 0.001, 0.01, 0.05, 0.1, 0.25,
    0.5, 1.0, 2.5, 10.0,
];

pub(super) const fn metric(
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
    &RECORDING_DROPPED_LINES,
    &TRACES,
    &PEERS,
    &PEER_DATAGRAMS,
    &PEER_BYTES,
    &PEER_PREFIX_BLOCKS,
    &PEER_LOSSES,
    &SCHEDULE_DURATION,
    &UPSTREAM_CONNECTS,
    &CERTIFICATE_EXPIRY,
    &EXTPROC_STREAMS_OPEN,
    &EXTPROC_STREAMS,
    &EXTPROC_STREAM_DURATION,
    &EXTPROC_IMMEDIATE_RESPONSES,
    &AUTH_ACCEPTED,
    &AUTH_REFUSED,
    &AUTH_API_KEYS,
    &AUTH_RELOADS,
    &AUTH_JWKS_FETCHES,
    &AUTH_JWKS_AGE,
    &AUTH_JWKS_FAILING,
    &CLOUD_WATCH_REPORTS,
    &CLOUD_WATCH_FAILURES,
    &KUBERNETES_WATCH_FAILURES,
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
pub static KUBERNETES_WATCH_FAILURES: Metric = metric(
    "wicketgate_kubernetes_watch_failures_total",
    Kind::Counter,
    Unit::Count,
    &[],
    "Watches of the Kubernetes API that failed or could not begin. Traffic goes on by what was seen last.",
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
pub static RECORDING_DROPPED_LINES: Metric = metric(
    "wicketgate_recording_dropped_lines_total",
    Kind::Counter,
    Unit::Count,
    &[],
    "Lines of the recording dropped because the disk was too slow or the write failed.",
);
pub static TRACES: Metric = metric(
    "wicketgate_traces_total",
    Kind::Counter,
    Unit::Count,
    &["outcome"],
    "Traces that were to be kept, by what became of them.",
);
pub static PEERS: Metric = metric(
    "wicketgate_peers",
    Kind::Gauge,
    Unit::Count,
    &[],
    "Other gateways that are alive and share load and prefixes with this one.",
);
pub static PEER_DATAGRAMS: Metric = metric(
    "wicketgate_peer_datagrams_total",
    Kind::Counter,
    Unit::Count,
    &["direction"],
    "Datagrams to and from peers, gossip included.",
);
pub static PEER_BYTES: Metric = metric(
    "wicketgate_peer_bytes_total",
    Kind::Counter,
    Unit::Bytes,
    &["direction"],
    "UDP payload to and from peers.",
);
pub static PEER_PREFIX_BLOCKS: Metric = metric(
    "wicketgate_peer_prefix_blocks_total",
    Kind::Counter,
    Unit::Count,
    &["direction"],
    "Prefix blocks told to peers (once, however many there are) and learned from them.",
);
pub static PEER_LOSSES: Metric = metric(
    "wicketgate_peer_losses_total",
    Kind::Counter,
    Unit::Count,
    &["reason"],
    "Datagrams and prompts between peers that came to nothing.",
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

pub static EXTPROC_STREAMS_OPEN: Metric = metric(
    "wicketgate_extproc_streams_open",
    Kind::Gauge,
    Unit::Count,
    &[],
    "Requests for which a proxy has a stream to the picker open (ext_proc).",
);
pub static EXTPROC_STREAMS: Metric = metric(
    "wicketgate_extproc_streams_total",
    Kind::Counter,
    Unit::Count,
    &["end"],
    "Ended streams of proxies by how they ended.",
);
pub static EXTPROC_STREAM_DURATION: Metric = metric(
    "wicketgate_extproc_stream_duration_seconds",
    Kind::Histogram(REQUEST_SECONDS),
    Unit::Seconds,
    &[],
    "How long a proxy's stream was open.",
);
pub static EXTPROC_IMMEDIATE_RESPONSES: Metric = metric(
    "wicketgate_extproc_immediate_responses_total",
    Kind::Counter,
    Unit::Count,
    &["code"],
    "Answers that a proxy was told to give in the endpoint's place, by status.",
);

pub static AUTH_ACCEPTED: Metric = metric(
    "wicketgate_auth_accepted_total",
    Kind::Counter,
    Unit::Count,
    &["kind"],
    "Requests that authentication let in, by what they showed; none are counted without `auth`.",
);
pub static AUTH_REFUSED: Metric = metric(
    "wicketgate_auth_refused_total",
    Kind::Counter,
    Unit::Count,
    &["reason"],
    "Requests that authentication turned away, by reason.",
);
pub static AUTH_API_KEYS: Metric = metric(
    "wicketgate_auth_api_keys",
    Kind::Gauge,
    Unit::Count,
    &[],
    "API keys in force, expired ones included.",
);
pub static AUTH_RELOADS: Metric = metric(
    "wicketgate_auth_reloads_total",
    Kind::Counter,
    Unit::Count,
    &["outcome"],
    "Changed files of keys and secrets by outcome; after a rejected one the former keys stay in force.",
);
pub static AUTH_JWKS_FETCHES: Metric = metric(
    "wicketgate_auth_jwks_fetches_total",
    Kind::Counter,
    Unit::Count,
    &["outcome"],
    "Fetches of issuers' signing keys by outcome.",
);
pub static AUTH_JWKS_AGE: Metric = metric(
    "wicketgate_auth_jwks_age_seconds",
    Kind::Gauge,
    Unit::Seconds,
    &[],
    "Time since the last good fetch of signing keys, of the issuer where it is longest ago; absent before.",
);
pub static AUTH_JWKS_FAILING: Metric = metric(
    "wicketgate_auth_jwks_failing",
    Kind::Gauge,
    Unit::Count,
    &[],
    "Issuers whose last fetch failed; their tokens are accepted until `jwks.staleFor` is over.",
);

pub static POOL: &[&Metric] = &[
    &REQUESTS,
    &RESPONSES,
    &REQUESTS_IN_FLIGHT,
    &REQUEST_DURATION,
    &REQUEST_TTFT,
    &TIME_PER_OUTPUT_TOKEN,
    &STREAM_GAP,
    &INPUT_TOKENS,
    &CACHED_INPUT_TOKENS,
    &OUTPUT_TOKENS,
    &REQUEST_INPUT_TOKENS,
    &REQUEST_OUTPUT_TOKENS,
    &RETRIES,
    &REQUESTS_REJECTED,
    &STREAMS_ABORTED,
    &POOL_SATURATION,
    &POOL_ENDPOINTS,
    &PREFIX_BLOCKS_LOOKED_UP,
    &PREFIX_BLOCKS_MATCHED,
    &PREFIX_TOKENS_BELIEVED,
    &PREFIX_TOKENS_FOUND,
    &PREFIX_REGRESSIONS,
    &PREFIX_REGRESSIONS_OPEN,
    &PREFIX_LOSS,
    &GPU_SECONDS,
    &GPU_SAVED_SECONDS,
    &PREDICTION_ERROR,
    &PREDICTION_ERROR_SECONDS,
    &PREDICTION_OBSERVED_SECONDS,
    &SHADOW_DECISIONS,
    &SHADOW_REGRET,
];

/// Of pools whose requests wait here when they are full.
pub static FLOW: &[&Metric] = &[
    &FLOW_QUEUE_REQUESTS,
    &FLOW_QUEUE_TOKENS,
    &FLOW_QUEUE_BYTES,
    &FLOW_QUEUE_DURATION,
    &FLOW_DISPATCHED,
    &FLOW_DISPATCHED_BEYOND,
    &FLOW_SHED,
    &FLOW_UNKNOWN_OBJECTIVES,
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
pub static FLOW_QUEUE_REQUESTS: Metric = metric(
    "wicketgate_flow_queue_requests",
    Kind::Gauge,
    Unit::Count,
    &["pool", "band"],
    "Requests that wait for room in the pool.",
);
pub static FLOW_QUEUE_TOKENS: Metric = metric(
    "wicketgate_flow_queue_tokens",
    Kind::Gauge,
    Unit::Count,
    &["pool", "band"],
    "Their work: tokens of prompts that are not cached, and those expected of answers.",
);
pub static FLOW_QUEUE_BYTES: Metric = metric(
    "wicketgate_flow_queue_bytes",
    Kind::Gauge,
    Unit::Bytes,
    &["pool", "band"],
    "Bytes of their bodies.",
);
pub static FLOW_QUEUE_DURATION: Metric = metric(
    "wicketgate_flow_queue_duration_seconds",
    Kind::Histogram(TTFT_SECONDS),
    Unit::Seconds,
    &["pool", "band"],
    "How long a dispatched request had waited; those that found room at once are counted with zero.",
);
pub static FLOW_DISPATCHED: Metric = metric(
    "wicketgate_flow_dispatched_total",
    Kind::Counter,
    Unit::Count,
    &["pool", "band"],
    "Requests that flow control let go.",
);
pub static FLOW_DISPATCHED_BEYOND: Metric = metric(
    "wicketgate_flow_dispatched_beyond_part_total",
    Kind::Counter,
    Unit::Count,
    &["pool", "band"],
    "Of these, those of flows that had more than an equal part of what was in flight; they leave headroom.",
);
pub static FLOW_UNKNOWN_OBJECTIVES: Metric = metric(
    "wicketgate_flow_unknown_objectives_total",
    Kind::Counter,
    Unit::Count,
    &["pool"],
    "Requests that named an objective that is not there, and were served without one.",
);
pub static FLOW_SHED: Metric = metric(
    "wicketgate_flow_shed_total",
    Kind::Counter,
    Unit::Count,
    &["pool", "band", "reason"],
    "Requests that flow control refused or gave up, by reason.",
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

pub static PREFIX_TOKENS_BELIEVED: Metric = metric(
    "wicketgate_prefix_tokens_believed_total",
    Kind::Counter,
    Unit::Count,
    &["pool"],
    "Prompt tokens that an endpoint was believed to hold, of answers that report cached tokens.",
);
pub static PREFIX_TOKENS_FOUND: Metric = metric(
    "wicketgate_prefix_tokens_found_total",
    Kind::Counter,
    Unit::Count,
    &["pool"],
    "Prompt tokens that it had cached, of the same answers and in the gateway's estimated tokens.",
);
pub static PREFIX_REGRESSIONS: Metric = metric(
    "wicketgate_prefix_regressions_total",
    Kind::Counter,
    Unit::Count,
    &["pool"],
    "Times that prompts of one template began to share less than they did.",
);
pub static PREFIX_REGRESSIONS_OPEN: Metric = metric(
    "wicketgate_prefix_regressions_open",
    Kind::Gauge,
    Unit::Count,
    &["pool"],
    "Templates whose prompts share less than they did, at this moment.",
);
pub static PREFIX_LOSS: Metric = metric(
    "wicketgate_prefix_loss_tokens_per_hour",
    Kind::Gauge,
    Unit::Count,
    &["pool"],
    "Prompt tokens per hour that are computed again because of open prefix regressions.",
);
pub static GPU_SECONDS: Metric = metric(
    "wicketgate_gpu_seconds_total",
    Kind::Counter,
    Unit::Seconds,
    &["pool", "kind"],
    "GPU time of finished requests by what it went into, from learned speeds; an estimate (docs/usage.md).",
);
pub static GPU_SAVED_SECONDS: Metric = metric(
    "wicketgate_gpu_saved_seconds_total",
    Kind::Counter,
    Unit::Seconds,
    &["pool"],
    "GPU time that prompts did not take because their beginning was cached, likewise.",
);
pub static PREDICTION_ERROR: Metric = metric(
    "wicketgate_prediction_error_ratio",
    Kind::Histogram(PREDICTION_QUOTIENT),
    Unit::Quotient,
    &["pool"],
    "Predicted over observed time from dispatch to first token, streams only; 1 is right, more than 1 too pessimistic.",
);
pub static PREDICTION_ERROR_SECONDS: Metric = metric(
    "wicketgate_prediction_error_seconds_total",
    Kind::Counter,
    Unit::Seconds,
    &["pool"],
    "Sum of the differences between predicted and observed time to first token, without their sign.",
);
pub static PREDICTION_OBSERVED_SECONDS: Metric = metric(
    "wicketgate_prediction_observed_seconds_total",
    Kind::Counter,
    Unit::Seconds,
    &["pool"],
    "Sum of the observed times that predictions were compared with.",
);
pub static SHADOW_DECISIONS: Metric = metric(
    "wicketgate_shadow_decisions_total",
    Kind::Counter,
    Unit::Count,
    &["pool", "outcome"],
    "Decisions of the shadow policy, by whether it chose the endpoint that got the request.",
);
pub static SHADOW_REGRET: Metric = metric(
    "wicketgate_shadow_regret_seconds",
    Kind::Histogram(REGRET_SECONDS),
    Unit::Seconds,
    &["pool"],
    "Predicted time to first token where the request went, less that where the shadow policy would have sent it; the sum may fall.",
);

/// The first tenants that came, and the sum of all others: `observability.usage.tenantSeriesMax`.
pub static TENANT: &[&Metric] = &[&TENANT_GPU_SECONDS, &TENANT_GPU_SAVED_SECONDS];

pub static TENANT_GPU_SECONDS: Metric = metric(
    "wicketgate_tenant_gpu_seconds_total",
    Kind::Counter,
    Unit::Seconds,
    &["pool", "tenant", "kind"],
    "As `wicketgate_gpu_seconds_total`, by tenant; further tenants than `observability.usage.tenantSeriesMax` are `_other`.",
);
pub static TENANT_GPU_SAVED_SECONDS: Metric = metric(
    "wicketgate_tenant_gpu_saved_seconds_total",
    Kind::Counter,
    Unit::Seconds,
    &["pool", "tenant"],
    "As `wicketgate_gpu_saved_seconds_total`, likewise.",
);

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

pub(super) const ENDPOINT_LABELS: &[&str] = &["pool", "endpoint"];

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
