//! Closed sets of label values: nothing else can become one.

use crate::names::{self, Metric};

/// A closed set of label values.
pub trait Label: Copy + 'static {
    /// All values, in declaration order.
    const ALL: &'static [Self];
    /// Position in [`Self::ALL`].
    fn index(self) -> usize;
    /// The value on the page.
    fn as_str(self) -> &'static str;
}

macro_rules! label {
    ($(#[$doc:meta])* $name:ident { $($(#[$value_doc:meta])* $value:ident = $text:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name { $($(#[$value_doc])* $value,)+ }

        impl Label for $name {
            const ALL: &'static [Self] = &[$(Self::$value,)+];

            fn index(self) -> usize {
                self as usize
            }

            fn as_str(self) -> &'static str {
                match self { $(Self::$value => $text,)+ }
            }
        }
    };
}

mod fleet;

pub use fleet::{Heartbeat, Lease, MemberReason, MemberState, NoMember, Report};

label! {
    /// What a client called, by path.
    Route {
        ChatCompletions = "chat_completions",
        Completions = "completions",
        Embeddings = "embeddings",
        Responses = "responses",
        Models = "models",
        Messages = "messages",
        CountTokens = "count_tokens",
        Rerank = "rerank",
        Score = "score",
        Transcriptions = "transcriptions",
        Tokenize = "tokenize",
        Detokenize = "detokenize",
        Generate = "generate",
        GenerateStream = "generate_stream",
        /// A path that the configuration allows, or one that is not known.
        Other = "other",
    }
}

label! {
    /// How a request ended.
    Outcome {
        Ok = "ok",
        /// The client's fault: 4xx of the gateway or the endpoint, save 429.
        ClientError = "client_error",
        /// The endpoint failed: 5xx, cut, stalled, unreachable.
        EndpointError = "endpoint_error",
        GatewayError = "gateway_error",
        /// The client left before the end.
        Cancelled = "cancelled",
        /// 429, or 503 for want of capacity.
        Shed = "shed",
    }
}

label! {
    /// Why a request was refused before its pool was known.
    Refusal {
        /// Not HTTP, or HTTP that proxies read differently.
        Malformed = "malformed",
        /// The body is not what the route needs: no JSON, no model, two models.
        BadRequest = "bad_request",
        Unauthorized = "unauthorized",
        Forbidden = "forbidden",
        RouteNotFound = "route_not_found",
        ModelNotFound = "model_not_found",
        Method = "method",
        MediaType = "media_type",
        TooLarge = "too_large",
        /// Headers or body did not arrive in time.
        Timeout = "timeout",
        RateLimited = "rate_limited",
        /// The gateway holds as many connections, requests or body bytes as it may.
        Overloaded = "overloaded",
        Draining = "draining",
        /// The client left before its pool was known.
        ClientGone = "client_gone",
        Internal = "internal",
    }
}

label! {
    /// Why a request was sent to another endpoint.
    Retry {
        Connect = "connect",
        /// A reused connection was closed before a response byte.
        ClosedReused = "closed_reused",
        /// 502 or 503 from an endpoint that did no work.
        Unavailable = "unavailable",
        /// The member of the global tier that had it is given up.
        Lost = "lost",
    }
}

label! {
    /// Why a request was answered 429.
    Rejection {
        Saturated = "saturated",
        /// As much waits as may.
        BandFull = "band_full",
        /// It waited as long as it may.
        TtlExpired = "ttl_expired",
        /// It made room for something more important.
        Evicted = "evicted",
        /// It could not have its first token by its deadline.
        Deadline = "deadline",
        RateLimited = "rate_limited",
        /// The endpoints themselves answered 429.
        Endpoint = "endpoint",
    }
}

label! {
    /// Priorities: the three that have names, and what lies between and beyond.
    Band {
        AboveCritical = "above_critical",
        Critical = "critical",
        AboveStandard = "above_standard",
        Standard = "standard",
        BelowStandard = "below_standard",
        Sheddable = "sheddable",
        BelowSheddable = "below_sheddable",
    }
}

impl From<types::Priority> for Band {
    fn from(priority: types::Priority) -> Self {
        use std::cmp::Ordering::{Equal, Greater, Less};
        use types::Priority;
        let to = |known: Priority| priority.cmp(&known);
        match (to(Priority::CRITICAL), to(Priority::STANDARD), to(Priority::SHEDDABLE)) {
            (Greater, ..) => Self::AboveCritical,
            (Equal, ..) => Self::Critical,
            (Less, Greater, _) => Self::AboveStandard,
            (_, Equal, _) => Self::Standard,
            (.., Greater) => Self::BelowStandard,
            (.., Equal) => Self::Sheddable,
            (.., Less) => Self::BelowSheddable,
        }
    }
}

