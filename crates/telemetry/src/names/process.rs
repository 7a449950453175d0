//! What the process itself tells.

use super::auth::{
    AUTH_ACCEPTED, AUTH_API_KEYS, AUTH_JWKS_AGE, AUTH_JWKS_FAILING, AUTH_JWKS_FETCHES,
    AUTH_REFUSED, AUTH_RELOADS,
};
use super::buckets::SCHEDULE_SECONDS;
use super::cluster::{CLOUD_WATCH_FAILURES, CLOUD_WATCH_REPORTS};
use super::ext_proc::{
    EXTPROC_IMMEDIATE_RESPONSES, EXTPROC_STREAM_DURATION, EXTPROC_STREAMS, EXTPROC_STREAMS_OPEN,
};
use super::peers::{PEER_BYTES, PEER_DATAGRAMS, PEER_LOSSES, PEER_PREFIX_BLOCKS, PEERS};
use super::{Kind, Metric, Unit, metric};

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
