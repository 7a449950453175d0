//! Names that the endpoint picker's protocol fixes: fields, namespaces, keys.

/// The pick, as a request field and as a metadata key: `ip:port`, or several with commas.
pub(crate) const DESTINATION: &str = "x-gateway-destination-endpoint";
/// Metadata namespace of the pick and of who served.
pub(crate) const LB_NAMESPACE: &str = "envoy.lb";
/// Metadata key of the endpoint that really served, told with the answer.
pub(crate) const SERVED: &str = "x-gateway-destination-endpoint-served";
/// Metadata namespace and key of the only endpoints that may be chosen.
pub(crate) const SUBSET_NAMESPACE: &str = "envoy.lb.subset_hint";
pub(crate) const SUBSET: &str = "x-gateway-destination-endpoint-subset";

/// The model that the body names, for routes to match.
pub(crate) const MODEL: &str = "x-gateway-model-name";
/// The base model behind it.
pub(crate) const BASE_MODEL: &str = "x-gateway-base-model-name";
/// Fields that ask for another model than the body does, the present name and the former one.
pub(crate) const REWRITE: [&str; 2] =
    ["x-llm-d-model-name-rewrite", "x-gateway-model-name-rewrite"];

/// Why a request was turned away, in the field's words.
pub(crate) const DROPPED_REASON: &str = "x-llm-d-request-dropped-reason";

pub(crate) const REQUEST_ID: &str = "x-request-id";
pub(crate) const SESSION_ID: &str = "x-session-id";

/// W3C Trace Context, and what travels with it.
pub(crate) const TRACE_PARENT: &str = "traceparent";
pub(crate) const TRACE_STATE: &str = "tracestate";
pub(crate) const BAGGAGE: &str = "baggage";
/// A client writes this field to be told where the time went.
pub(crate) const WANTS_TIMING: &str = "x-wicketgate-timing";

/// Fields that steer where a request goes. A client's own never get past us: it would choose an
/// address inside the cluster.
pub(crate) const STEERING: [&str; 11] = [
    DESTINATION,
    SUBSET,
    SERVED,
    "x-gateway-destination-endpoint-fallback",
    "x-gateway-destination-endpoint-fallbacks",
    "x-gateway-destination-endpoint-scores",
    "x-prefiller-host-port",
    "x-prefiller-url",
    "x-encoder-hosts-ports",
    "x-data-parallel-host-port",
    "x-kv-cache-source-host-port",
];

/// Fields that only a gateway may set begin so. An endpoint's own never reach a client, or it would speak in our
/// name. Unlike in the built-in proxy the proxy's own (`x-envoy-`, `x-forwarded-`) pass: it adds them itself.
pub(crate) const CONTROL_PREFIXES: [&str; 5] =
    ["x-wicketgate-", "x-gateway-", "x-llm-d-", "x-prefiller-", "x-slo-"];

/// Attributes, where the proxy is configured to send them.
pub(crate) const SOURCE_ADDRESS: &str = "source.address";
pub(crate) const UPSTREAM_ADDRESS: &str = "upstream.address";
