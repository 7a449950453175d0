//! What flow control says to those that it does not let go.

use std::time::Duration;

use flow::{Bound, Expiry, Reason, Refused, Victim};
use telemetry::metrics::labels::{self, Rejection};
use types::{PoolName, Priority};

use crate::refusal::{Component, Prospect, Refusal};

/// Without a better answer: longer than one scrape, shorter than people wait.
const SOON: Duration = Duration::from_secs(1);

fn refusal(dropped: Rejection, code: &'static str, message: String) -> Refusal {
    Refusal::new(429, code, Component::Flow, labels::Refusal::Overloaded, message)
        .with_dropped(dropped)
}

pub(crate) fn refused(refused: &Refused, pool: &PoolName, priority: Priority) -> Refusal {
    let reason = &refused.reason;
    let mut refusal = match reason {
        Reason::Saturated => refusal(
            Rejection::Saturated,
            "saturated",
            format!("pool `{pool}` is saturated, and requests of priority {priority} do not wait"),
        ),
        Reason::Full { bound: Bound::Time, .. } => refusal(
            Rejection::BandFull,
            "band_full",
            format!(
                "as much waits for pool `{pool}` with priority {priority} as can go in the time that it may wait"
            ),
        ),
        Reason::Full { .. } => refusal(
            Rejection::BandFull,
            "band_full",
            format!("the queue of pool `{pool}` is full for priority {priority}: {reason}"),
        ),
        Reason::TooLarge { .. } => {
            return Refusal::new(
                413,
                "request_too_large",
                Component::Flow,
                labels::Refusal::TooLarge,
                format!("{reason}, so it could never wait for pool `{pool}`"),
            );
        }
        Reason::Deadline { predicted } => return late(*predicted, refused.retry_after),
        Reason::NoEndpoint => return no_endpoint(pool, refused.retry_after),
    };
    let ahead = u32::try_from(refused.ahead).unwrap_or(u32::MAX);
    refusal.prospect = Some(Prospect::Ahead(ahead));
    with_retry_after(refusal, refused.retry_after)
}

/// The first token would come after the deadline.
pub(crate) fn late(predicted: Duration, retry_after: Option<Duration>) -> Refusal {
    let message = format!(
        "the first token is expected in {} ms, after the deadline that the request sets",
        predicted.as_millis()
    );
    let mut refusal = refusal(Rejection::Deadline, "deadline", message);
    let time = u32::try_from(predicted.as_millis()).unwrap_or(u32::MAX);
    refusal.prospect = Some(Prospect::FirstTokenMs(time));
    with_retry_after(refusal, retry_after)
}

pub(super) fn evicted(why: Victim, pool: &PoolName, retry_after: Option<Duration>) -> Refusal {
    let why = match why {
        Victim::OfPriority => "made room for one of a higher priority",
        Victim::OfFairness => "made room for one of a flow that had less there",
        Victim::OfPromise => "made room for one of its flow that had been told to come now",
    };
    let message = format!("the request waited for pool `{pool}` and {why}");
    with_retry_after(refusal(Rejection::Evicted, "evicted", message), retry_after)
}

pub(super) fn revoked(pool: &PoolName, retry_after: Duration) -> Refusal {
    let message =
        format!("the request was called back from pool `{pool}` for one of a higher priority");
    refusal(Rejection::Evicted, "evicted", message).with_retry_after(retry_after)
}

pub(super) fn expired(
    why: Expiry,
    pool: &PoolName,
    waited: Duration,
    retry_after: Option<Duration>,
) -> Refusal {
    let waited = waited.as_millis();
    match why {
        Expiry::Ttl => with_retry_after(
            refusal(
                Rejection::TtlExpired,
                "ttl_expired",
                format!("the request waited {waited} ms for pool `{pool}`, as long as it may"),
            ),
            retry_after,
        ),
        Expiry::Deadline => with_retry_after(
            refusal(
                Rejection::Deadline,
                "deadline",
                format!(
                    "the request waited {waited} ms for pool `{pool}` and can no longer meet its deadline"
                ),
            ),
            retry_after,
        ),
        Expiry::NoEndpoint => no_endpoint(pool, retry_after),
    }
}

/// The pool is no longer served.
pub(super) fn gone(pool: &PoolName) -> Refusal {
    no_endpoint(pool, None)
}

fn no_endpoint(pool: &PoolName, retry_after: Option<Duration>) -> Refusal {
    let message = format!("pool `{pool}` has no endpoint, and none came while the request waited");
    let refusal =
        Refusal::new(503, "no_endpoints", Component::Flow, labels::Refusal::Overloaded, message);
    with_retry_after(refusal, retry_after)
}

fn with_retry_after(refusal: Refusal, retry_after: Option<Duration>) -> Refusal {
    refusal.with_retry_after(retry_after.unwrap_or(SOON))
}
