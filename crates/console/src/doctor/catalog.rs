//! Every finding there is: what it is called, why it matters, and how to mend it.

/// How much a finding matters. Ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Severity {
    /// Worth knowing.
    Note,
    /// Costs time, money or safety.
    Warning,
    /// Requests fail.
    Error,
}

impl Severity {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

/// What can be found. `id` never changes once released.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Kind {
    pub(super) id: &'static str,
    pub(super) severity: Severity,
    pub(super) title: &'static str,
    pub(super) why: &'static str,
    pub(super) remedy: &'static str,
}

/// Something to mend.
#[derive(Clone, Debug)]
pub(super) struct Finding {
    pub(super) kind: &'static Kind,
    /// Endpoint, pool, or the gateway's address.
    pub(super) place: String,
    /// What was seen there.
    pub(super) seen: String,
}

impl Finding {
    pub(super) fn new(
        kind: &'static Kind,
        place: impl Into<String>,
        seen: impl Into<String>,
    ) -> Self {
        Self { kind, place: place.into(), seen: seen.into() }
    }
}

/// The page `docs/doctor.md`.
pub fn markdown() -> String {
    let mut page = include_str!("intro.md").to_owned();
    for kind in ALL {
        let Kind { id, severity, title, why, remedy } = kind;
        page.push_str(&format!(
            "| `{id}` | {} | {title} | {why} | {remedy} |\n",
            severity.as_str()
        ));
    }
    page
}

/// In the order of the documentation.
pub(super) static ALL: [&Kind; 37] = [
    &GATEWAY_UNREACHABLE,
    &GATEWAY_NOT_READY,
    &GATEWAY_OLDER,
    &ADMIN_OPEN,
    &TRAFFIC_OPEN,
    &RELOAD_REJECTED,
    &CERTIFICATE_EXPIRES,
    &CERTIFICATE_EXPIRED,
    &DESCRIPTORS_LOW,
    &LOG_LINES_DROPPED,
    &BODIES_REFUSED,
    &POOL_SATURATED,
    &RETRIES_HIGH,
    &ABORTS_HIGH,
    &ENDPOINT_UNREACHABLE,
    &ENDPOINT_NOT_SEEN,
    &ENDPOINT_EJECTED,
    &ENDPOINT_STALE,
    &ENDPOINT_ASLEEP,
    &METRICS_UNREADABLE,
    &SIGNAL_MISSING,
    &SCORER_WITHOUT_INPUT,
    &PREFIX_CACHING_OFF,
    &PREFIX_HITS_NONE,
    &KEEP_ALIVE_SHORT,
    &KEEP_ALIVE_NEVER,
    &CLOCK_APART,
    &PREDICTION_OFF,
    &POOL_EMPTY,
    &MODEL_MISSING,
    &MODELS_UNREADABLE,
    &VERSION_DIFFERS,
    &ENGINE_DIFFERS,
    &BLOCK_SIZE_DIFFERS,
    &CONTEXT_DIFFERS,
    &LORA_OFF,
    &ADAPTER_MISSING,
];

pub(super) static GATEWAY_UNREACHABLE: Kind = Kind {
    id: "gateway-unreachable",
    severity: Severity::Error,
    title: "the gateway does not answer",
    why: "Nothing can be said of a gateway that cannot be asked.",
    remedy: "Start it, or name its administration listener with --admin; from outside a cluster: kubectl port-forward POD 9090. If it asks for a token: --admin-token.",
};

pub(super) static GATEWAY_NOT_READY: Kind = Kind {
    id: "gateway-not-ready",
    severity: Severity::Error,
    title: "the gateway places no requests",
    why: "/readyz is not 200, so load balancers and Kubernetes keep traffic away from it.",
    remedy: "See what it says of itself: while it drains, nothing; else no endpoint has told yet which models it serves, and the findings about endpoints say why.",
};

pub(super) static GATEWAY_OLDER: Kind = Kind {
    id: "gateway-older",
    severity: Severity::Note,
    title: "the gateway does not tell its settings",
    why: "It has no /debug/settings; checks of timeouts, adapters and scorers are left out.",
    remedy: "Use the gateway and the doctor of one version.",
};

