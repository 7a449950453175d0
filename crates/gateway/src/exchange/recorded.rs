//! What is recorded of a request that has ended.

use std::time::Duration;

use telemetry::metrics::labels::{Label, Outcome};
use telemetry::recording::{Request, Sample};
use types::Timestamp;

use super::Exchange;
use super::books::route_label;

impl Exchange {
    /// Hands the request to the recorder, with its hashes.
    pub(super) fn write_down(&mut self, outcome: Outcome, now: Timestamp) {
        let (Some(recorder), Some(target)) = (self.gateway.recorder.get(), &self.target) else {
            return;
        };
        let usage = self.watching.usage();
        let hashes = std::mem::take(&mut self.hashes);
        recorder.request(Sample {
            request: Request {
                at_us: recorder.at_us(self.meta.received),
                pool: target.pool.name.as_str().to_owned(),
                model: 0,
                route: route_label(self.meta.route).as_str().to_owned(),
                stream: self.stream,
                prompt_tokens: self.prompt.tokens,
                prompt_tokens_reported: usage.map(|usage| usage.prompt_tokens),
                blocks: Vec::new(),
                matched_blocks: self.belief.blocks(),
                output_tokens: usage
                    .map(|usage| usage.completion_tokens)
                    .or(self.watching.content_events()),
                cached_tokens: usage.and_then(|usage| usage.cached_tokens),
                endpoint: self.current().map(|current| current.member.endpoint.id.0),
                attempts: u32::try_from(self.tried).unwrap_or(u32::MAX),
                predicted_ms: self.predicted().map(millis),
                ttft_ms: self.ttft().map(millis),
                duration_ms: millis(now.since(self.meta.received)),
                status: self.status,
                outcome: outcome.as_str().to_owned(),
            },
            block_hashes: hashes.into_iter().map(|hash| hash.0).collect(),
            adapter: target.adapter.map(|_| target.name.clone()),
        });
    }
}

/// Milliseconds with three decimals.
fn millis(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e6).round() / 1e3
}
