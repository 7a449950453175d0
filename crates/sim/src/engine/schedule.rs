//! The step loop: who runs, who is let in, who yields.

use std::time::Duration;

use types::{AdapterId, Timestamp};

use super::request::Request;
use super::{BatchCost, Engine, Event, InFlight, Place, Reservation, Step, StepWork};

impl Engine {
    /// Begins a step at `now`. `None`: nothing to do until [`Engine::next_ready`], or a step is
    /// already under way.
    ///
    /// The order is vLLM V1's: running requests first, in order of admission, each with one token
    /// or a chunk of its prompt; when blocks run out the last one yields. Then, unless somebody
    /// had to yield, waiting requests are let in.
    pub fn step(&mut self, now: Timestamp) -> Option<Step> {
        self.begin(now).map(|(step, _)| step)
    }

    pub(super) fn begin(&mut self, now: Timestamp) -> Option<(Step, BatchCost)> {
        if self.step.is_under_way {
            return None;
        }
        while let Some((ready, place)) = self.entering.front().copied()
            && ready <= now
        {
            self.entering.pop_front();
            self.waiting.push_back(place);
        }
        let mut plan = Plan {
            batch: std::mem::take(&mut self.step),
            work: StepWork::default(),
            budget: self.spec.batched_tokens_max,
            adapters: Vec::new(),
            load: Duration::ZERO,
        };
        plan.batch.batch.clear();
        plan.batch.events.clear();
        let preempted = self.schedule_running(&mut plan);
        self.deferred = 0;
        if !preempted {
            self.admit(&mut plan, now);
        }
        self.step = plan.batch;
        if self.step.batch.is_empty() {
            return None;
        }
        self.step.is_under_way = true;
        plan.work.adapters = plan.adapters.len() as u32;
        let cost = self.spec.costs.batch_ms(&plan.work, self.spec.lora.step_factor);
        let time = self.step_time(cost.step_ms(plan.work.decode_context), self.stats.steps);
        self.stats.steps += 1;
        let duration = time + plan.load;
        Some((Step { duration, work: plan.work, adapter_load: plan.load }, cost))
    }

    /// What the step of this number takes in this run of the engine, adapter loads aside.
    pub(super) fn step_time(&self, milliseconds: f64, number: u64) -> Duration {
        let nanos = milliseconds * self.jitter.factor(number) * 1e6;
        // A cast saturates, and half a nanosecond more makes it round.
        Duration::from_nanos((nanos + 0.5) as u64)
    }

    /// Ends the step at `now` and appends what happened to `events`. Does nothing if no step is
    /// under way. Of a run it ends the first step, and the others are not foreseen any more.
    pub fn finish_step(&mut self, now: Timestamp, events: &mut Vec<Event>) {
        if !std::mem::take(&mut self.step.is_under_way) {
            return;
        }
        self.foreseen.clear();
        events.append(&mut self.step.events);
        let mut finished = false;
        let batch = std::mem::take(&mut self.step.batch);
        for (place, tokens) in &batch {
            let request = self.requests[*place as usize].as_mut();
            let request = request.expect("a request in the batch is there");
            request.computed += tokens;
            if request.left() > 0 {
                continue;
            }
            request.generated += 1;
            self.stats.generation_tokens += 1;
            let id = request.spec.id;
            if request.first_token.is_none() {
                request.first_token = Some(now);
                self.stats.prompt_tokens += u64::from(request.spec.prompt_tokens);
                self.stats.prompt_tokens_cached += u64::from(request.cached_tokens);
                events.push(Event::FirstToken { id });
            } else {
                events.push(Event::Token { id });
            }
            if request.generated >= request.spec.output_tokens {
                events.push(Event::Finished { id, times: request.times(now) });
                self.remove(*place);
                finished = true;
            }
        }
        self.step.batch = batch;
        if finished {
            let requests = &self.requests;
            self.running.retain(|place| requests[*place as usize].is_some());
        }
    }

