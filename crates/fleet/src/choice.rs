//! What was decided, and why.

use std::sync::Arc;
use std::time::Duration;

use crate::ledger::Slot;
use crate::member::MemberId;
use crate::shaping::Money;

/// Where a request goes, and where next if that fails before the first byte.
#[derive(Clone, Debug)]
pub struct Choice {
    pub first: Pick,
    pub second: Option<Pick>,
    pub reason: Reason,
    /// What it would have cost at the member that answers soonest.
    pub price_soonest: Money,
    /// Members that could have taken it.
    pub candidates: u16,
}

/// A member of a [`Choice`].
#[derive(Clone, Debug)]
pub struct Pick {
    pub member: MemberId,
    /// Its books for this model; see [`Slot::book`].
    pub slot: Arc<Slot>,
    /// Expected time to the first token, the way there and back included.
    pub expected: Duration,
    /// The same inside the member, and without what was learned of it.
    pub(crate) expected_inside: Duration,
    pub(crate) round_trip: Duration,
    /// What it costs there by estimate.
    pub price: Money,
}

/// Why the first member is it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reason {
    /// In the router's region, and with room.
    Local,
    /// Of all the soonest.
    Soonest,
    /// Local members are full.
    Spill,
    /// Where its session is.
    Affinity,
    /// The cheapest or cleanest that keeps the latency target.
    Shaped,
    /// Highest sum of weights.
    Weights,
    /// No other could take it.
    Only,
    /// Another member failed or refused before.
    Failover,
    /// All are full, beyond their ramps or not known to be well; the least of the evils.
    Overflow,
}

/// Why a request goes nowhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("no member serves the model")]
    UnknownModel,
    #[error("no member that serves the model has the labels that the policy asks for")]
    Policy,
    #[error("no member that serves the model is reachable")]
    Unreachable,
    #[error("all members that serve the model have been tried")]
    Exhausted,
}

/// A member as a decision saw it, for explanations.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    pub member: MemberId,
    pub expected: Duration,
    /// The score of the weights mode; 0 in cost mode.
    pub score: f32,
    /// Use of what it can do, estimated for now.
    pub load: f32,
    pub price: Money,
    pub is_local: bool,
    /// Nothing is sent there while others have room.
    pub is_full: bool,
}

impl Choice {
    pub fn members(&self) -> impl Iterator<Item = &Pick> {
        std::iter::once(&self.first).chain(&self.second)
    }
}

impl Reason {
    pub const ALL: [Self; 9] = [
        Self::Local,
        Self::Soonest,
        Self::Spill,
        Self::Affinity,
        Self::Shaped,
        Self::Weights,
        Self::Only,
        Self::Failover,
        Self::Overflow,
    ];

    /// In headers, logs and metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::Soonest => "soonest",
            Self::Spill => "spill",
            Self::Affinity => "affinity",
            Self::Shaped => "shaped",
            Self::Weights => "weights",
            Self::Only => "only",
            Self::Failover => "failover",
            Self::Overflow => "overflow",
        }
    }
}

impl Refusal {
    /// In logs and metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::UnknownModel => "unknown-model",
            Self::Policy => "policy",
            Self::Unreachable => "unreachable",
            Self::Exhausted => "exhausted",
        }
    }
}
