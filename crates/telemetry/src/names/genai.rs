//! OpenTelemetry's names for generative AI, as Prometheus spells them: dots as underscores, the unit last.
//!
//! Source: semantic conventions for generative AI metrics, status "Development", spelt and bounded as
//! gateways ship them in 2026. Only what we measure has a name here.

use super::field::Alias;
use super::{
    REQUEST_DURATION, REQUEST_INPUT_TOKENS, REQUEST_OUTPUT_TOKENS, REQUEST_TTFT,
    TIME_PER_OUTPUT_TOKEN,
};

const MODEL: &[(&str, &str)] = &[("pool", "gen_ai_request_model")];
const BY_POOL: &str =
    "the model is the pool's name; no `gen_ai_operation_name`, since pools mix them";

/// In page order. Aliases of one name stand together and differ in [`Alias::add`].
pub static ALIASES: &[Alias] = &[
    Alias {
        name: "gen_ai_server_request_duration_seconds",
        of: &REQUEST_DURATION,
        labels: MODEL,
        only: None,
        add: None,
        difference: BY_POOL,
    },
    Alias {
        name: "gen_ai_server_time_to_first_token_seconds",
        of: &REQUEST_TTFT,
        labels: MODEL,
        only: None,
        add: None,
        difference: "streams only",
    },
    Alias {
        name: "gen_ai_server_time_per_output_token_seconds",
        of: &TIME_PER_OUTPUT_TOKEN,
        labels: MODEL,
        only: None,
        add: None,
        difference: "streams only; one value per request",
    },
    Alias {
        name: "gen_ai_client_token_usage",
        of: &REQUEST_INPUT_TOKENS,
        labels: MODEL,
        only: None,
        add: Some(("gen_ai_token_type", "input")),
        difference: BY_POOL,
    },
    Alias {
        name: "gen_ai_client_token_usage",
        of: &REQUEST_OUTPUT_TOKENS,
        labels: MODEL,
        only: None,
        add: Some(("gen_ai_token_type", "output")),
        difference: BY_POOL,
    },
];