    /// Gives every running request its share of the budget. True: somebody was preempted.
    fn schedule_running(&mut self, plan: &mut Plan) -> bool {
        let mut preempted = false;
        let mut at = 0;
        while at < self.running.len() && plan.budget > 0 {
            let place = self.running[at];
            let request = self.request(place);
            let tokens = request.left().min(plan.budget).min(self.spec.prefill_chunk_max);
            let reached = request.computed + tokens;
            let held = request.blocks.len() as u32;
            if reached > held * self.spec.block_size {
                let wanted = self.spec.blocks_for(reached);
                while self.blocks.free() < wanted - held {
                    preempted = true;
                    let Some(victim) = self.running.pop() else { return true };
                    self.preempt(victim, plan);
                    if victim == place {
                        return true;
                    }
                }
                self.take(place, wanted);
            }
            self.name_filled(place, tokens);
            plan.add(place, self.request(place), tokens);
            at += 1;
        }
        preempted
    }

    /// Lets waiting requests in, first come first served; one whose adapter does not fit into
    /// this step is set aside and others may pass it.
    fn admit(&mut self, plan: &mut Plan, now: Timestamp) {
        let mut aside = Vec::new();
        while self.running.len() < self.spec.sequences_max as usize && plan.budget > 0 {
            let Some(place) = self.waiting.front().copied() else { break };
            let adapter = self.request(place).spec.adapter;
            let is_new = adapter.filter(|adapter| !plan.adapters.contains(adapter));
            if is_new.is_some() && plan.adapters.len() >= self.spec.lora.gpu_slots as usize {
                self.waiting.pop_front();
                aside.push(place);
                continue;
            }
            if self.blocked == Some(place) {
                break;
            }
            let Some(tokens) = self.take_blocks(place, plan.budget) else {
                self.blocked = Some(place);
                break;
            };
            self.waiting.pop_front();
            self.running.push(place);
            if let Some(adapter) = is_new {
                if let Some(load) = self.loras.acquire(adapter, &plan.adapters, &mut self.rng) {
                    plan.load += load;
                    plan.batch.events.push(Event::AdapterLoaded { adapter });
                    self.stats.adapter_loads += 1;
                }
                plan.adapters.push(adapter);
            }
            let request = self.request_mut(place);
            request.admitted.get_or_insert(now);
            let (id, cached_tokens) = (request.spec.id, request.cached_tokens);
            plan.batch.events.push(Event::Admitted { id, cached_tokens });
            plan.add(place, self.request(place), tokens);
        }
        self.deferred = aside.len() as u32;
        for place in aside.into_iter().rev() {
            self.waiting.push_front(place);
        }
    }

    /// Finds the request's prefix in the cache, checks that all of it fits, and takes the blocks
    /// for its first chunk. Returns the tokens of that chunk; `None`: no room.
    fn take_blocks(&mut self, place: Place, budget: u32) -> Option<u32> {
        let request = self.request(place);
        let length = request.length();
        // A complete hit would leave nothing to compute, hence no token: one block less.
        let usable = if self.spec.prefix_caching { (length - 1) / self.spec.block_size } else { 0 };
        let hashes = (0..usable as usize).map_while(|at| request.hash(at));
        let (hit, unreferenced) = self.blocks.longest_hit(hashes);
        let reserved = match self.spec.reservation {
            Reservation::OnDemand => length,
            Reservation::WholeAnswer => self.reserved_tokens(request),
        };
        let needed = self.spec.blocks_for(reserved) - hit;
        if self.blocks.free() < unreferenced + self.promised + needed {
            return None;
        }
        for at in 0..hit as usize {
            let hash = self.request(place).hash(at)?;
            let block = self.blocks.share(hash)?;
            self.request_mut(place).blocks.push(block);
        }
        let first_time = self.request(place).admitted.is_none();
        let cached = hit * self.spec.block_size;
        let request = self.request_mut(place);
        request.named = hit;
        request.computed = cached;
        if first_time {
            let (queried, hits) = (u64::from(length), u64::from(cached));
            self.stats.prefix_query_tokens += queried;
            self.stats.prefix_hit_tokens += hits;
            self.request_mut(place).cached_tokens = cached;
        }
        let tokens = (length - cached).min(budget).min(self.spec.prefill_chunk_max);
        if self.spec.reservation == Reservation::WholeAnswer {
            self.promised += needed;
        }
        self.take(place, self.spec.blocks_for(cached + tokens));
        self.name_filled(place, tokens);
        Some(tokens)
    }

