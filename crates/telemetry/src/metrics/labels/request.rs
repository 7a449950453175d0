//! A request's way and its end.

use super::Label;

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
