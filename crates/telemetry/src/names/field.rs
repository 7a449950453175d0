//! The field's names: those of the endpoint picker of llm-d (`llm_d_epp_*`) and of the Gateway API Inference
//! Extension before it (`inference_*`), for dashboards that exist already.
//!
//! Source: `pkg/epp/metrics` of llm-d-router, August 2026. Only what means the same has an alias; what
//! would mislead under a familiar name is listed as absent, with the reason.

use super::{self as own, Metric};

/// One of our metrics under another name.
#[derive(Debug)]
pub struct Alias {
    /// As it stands on the page.
    pub name: &'static str,
    pub of: &'static Metric,
    /// Our labels and what they are called there. Labels that are not named keep their names.
    pub labels: &'static [(&'static str, &'static str)],
    /// Only the series with this value of our label, which is left out.
    pub only: Option<(&'static str, &'static str)>,
    /// A label that the name has and our metric has not.
    pub add: Option<(&'static str, &'static str)>,
    /// What a reader of both should know, or empty.
    pub difference: &'static str,
}

/// The mean over the endpoints of a pool that say a value.
#[derive(Debug)]
pub struct Mean {
    pub name: &'static str,
    /// Of the endpoints; a gauge.
    pub of: &'static Metric,
    pub help: &'static str,
}

/// Label of a pool on the means.
pub const MEAN_LABEL: &str = "name";

const IN_POOL: &[(&str, &str)] = &[("pool", "inference_pool")];
const POOL_NAME: &[(&str, &str)] = &[("pool", "name")];
const REWRITTEN: &[(&str, &str)] =
    &[("rewrite", "model_rewrite_name"), ("model", "model_name"), ("target", "target_model")];
const CATCH_ALL: &str = "`model_name` is `*` for rules without matches, not the client's text";
const FINISHED: &str = "counted when it ends, not when it is placed; by `route` and `outcome`";
const PER_POOL: &str = "by pool, not by model";

const fn alias(
    name: &'static str,
    of: &'static Metric,
    labels: &'static [(&'static str, &'static str)],
    difference: &'static str,
) -> Alias {
    Alias { name, of, labels, only: None, add: None, difference }
}

const fn ready(name: &'static str) -> Alias {
    let mut alias = alias(name, &own::POOL_ENDPOINTS, POOL_NAME, "");
    alias.only = Some(("state", "ready"));
    alias
}

/// In page order.
pub static ALIASES: &[Alias] = &[
    alias("llm_d_epp_request_total", &own::REQUESTS, IN_POOL, FINISHED),
    alias("inference_objective_request_total", &own::REQUESTS, IN_POOL, FINISHED),
    alias("llm_d_epp_request_duration_seconds", &own::REQUEST_DURATION, IN_POOL, PER_POOL),
    alias(
        "inference_objective_request_duration_seconds",
        &own::REQUEST_DURATION,
        IN_POOL,
        PER_POOL,
    ),
    alias("llm_d_epp_request_running", &own::REQUESTS_IN_FLIGHT, IN_POOL, PER_POOL),
    alias("inference_objective_running_requests", &own::REQUESTS_IN_FLIGHT, IN_POOL, PER_POOL),
    alias(
        "llm_d_epp_request_streaming_tpot_seconds",
        &own::TIME_PER_OUTPUT_TOKEN,
        IN_POOL,
        PER_POOL,
    ),
    ready("llm_d_epp_ready_endpoints"),
    ready("inference_pool_ready_pods"),
    alias(
        "llm_d_epp_per_endpoint_queue_size",
        &own::ENDPOINT_WAITING,
        &[("pool", "name"), ("endpoint", "model_server_endpoint")],
        "an address, not a pod's name",
    ),
    alias(
        "inference_pool_per_pod_queue_size",
        &own::ENDPOINT_WAITING,
        &[("pool", "name"), ("endpoint", "model_server_pod")],
        "an address, not a pod's name",
    ),
    alias(
        "llm_d_epp_inflight_requests",
        &own::ENDPOINT_IN_FLIGHT,
        &[("pool", "inference_pool"), ("endpoint", "endpoint_name")],
        "an address, not a pod's name",
    ),
    alias("llm_d_epp_scheduler_e2e_duration_seconds", &own::SCHEDULE_DURATION, &[], ""),
    alias("inference_extension_scheduler_e2e_duration_seconds", &own::SCHEDULE_DURATION, &[], ""),
    alias(
        "llm_d_epp_datalayer_poll_errors_total",
        &own::ENDPOINT_SCRAPE_FAILURES,
        IN_POOL,
        "by endpoint and `reason`, not by source",
    ),
    alias(
        "llm_d_inference_scheduler_datalayer_poll_errors_total",
        &own::ENDPOINT_SCRAPE_FAILURES,
        IN_POOL,
        "by endpoint and `reason`, not by source",
    ),
    alias("llm_d_epp_extproc_streams_inflight", &own::EXTPROC_STREAMS_OPEN, &[], ""),
    alias("llm_d_epp_extproc_stream_duration_seconds", &own::EXTPROC_STREAM_DURATION, &[], ""),
    alias(
        "llm_d_epp_extproc_streams_total",
        &own::EXTPROC_STREAMS,
        &[],
        "by how a stream ended, not by gRPC's code",
    ),
    alias("llm_d_epp_model_rewrite_decisions_total", &own::REWRITE_DECISIONS, REWRITTEN, CATCH_ALL),
    alias(
        "inference_extension_model_rewrite_decisions_total",
        &own::REWRITE_DECISIONS,
        REWRITTEN,
        CATCH_ALL,
    ),
    alias(
        "llm_d_epp_info",
        &own::BUILD_INFO,
        &[("revision", "commit"), ("version", "build_ref")],
        "",
    ),
    alias(
        "inference_extension_info",
        &own::BUILD_INFO,
        &[("revision", "commit"), ("version", "build_ref")],
        "",
    ),
];