pub(super) static ADMIN_OPEN: Kind = Kind {
    id: "admin-open",
    severity: Severity::Warning,
    title: "the administration listener is open beyond this machine",
    why: "Whoever reaches it can read metrics, endpoints and decisions. There is no prompt text in them, but addresses and names.",
    remedy: "Bind spec.admin.address to loopback, ask for a token there, or keep others away by a network policy.",
};

pub(super) static TRAFFIC_OPEN: Kind = Kind {
    id: "traffic-open",
    severity: Severity::Warning,
    title: "anyone who reaches the gateway can use the models",
    why: "It listens beyond loopback and asks nobody who they are.",
    remedy: "Turn on authentication (spec.auth, without `anonymous: allow`), bind spec.listener.address to loopback, or keep others away by a network policy.",
};

pub(super) static RELOAD_REJECTED: Kind = Kind {
    id: "reload-rejected",
    severity: Severity::Warning,
    title: "a changed document was rejected",
    why: "The settings in force are older than the document on disk; the next start would fail.",
    remedy: "`wicketgate check -f FILE` says where it is wrong.",
};

pub(super) static CERTIFICATE_EXPIRES: Kind = Kind {
    id: "certificate-expires",
    severity: Severity::Warning,
    title: "the TLS certificate expires within two weeks",
    why: "Clients refuse an expired certificate.",
    remedy: "Renew it; the files are read again within 2 s of a change.",
};

pub(super) static CERTIFICATE_EXPIRED: Kind = Kind {
    id: "certificate-expired",
    severity: Severity::Error,
    title: "the TLS certificate has expired",
    why: "Clients refuse it.",
    remedy: "Renew it; the files are read again within 2 s of a change.",
};

pub(super) static DESCRIPTORS_LOW: Kind = Kind {
    id: "descriptors-low",
    severity: Severity::Warning,
    title: "too few file descriptors for the connections that are allowed",
    why: "Each client connection can need another to an endpoint, so only half of the descriptors less 512 become client connections; beyond, clients are turned away.",
    remedy: "Raise the limit (ulimit -n, LimitNOFILE=, the container's default), or lower limits.connectionsMax.",
};

pub(super) static LOG_LINES_DROPPED: Kind = Kind {
    id: "log-lines-dropped",
    severity: Severity::Warning,
    title: "lines of the access log were dropped",
    why: "Its reader or disk is too slow; requests are never held up for it.",
    remedy: "Give it a faster reader, a file (accessLog.target), or turn it off.",
};

pub(super) static BODIES_REFUSED: Kind = Kind {
    id: "bodies-refused",
    severity: Severity::Warning,
    title: "requests are refused because they are too large",
    why: "Clients send bodies beyond the limit and get 413; long contexts and images need more than text.",
    remedy: "Raise limits.requestBodyBytesMax (JSON) or limits.multipartBodyBytesMax, or tell the clients.",
};

pub(super) static POOL_SATURATED: Kind = Kind {
    id: "pool-saturated",
    severity: Severity::Warning,
    title: "a pool is full",
    why: "Requests get 429 while all its endpoints are full.",
    remedy: "Add endpoints, let fewer requests in, or raise saturation.queueDepth if waiting is better than 429.",
};

pub(super) static RETRIES_HIGH: Kind = Kind {
    id: "retries-high",
    severity: Severity::Warning,
    title: "many requests need a second endpoint",
    why: "Each retry costs the client time and hides an endpoint that fails.",
    remedy: "Look at wicketgate_retries_total by reason: `connect` is a process that is down or a port that is wrong, `closed_reused` a keep-alive that is too short, `unavailable` a queue limit of the engine.",
};

pub(super) static ABORTS_HIGH: Kind = Kind {
    id: "aborts-high",
    severity: Severity::Warning,
    title: "many answers end early because of endpoints",
    why: "Clients see broken streams; engines crash, stall or are stopped without draining.",
    remedy: "Look at wicketgate_streams_aborted_total by reason, and at the engines' logs; give pods time to finish (preStop, terminationGracePeriodSeconds).",
};

pub(super) static ENDPOINT_UNREACHABLE: Kind = Kind {
    id: "endpoint-unreachable",
    severity: Severity::Error,
    title: "an endpoint cannot be reached",
    why: "No request can be sent there.",
    remedy: "Start it, or mend its address in the document; check ports and network policies.",
};

