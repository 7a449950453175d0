//! A request as flow control sees it.

use std::sync::Arc;
use std::time::Duration;

use types::{Priority, Timestamp};

/// Most tokens that one request is counted with. No model has so long a context; what claims more
/// is an estimate gone wrong, and must not block its flow for hours.
pub const TOKENS_MAX: u32 = 1 << 24;

/// Requests that share a fairness id and a priority: what fairness is between.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowKey {
    /// Fairness id: a tenant mostly. Trusted: who can choose it freely can take more than one share.
    pub id: Arc<str>,
    pub priority: Priority,
}

/// What is known of a request before it is sent.
#[derive(Clone, Debug, PartialEq)]
pub struct Work {
    pub flow: FlowKey,
    /// Prompt tokens that have to be computed, plus those expected of the answer. Taken as at least 1
    /// and at most [`TOKENS_MAX`].
    pub tokens: u32,
    /// Memory that it holds while it waits, mostly its body.
    pub bytes: u64,
    /// When its first byte came. Older goes first in its flow; [`Queue::next`](crate::Queue::next)
    /// gives back the instant of the first try if it had been refused and came back when told to.
    pub received: Timestamp,
    /// Wanted time to the first token, counted from `received`; only [`Ordering`](crate::Ordering)
    /// looks at it.
    pub ttft: Option<Duration>,
    /// The first token must be out by then, or the request is not worth sending.
    pub deadline: Option<Timestamp>,
    /// Expected time from dispatch to the first token. Zero where nobody knows.
    pub service: Duration,
    /// The same for a request and its retry, different for all others: say a hash of tenant and body.
    /// By it a refused request is known when it comes back. `None`: no place is kept for it.
    pub fingerprint: Option<u64>,
}

/// A queued request, until it is dispatched, ended or cancelled. Never given to another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket {
    pub(crate) place: u32,
    pub(crate) number: u64,
}

impl Work {
    /// Tokens that it counts with.
    pub fn cost(&self) -> u64 {
        u64::from(self.tokens.clamp(1, TOKENS_MAX))
    }
}