const KV_MEAN: &str = "Mean share of KV blocks in use over the pool's endpoints that say it.";
const QUEUE_MEAN: &str = "Mean number of requests waiting over the pool's endpoints that say it.";
const RUNNING_MEAN: &str = "Mean number of requests running over the pool's endpoints that say it.";

const fn mean(name: &'static str, of: &'static Metric, help: &'static str) -> Mean {
    Mean { name, of, help }
}

pub static MEANS: &[Mean] = &[
    mean("llm_d_epp_average_kv_cache_utilization", &own::ENDPOINT_KV_USAGE, KV_MEAN),
    mean("inference_pool_average_kv_cache_utilization", &own::ENDPOINT_KV_USAGE, KV_MEAN),
    mean("llm_d_epp_average_queue_size", &own::ENDPOINT_WAITING, QUEUE_MEAN),
    mean("inference_pool_average_queue_size", &own::ENDPOINT_WAITING, QUEUE_MEAN),
    mean("llm_d_epp_average_running_requests", &own::ENDPOINT_RUNNING, RUNNING_MEAN),
    mean("inference_pool_average_running_requests", &own::ENDPOINT_RUNNING, RUNNING_MEAN),
];

/// What has no alias (without the prefix `llm_d_epp_`), and why.
pub static ABSENT: &[(&str, &str)] = &[
    (
        "request_error_total",
        "ours count by outcome and by status: `wicketgate_requests_total`, `wicketgate_responses_total`",
    ),
    (
        "request_input_tokens`, `request_output_tokens`, `request_cached_tokens",
        "histograms with other buckets and by model: `wicketgate_request_input_tokens` and its like",
    ),
    ("request_size_bytes`, `response_size_bytes", "histograms by model; ours are sums"),
    ("request_ttft_seconds", "counts answers that are no streams too; ours streams only"),
    (
        "request_streaming_itl_seconds",
        "ours is the gap between events, `wicketgate_stream_gap_seconds`, which may hold several tokens",
    ),
    ("request_ntpot_seconds", "not measured"),
    (
        "std_dev_kv_cache_utilization`, `std_dev_queue_size`, `std_dev_running_requests",
        "a query gives them",
    ),
    (
        "flow_control_pool_saturation",
        "1 is the gate there and may be exceeded; ours is the share of capacity in use",
    ),
    ("flow_control_*", "the others are of queues that are built differently"),
    (
        "scheduler_attempts_total",
        "by endpoint: `wicketgate_endpoint_picks_total`; refusals: `wicketgate_requests_refused_total`",
    ),
    (
        "plugin_duration_seconds`, `plugin_data_scope_violations_total",
        "plugins are not timed one by one",
    ),
    (
        "request_processing_duration_seconds`, `response_processing_duration_seconds",
        "not measured apart",
    ),
    (
        "prefix_indexer_size`, `prefix_indexer_hit_ratio`, `prefix_indexer_hit_bytes",
        "ours are counters: `wicketgate_prefix_blocks_matched_total`, `…_looked_up_total`",
    ),
    ("inflight_tokens`, `inference_request_metric`, `request_predicted_*", "other models of load"),
    (
        "disagg_*`, `pd_decision_total`, `encoder_cache_*`, `kv_cache_*",
        "of features that are not here",
    ),
    ("datalayer_extract_errors_total", "not counted"),
    ("bbr_*", "of the body-based router as a process of its own"),
];