pub(super) static ENDPOINT_NOT_SEEN: Kind = Kind {
    id: "endpoint-not-seen",
    severity: Severity::Note,
    title: "an endpoint cannot be reached from here",
    why: "The gateway reaches it, this machine does not; what it says of itself was not checked.",
    remedy: "Run the doctor where the gateway runs, for example by kubectl exec POD -- /wicketgate doctor.",
};

pub(super) static ENDPOINT_EJECTED: Kind = Kind {
    id: "endpoint-ejected",
    severity: Severity::Error,
    title: "an endpoint was taken out because it failed",
    why: "Its share of the load falls on the others.",
    remedy: "Look at its log; it is tried again by itself, later each time.",
};

pub(super) static ENDPOINT_STALE: Kind = Kind {
    id: "endpoint-stale",
    severity: Severity::Error,
    title: "the gateway cannot read an endpoint's metrics",
    why: "Without fresh signals an endpoint is left out, unless all are stale.",
    remedy: "Look at wicketgate_endpoint_scrape_failures_total by reason; SGLang needs --enable-metrics, llama.cpp --metrics. A page that is only slow needs a longer scrape.timeout.",
};

pub(super) static ENDPOINT_ASLEEP: Kind = Kind {
    id: "endpoint-asleep",
    severity: Severity::Note,
    title: "an endpoint sleeps",
    why: "Its weights are off the GPU; it gets no requests until it is woken.",
    remedy: "POST /wake_up there, if that was not meant.",
};

pub(super) static METRICS_UNREADABLE: Kind = Kind {
    id: "metrics-unreadable",
    severity: Severity::Error,
    title: "an endpoint's metrics cannot be read",
    why: "Load, cache and adapters of the endpoint are guesses.",
    remedy: "SGLang needs --enable-metrics, llama.cpp --metrics; metricsPath names another path; --endpoint-api-key gives the key that an engine asks for.",
};

pub(super) static SIGNAL_MISSING: Kind = Kind {
    id: "signal-missing",
    severity: Severity::Warning,
    title: "an engine does not report what it could",
    why: "The gateway works with what it accounts itself, which does not see requests of others.",
    remedy: "Use a current version of the engine (vLLM 0.9.2 or newer for KV use), and do not filter its metrics on the way.",
};

pub(super) static SCORER_WITHOUT_INPUT: Kind = Kind {
    id: "scorer-without-input",
    severity: Severity::Warning,
    title: "a scorer has no input",
    why: "Endpoints that do not report its signal all get the same score from it, so its weight decides nothing or decides wrongly.",
    remedy: "Take the scorer's weight away, use the default policy, which accounts by itself, or let the engine report the signal.",
};

pub(super) static PREFIX_CACHING_OFF: Kind = Kind {
    id: "prefix-caching-off",
    severity: Severity::Warning,
    title: "an engine has prefix caching off",
    why: "Every prompt is computed from its beginning; sending equal prompts to one endpoint gains nothing.",
    remedy: "vLLM: remove --no-enable-prefix-caching.",
};

pub(super) static PREFIX_HITS_NONE: Kind = Kind {
    id: "prefix-hits-none",
    severity: Severity::Warning,
    title: "an engine's prefix cache is never hit",
    why: "Many prompt tokens were looked up and none was found: caching may be defeated by prompts that begin differently (a time, an id), a salt, or a cache that is too small.",
    remedy: "Put what changes at the end of prompts; look at KV use and at cache_salt.",
};

pub(super) static KEEP_ALIVE_SHORT: Kind = Kind {
    id: "keep-alive-short",
    severity: Severity::Warning,
    title: "an endpoint closes idle connections before the gateway does",
    why: "A request that meets the closing connection must be sent again, and one that cannot be repeated fails.",
    remedy: "Set timeouts.endpointIdle below the endpoint's keep-alive, or raise that: uvicorn, under vLLM and SGLang, --timeout-keep-alive (VLLM_HTTP_TIMEOUT_KEEP_ALIVE).",
};

