//! Answers of a pool by status, and the lengths of what went in and out ([`super::POOL`]).

use super::{Kind, Metric, Unit, metric};

/// Bounds of OpenTelemetry's `gen_ai.client.token.usage`: powers of four.
const TOKENS: &[f64] = &[
    1.0,
    4.0,
    16.0,
    64.0,
    256.0,
    1024.0,
    4096.0,
    16384.0,
    65536.0,
    262_144.0,
    1_048_576.0,
    4_194_304.0,
    16_777_216.0,
    67_108_864.0,
];

pub static RESPONSES: Metric = metric(
    "wicketgate_responses_total",
    Kind::Counter,
    Unit::Count,
    &["pool", "code"],
    "Finished requests by status; 499 is a client that left before an answer.",
);
pub static REQUEST_INPUT_TOKENS: Metric = metric(
    "wicketgate_request_input_tokens",
    Kind::Histogram(TOKENS),
    Unit::Count,
    &["pool"],
    "Prompt tokens of a request, as its endpoint reported them.",
);
pub static REQUEST_OUTPUT_TOKENS: Metric = metric(
    "wicketgate_request_output_tokens",
    Kind::Histogram(TOKENS),
    Unit::Count,
    &["pool"],
    "Generated tokens of a request, as its endpoint reported them.",
);
