//! What the gateway does without being told, and what has no effect here.

use super::parameters::{NAME, free, producer};
use super::{Plugin, Section, Slot, Support};
use crate::schema::{Field, Kind};

const fn inherent(name: &'static str, slot: Slot, help: &'static str) -> Plugin {
    Plugin::new(name, slot, Support::Inherent, help)
}

const fn ignored(name: &'static str, slot: Slot, help: &'static str) -> Plugin {
    Plugin::new(name, slot, Support::Ignored, help)
}

const UNQUEUED: &str = "A full pool answers 429 with `Retry-After`; nothing is queued.";

const TOKENIZERS: &[&str] = &["estimate", "vllm", "udsTokenizerConfig", "modelName"];

pub(super) static REST: &[Plugin] = &[
    inherent("single-profile-handler", Slot::Handler, "There is one profile."),
    inherent(
        "approx-prefix-cache-producer",
        Slot::Producer,
        "Our prefix index: contiguous matches, sized by the engine's own blocks, corrected by what \
         answers found cached.",
    )
    .with(&APPROX_PREFIX)
    .idle(&[
        "autoTune",
        "blockSizeTokens",
        "blockSize",
        "maxPrefixBlocksToMatch",
        "maxPrefixTokensToMatch",
        "lruCapacityPerServer",
    ]),
    inherent(
        "inflight-load-producer",
        Slot::Producer,
        "Requests and uncached prompt tokens are booked at each pick and given back.",
    )
    .with(&INFLIGHT_LOAD)
    .idle(&[
        "addEstimatedOutputTokens",
        "outputRatio",
        "maxEstimatedOutputTokens",
        "syncCrossReplicaState",
    ]),
    inherent("token-producer", Slot::Producer, "A token is taken to be four bytes of text.")
        .with(&TOKENS)
        .idle(TOKENIZERS),
    inherent("tokenizer", Slot::Producer, "Older name of `token-producer`.")
        .with(&TOKENS)
        .idle(TOKENIZERS),
    inherent("session-id-producer", Slot::Producer, "A session is what `x-session-id` says.")
        .with(&SESSION_ID)
        .idle(&["headerName", "cookieName"]),
    inherent(
        "metrics-data-source",
        Slot::Source,
        "Each endpoint's metrics are read at its own pace.",
    )
    .with(&METRICS)
    .idle(&[
        "scheme",
        "path",
        "port",
        "insecureSkipVerify",
        "caCertPath",
        "clientCertPath",
        "clientKeyPath",
        "interval",
    ]),
    inherent("models-data-source", Slot::Source, "Each endpoint's `/v1/models` is read.")
        .with(&MODELS)
        .idle(&[
            "scheme",
            "path",
            "insecureSkipVerify",
            "caCertPath",
            "clientCertPath",
            "clientKeyPath",
            "interval",
        ]),
    inherent(
        "core-metrics-extractor",
        Slot::Extractor,
        "vLLM, SGLang, TGI and TensorRT-LLM, told apart by their metrics.",
    )
    .with(&EXTRACTOR)
    .idle(&["engineLabelKey", "defaultEngine", "engineConfigs"]),
    inherent("models-data-extractor", Slot::Extractor, "Base models and adapters are found."),
    inherent("openai-parser", Slot::Parser, "OpenAI's paths are known."),
    inherent("anthropic-parser", Slot::Parser, "`/v1/messages` is known."),
    inherent("vllmhttp-parser", Slot::Parser, "vLLM's own paths are known."),
    inherent("sglanghttp-parser", Slot::Parser, "`/generate` is known."),
    inherent(
        "passthrough-parser",
        Slot::Parser,
        "Other paths: `allowedPaths`, or `epp --paths any`.",
    ),
    inherent(
        "endpoint-notification-source",
        Slot::Source,
        "Changes of the endpoints take force at once.",
    ),
    inherent("k8s-notification-source", Slot::Source, "The same."),
    inherent("fcfs-ordering-policy", Slot::FlowPolicy, "Who comes first is served first."),
    inherent("global-strict-fairness-policy", Slot::FlowPolicy, "All requests are one flow."),
    ignored("round-robin-fairness-policy", Slot::FlowPolicy, UNQUEUED),
    ignored("program-aware-fairness", Slot::FlowPolicy, UNQUEUED).with(&ANYTHING_FAIR),
    ignored("edf-ordering-policy", Slot::FlowPolicy, UNQUEUED),
    ignored("slo-deadline-ordering-policy", Slot::FlowPolicy, UNQUEUED),
    ignored("static-usage-limit-policy", Slot::FlowPolicy, UNQUEUED).with(&STATIC_LIMIT),
    ignored("priority-holdback-policy", Slot::FlowPolicy, UNQUEUED).with(&HOLDBACK),
    ignored("soft-reflective-ceiling-policy", Slot::FlowPolicy, UNQUEUED),
    ignored(
        "sheddable-eviction-filter",
        Slot::FlowPolicy,
        "Running requests are never ended for others.",
    ),
    ignored(
        "priority-then-time-eviction-order-policy",
        Slot::FlowPolicy,
        "Running requests are never ended for others.",
    ),
    ignored("agent-identity", Slot::Other, "It names flows, and all requests are one flow.")
        .with(&AGENT),
    ignored(
        "request-attribute-reporter",
        Slot::Other,
        "The access log and the metrics tell tokens and endpoints.",
    )
    .with(&REPORTER),
    ignored("topology-extractor", Slot::Extractor, "No scorer here asks for it."),
    ignored("dcgm-data-source", Slot::Source, "No scorer here asks for it."),
    ignored("dcgm-extractor", Slot::Extractor, "No scorer here asks for it."),
];

