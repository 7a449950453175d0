//! One endpoint as one decision sees it: a snapshot of every signal, with its age.

use std::time::Duration;

use types::{EndpointId, Slot};

use crate::{Health, Speed};

/// An endpoint that may get the request. Plain numbers, so that scorers need no atomics.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    pub endpoint: EndpointId,
    pub slot: Slot,
    /// What the endpoint itself said last, uncorrected.
    pub scraped: Scraped,
    /// Requests that wait, by our own account corrected by the scrape. Never negative.
    pub waiting: f32,
    /// Requests that run, likewise.
    pub running: f32,
    /// Requests that this gateway and its peers have there now.
    pub in_flight: u32,
    /// Of these, the peers'.
    pub peers_in_flight: u32,
    /// Prompt tokens sent and not yet answered by a first token.
    pub prefill_tokens: u64,
    /// Requests that these belong to.
    pub prefilling: u32,
    /// Of these, those whose answers come whole: nobody sees when their prompts are computed.
    pub whole: u32,
    /// Prompt tokens of theirs.
    pub whole_tokens: u64,
    /// How much longer the first of them has waited than all of them together should take,
    /// milliseconds: the endpoint has no slot or no memory for it, or hangs.
    pub stuck_ms: f32,
    /// Of these, those for which the endpoint brings in an adapter; everyone there waits meanwhile.
    pub loading: u32,
    /// What is left of them to compute, by the endpoint's learned speed.
    pub tokens_ahead: f32,
    /// Answers being written, other gateways' included.
    pub decoding: f32,
    /// Requests of other gateways that wait.
    pub foreign_waiting: f32,
    /// Tokens that the KV cache holds.
    pub kv_tokens_max: Option<f32>,
    /// Learned so far; after [`Profile::pick`] what to go by, with what the pool knows.
    ///
    /// [`Profile::pick`]: crate::Profile::pick
    pub speed: Speed,
    /// Time since the last good scrape; `None` if there never was one.
    pub age: Option<Duration>,
    /// How far to trust the scrape: 1.0 fresh to 0.0 past its limit or never scraped.
    pub freshness: f32,
    /// The last scrape is past its limit. Never true for an endpoint that was never scraped.
    pub stale: bool,
    /// How the request's adapter would fare there; [`LoraFit::Unknown`] without an adapter.
    pub lora: LoraFit,
    /// Blocks from the prompt's start that the endpoint holds; filled from the prefix index.
    pub matched_blocks: u32,
    pub health: Health,
    /// Not to be used now, see [`Health::usable`].
    pub ejected: bool,
    /// The engine sleeps.
    pub asleep: bool,
    /// Share of capacity in use, 1.0 and more is full; filled by the profile.
    pub saturation: f32,
}

impl Candidate {
    /// A fresh, idle, healthy endpoint that reports zero everywhere: for simulations and tests.
    pub fn idle(endpoint: EndpointId, slot: Slot) -> Self {
        Self {
            endpoint,
            slot,
            scraped: Scraped {
                waiting: Some(0),
                running: Some(0),
                kv_usage: Some(0.0),
                ..Scraped::default()
            },
            waiting: 0.0,
            running: 0.0,
            in_flight: 0,
            peers_in_flight: 0,
            prefill_tokens: 0,
            prefilling: 0,
            whole: 0,
            whole_tokens: 0,
            stuck_ms: 0.0,
            loading: 0,
            tokens_ahead: 0.0,
            decoding: 0.0,
            foreign_waiting: 0.0,
            kv_tokens_max: None,
            speed: Speed::default(),
            age: Some(Duration::ZERO),
            freshness: 1.0,
            stale: false,
            lora: LoraFit::Unknown,
            matched_blocks: 0,
            health: Health::Healthy,
            ejected: false,
            asleep: false,
            saturation: 0.0,
        }
    }
}

impl Candidate {
    /// No standard filter has a reason to drop it.
    pub fn is_in_order(&self) -> bool {
        !(self.ejected || self.asleep || self.stale) && self.lora != LoraFit::NotServed
    }
}

/// The last scrape, as it was. `None`: the engine does not say, or was never scraped.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Scraped {
    pub waiting: Option<u32>,
    /// Of these, those that wait for an adapter slot and not for room in the batch.
    pub waiting_deferred: u32,
    pub running: Option<u32>,
    /// Most requests the running batch can hold.
    pub running_max: Option<u32>,
    /// What ran when the batch was last seen full, that is, while others waited; or what ran since, if
    /// that is more.
    pub running_full: Option<u32>,
    /// Share of KV blocks in use, `0.0..=1.0`.
    pub kv_usage: Option<f32>,
    /// Requests that this gateway and its peers had there when the scrape was taken.
    pub in_flight: u32,
    /// The adapter by the engine's report alone.
    pub lora: LoraFit,
}

/// How well an adapter fits an endpoint, best first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum LoraFit {
    /// On the GPU, busy or idle.
    Resident,
    /// Not there, but a slot is free.
    Room,
    /// Other requests already wait for it to be loaded.
    Waiting,
    /// Loading it would push out another.
    Full,
    /// The engine does not say, or the request names no adapter.
    #[default]
    Unknown,
    /// The endpoint cannot serve it at all.
    NotServed,
}

impl LoraFit {
    /// The next request with it surely waits for it to be brought in.
    pub(crate) fn must_load(self) -> bool {
        matches!(self, Self::Room | Self::Waiting | Self::Full)
    }
}