label! {
    /// Why a response did not complete.
    Abort {
        EndpointCut = "endpoint_cut",
        /// The endpoint sent an error inside its stream.
        EndpointError = "endpoint_error",
        Stalled = "stalled",
        ClientGone = "client_gone",
        SlowClient = "slow_client",
        /// The drain time ended first.
        Drained = "drained",
        /// The request's own time limit ended.
        Timeout = "timeout",
    }
}

label! {
    /// How an endpoint stands; an endpoint is in the last of these that applies.
    EndpointState {
        Ready = "ready",
        Stale = "stale",
        Asleep = "asleep",
        Draining = "draining",
        Ejected = "ejected",
    }
}

label! {
    /// What is known of an endpoint, and can grow old.
    Signal {
        /// Its page of metrics: waiting, running, KV use, adapters.
        Metrics = "metrics",
        /// Its list of models.
        Models = "models",
        /// Its answers, from which its speed is learned.
        Answers = "answers",
    }
}

label! {
    /// Status of a finished request.
    Code {
        Ok = "200",
        OtherSuccess = "other_2xx",
        BadRequest = "400",
        Unauthorized = "401",
        Forbidden = "403",
        NotFound = "404",
        RequestTimeout = "408",
        PayloadTooLarge = "413",
        Unprocessable = "422",
        TooManyRequests = "429",
        /// The client left before an answer.
        ClientGone = "499",
        /// 1xx, 3xx and 4xx beside these.
        Other = "other",
        Internal = "500",
        BadGateway = "502",
        Unavailable = "503",
        GatewayTimeout = "504",
        OtherServerError = "other_5xx",
    }
}

impl Code {
    pub fn of(status: u16) -> Self {
        match status {
            200 => Self::Ok,
            201..=299 => Self::OtherSuccess,
            400 => Self::BadRequest,
            401 => Self::Unauthorized,
            403 => Self::Forbidden,
            404 => Self::NotFound,
            408 => Self::RequestTimeout,
            413 => Self::PayloadTooLarge,
            422 => Self::Unprocessable,
            429 => Self::TooManyRequests,
            499 => Self::ClientGone,
            500 => Self::Internal,
            502 => Self::BadGateway,
            503 => Self::Unavailable,
            504 => Self::GatewayTimeout,
            501 | 505..=599 => Self::OtherServerError,
            _ => Self::Other,
        }
    }
}

label! {
    /// What the shadow policy would have done.
    Shadow {
        /// The same endpoint.
        Same = "same",
        Different = "different",
        /// It found no endpoint.
        Refused = "refused",
    }
}

label! {
    /// How a new connection to an endpoint went.
    Connect {
        Ok = "ok",
        Resolve = "resolve",
        Refused = "refused",
        Unreachable = "unreachable",
        Timeout = "timeout",
        /// A certificate is not trusted, or TLS failed otherwise.
        Tls = "tls",
        /// No file descriptor or port left.
        Exhausted = "exhausted",
        Other = "other",
    }
}

label! {
    /// How a proxy's stream to the picker ended.
    StreamEnd {
        /// The answer passed to its end.
        Complete = "complete",
        /// An answer of ours in the endpoint's place.
        Answered = "answered",
        /// Ended by us after the request, because nothing more was needed.
        RequestOnly = "request_only",
        /// Ended by the proxy before the answer's end: the client left, mostly.
        Left = "left",
        /// A message that the protocol does not allow there.
        Violation = "violation",
        /// The drain time ended first.
        Drained = "drained",
    }
}

label! {
    /// Status of an answer in the endpoint's place.
    ImmediateCode {
        Ok = "200",
        BadRequest = "400",
        Unauthorized = "401",
        Forbidden = "403",
        NotFound = "404",
        MethodNotAllowed = "405",
        RequestTimeout = "408",
        PayloadTooLarge = "413",
        UnsupportedMediaType = "415",
        TooManyRequests = "429",
        Internal = "500",
        Unavailable = "503",
        Other = "other",
    }
}

impl ImmediateCode {
    pub fn of(status: u16) -> Self {
        match status {
            200 => Self::Ok,
            400 => Self::BadRequest,
            401 => Self::Unauthorized,
            403 => Self::Forbidden,
            404 => Self::NotFound,
            405 => Self::MethodNotAllowed,
            408 => Self::RequestTimeout,
            413 => Self::PayloadTooLarge,
            415 => Self::UnsupportedMediaType,
            429 => Self::TooManyRequests,
            500 => Self::Internal,
            503 => Self::Unavailable,
            _ => Self::Other,
        }
    }
}

