//! Writes down how the pools stand, for a [`Recorder`] that was given to the gateway.
//!
//! What becomes of each request is written down by its exchange.

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use telemetry::metrics::labels::Label;
use telemetry::recording::{EndpointState, PoolState, Speed};
use telemetry::{Recorder, clock};
use types::Timestamp;

use crate::pool::Pool;
use crate::status::standing;
use crate::{Gateway, PoolMember};

/// How often the state of the pools is written down.
const STATE_INTERVAL: Duration = Duration::from_secs(10);

impl Gateway {
    /// Records from now on, beginning with the pools as they stand. Only the first call counts.
    pub fn record_to(&self, recorder: Recorder, now: Timestamp) {
        if self.recorder.set(recorder).is_ok() {
            self.record_state(now);
        }
    }

    pub(crate) fn is_recording(&self) -> bool {
        self.recorder.get().is_some()
    }

    /// Writes down how the pools stand.
    pub fn record_state(&self, now: Timestamp) {
        if let Some(recorder) = self.recorder.get() {
            let catalog = self.catalog();
            let pools = catalog.pools.iter().map(|pool| pool_state(pool, now)).collect();
            recorder.state(pools, now);
        }
    }
}

/// Writes the state of the pools down every ten seconds, until dropped; returns at once where nothing
/// is recorded.
pub async fn record_states(gateway: Arc<Gateway>) {
    while gateway.is_recording() {
        tokio::time::sleep(STATE_INTERVAL).await;
        gateway.record_state(clock::now());
    }
}

fn pool_state(pool: &Pool, now: Timestamp) -> PoolState {
    let scorers = pool.profile.scorers.iter();
    PoolState {
        name: pool.name.as_str().to_owned(),
        policy: pool.profile.name.to_owned(),
        scorers: scorers.map(|scorer| (scorer.scorer.name().to_owned(), scorer.weight)).collect(),
        queue_depth: pool.settings.saturation.queue_depth,
        endpoints: pool.members.iter().map(|member| endpoint_state(member, now)).collect(),
    }
}

fn endpoint_state(member: &PoolMember, now: Timestamp) -> EndpointState {
    let member = &member.member;
    let candidate = member.state.observe(None, now);
    let speed = &candidate.speed;
    EndpointState {
        id: member.endpoint.id.0,
        name: member.authority.clone(),
        engine: member.engine().as_str().to_owned(),
        state: standing(&candidate).as_str().to_owned(),
        block_size_tokens: member.blocks().map(|(size, _)| size),
        block_count: member.blocks().map(|(_, count)| count),
        running_max: candidate.scraped.running_max,
        waiting: candidate.scraped.waiting,
        running: candidate.scraped.running,
        kv_usage: candidate.scraped.kv_usage,
        in_flight: candidate.in_flight,
        speed: Speed {
            base_ms: speed.base_ms,
            prefill_ms_per_token: speed.prefill_ms_per_token,
            prefill_samples: speed.prefill_samples,
            step_ms: speed.step_ms,
            step_samples: speed.step_samples,
            output_tokens: speed.output_tokens,
        },
    }
}
