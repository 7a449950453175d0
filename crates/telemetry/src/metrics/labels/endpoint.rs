//! Endpoints and what is read of them.

use super::Label;

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
