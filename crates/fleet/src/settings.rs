//! What may be set, with the defaults and why.

use std::time::Duration;

use crate::weights::Weights;
use types::Region;

/// How members are rated.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Mode {
    /// By expected time to the first token; price and carbon inside the slack of the latency target.
    #[default]
    Cost,
    /// AWS's four weights.
    Weights(Weights),
}

/// A fleet's settings.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Where this router stands: members there are local.
    pub region: Region,
    pub mode: Mode,
    /// Since the last heartbeat: a member is suspect. Default 6 s, three heartbeats.
    pub suspect_after: Duration,
    /// Since the last heartbeat: a member is dead, unless requests are answered. Default 10 s.
    pub dead_after: Duration,
    /// An answer is evidence of life for this long. Default 5 s.
    pub evidence: Duration,
    /// Connect failures in a row that eject. Default 3.
    pub unreachable_max: u32,
    /// Failures in a row that eject. Default 5.
    pub failures_max: u32,
    /// The first ejection; each further one is longer by as much. Default 10 s.
    pub ejection: Duration,
    /// Default 300 s.
    pub ejection_max: Duration,
    /// From a tenth to all of a returning member. Default 60 s; zero: no ramp.
    pub ramp: Duration,
    /// Members that first come within this time of the router's start need no ramp. Default 15 s.
    pub cold_start: Duration,
    /// Time to the first token that requests are entitled to where they say nothing. Default 2 s.
    pub ttft_target: Duration,
    /// Local members are preferred up to this use; default 0.85. Then requests spill …
    pub spill_above: f32,
    /// … until it is back at this. Default 0.70.
    pub spill_below: f32,
    /// What another member must be better by, in relation and absolutely, before a request goes there instead:
    /// default 15 % and 50 ms.
    pub margin: f32,
    pub margin_min: Duration,
    /// Requests waiting for each ready endpoint, above which nothing is sent while others have room. Default 2.
    pub waiting_max: f32,
    /// A session's member may have this much more than its share before others are taken. Default 1.25.
    pub bounded_load: f32,
    /// What a failed attempt costs in expected time: default 2 s.
    pub retry_cost: Duration,
    /// What loading an adapter costs. Default 500 ms.
    pub adapter_load: Duration,
}

impl Settings {
    /// The defaults, for a router in this region.
    pub fn new(region: &str) -> Self {
        Self {
            region: region.into(),
            mode: Mode::Cost,
            suspect_after: Duration::from_secs(6),
            dead_after: Duration::from_secs(10),
            evidence: Duration::from_secs(5),
            unreachable_max: 3,
            failures_max: 5,
            ejection: Duration::from_secs(10),
            ejection_max: Duration::from_secs(300),
            ramp: Duration::from_secs(60),
            cold_start: Duration::from_secs(15),
            ttft_target: Duration::from_secs(2),
            spill_above: 0.85,
            spill_below: 0.70,
            margin: 0.15,
            margin_min: Duration::from_millis(50),
            waiting_max: 2.0,
            bounded_load: 1.25,
            retry_cost: Duration::from_secs(2),
            adapter_load: Duration::from_millis(500),
        }
    }
}
