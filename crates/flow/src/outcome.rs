//! How a request ends that is not dispatched.

use std::time::Duration;

use crate::work::{Ticket, Work};

/// A request that was not taken. Its payload has been dropped.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{reason}")]
pub struct Refused {
    pub reason: Reason,
    /// When to come back, in whole seconds, at least one. `None`: coming back does not help.
    pub retry_after: Option<Duration>,
    /// Requests that wait before where it would have: of its own band by their turn, and of higher ones.
    pub ahead: u64,
}

/// Why a request was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Reason {
    #[error("the pool is saturated and this priority does not wait")]
    Saturated,
    /// The gateway's reason `band-full`.
    #[error("the {scope} holds all the {bound} that it may")]
    Full { scope: Scope, bound: Bound },
    /// It alone is more than the bound.
    #[error("the request alone has more {bound} than the {scope} may hold")]
    TooLarge { scope: Scope, bound: Bound },
    /// It would get its first token later than it may.
    #[error("the first token is expected in {} ms, after the deadline", predicted.as_millis())]
    Deadline {
        /// Expected time to the first token, from now.
        predicted: Duration,
    },
    /// There is no endpoint, and as many wait for one as may.
    #[error("the pool has no endpoint and enough requests wait for one")]
    NoEndpoint,
}

/// What a bound is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    Flow,
    Band,
    Pool,
}

/// What is bounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    Requests,
    Bytes,
    Tokens,
    /// As much waits as can go within the TTL: to queue would be to wait in vain.
    Time,
}

/// A queued request that left without being dispatched.
#[derive(Debug)]
pub struct Ended<T, Why> {
    pub ticket: Ticket,
    pub work: Work,
    pub payload: T,
    pub why: Why,
    /// As in [`Refused`].
    pub retry_after: Option<Duration>,
}

/// One that had to make room.
pub type Evicted<T> = Ended<T, Victim>;

/// For whom a queued request had to make room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Victim {
    /// For a higher band.
    OfPriority,
    /// For a shorter flow of its own band; its own was the longest.
    OfFairness,
    /// For one of its own flow that had been told to come back now.
    OfPromise,
}

/// Why a queued request's time was over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expiry {
    /// The band's TTL.
    Ttl,
    /// It can no longer have its first token by its deadline.
    Deadline,
    /// No endpoint came.
    NoEndpoint,
}

impl std::fmt::Display for Scope {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Flow => "flow",
            Self::Band => "band",
            Self::Pool => "pool",
        })
    }
}

impl std::fmt::Display for Bound {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Requests => "requests",
            Self::Bytes => "bytes",
            Self::Tokens => "tokens",
            Self::Time => "work for its time",
        })
    }
}
