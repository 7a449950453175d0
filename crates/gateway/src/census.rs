//! What a gateway holds, pool by pool, for reports to others. Counters become rates there.

use std::time::Duration;

use sched::Candidate;
use telemetry::metrics::labels::{Label, Outcome, Rejection, Route};
use types::{ModelName, PoolName, Timestamp};

use crate::{Gateway, Pool};

/// One pool at one instant.
#[derive(Clone, Debug, PartialEq)]
pub struct PoolCensus {
    pub pool: PoolName,
    pub model: ModelName,
    /// Names of adapters, and whether one of the endpoints has it loaded.
    pub adapters: Vec<(ModelName, bool)>,
    /// Longest prompt and answer; 0: not known.
    pub context_max: u64,
    pub endpoints_ready: u32,
    /// Requests that the ready endpoints take before one of them waits.
    pub room: u32,
    pub in_flight: u32,
    pub waiting: u32,
    pub kv_capacity_tokens: u64,
    /// Mean use of the KV caches that tell it.
    pub kv_used: f32,
    /// Prompt tokens a second of one endpoint, as learned; 0: nothing learned.
    pub prefill_tokens_per_second: f32,
    pub ttft_base: Duration,
    /// Completions a second, of late.
    pub completions_per_second: f64,
    // Since the start:
    pub arrived: u64,
    pub finished: u64,
    pub failed: u64,
    pub refused: u64,
}

impl Gateway {
    /// Every pool, in the catalog's order.
    pub fn census(&self, now: Timestamp) -> Vec<PoolCensus> {
        let catalog = self.catalog();
        let mut census: Vec<PoolCensus> =
            catalog.pools.iter().map(|pool| pool_census(pool, now)).collect();
        for (name, card) in &catalog.cards {
            let Some(target) = catalog.get(name.as_str()) else { continue };
            let Some(of) = census.iter_mut().find(|of| of.pool == target.pool.name) else {
                continue;
            };
            of.context_max = of.context_max.max(card.max_model_len.unwrap_or(0));
            if let Some(adapter) = target.adapter {
                let members = target.pool.members.iter();
                let is_resident = members
                    .clone()
                    .any(|own| own.member.state.resident_adapters().contains(&adapter));
                of.adapters.push((name.clone(), is_resident));
            } else if *name != of.model {
                of.adapters.push((name.clone(), true));
            }
        }
        // Aliases are served too: whoever asks for one gets what its rule says.
        for name in catalog.cards.keys().filter(|name| catalog.get(name.as_str()).is_none()) {
            let Some(model) = catalog.base_of(name.as_str()) else { continue };
            if let Some(of) = census.iter_mut().find(|of| of.model == *model) {
                of.adapters.push((name.clone(), true));
            }
        }
        census
    }
}

fn pool_census(pool: &Pool, now: Timestamp) -> PoolCensus {
    let seen: Vec<Candidate> =
        pool.members.iter().map(|member| member.member.state.observe(None, now)).collect();
    let ready: Vec<&Candidate> = seen
        .iter()
        .filter(|candidate| !candidate.ejected && !candidate.asleep && !candidate.stale)
        .collect();
    let room: u32 =
        ready.iter().map(|candidate| free_of(pool, candidate)).fold(0, u32::saturating_add);
    let in_flight: u32 = seen.iter().map(|candidate| candidate.in_flight).sum();
    let queued: u32 = pool.admission.as_ref().map_or(0, |admission| admission.queued());
    let waiting: f32 = seen.iter().map(|candidate| candidate.waiting).sum();
    let used: Vec<f32> = ready.iter().filter_map(|candidate| candidate.scraped.kv_usage).collect();
    let learned: Vec<_> =
        ready.iter().map(|one| one.speed).filter(|speed| speed.prefill_samples > 0.0).collect();
    let mean = |values: &mut dyn Iterator<Item = f32>, count: usize| {
        if count == 0 { 0.0 } else { values.sum::<f32>() / count as f32 }
    };
    let per_token =
        mean(&mut learned.iter().map(|speed| speed.prefill_ms_per_token), learned.len());
    let base = mean(&mut ready.iter().map(|one| one.speed.base_ms), ready.len());
    let metrics = &pool.metrics;
    let outcomes = |outcome: Outcome| -> u64 {
        Route::ALL.iter().map(|route| metrics.requests.of(*route).of(outcome).get()).sum()
    };
    let finished = Outcome::ALL.iter().map(|outcome| outcomes(*outcome)).sum();
    PoolCensus {
        pool: pool.name.clone(),
        model: pool.model.clone(),
        adapters: Vec::new(),
        context_max: 0,
        endpoints_ready: u32::try_from(ready.len()).unwrap_or(u32::MAX),
        room,
        in_flight: in_flight.saturating_add(queued),
        waiting: (waiting.max(0.0) as u32).saturating_add(queued),
        kv_capacity_tokens: ready.iter().filter_map(|one| one.kv_tokens_max).sum::<f32>() as u64,
        kv_used: mean(&mut used.iter().copied(), used.len()).clamp(0.0, 1.0),
        prefill_tokens_per_second: if per_token > 0.0 { 1000.0 / per_token } else { 0.0 },
        ttft_base: crate::prediction::duration_of(base),
        completions_per_second: pool.pace.completions_per_second(now),
        arrived: u64::try_from(metrics.requests_in_flight.get()).unwrap_or(0) + finished,
        finished,
        failed: outcomes(Outcome::EndpointError) + outcomes(Outcome::GatewayError),
        refused: Rejection::ALL
            .iter()
            // A tenant's own limits say nothing of the cluster's room.
            .filter(|reason| **reason != Rejection::RateLimited)
            .map(|reason| metrics.requests_rejected.of(*reason).get())
            .sum(),
    }
}

/// Requests that may still come before one of them waits, those that are there aside.
fn free_of(pool: &Pool, candidate: &Candidate) -> u32 {
    let room = pool.settings.saturation.room(candidate);
    // Its queue may be as long as the setting says; what waits is no room.
    room.saturating_sub(pool.settings.saturation.queue_depth)
}
