//! Settings of flow control, valid by construction.

use std::collections::BTreeMap;
use std::time::Duration;

use types::{Priority, Ratio};

/// Flow control of one pool.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// What the whole pool may hold. Default: no bound beside those of the bands.
    pub limits: Limits,
    /// Bands of priorities that have none of their own in `bands`, from zero up.
    pub band: BandConfig,
    /// The same below zero. Default: as `band`, but shed on saturation.
    pub negative_band: BandConfig,
    pub bands: BTreeMap<Priority, BandConfig>,
    /// While the pool has no endpoint at all.
    pub no_endpoint: NoEndpoint,
    /// Refused requests for which a place is kept. Default 65,536, some 100 bytes each.
    pub promises_max: usize,
    /// Longest time that a refused request is told to wait with a place kept. Default 1 h.
    pub promise_max: Duration,
}

/// What may be queued. `None`: no bound.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    pub requests_max: Option<u64>,
    pub bytes_max: Option<u64>,
    pub tokens_max: Option<u64>,
}

/// All flows of one priority.
#[derive(Clone, Debug, PartialEq)]
pub struct BandConfig {
    /// Default 5,000 requests and 1 GB.
    pub limits: Limits,
    /// What one flow may hold of it. Default: no bound; a full band takes from its longest flow.
    pub flow_limits: Limits,
    /// Longest wait, counted from the offer. Default 60 s.
    pub ttl: Duration,
    pub fairness: Fairness,
    pub ordering: Ordering,
    /// Share of the dispatched tokens that this band gets at least while it has work, whatever waits
    /// above it. Default 0: strict priority. Shares that sum up to more than 1 are scaled down.
    pub reserved_share: Ratio,
    /// Pool saturation at which this band stops dispatching. Default 1.0. A band that waits at its
    /// ceiling also holds up those below it.
    pub ceiling: Ratio,
    pub on_saturation: OnSaturation,
}

/// Who goes next inside a band.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fairness {
    /// Equal shares of tokens for all flows that have work: no two that both wait drift apart by more
    /// than one request.
    ///
    /// Deficits are kept against a clock that all flows of the band share (start-time fair queueing,
    /// Goyal, Vin and Cheng 1996), so there is no quantum to tune and no round to run through.
    #[default]
    DeficitRoundRobin,
    /// The flow that was served least lately, in tokens that fade with a half-life of a minute. Unlike
    /// the deficits, this remembers flows that had nothing waiting.
    LeastAttainedService,
    /// None: one order over all flows.
    GlobalOrder,
}

/// Who goes next inside a flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ordering {
    /// First received, first out.
    #[default]
    Fcfs,
    /// Earliest deadline first; without one, receipt plus TTL counts.
    Deadline,
    /// Earliest receipt plus wanted TTFT first; without one, receipt plus TTL counts.
    TtftTarget,
}

/// What to do with work of a band that cannot go at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnSaturation {
    #[default]
    Queue,
    /// Refuse at once. Only what comes back at the time it was told may wait for its turn.
    Shed,
}

/// Budget while there is no endpoint, say while a pool scales from zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoEndpoint {
    /// Longest wait for one; the band's own TTL stands still meanwhile. Default 60 s.
    pub ttl: Duration,
    /// Requests that may wait for one. Default 1,000.
    pub requests_max: u64,
}

impl Config {
    /// Settings of a priority, by name or from its template.
    pub fn band(&self, priority: Priority) -> &BandConfig {
        let template = if priority.0 < 0 { &self.negative_band } else { &self.band };
        self.bands.get(&priority).unwrap_or(template)
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            limits: Limits::default(),
            band: BandConfig::default(),
            negative_band: BandConfig {
                on_saturation: OnSaturation::Shed,
                ..BandConfig::default()
            },
            bands: BTreeMap::new(),
            no_endpoint: NoEndpoint::default(),
            promises_max: 65_536,
            promise_max: Duration::from_secs(3600),
        }
    }
}

impl Default for BandConfig {
    fn default() -> Self {
        Self {
            limits: Limits {
                requests_max: Some(5_000),
                bytes_max: Some(1_000_000_000),
                tokens_max: None,
            },
            flow_limits: Limits::default(),
            ttl: Duration::from_secs(60),
            fairness: Fairness::default(),
            ordering: Ordering::default(),
            reserved_share: Ratio::ZERO,
            ceiling: Ratio::ONE,
            on_saturation: OnSaturation::Queue,
        }
    }
}

impl Default for NoEndpoint {
    fn default() -> Self {
        Self { ttl: Duration::from_secs(60), requests_max: 1_000 }
    }
}
