//! The endpoints behind one base model, and the rules by which one of them is chosen.

use std::sync::Arc;
use std::time::Duration;

use sched::{DrainRate, Profile, RetryBudget, RetryConfig, RetryPermit, saturation};
use telemetry::PoolMetrics;
use types::{EndpointId, ModelName, PoolName, Timestamp};

use crate::PoolMember;
use crate::admission::Admission;
use crate::shadow::Shadow;

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
    /// A policy on trial beside [`Self::profile`].
    pub(crate) shadow: Option<Shadow>,
    /// Whether a scorer asks who holds the prompt; else nobody needs to hash it.
    pub(crate) scores_prefix: bool,
    /// Where requests wait for it; `None`: those for which there is no room are refused.
    pub(crate) admission: Option<Arc<Admission>>,
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
    /// Value of `Authorization` towards the endpoints, where the pool has a key of its own.
    pub authorization: Option<Secret>,
}

/// Text that no log and no debug page shows.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(pub Arc<str>);

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("[secret]")
    }
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

    /// Completions a second, of late; 0 before the first.
    pub(crate) fn completions_per_second(&self, now: Timestamp) -> f64 {
        self.drain.per_second(now).unwrap_or(0.0)
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

    /// Whether a request for it can be answered sooner or later.
    pub(crate) fn takes_requests(&self) -> bool {
        !self.members.is_empty() || self.admission.is_some()
    }

    pub(crate) fn member(&self, endpoint: EndpointId) -> Option<&PoolMember> {
        let at = self
            .members
            .binary_search_by_key(&endpoint, |member| member.member.endpoint.id)
            .ok()?;
        self.members.get(at)
    }
}
