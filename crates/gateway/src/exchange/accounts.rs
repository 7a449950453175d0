//! Whom the GPU's time is booked to.

use std::time::Duration;

use sched::Work;
use telemetry::metrics::labels;
use types::Timestamp;

use super::Exchange;

impl Exchange {
    /// Books what the request took of its endpoint. What never had a first token is left out: nobody knows
    /// how much of it was computed.
    pub(super) fn account(&self, now: Timestamp) {
        let (Some(target), Some(current), Some(_)) =
            (&self.target, self.current(), self.watching.first_token)
        else {
            return;
        };
        if !(200..300).contains(&self.status) {
            return;
        }
        let state = &current.member.state;
        let usage = self.watching.usage();
        let estimated = f64::from(self.prompt.tokens);
        let cached_share = match usage {
            Some(usage) if usage.prompt_tokens > 0 && usage.cached_tokens.is_some() => {
                usage.cached_tokens.unwrap_or(0) as f64 / usage.prompt_tokens as f64
            }
            _ => self.believed_share(),
        };
        let cached_tokens = estimated * cached_share.clamp(0.0, 1.0);
        let output_tokens = usage.map_or_else(
            || self.watching.content_events().unwrap_or(0),
            |usage| usage.completion_tokens,
        );
        let batch_now = state.decoding(now);
        let work = Work {
            computed_tokens: estimated - cached_tokens,
            cached_tokens,
            output_tokens: output_tokens as f64,
            batch: f64::midpoint(f64::from(self.batch_at_first), f64::from(batch_now)),
        };
        let time = work.gpu_time(&state.speed(now));
        let time = current.member.busy.settle(time, self.dispatched, now);
        let seconds = Duration::from_secs_f64;
        let metrics = &target.pool.metrics;
        metrics.gpu_seconds.of(labels::Work::Prefill).add(seconds(time.prefill));
        metrics.gpu_seconds.of(labels::Work::Decode).add(seconds(time.decode));
        metrics.gpu_saved_seconds.add(seconds(time.saved));
        let row = self.gateway.metrics.usage().of(&target.pool.name, &self.meta.caller.tenant);
        row.requests.inc();
        row.output_tokens.add(output_tokens);
        if let Some(usage) = usage {
            row.input_tokens.add(usage.prompt_tokens);
            row.cached_input_tokens.add(usage.cached_tokens.unwrap_or(0));
        }
        row.seconds.of(labels::Work::Prefill).add(seconds(time.prefill));
        row.seconds.of(labels::Work::Decode).add(seconds(time.decode));
        row.saved_seconds.add(seconds(time.saved));
    }

    /// The share of the prompt that the endpoint was believed to hold.
    fn believed_share(&self) -> f64 {
        let held = f64::from(self.belief.blocks()) * f64::from(self.gateway.block_tokens());
        if self.prompt.tokens > 0 { held / f64::from(self.prompt.tokens) } else { 0.0 }
    }
}
