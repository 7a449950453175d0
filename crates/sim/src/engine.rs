//! A model of one inference engine: continuous batching, chunked prefill, paged KV with a prefix
//! cache, preemption and LoRA slots, with step times of a named model on a named node.
//!
//! It has no clock, no I/O and no thread: time is an argument, and whoever drives it decides
//! whether a step takes real time (`server`) or none (a discrete-event simulation). The same spec,
//! seed and calls give the same events. A driver that plays virtual time asks for runs of steps
//! ([`Engine::begin_run`]) instead of single ones: the same steps, an order of magnitude cheaper.
//!
//! ```text
//! submit ─► entering ──api delay──► waiting ──admit──► running ──► finished
//!                                      ▲                  │
//!                                      └─── preempted ────┘
//! ```

mod blocks;
mod cost;
mod hardware;
mod jitter;
mod lora;
mod request;
mod run;
mod schedule;
mod spec;
mod stats;
#[cfg(test)]
mod tests;

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use rand::SeedableRng;
use rand_pcg::Pcg32;
use types::{AdapterId, Timestamp};

pub use blocks::BlockHash;
pub use cost::{BatchCost, StepCosts, StepWork};
pub use hardware::{Hardware, TABLE};
pub use jitter::Jitter;
pub use request::{Event, RequestId, RequestSpec, RequestTimes, SubmitError};
pub use run::{Decoded, Run, RunView};
pub use spec::{EngineSpec, LoraSpec, Reservation};
pub use stats::{EngineStats, Gauges};

use blocks::BlockPool;
use lora::LoraSlots;
use request::Request;
use run::Foreseen;

/// A place in [`Engine::requests`].
type Place = u32;

/// One engine.
#[derive(Debug)]
pub struct Engine {
    spec: EngineSpec,
    rng: Pcg32,
    blocks: BlockPool,
    loras: LoraSlots,
    requests: Vec<Option<Request>>,
    vacant: Vec<Place>,
    places: HashMap<RequestId, Place>,
    /// Accepted by the HTTP server, not yet seen by the scheduler; by time of entry.
    entering: VecDeque<(Timestamp, Place)>,
    waiting: VecDeque<Place>,
    /// In order of admission.
    running: Vec<Place>,
    /// Blocks promised to running requests but not yet taken ([`Reservation::WholeAnswer`]).
    promised: u32,
    /// Waiting requests that were set aside in the last step because of their adapter.
    deferred: u32,
    /// The waiting request that was found not to fit, until something happens that could make it
    /// fit: blocks come free, or one that it can share is referred to.
    blocked: Option<Place>,
    step: InFlight,
    /// The steps foreseen after the one under way.
    foreseen: Foreseen,
    jitter: Jitter,
    stats: EngineStats,
}

/// The step under way, if there is one; kept to reuse its memory.
#[derive(Debug, Default)]
struct InFlight {
    is_under_way: bool,
    /// Who computes how many tokens, in order of admission.
    batch: Vec<(Place, u32)>,
    events: Vec<Event>,
}

/// A step that has begun: call [`Engine::finish_step`] when `duration` has passed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    pub duration: Duration,
    pub work: StepWork,
    /// The part of `duration` that loading adapters took.
    pub adapter_load: Duration,
}

impl Engine {
    /// An idle engine with cold caches. `seed` decides how long adapters take from disk, and the
    /// jitter of each step.
    pub fn new(spec: EngineSpec, seed: u64) -> Self {
        Self {
            blocks: BlockPool::new(spec.block_count),
            loras: LoraSlots::new(spec.lora),
            rng: Pcg32::seed_from_u64(seed),
            requests: Vec::new(),
            vacant: Vec::new(),
            places: HashMap::new(),
            entering: VecDeque::new(),
            waiting: VecDeque::new(),
            running: Vec::new(),
            promised: 0,
            deferred: 0,
            blocked: None,
            step: InFlight::default(),
            foreseen: Foreseen::default(),
            jitter: Jitter::new(spec.jitter, seed),
            stats: EngineStats::default(),
            spec,
        }
    }

    pub fn spec(&self) -> &EngineSpec {
        &self.spec
    }

