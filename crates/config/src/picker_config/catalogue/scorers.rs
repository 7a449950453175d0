//! Scorers that we have.

use super::parameters::{COUNT, NAME, POSITIVE, free, producer};
use super::{Plugin, Section, Slot, Support};
use crate::schema::{Field, Format, Kind};

const fn scorer(name: &'static str, help: &'static str) -> Plugin {
    Plugin::new(name, Slot::Scorer, Support::Kept, help)
}

pub(super) static SCORERS: &[Plugin] = &[
    scorer("queue-scorer", "(max − waiting) / (max − min); all equal: 1."),
    scorer("running-requests-size-scorer", "(max − running) / (max − min); all equal: 1."),
    scorer("kv-cache-utilization-scorer", "1 − KV use."),
    scorer(
        "prefix-cache-scorer",
        "w · min(1, matched tokens / scale)² + (1 − w) · matched / all blocks.",
    )
    .with(&PREFIX),
    scorer(
        "lora-affinity-scorer",
        "Adapter active 1, else room 0.8, else waiting 0.6, else 0. A request without adapter: 0 for all.",
    ),
    scorer("load-aware-scorer", "0.5 · (1 − min(waiting, threshold) / threshold).")
        .with(&LOAD_AWARE),
    scorer(
        "token-load-scorer",
        "1 − min(prompt tokens in flight and this prompt's uncached, threshold) / threshold.",
    )
    .with(&TOKEN_LOAD),
    scorer(
        "active-request-scorer",
        "At most `idleThreshold` in flight: 1, else (max − own) / max · `maxBusyScore`.",
    )
    .with(&ACTIVE_REQUEST)
    .idle(&["requestTimeout"]),
    scorer(
        "no-hit-lru-scorer",
        "A hit anywhere: 0.5 for all. None: 1 − rank / (n − 1), the longest without such a prompt first; \
         those that never had one share rank 0.",
    )
    .with(&NO_HIT_LRU)
    .idle(&["lruSize"]),
    scorer("session-affinity-scorer", "1 for the endpoint that `x-session-id` was sent to last, else 0.")
        .with(&SESSION)
        .idle(&["profileName"]),
    Plugin::new(
        "context-length-aware",
        Slot::ScorerAndFilter,
        Support::Kept,
        "How well the prompt's length fits the range `MIN-MAX` in a label: above 0.3 within, below 0.3 \
         outside, 0.5 without label.",
    )
    .with(&CONTEXT_LENGTH),
    scorer(
        "expected-time-scorer",
        "Ours: least / own expected cost in milliseconds, by learned speeds; what our default policy goes by.",
    ),
];

static PREFIX: Section = Section {
    fields: &[
        Field::aws("matchLengthWeight", Kind::Share, "w.").default("0"),
        Field::aws("matchLengthScaleTokens", POSITIVE, "Tokens that count in full.")
            .default("8192"),
        producer("prefixMatchInfoProducerName"),
    ],
};

static LOAD_AWARE: Section = Section {
    fields: &[Field::aws("threshold", POSITIVE, "Waiting requests that score 0.").default("128")],
};

static TOKEN_LOAD: Section = Section {
    fields: &[
        Field::aws(
            "queueThresholdTokens",
            Kind::Integer { min: 1, max: i64::MAX },
            "Tokens that score 0.",
        )
        .default("4194304"),
        producer("inFlightLoadProducerName"),
    ],
};

static ACTIVE_REQUEST: Section = Section {
    fields: &[
        Field::aws(
            "idleThreshold",
            Kind::Integer { min: 0, max: u32::MAX as i64 },
            "Requests in flight that count as none.",
        )
        .default("0"),
        Field::aws("maxBusyScore", Kind::Share, "The most that a busy endpoint scores.")
            .default("1"),
        free("requestTimeout", "Deprecated in the field: requests count until they end."),
        producer("inFlightLoadProducerName"),
    ],
};

static NO_HIT_LRU: Section = Section {
    fields: &[
        Field::aws("lruSize", COUNT, "All endpoints are remembered.").default("1024"),
        producer("prefixMatchInfoProducerName"),
        producer("prefixPluginType"),
        producer("prefixPluginName"),
    ],
};

static SESSION: Section = Section {
    fields: &[
        Field::aws(
            "strategy",
            Kind::choice(&["encoded_endpoint_header", "session_id"]),
            "Here `session_id`, which must be written: no answer of ours tells clients an endpoint.",
        )
        .default("encoded_endpoint_header"),
        Field::aws("sessionIdConfig", Kind::Section(&SESSION_ID), "For `session_id`."),
        free("encodedEndpointHeaderConfig", "For the other strategy, which is not supported."),
        free("profileName", "There is one profile."),
    ],
};

static SESSION_ID: Section = Section {
    fields: &[
        Field::aws(
            "sources",
            Kind::List { item: &Kind::Section(&SESSION_SOURCE), min: 0, max: 10 },
            "Here the header `x-session-id` only.",
        ),
        Field::aws(
            "evictionTtlSeconds",
            Kind::Number { min: 0.001, max: 31_536_000.0 },
            "How long a session is remembered.",
        )
        .default("300"),
        free("evictionSweepSeconds", "The memory is bounded without sweeping."),
    ],
};

static SESSION_SOURCE: Section = Section {
    fields: &[
        Field::aws("header", NAME, "`x-session-id`."),
        Field::aws("attribute", NAME, "Not supported."),
    ],
};

static CONTEXT_LENGTH: Section = Section {
    fields: &[
        Field::aws("label", Kind::Text(Format::Any(317)), "Label with the range, in tokens.")
            .default("llm-d.ai/context-length-range"),
        Field::aws("enableFiltering", Kind::Flag, "Also drop endpoints whose range does not fit.")
            .default("false"),
    ],
};
