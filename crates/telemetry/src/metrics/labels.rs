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
    }
}

label! {
    /// Why a request was answered 429.
    Rejection {
        Saturated = "saturated",
        RateLimited = "rate_limited",
        /// The endpoints themselves answered 429.
        Endpoint = "endpoint",
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
    /// How a new connection to an endpoint went.
    Connect {
        Ok = "ok",
        Resolve = "resolve",
        Refused = "refused",
        Unreachable = "unreachable",
        Timeout = "timeout",
        /// No file descriptor or port left.
        Exhausted = "exhausted",
        Other = "other",
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

fn values<L: Label>() -> Vec<&'static str> {
    L::ALL.iter().map(|value| value.as_str()).collect()
}

/// For the reference page: each metric with a closed label, that label and its values.
pub fn closed_sets() -> [(&'static Metric, &'static str, Vec<&'static str>); 11] {
    [
        (&names::CONFIG_RELOADS, "outcome", values::<Reload>()),
        (&names::REQUESTS_REFUSED, "reason", values::<Refusal>()),
        (&names::UPSTREAM_CONNECTS, "outcome", values::<Connect>()),
        (&names::REQUESTS, "route", values::<Route>()),
        (&names::REQUESTS, "outcome", values::<Outcome>()),
        (&names::RETRIES, "reason", values::<Retry>()),
        (&names::REQUESTS_REJECTED, "reason", values::<Rejection>()),
        (&names::STREAMS_ABORTED, "reason", values::<Abort>()),
        (&names::POOL_ENDPOINTS, "state", values::<EndpointState>()),
        (&names::ENDPOINT_SCRAPE_FAILURES, "reason", values::<ScrapeFailure>()),
        (&names::ENDPOINT_SCRAPE_ANOMALIES, "kind", values::<ScrapeAnomaly>()),
    ]
}
