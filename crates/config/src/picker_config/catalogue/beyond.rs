//! What we do not have, the nearest that we have, and what happens without it.

use super::{Plugin, Slot};

const LOAD_DECIDES: &str = "the other scorers decide";
const ALL_STAY: &str = "no endpoint is dropped for this";
const SINGLE: &str =
    "`single-profile-handler` with one profile: prefill and decode happen on the same endpoint";
const ONE_PROFILE: &str = "the one profile there is decides";
const NO_STAGES: &str = "no request is split into stages";
const CLUSTERS: &str = "the same type without `multicluster-`: endpoints here are model servers";

pub(super) static BEYOND: &[Plugin] = &[
    Plugin::missing(
        "latency-scorer",
        Slot::Scorer,
        "`expected-time-scorer`, which needs no predictor process but knows no latency targets of requests",
        LOAD_DECIDES,
    ),
    Plugin::missing(
        "predicted-latency-scorer",
        Slot::Scorer,
        "`expected-time-scorer`, which needs no predictor process but knows no latency targets of requests",
        LOAD_DECIDES,
    ),
    Plugin::missing(
        "precise-prefix-cache-scorer",
        Slot::Scorer,
        "`prefix-cache-scorer`: our index is corrected by what answers found cached",
        LOAD_DECIDES,
    ),
    Plugin::missing(
        "topology-affinity-scorer",
        Slot::Scorer,
        "`label-selector-filter` on a zone's label",
        LOAD_DECIDES,
    ),
    Plugin::missing(
        "header-label-affinity-scorer",
        Slot::Scorer,
        "`session-affinity-scorer`, or `label-selector-filter` where the label is the same for all requests",
        LOAD_DECIDES,
    ),
    Plugin::missing(
        "endpoint-attribute-scorer",
        Slot::Scorer,
        "`queue-scorer`, `running-requests-size-scorer` or `kv-cache-utilization-scorer`; other metrics are not read",
        LOAD_DECIDES,
    ),
    Plugin::missing(
        "mm-embeddings-cache-scorer",
        Slot::Scorer,
        "`prefix-cache-scorer`, which knows the text around images",
        LOAD_DECIDES,
    ),
    Plugin::missing("multicluster-queue-scorer", Slot::Scorer, CLUSTERS, LOAD_DECIDES),
    Plugin::missing(
        "multicluster-kv-cache-utilization-scorer",
        Slot::Scorer,
        CLUSTERS,
        LOAD_DECIDES,
    ),
    Plugin::missing("multicluster-prefix-cache-scorer", Slot::Scorer, CLUSTERS, LOAD_DECIDES),
    Plugin::missing(
        "prefill-filter",
        Slot::Filter,
        "`label-selector-filter` on `llm-d.ai/role`",
        NO_STAGES,
    ),
    Plugin::missing(
        "encode-filter",
        Slot::Filter,
        "`label-selector-filter` on `llm-d.ai/role`",
        NO_STAGES,
    ),
    Plugin::missing(
        "slo-headroom-tier-filter",
        Slot::Filter,
        "`expected-time-scorer`; latency targets of requests are not known",
        ALL_STAY,
    ),
    Plugin::missing(
        "session-affinity-filter",
        Slot::Filter,
        "`session-affinity-scorer` with a weight above the sum of the others",
        "sessions stay together only as far as prefixes do",
    ),
    Plugin::missing(
        "multicluster-session-affinity-filter",
        Slot::Filter,
        "`session-affinity-scorer` with a weight above the sum of the others",
        "sessions stay together only as far as prefixes do",
    ),
    Plugin::missing(
        "endpoint-attribute-filter",
        Slot::Filter,
        "`utilization-filter`; other metrics are not read",
        ALL_STAY,
    ),
    Plugin::missing(
        "topology-affinity-filter",
        Slot::Filter,
        "`label-selector-filter` on a zone's label",
        ALL_STAY,
    ),
    Plugin::missing(
        "header-based-testing-filter",
        Slot::Filter,
        "`x-gateway-destination-endpoint-subset` in the proxy's metadata",
        ALL_STAY,
    ),
    Plugin::missing("disagg-profile-handler", Slot::Handler, SINGLE, ONE_PROFILE),
    Plugin::missing("pd-profile-handler", Slot::Handler, SINGLE, ONE_PROFILE),
    Plugin::missing("disagg-headers-handler", Slot::Handler, SINGLE, ONE_PROFILE),
    Plugin::missing("prefill-header-handler", Slot::Handler, SINGLE, ONE_PROFILE),
    Plugin::missing(
        "data-parallel-profile-handler",
        Slot::Handler,
        "`single-profile-handler`, with each rank as an endpoint of its own",
        ONE_PROFILE,
    ),
    Plugin::missing(
        "header-profile-handler",
        Slot::Handler,
        "`single-profile-handler`, and a pool for each way of choosing",
        ONE_PROFILE,
    ),
    Plugin::missing("prefix-based-pd-decider", Slot::Other, SINGLE, NO_STAGES),
    Plugin::missing("always-disagg-pd-decider", Slot::Other, SINGLE, NO_STAGES),
    Plugin::missing("always-disagg-multimodal-decider", Slot::Other, SINGLE, NO_STAGES),
    Plugin::missing(
        "disaggregatedset-rollout-screener",
        Slot::Other,
        "a pool for each revision",
        ALL_STAY,
    ),
    Plugin::missing(
        "precise-prefix-cache-producer",
        Slot::Producer,
        "`approx-prefix-cache-producer`: our index is corrected by what answers found cached",
        "that index is used",
    ),
    Plugin::missing(
        "burst-prefix-cache-producer",
        Slot::Producer,
        "`approx-prefix-cache-producer`, whose index knows a prompt as soon as it is sent",
        "that index is used",
    ),
    Plugin::missing(
        "multicluster-approx-prefix-cache-producer",
        Slot::Producer,
        CLUSTERS,
        "our prefix index is used",
    ),
    Plugin::missing(
        "mm-embeddings-cache-producer",
        Slot::Producer,
        "`approx-prefix-cache-producer`, which knows the text around images",
        "images decide nothing",
    ),
    Plugin::missing(
        "p2p-source-producer",
        Slot::Producer,
        "`prefix-cache-scorer`, which goes where the cache is",
        "caches are not moved between endpoints",
    ),
    Plugin::missing(
        "predicted-latency-producer",
        Slot::Producer,
        "`expected-time-scorer`, which learns from answers without a predictor process",
        "speeds are learned all the same",
    ),
    Plugin::missing(
        "latency-slo-admitter",
        Slot::Admitter,
        "`flowControl.saturationDetector`",
        "requests are refused only when the pool is full",
    ),
    Plugin::missing(
        "probabilistic-admitter",
        Slot::Admitter,
        "`flowControl.saturationDetector`",
        "requests are refused only when the pool is full",
    ),
    Plugin::missing(
        "file-discovery",
        Slot::Other,
        "`schedulers[].endpoints` of the gateway's document, or `--endpoint`",
        "the gateway's document names the endpoints",
    ),
    Plugin::missing(
        "multicluster-file-discovery",
        Slot::Other,
        "`schedulers[].endpoints` of the gateway's document, or `--endpoint`",
        "the gateway's document names the endpoints",
    ),
    Plugin::missing(
        "multicluster-metrics-data-source",
        Slot::Source,
        CLUSTERS,
        "metrics of endpoints are read",
    ),
    Plugin::missing(
        "multicluster-metrics-extractor",
        Slot::Extractor,
        CLUSTERS,
        "metrics of endpoints are read",
    ),
    Plugin::missing(
        "vllmgrpc-parser",
        Slot::Parser,
        "`vllmhttp-parser`: bodies are read as JSON",
        "such requests are placed without knowing their prompt",
    ),
    Plugin::missing(
        "vertexai-parser",
        Slot::Parser,
        "`openai-parser`: bodies are read as JSON",
        "such requests are placed without knowing their prompt",
    ),
    Plugin::missing(
        "local-syncer",
        Slot::Other,
        "nothing: it is a trial of the field's",
        "each picker goes by its own account",
    ),
    Plugin::missing(
        "destination-endpoint-served-verifier",
        Slot::Other,
        "nothing: it serves the field's own tests",
        "nothing changes",
    ),
];
