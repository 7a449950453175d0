//! What a request asks of the fleet.

use std::time::Duration;

use crate::member::{Labels, MemberId};

/// What is decided on; borrowed, nothing is kept.
#[derive(Clone, Debug)]
pub struct Request<'a> {
    /// As the client named it: a base model, an adapter or an alias.
    pub model: &'a str,
    /// Labels that a member must have: residency and the tenant's policy.
    pub labels: &'a Labels,
    pub prompt_tokens: u32,
    /// By estimate; for prices.
    pub output_tokens: u32,
    /// Keyed hashes of the prompt's blocks, each covering those before it; empty: not looked for.
    pub blocks: &'a [u64],
    /// Hash of the session, or of whatever shall stay together.
    pub affinity: Option<u64>,
    /// Time to the first token that it is entitled to; `None`: the settings'.
    pub ttft_target: Option<Duration>,
    pub aim: Aim,
    /// Where it was already.
    pub tried: &'a [MemberId],
    /// For prices that depend on the time of day: time since 1970, UTC.
    pub unix: Duration,
}

/// What is wanted besides an early first token.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Aim {
    /// Nothing.
    #[default]
    Soonest,
    /// The cheapest member that keeps the latency target.
    Cheapest,
    /// The member with the least carbon that keeps the latency target.
    Cleanest,
    /// A weighing, among the members that keep the latency target.
    Weighed {
        /// Of a whole currency unit that the request costs.
        ms_per_unit: f32,
        /// Of each 100 g CO₂ for a kWh.
        ms_per_carbon: f32,
    },
}

static NO_LABELS: Labels = Labels::NONE;

impl<'a> Request<'a> {
    /// A request for this model that wants nothing special.
    pub fn new(model: &'a str) -> Self {
        Self {
            model,
            labels: &NO_LABELS,
            prompt_tokens: 0,
            output_tokens: 0,
            blocks: &[],
            affinity: None,
            ttft_target: None,
            aim: Aim::Soonest,
            tried: &[],
            unix: Duration::ZERO,
        }
    }
}
