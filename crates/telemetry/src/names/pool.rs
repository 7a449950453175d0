//! Requests and decisions, by pool.

use super::answers::{REQUEST_INPUT_TOKENS, REQUEST_OUTPUT_TOKENS, RESPONSES};
use super::buckets::{
    PREDICTION_QUOTIENT, REGRET_SECONDS, REQUEST_SECONDS, TOKEN_SECONDS, TTFT_SECONDS,
};
use super::prefix::{
    PREFIX_BLOCKS_LOOKED_UP, PREFIX_BLOCKS_MATCHED, PREFIX_LOSS, PREFIX_REGRESSIONS,
    PREFIX_REGRESSIONS_OPEN, PREFIX_TOKENS_BELIEVED, PREFIX_TOKENS_FOUND,
};
use super::usage::{GPU_SAVED_SECONDS, GPU_SECONDS};
use super::{Kind, Metric, Unit, metric};

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
