//! The clairvoyant: when an engine would give the first token, from its true state.
//!
//! It knows the step constants, the batch, how far each prompt is, the blocks in use and the true
//! lengths of answers. It does not know requests to come, and it is greedy; so it is a ruler, not a
//! bound. What an engine has cached it takes from the prefix index, as the others do.

use sim::engine::StepWork;
use types::Timestamp;

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

impl Truth<'_> {
    /// Seconds from `now` to the first token of a new request.
    ///
    /// * `held`: tokens of its prompt that the engine has cached.
    pub(crate) fn ttft_seconds(
        &self,
        endpoint: usize,
        prompt_tokens: u32,
        held: u32,
        now: Timestamp,
    ) -> f64 {
        let endpoint = &self.endpoints[endpoint];
        let (spec, stats) = (endpoint.engine.spec(), endpoint.engine.stats());
        let own = prompt_tokens.saturating_sub(held).max(1);
        let decodes = endpoint.decoding.iter().map(|id| &self.progress[*id as usize]);
        let context: u64 =
            decodes.map(|decode| u64::from(decode.prompt_tokens + decode.generated)).sum();

        let mut batch = StepWork::default();
        batch.decodes = endpoint.decoding.len() as u32;
        batch.tokens = batch.decodes;
        batch.decode_context = context as f64;
        let decode_s = spec.costs.step_ms(&batch, 0.0) * 1e-3;

        let (mut tokens, mut pairs) = (f64::from(own), pairs(own, prompt_tokens));
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
        let prefill_s = steps * spec.costs.step_ms(&batch, 0.0) * 1e-3;

        let step_left = endpoint.step_end.map_or(0.0, |end| end.since(now).as_secs_f64());
        let free = stats.blocks - stats.blocks_used;
        let memory_s = self.memory_wait(endpoint, needed.saturating_sub(free)) * decode_s;
        step_left.max(spec.api_delay.as_secs_f64()) + prefill_s + memory_s
    }

    /// Decode steps until enough requests are finished that so many blocks are free again.
    fn memory_wait(&self, endpoint: &Endpoint, mut missing: u32) -> f64 {
        if missing == 0 {
            return 0.0;
        }
        let spec = endpoint.engine.spec();
        let mut ends: Vec<(u32, u32)> = endpoint
            .decoding
            .iter()
            .map(|id| {
                let decode = &self.progress[*id as usize];
                let own = decode.prompt_tokens - decode.cached_tokens + decode.generated;
                (decode.output_tokens.saturating_sub(decode.generated), spec.blocks_for(own))
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
}

/// Token pairs of the last `left` tokens of a prompt.
fn pairs(left: u32, prompt_tokens: u32) -> f64 {
    f64::from(left) * (f64::from(prompt_tokens) - f64::from(left) / 2.0).max(0.0)
}