label! {
    /// Why a target's traffic was taken away.
    Rollback {
        ErrorRate = "error_rate",
        Ttft = "ttft",
        /// Somebody asked for it.
        Operator = "operator",
    }
}

label! {
    /// What became of a trace that was to be kept.
    TraceEnd {
        Exported = "exported",
        /// No room in the queue.
        Dropped = "dropped",
        /// The collector did not take it, or not in time.
        Failed = "failed",
    }
}

label! {
    /// What a request was let in by.
    AuthMeans {
        ApiKey = "api_key",
        /// A token whose signature was verified now.
        Token = "token",
        /// A token whose signature was verified a short while ago.
        KnownToken = "known_token",
        Certificate = "certificate",
        Anonymous = "anonymous",
    }
}

label! {
    /// What became of the copy of a request.
    MirrorOutcome {
        Ok = "ok",
        /// 4xx.
        ClientError = "client_error",
        /// 5xx, cut, unreachable.
        EndpointError = "endpoint_error",
        /// Not sent: as many are under way as may be.
        Busy = "busy",
        /// Not sent: copies hold as many bytes as they may.
        Bytes = "bytes",
        /// Not sent: no endpoint has room for it, or nobody serves the model.
        NoRoom = "no_room",
    }
}

label! {
    /// Why authentication turned a request away.
    AuthRefusal {
        Missing = "missing",
        Ambiguous = "ambiguous",
        Malformed = "malformed",
        Algorithm = "algorithm",
        Issuer = "issuer",
        Expired = "expired",
        NotYetValid = "not_yet_valid",
        Signature = "signature",
        UnknownKeyId = "unknown_key_id",
        /// Signing keys could not be fetched in time.
        KeysUnavailable = "keys_unavailable",
        Audience = "audience",
        Claims = "claims",
        UnknownKey = "unknown_key",
        KeyExpired = "key_expired",
        KeyRevoked = "key_revoked",
        /// No caller of the document matches.
        NoCaller = "no_caller",
        NotSetUp = "not_set_up",
    }
}

label! {
    /// How a fetch of signing keys went.
    JwksFetch {
        Ok = "ok",
        Connect = "connect",
        /// The certificate is not trusted, or TLS failed otherwise.
        Tls = "tls",
        Timeout = "timeout",
        /// Any status but 200; redirects are not followed.
        Status = "status",
        TooLarge = "too_large",
        /// No key set, or one without a usable key.
        Unusable = "unusable",
        Broken = "broken",
    }
}

label! {
    /// What a GPU's time went into.
    Work {
        Prefill = "prefill",
        Decode = "decode",
    }
}

label! {
    /// What became of a reload.
    Reload {
        Applied = "applied",
        Unchanged = "unchanged",
        Rejected = "rejected",
    }
}

label! {
    /// Which way between this gateway and its peers.
    Direction {
        Sent = "sent",
        Received = "received",
    }
}

label! {
    /// Why something between peers came to nothing.
    PeerLoss {
        /// From nobody who has the key: another cluster, another version, or a stranger.
        Unreadable = "unreadable",
        Malformed = "malformed",
        /// The socket or the queue behind it was full.
        QueueFull = "queue_full",
        /// More prompts than a flush holds.
        FlushFull = "flush_full",
        /// The end of a prompt whose beginning was not heard.
        Unlinked = "unlinked",
    }
}

label! {
    /// Why a report did not reach CloudWatch.
    CloudWatchFailure {
        /// No credentials, or they could not be read.
        Credentials = "credentials",
        /// No connection, or no answer in time.
        Connect = "connect",
        /// CloudWatch refused it.
        Refused = "refused",
        /// The line could not be written.
        Write = "write",
    }
}

label! {
    /// Why a scrape gave nothing.
    ScrapeFailure {
        Connect = "connect",
        Timeout = "timeout",
        Status = "status",
        TooLarge = "too_large",
        /// The body is no page of metrics that we know.
        Unreadable = "unreadable",
    }
}

label! {
    /// What was ignored on a page.
    ScrapeAnomaly {
        MalformedLine = "malformed_line",
        RejectedValue = "rejected_value",
        DuplicateSeries = "duplicate_series",
    }
}

label! {
    /// What a rate limit has too much of.
    LimitKind {
        Requests = "requests",
        InputTokens = "input_tokens",
        OutputTokens = "output_tokens",
        Tokens = "tokens",
        Concurrent = "concurrent",
    }
}