static APPROX_PREFIX: Section = Section {
    fields: &[
        Field::aws("autoTune", Kind::Flag, "The index always follows the engine's blocks.")
            .default("true"),
        free(
            "blockSizeTokens",
            "`prefixIndex.blockTokens` of the gateway's document sets it for all pools.",
        ),
        free("blockSize", "The same."),
        free("maxPrefixBlocksToMatch", "The first 2,048 blocks are matched."),
        free("maxPrefixTokensToMatch", "The first 2,048 blocks are matched."),
        free(
            "lruCapacityPerServer",
            "It follows the engine's own number of blocks, within `prefixIndex.bytesMax`.",
        ),
    ],
};

static INFLIGHT_LOAD: Section = Section {
    fields: &[
        Field::aws("addEstimatedOutputTokens", Kind::Flag, "Only prompt tokens are booked.")
            .default("false"),
        free("outputRatio", "Only prompt tokens are booked."),
        free("maxEstimatedOutputTokens", "Only prompt tokens are booked."),
        producer("prefixMatchInfoProducerName"),
        Field::aws("syncCrossReplicaState", Kind::Flag, "It is not this document's business here.")
            .default("false"),
    ],
};

static TOKENS: Section = Section {
    fields: &[
        free("estimate", "Images and sound are left out of the estimate."),
        free("vllm", "Tokens are estimated."),
        free("udsTokenizerConfig", "Tokens are estimated."),
        free("modelName", "Tokens are estimated."),
    ],
};

static SESSION_ID: Section = Section {
    fields: &[
        Field::aws("headerName", NAME, "Here `x-session-id`.").default("x-session-id"),
        Field::aws("cookieName", NAME, "Cookies are not looked into."),
    ],
};

const ENDPOINT: &str = "Metrics are asked for where the endpoint's URL leads.";

static METRICS: Section = Section {
    fields: &[
        Field::aws("scheme", Kind::choice(&["http", "https"]), ENDPOINT).default("http"),
        Field::aws("path", NAME, "`schedulers[].metricsPath` sets it.").default("/metrics"),
        free("port", ENDPOINT),
        Field::aws("insecureSkipVerify", Kind::Flag, ENDPOINT).default("true"),
        free("caCertPath", ENDPOINT),
        free("clientCertPath", ENDPOINT),
        free("clientKeyPath", ENDPOINT),
        free("interval", "`scrape.busyInterval` and `scrape.idleInterval` set it."),
    ],
};

static MODELS: Section = Section {
    fields: &[
        Field::aws("scheme", Kind::choice(&["http", "https"]), ENDPOINT).default("http"),
        Field::aws("path", NAME, ENDPOINT).default("/v1/models"),
        Field::aws("insecureSkipVerify", Kind::Flag, ENDPOINT).default("true"),
        free("caCertPath", ENDPOINT),
        free("clientCertPath", ENDPOINT),
        free("clientKeyPath", ENDPOINT),
        free("interval", ENDPOINT),
    ],
};

const ENGINE: &str = "`schedulers[].engineType` names the engine where its metrics do not.";

static EXTRACTOR: Section = Section {
    fields: &[
        free("engineLabelKey", ENGINE),
        free("defaultEngine", ENGINE),
        free("engineConfigs", ENGINE),
    ],
};

static ANYTHING_FAIR: Section = Section {
    fields: &[
        free("strategy", UNQUEUED),
        free("evictionTtlSeconds", UNQUEUED),
        free("evictionSweepSeconds", UNQUEUED),
        free("lasWeightService", UNQUEUED),
        free("lasWeightHeadWait", UNQUEUED),
        free("lasHalfLifeSeconds", UNQUEUED),
    ],
};

static STATIC_LIMIT: Section = Section { fields: &[free("threshold", UNQUEUED)] };

static HOLDBACK: Section = Section {
    fields: &[
        free("shape", UNQUEUED),
        free("domain", UNQUEUED),
        free("minCeiling", UNQUEUED),
        free("maxCeiling", UNQUEUED),
    ],
};

static AGENT: Section =
    Section { fields: &[free("additionalSessionHeaders", "All requests are one flow.")] };

static REPORTER: Section = Section { fields: &[free("attributes", "Nothing is reported.")] };