    /// Takes blocks until the request holds `wanted`. The caller made sure that they are there.
    fn take(&mut self, place: Place, wanted: u32) {
        let Some(request) = self.requests[place as usize].as_mut() else { return };
        let held_before = request.blocks.len() as u32;
        while (request.blocks.len() as u32) < wanted {
            let Some(block) = self.blocks.allocate() else { break };
            request.blocks.push(block);
        }
        if self.spec.reservation == Reservation::WholeAnswer {
            self.promised -= request.blocks.len() as u32 - held_before;
        }
    }

    /// Takes one block more.
    pub(super) fn extend(&mut self, place: Place) {
        let wanted = self.request(place).blocks.len() as u32 + 1;
        self.take(place, wanted);
    }

    /// Names the blocks that are full once `tokens` more tokens are computed.
    pub(super) fn name_filled(&mut self, place: Place, tokens: u32) {
        let Some(request) = self.requests[place as usize].as_ref() else { return };
        let reached = request.computed + tokens;
        if !self.spec.prefix_caching || reached < (request.named + 1) * self.spec.block_size {
            return;
        }
        let full = reached / self.spec.block_size;
        for at in request.named as usize..full as usize {
            let Some(hash) = request.hash(at) else { break };
            self.blocks.name(request.blocks[at], hash);
            if let Some(blocked) = self.blocked
                && self.requests[blocked as usize].as_ref().and_then(|other| other.hash(at))
                    == Some(hash)
            {
                self.blocked = None;
            }
        }
        self.request_mut(place).named = full;
    }

    fn preempt(&mut self, victim: Place, plan: &mut Plan) {
        let promise = self.promise(self.request(victim));
        self.promised -= promise;
        self.blocked = None;
        let Some(request) = self.requests[victim as usize].as_mut() else { return };
        self.blocks.release(&mut request.blocks);
        request.named = 0;
        request.computed = 0;
        request.preemptions += 1;
        plan.batch.events.push(Event::Preempted { id: request.spec.id });
        self.waiting.push_front(victim);
        self.stats.preemptions += 1;
    }

    fn reserved_tokens(&self, request: &Request) -> u32 {
        let most = request.spec.output_tokens_max.max(request.spec.output_tokens);
        request.spec.prompt_tokens.saturating_add(most).min(self.spec.context_tokens_max())
    }

    /// Blocks that a running request may still claim beyond those it holds.
    pub(super) fn promise(&self, request: &Request) -> u32 {
        match self.spec.reservation {
            Reservation::WholeAnswer if !request.blocks.is_empty() => {
                let whole = self.spec.blocks_for(self.reserved_tokens(request));
                whole.saturating_sub(request.blocks.len() as u32)
            }
            _ => 0,
        }
    }
}

/// A step being put together.
struct Plan {
    batch: InFlight,
    work: StepWork,
    budget: u32,
    /// Distinct adapters in the step.
    adapters: Vec<AdapterId>,
    load: Duration,
}

impl Plan {
    fn add(&mut self, place: Place, request: &Request, tokens: u32) {
        if request.generated > 0 && request.left() == 1 {
            self.work.decode(request.length());
        } else {
            self.work.prefill(tokens, request.computed);
        }
        if let Some(adapter) = request.spec.adapter
            && !self.adapters.contains(&adapter)
        {
            self.adapters.push(adapter);
        }
        self.budget -= tokens;
        self.batch.batch.push((place, tokens));
    }
}
