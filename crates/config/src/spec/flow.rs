//! Who goes first when a pool is full, and who waits.

use std::num::NonZeroU32;
use std::time::Duration;

use types::{ObjectiveName, PoolName, Priority, Ratio};

/// Requests wait in the gateway while their pool is full, in bands by priority.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FlowControl {
    /// What the queue of one pool may hold in all.
    pub bounds: Bounds,
    /// For priorities without an entry in [`Self::bands`].
    pub default_band: BandSpec,
    /// By priority, each once.
    pub bands: Vec<(Priority, BandSpec)>,
    pub no_endpoint: NoEndpoint,
    pub headroom: Headroom,
    /// Whether a `Critical` request that waits may have a request of a lower band called back from its
    /// endpoint, if that has not answered its first byte. Default no.
    pub revoke: bool,
}

/// Requests, bytes of bodies and tokens of work; `None`: not bounded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bounds {
    pub requests_max: Option<NonZeroU32>,
    pub bytes_max: Option<u64>,
    pub tokens_max: Option<u64>,
}

/// How the requests of one priority wait.
#[derive(Clone, Debug, PartialEq)]
pub struct BandSpec {
    /// Of the band in one pool. Default 5,000 requests and 1 GB.
    pub bounds: Bounds,
    /// Of one flow in it. Default none.
    pub flow_bounds: Bounds,
    /// Longest wait. Default 60 s.
    pub ttl: Duration,
    pub fairness: Fairness,
    pub ordering: Ordering,
    /// Share of what is dispatched that the band gets whatever waits above it. Default 0.
    pub reserved_share: Ratio,
    /// Saturation of the pool at which the band's requests wait; below 1 keeps room for higher bands.
    /// Default 1.
    pub ceiling: Ratio,
    /// `None`: negative priorities are shed, others wait.
    pub when_saturated: Option<WhenSaturated>,
}

/// What happens to a band's requests when the pool is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenSaturated {
    Queue,
    Shed,
}

/// Who of a band goes next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fairness {
    /// Flows take turns by tokens of work (deficit round robin).
    #[default]
    Tokens,
    /// The flow that has got the fewest tokens lately.
    LeastAttainedService,
    /// One order over all flows.
    Global,
}

/// Which request of a flow goes next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ordering {
    #[default]
    Fcfs,
    /// The one whose time ends first.
    Deadline,
    /// The one whose wanted time to the first token ends first.
    TtftTarget,
}

/// While a pool has no endpoint: scaled to zero, or all are gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoEndpoint {
    /// Longest wait for one. Default 60 s; zero: refuse at once.
    pub ttl: Duration,
    /// Requests of one pool that wait so. Default 1,000.
    pub requests_max: NonZeroU32,
}

/// What is left free by flows beyond their part and by lower bands, for whoever comes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Headroom {
    /// Default yes.
    pub enabled: bool,
    /// They wait once a first token is expected to take so many times as long as on an idle endpoint.
    /// Default 2.
    pub stretch: f32,
    /// Share of KV memory, and of [`Saturation::concurrency`](crate::Saturation::concurrency), that they
    /// fill. Default 0.85.
    pub share: Ratio,
}

/// A priority and a target that requests name, or that their caller has.
#[derive(Clone, Debug, PartialEq)]
pub struct Objective {
    pub name: ObjectiveName,
    pub priority: Priority,
    /// Wanted time to the first token.
    pub ttft: Option<Duration>,
    /// Holds for this scheduler only; `None`: for all.
    pub scheduler: Option<PoolName>,
}

impl FlowControl {
    /// Waiting requests at which an endpoint is full, unless the document says otherwise: what waits
    /// in an engine is out of reach, what waits here can still be ordered. Two cost no throughput in the
    /// laboratory (`docs/flow-control.md`).
    pub const QUEUE_DEPTH: u32 = 2;
}

impl Default for BandSpec {
    fn default() -> Self {
        Self {
            bounds: Bounds {
                requests_max: NonZeroU32::new(5000),
                bytes_max: Some(1_000_000_000),
                tokens_max: None,
            },
            flow_bounds: Bounds::default(),
            ttl: Duration::from_secs(60),
            fairness: Fairness::default(),
            ordering: Ordering::default(),
            reserved_share: Ratio::ZERO,
            ceiling: Ratio::ONE,
            when_saturated: None,
        }
    }
}

impl Default for Headroom {
    fn default() -> Self {
        let share = Ratio::new(0.85).unwrap_or(Ratio::ONE);
        Self { enabled: true, stretch: 2.0, share }
    }
}

impl Default for NoEndpoint {
    fn default() -> Self {
        let requests_max = NonZeroU32::new(1000).unwrap_or(NonZeroU32::MIN);
        Self { ttl: Duration::from_secs(60), requests_max }
    }
}
