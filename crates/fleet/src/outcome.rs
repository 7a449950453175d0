//! What requests meet at a member.

use std::time::Duration;

/// How an attempt went, as far as it says something of the member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The first payload of an answer came, or an answer with a status below 500 (400, 404, …).
    ///
    /// * `ttft`: from sending the request to the first payload; `None`: it says nothing of speed.
    Answered { ttft: Option<Duration> },
    /// 429, or 503 with `Retry-After`: alive and full. No failure.
    Refused { retry_after: Option<Duration> },
    /// No connection could be made.
    Unreachable,
    /// 502, 503 without `Retry-After`, 504, a reset, a broken answer, or no first byte in time.
    Failed,
}