pub(super) static KEEP_ALIVE_NEVER: Kind = Kind {
    id: "keep-alive-never",
    severity: Severity::Note,
    title: "an endpoint closes the connection behind each answer",
    why: "Each request pays for a new connection.",
    remedy: "Let the server, or the proxy before it, keep connections.",
};

pub(super) static CLOCK_APART: Kind = Kind {
    id: "clock-apart",
    severity: Severity::Warning,
    title: "an endpoint's clock is apart from ours",
    why: "Times in logs, traces and metrics of the two cannot be compared, and tokens expire early or late.",
    remedy: "Let both follow a time server.",
};

pub(super) static PREDICTION_OFF: Kind = Kind {
    id: "prediction-off",
    severity: Severity::Warning,
    title: "times to the first token are badly foreseen",
    why: "The picker goes by them. Something slows the endpoint down that it does not know of: other gateways or other work on the GPU, a proxy in between, prompts that tokenise unusually.",
    remedy: "Let gateways before the same endpoints be peers (spec.peers); give the endpoint its GPU for itself.",
};

pub(super) static POOL_EMPTY: Kind = Kind {
    id: "pool-empty",
    severity: Severity::Error,
    title: "a pool has no endpoint that may get requests",
    why: "Its model answers 503.",
    remedy: "The findings about its endpoints say why; or add endpoints.",
};

pub(super) static MODEL_MISSING: Kind = Kind {
    id: "model-missing",
    severity: Severity::Error,
    title: "an endpoint does not serve its pool's model",
    why: "Requests there answer 404.",
    remedy: "Mend modelName, or start the engine with --served-model-name.",
};

pub(super) static MODELS_UNREADABLE: Kind = Kind {
    id: "models-unreadable",
    severity: Severity::Warning,
    title: "an endpoint does not say which models it serves",
    why: "Adapters cannot be found out, and a model that is not served there only shows in errors.",
    remedy: "It should answer GET /v1/models.",
};

pub(super) static VERSION_DIFFERS: Kind = Kind {
    id: "version-differs",
    severity: Severity::Warning,
    title: "engines of one pool have different versions",
    why: "They may differ in answers, speed and what they report; fine during a roll-out, not for long.",
    remedy: "Bring all replicas to one version.",
};

pub(super) static ENGINE_DIFFERS: Kind = Kind {
    id: "engine-differs",
    severity: Severity::Note,
    title: "a pool mixes engines",
    why: "Works; but block sizes, what is reported and what is accepted differ.",
    remedy: "Prefer one engine for a pool, or split it.",
};

pub(super) static BLOCK_SIZE_DIFFERS: Kind = Kind {
    id: "block-size-differs",
    severity: Severity::Warning,
    title: "engines of one pool have different KV block sizes",
    why: "Prefix hits come in whole blocks, and KV events of one cannot be compared with those of another.",
    remedy: "Start all replicas with the same --block-size (SGLang --page-size).",
};

pub(super) static CONTEXT_DIFFERS: Kind = Kind {
    id: "context-differs",
    severity: Severity::Warning,
    title: "engines of one pool take prompts of different length",
    why: "The same request is answered here and refused there, by chance.",
    remedy: "Start all replicas with the same --max-model-len (SGLang --context-length), or split the pool.",
};

pub(super) static LORA_OFF: Kind = Kind {
    id: "lora-off",
    severity: Severity::Error,
    title: "adapters are configured but an engine has LoRA off",
    why: "Requests for them fail there.",
    remedy: "vLLM: --enable-lora --max-loras N; SGLang: --enable-lora; or remove loraAdapters.",
};

pub(super) static ADAPTER_MISSING: Kind = Kind {
    id: "adapter-missing",
    severity: Severity::Error,
    title: "an endpoint does not serve an adapter of its pool",
    why: "Requests for it go to the other endpoints only, or fail if there are none.",
    remedy: "Load it there (--lora-modules, POST /v1/load_lora_adapter), or remove it from loraAdapters.",
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_kinds_share_an_id_and_each_says_why_and_how() {
        let mut ids: Vec<&str> = ALL.iter().map(|kind| kind.id).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), ALL.len());
        assert!(ALL.iter().all(|kind| kind.why.ends_with('.') && kind.remedy.ends_with('.')));
    }
}