fn values<L: Label>() -> Vec<&'static str> {
    L::ALL.iter().map(|value| value.as_str()).collect()
}

/// For the reference page: each metric with a closed label, that label and its values.
pub fn closed_sets() -> Vec<(&'static Metric, &'static str, Vec<&'static str>)> {
    vec![
        (&names::CONFIG_RELOADS, "outcome", values::<Reload>()),
        (&names::REQUESTS_REFUSED, "reason", values::<Refusal>()),
        (&names::TRACES, "outcome", values::<TraceEnd>()),
        (&names::PEER_DATAGRAMS, "direction", values::<Direction>()),
        (&names::PEER_BYTES, "direction", values::<Direction>()),
        (&names::PEER_PREFIX_BLOCKS, "direction", values::<Direction>()),
        (&names::PEER_LOSSES, "reason", values::<PeerLoss>()),
        (&names::UPSTREAM_CONNECTS, "outcome", values::<Connect>()),
        (&names::EXTPROC_STREAMS, "end", values::<StreamEnd>()),
        (&names::EXTPROC_IMMEDIATE_RESPONSES, "code", values::<ImmediateCode>()),
        (&names::AUTH_ACCEPTED, "kind", values::<AuthMeans>()),
        (&names::AUTH_REFUSED, "reason", values::<AuthRefusal>()),
        (&names::AUTH_RELOADS, "outcome", values::<Reload>()),
        (&names::AUTH_JWKS_FETCHES, "outcome", values::<JwksFetch>()),
        (&names::CLOUD_WATCH_FAILURES, "reason", values::<CloudWatchFailure>()),
        (&names::CLUSTER_ENDPOINTS, "state", values::<EndpointState>()),
        (&names::REQUESTS, "route", values::<Route>()),
        (&names::REQUESTS, "outcome", values::<Outcome>()),
        (&names::RESPONSES, "code", values::<Code>()),
        (&names::RETRIES, "reason", values::<Retry>()),
        (&names::REQUESTS_REJECTED, "reason", values::<Rejection>()),
        (&names::STREAMS_ABORTED, "reason", values::<Abort>()),
        (&names::FLOW_QUEUE_REQUESTS, "band", values::<Band>()),
        (&names::FLOW_QUEUE_TOKENS, "band", values::<Band>()),
        (&names::FLOW_QUEUE_BYTES, "band", values::<Band>()),
        (&names::FLOW_QUEUE_DURATION, "band", values::<Band>()),
        (&names::FLOW_DISPATCHED, "band", values::<Band>()),
        (&names::FLOW_DISPATCHED_BEYOND, "band", values::<Band>()),
        (&names::FLOW_SHED, "band", values::<Band>()),
        (&names::FLOW_SHED, "reason", values::<Rejection>()),
        (&names::SHADOW_DECISIONS, "outcome", values::<Shadow>()),
        (&names::GPU_SECONDS, "kind", values::<Work>()),
        (&names::TENANT_GPU_SECONDS, "kind", values::<Work>()),
        (&names::POOL_ENDPOINTS, "state", values::<EndpointState>()),
        (&names::ENDPOINT_SIGNAL_AGE, "signal", values::<Signal>()),
        (&names::ENDPOINT_SCRAPE_FAILURES, "reason", values::<ScrapeFailure>()),
        (&names::ENDPOINT_SCRAPE_ANOMALIES, "kind", values::<ScrapeAnomaly>()),
        (&names::RATE_LIMIT_REFUSALS, "kind", values::<LimitKind>()),
        (&names::RATE_LIMIT_SHADOW_REFUSALS, "kind", values::<LimitKind>()),
        (&names::FLEET_REFUSALS, "reason", values::<NoMember>()),
        (&names::FLEET_LEASE_ROUNDS, "outcome", values::<Lease>()),
        (&names::FLEET_MEMBER_STATE, "state", values::<MemberState>()),
        (&names::FLEET_MEMBER_TRANSITIONS, "state", values::<MemberState>()),
        (&names::FLEET_DECISIONS, "reason", values::<MemberReason>()),
        (&names::FLEET_HEARTBEATS, "outcome", values::<Heartbeat>()),
        (&names::GLOBAL_REPORTS, "outcome", values::<Report>()),
        (&names::REWRITE_REQUESTS, "outcome", values::<Outcome>()),
        (&names::REWRITE_ROLLBACKS, "reason", values::<Rollback>()),
        (&names::REWRITE_MIRRORED, "outcome", values::<MirrorOutcome>()),
    ]
}