    /// Hands a request over; the scheduler sees it after the API delay. A run under way is cut
    /// accordingly, so ask [`Engine::run_end`] afterwards.
    pub fn submit(&mut self, spec: RequestSpec) -> Result<(), SubmitError> {
        let tokens = spec.prompt_tokens.saturating_add(spec.output_tokens);
        let limit = self.spec.context_tokens_max();
        if tokens > limit || spec.prompt_tokens == 0 || spec.output_tokens == 0 {
            return Err(SubmitError::TooLong { tokens, limit });
        }
        if spec.adapter.is_some() && self.spec.lora.gpu_slots == 0 {
            return Err(SubmitError::LoraDisabled);
        }
        if self.places.contains_key(&spec.id) {
            return Err(SubmitError::Duplicate);
        }
        let queued = self.waiting.len() + self.entering.len();
        if self.spec.queued_requests_max.is_some_and(|most| queued >= most as usize) {
            self.stats.rejected += 1;
            return Err(SubmitError::QueueFull);
        }
        let ready = spec.arrived + self.spec.api_delay;
        let id = spec.id;
        let place = match self.vacant.pop() {
            Some(place) => {
                self.requests[place as usize] = Some(Request::new(spec));
                place
            }
            None => {
                self.requests.push(Some(Request::new(spec)));
                (self.requests.len() - 1) as Place
            }
        };
        self.places.insert(id, place);
        let at = self.entering.partition_point(|(other, _)| *other <= ready);
        self.entering.insert(at, (ready, place));
        self.foreseen.cut_at_entry(ready);
        Ok(())
    }

    /// Forgets a request, also in the middle of a step, and frees its blocks at once. False: it
    /// is not here (any more). Within a run call [`Engine::cut`] first, which knows what time it
    /// is.
    pub fn cancel(&mut self, id: RequestId) -> bool {
        let Some(place) = self.places.get(&id).copied() else { return false };
        self.entering.retain(|(_, other)| *other != place);
        self.waiting.retain(|other| *other != place);
        self.running.retain(|other| *other != place);
        debug_assert!(self.foreseen.quiet_steps() == 0, "cut the run before you cancel");
        self.foreseen.keep_first();
        self.step.batch.retain(|(other, _)| *other != place);
        self.remove(place);
        true
    }

    /// When there is something to do: at once, at the entry of the next request, or never.
    pub fn next_ready(&self) -> Option<Timestamp> {
        if !self.running.is_empty() || !self.waiting.is_empty() {
            return Some(Timestamp::ZERO);
        }
        self.entering.front().map(|(ready, _)| *ready)
    }

    /// Requests inside, in whatever state.
    pub fn requests(&self) -> usize {
        self.places.len()
    }

    /// Adapters on the GPU, least recently used first.
    pub fn resident_adapters(&self) -> &[AdapterId] {
        self.loras.resident()
    }

    /// Brings an adapter into host memory, as a server does at its start or when told to load one;
    /// returns how long that takes.
    pub fn fetch_adapter(&mut self, adapter: AdapterId) -> Duration {
        self.loras.fetch(adapter, &mut self.rng).unwrap_or_default()
    }

    /// Drops an adapter from GPU and host memory.
    pub fn forget_adapter(&mut self, adapter: AdapterId) {
        self.loras.forget(adapter);
    }

    /// Gauges and counters as of now; within a run as of its first step (see
    /// [`Engine::run_at`] and [`Engine::cut`]).
    pub fn stats(&self) -> EngineStats {
        let gauges = self.gauges();
        EngineStats {
            running: gauges.running,
            waiting_capacity: gauges.waiting_capacity,
            waiting_deferred: gauges.waiting_deferred,
            blocks: gauges.blocks,
            blocks_used: gauges.blocks_used,
            blocks_cached: self.blocks.cached() as u32,
            running_adapters: self.adapters(self.running.iter()),
            waiting_adapters: self.adapters(self.waiting.iter()),
            ..self.stats.clone()
        }
    }

    /// The gauges of [`Engine::stats`] that cost nothing to read.
    pub fn gauges(&self) -> Gauges {
        let waiting = self.waiting.len() as u32;
        let deferred = self.deferred.min(waiting);
        Gauges {
            running: self.running.len() as u32,
            waiting_capacity: waiting - deferred,
            waiting_deferred: deferred,
            blocks: self.blocks.total(),
            blocks_used: self.blocks.total() - self.blocks.free(),
        }
    }

    fn adapters<'a>(&self, places: impl Iterator<Item = &'a Place>) -> Vec<AdapterId> {
        let mut adapters = Vec::new();
        if self.spec.lora.gpu_slots == 0 {
            return adapters;
        }
        for place in places {
            if let Some(adapter) = self.request(*place).spec.adapter
                && !adapters.contains(&adapter)
            {
                adapters.push(adapter);
            }
        }
        adapters
    }

    fn request(&self, place: Place) -> &Request {
        self.requests[place as usize].as_ref().expect("a listed place holds a request")
    }

    fn request_mut(&mut self, place: Place) -> &mut Request {
        self.requests[place as usize].as_mut().expect("a listed place holds a request")
    }

    /// Frees the blocks and the place of a request that no list names any more.
    fn remove(&mut self, place: Place) -> Option<Request> {
        let mut request = self.requests[place as usize].take()?;
        self.promised -= self.promise(&request);
        self.blocks.release(&mut request.blocks);
        self.blocked = None;
        self.places.remove(&request.spec.id);
        self.vacant.push(place);
        Some(request)
    }
}
