//! The endpoints behind one base model, and the rules by which one of them is chosen.

use std::sync::Arc;
use std::time::Duration;

use sched::{DrainRate, Profile, RetryBudget, RetryConfig, RetryPermit, saturation};
use telemetry::PoolMetrics;
use types::{EndpointId, ModelName, PoolName, Timestamp};

use crate::PoolMember;

/// A pool as it stands between two changes of the catalog.
#[derive(Debug)]
pub struct Pool {
    pub name: PoolName,
    /// The base model's name.
    pub model: ModelName,
    /// By [`EndpointId`].
    pub members: Vec<PoolMember>,
    pub settings: PoolSettings,
    pub metrics: Arc<PoolMetrics>,
    pub profile: Arc<Profile>,
    /// Whether a scorer asks who holds the prompt; else nobody needs to hash it.
    pub(crate) scores_prefix: bool,
    /// Survives changes of the catalog.
    pub(crate) pace: Arc<Pace>,
}

/// What the document says of a pool.
#[derive(Clone, Debug, PartialEq)]
pub struct PoolSettings {
    pub saturation: saturation::Config,
    /// Endpoints speak HTTP/2 without TLS.
    pub h2c: bool,
    /// Longest request in all; `None`: the general times hold.
    pub route_timeout: Option<Duration>,
}

/// How fast the pool gets work done, and how much may be tried twice.
#[derive(Debug)]
pub(crate) struct Pace {
    drain: DrainRate,
    pub(crate) retry: RetryConfig,
    retries: Arc<RetryBudget>,
}

impl Pace {
    pub(crate) fn new(retry: RetryConfig) -> Self {
        Self { drain: DrainRate::default(), retry, retries: Arc::new(RetryBudget::new(retry)) }
    }

    /// A request of the pool came to its end.
    pub(crate) fn completed(&self, now: Timestamp) {
        self.drain.completed(now);
    }

    /// When `excess` requests more than the pool holds will have drained.
    pub(crate) fn retry_after(&self, excess: u32, now: Timestamp) -> Duration {
        self.drain.retry_after(excess, now)
    }

    /// Leave to try one more request again; counts as long as the permit lives.
    pub(crate) fn retry(&self, in_flight: u32, now: Timestamp) -> Option<RetryPermit> {
        self.retries.take(in_flight, now)
    }
}

impl Pool {
    pub(crate) fn in_flight(&self) -> u32 {
        self.members.iter().map(|member| member.member.state.in_flight()).sum()
    }

    pub(crate) fn member(&self, endpoint: EndpointId) -> Option<&PoolMember> {
        let at = self
            .members
            .binary_search_by_key(&endpoint, |member| member.member.endpoint.id)
            .ok()?;
        self.members.get(at)
    }
}
