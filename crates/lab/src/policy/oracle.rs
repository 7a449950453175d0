//! The clairvoyant: when an engine would give the first and the last token, from its true state.
//!
//! It knows the step constants, the batch, how far each prompt is, the blocks in use, the adapters
//! in place and the true lengths of answers. It does not know requests to come, and it is greedy;
//! so it is a ruler, not a bound. What an engine has cached it takes from the prefix index, as the
//! others do.

#[cfg(test)]
mod tests;

use sched::Candidate;
use sim::engine::StepWork;

use super::Asked;
use crate::endpoint::Endpoint;

/// The whole state of a run.
pub(crate) struct Truth<'a> {
    pub(crate) endpoints: &'a [Endpoint],
    /// By request.
    pub(crate) progress: &'a [Progress],
}

/// How far a request is.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Progress {
    pub(crate) prompt_tokens: u32,
    pub(crate) cached_tokens: u32,
    pub(crate) output_tokens: u32,
    pub(crate) generated: u32,
}

impl Progress {
    /// The same after so many steps of a run that are over and not booked yet.
    fn ahead(&self, steps: u32) -> Self {
        Self { generated: self.generated + steps, ..*self }
    }

    fn left(&self) -> u32 {
        self.output_tokens.saturating_sub(self.generated)
    }
}

impl Truth<'_> {
    /// Seconds from now to the first token of a new request.
    pub(crate) fn ttft_seconds(&self, asked: &Asked<'_>, candidate: &Candidate) -> f64 {
        let now = asked.view.now;
        let endpoint = &self.endpoints[candidate.endpoint.0 as usize];
        let (spec, gauges) = (endpoint.engine.spec(), endpoint.engine.gauges());
        let view = endpoint.view(now);
        let ahead = view.map_or(0, |view| view.steps_ended);
        let own = asked.uncached(candidate).max(1);

        let mut batch = self.decoding(endpoint, ahead);
        let decode_s = endpoint.step_seconds(&batch);

        let (mut tokens, mut pairs) = (f64::from(own), pairs(own, asked.view.prompt_tokens));
        let mut needed = spec.blocks_for(own);
        for pending in &endpoint.pending {
            tokens += f64::from(pending.left);
            pairs += self::pairs(pending.left, pending.prompt_tokens);
            if !pending.is_admitted {
                needed += spec.blocks_for(pending.left);
            }
        }
        let budget = f64::from(spec.batched_tokens_max.saturating_sub(batch.decodes).max(1));
        let steps = (tokens / budget).ceil().max(1.0);
        batch.tokens += (tokens / steps).round() as u32;
        batch.prefill_pairs = pairs / steps;
        let prefill_s = steps * endpoint.step_seconds(&batch);

        let step_end = view.map_or(endpoint.end, |view| Some(view.step_end));
        let step_left = step_end.map_or(0.0, |end| end.since(now).as_secs_f64());
        let free = gauges.blocks - view.map_or(gauges.blocks_used, |view| view.blocks_used);
        let missing = needed.saturating_sub(free);
        let memory_s = self.memory_wait(endpoint, ahead, missing) * decode_s;
        let adapter_s = asked.view.adapter.map_or(0.0, |adapter| {
            endpoint.adapter_seconds(adapter, || self.slot_wait(endpoint, ahead) * decode_s)
        });
        step_left.max(spec.api_delay.as_secs_f64()) + prefill_s + memory_s + adapter_s
    }

    /// Seconds from now to its last token: all answers there go on beside it, each to its end.
    pub(crate) fn e2e_seconds(&self, asked: &Asked<'_>, candidate: &Candidate) -> f64 {
        let ttft_s = self.ttft_seconds(asked, candidate);
        let endpoint = &self.endpoints[candidate.endpoint.0 as usize];
        let own_steps = asked.output_tokens.saturating_sub(1);
        let ahead = endpoint.view(asked.view.now).map_or(0, |view| view.steps_ended);
        let pending =
            endpoint.pending.iter().map(|pending| self.progress[pending.request as usize]);
        let others = self.answers(endpoint, ahead).chain(pending);
        // Steps that each still takes, and its context.
        let mut others: Vec<(u32, f64)> = others
            .map(|other| (other.left(), f64::from(other.prompt_tokens + other.generated)))
            .collect();
        others.sort_unstable_by_key(|(left, _)| *left);
        let mut context: f64 = others.iter().map(|(_, context)| context).sum();
        let mut batch = others.len() as u32 + 1;
        let (mut at, mut seconds) = (0, 0.0);
        let ends = others.into_iter().chain([(u32::MAX, 0.0)]);
        for (end, its_context) in ends {
            let steps = end.min(own_steps).saturating_sub(at);
            let middle = f64::from(asked.view.prompt_tokens + at) + f64::from(steps) / 2.0;
            let work = StepWork {
                tokens: batch,
                decodes: batch,
                decode_context: context + middle,
                ..StepWork::default()
            };
            seconds += f64::from(steps) * endpoint.step_seconds(&work);
            at += steps;
            if at >= own_steps {
                break;
            }
            batch -= 1;
            context -= its_context;
        }
        ttft_s + seconds
    }

    /// The answers under way there.
    ///
    /// * `ahead`: steps of its run that are over.
    fn answers(&self, endpoint: &Endpoint, ahead: u32) -> impl Iterator<Item = Progress> {
        endpoint.decoding.iter().map(move |id| self.progress[*id as usize].ahead(ahead))
    }

    /// A step of the answers under way alone.
    fn decoding(&self, endpoint: &Endpoint, ahead: u32) -> StepWork {
        let mut batch = StepWork::default();
        for decode in self.answers(endpoint, ahead) {
            batch.decode(decode.prompt_tokens + decode.generated);
        }
        batch
    }

    /// Decode steps until enough requests are finished that so many blocks are free again.
    fn memory_wait(&self, endpoint: &Endpoint, ahead: u32, mut missing: u32) -> f64 {
        if missing == 0 {
            return 0.0;
        }
        let spec = endpoint.engine.spec();
        let mut ends: Vec<(u32, u32)> = self
            .answers(endpoint, ahead)
            .map(|decode| {
                let own = decode.prompt_tokens - decode.cached_tokens + decode.generated;
                (decode.left(), spec.blocks_for(own))
            })
            .collect();
        ends.sort_unstable();
        let mut last = 0;
        for (left, blocks) in ends {
            last = left;
            missing = missing.saturating_sub(blocks);
            if missing == 0 {
                return f64::from(left);
            }
        }
        // Not even then: those that wait must run to their end as well.
        f64::from(last) + f64::from(missing)
    }

    /// Decode steps until an answer ends; only then may an adapter's slot be free.
    fn slot_wait(&self, endpoint: &Endpoint, ahead: u32) -> f64 {
        let lefts = self.answers(endpoint, ahead).map(|decode| decode.left());
        f64::from(lefts.min().unwrap_or(0))
    }
}

/// Token pairs of the last `left` tokens of a prompt.
fn pairs(left: u32, prompt_tokens: u32) -> f64 {
    f64::from(left) * (f64::from(prompt_tokens) - f64::from(left) / 2.0).max(0.0)
}
