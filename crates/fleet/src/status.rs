//! The table as operators see it.

use std::time::Duration;

use types::ModelName;

use types::{MemberName, Region};

use crate::member::MemberId;
use crate::vitals::Condition;

/// A fleet at one instant.
#[derive(Clone, Debug, PartialEq)]
pub struct Status {
    /// Silence changes no condition: more than half of the members fell silent at once.
    pub is_frozen: bool,
    pub members: Vec<MemberStatus>,
}

/// A member.
#[derive(Clone, Debug, PartialEq)]
pub struct MemberStatus {
    pub id: MemberId,
    pub name: MemberName,
    pub region: Region,
    pub condition: Condition,
    /// Of the last heartbeat; `None`: there was none.
    pub age: Option<Duration>,
    /// How much later than usual heartbeats come.
    pub lag: Duration,
    pub sequence: u64,
    /// An operator drains it.
    pub is_drained: bool,
    /// What may be used of it; 1: no ramp.
    pub ramp: f32,
    pub round_trip: Duration,
    /// Share of attempts that failed lately.
    pub failed: f32,
    pub models: Vec<ModelStatus>,
}

/// A model of a member.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelStatus {
    pub name: ModelName,
    pub endpoints_ready: u32,
    /// As it said.
    pub in_flight: u32,
    pub in_flight_max: u32,
    pub waiting: u32,
    /// This router's own.
    pub own_in_flight: u32,
    pub own_sent: u64,
    /// Estimated for now.
    pub load: f32,
    /// Requests that reach it for each one of this router.
    pub peers: f32,
    /// Times take so many times what reports let expect.
    pub slowness: f32,
}
