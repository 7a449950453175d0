//! `least_load` of smg: least expected time to drain, on loads polled every ten seconds.
//!
//! ```text
//! score = (queued + running + unaccounted + dispatched since the poll) / throughput
//!         + λ · k / (1 − k)                                                        [seconds]
//! ```
//!
//! Source: smg 1.13, `policies/least_load.rs`. From a server that tells no queued tokens, as vLLM's
//! page does not, they are its waiting requests times 1,024; throughput is what it generated since
//! the poll before, 2,000 tokens/s where nothing is known. What is dispatched is counted in true
//! prompt tokens, as its gRPC path does; its HTTP path would take 1,024 for each.
//!
//! How it estimates the running ones we could not read; the versions before had no such term. Each
//! counts 1,024 here, like one that waits, as do those in flight that neither the poll nor the count
//! of dispatches knows.

use std::time::Duration;

use rand_pcg::Pcg64Mcg;
use sched::Candidate;
use types::Timestamp;

use super::{Asked, least};

/// Weight of memory pressure, seconds.
const PRESSURE_S: f64 = 0.15;
/// Tokens per second of an endpoint that did not tell.
const THROUGHPUT: f64 = 2000.0;
/// Tokens of a waiting request.
const PREFILL_MEAN: f64 = 1024.0;
/// Scores that differ by less are equal, seconds.
const TIE_S: f64 = 1e-6;
/// How often loads are polled.
pub(crate) const POLL: Duration = Duration::from_secs(10);

pub(crate) struct LeastLoad {
    loads: Vec<Load>,
}

#[derive(Clone, Copy, Default)]
struct Load {
    polled_at: Option<Timestamp>,
    generated: u64,
    /// Tokens per second between the last two polls; 0: none, or not known.
    throughput: f64,
    /// Prompt tokens sent since, and requests.
    dispatched: u64,
    dispatched_requests: u32,
}

impl LeastLoad {
    pub(super) fn new(endpoints: usize) -> Self {
        Self { loads: vec![Load::default(); endpoints] }
    }

    pub(super) fn choose(&self, candidates: &[Candidate], rng: &mut Pcg64Mcg) -> Option<usize> {
        let is_known = |candidate: &Candidate| candidate.age.is_some() && !candidate.stale;
        if !candidates.iter().any(is_known) {
            return least(candidates.iter().map(|other| f64::from(other.in_flight)), rng);
        }
        let told = candidates.iter().filter(|candidate| is_known(candidate));
        let best = told.map(|candidate| self.score(candidate)).fold(f64::INFINITY, f64::min);
        let score = |candidate: &Candidate| {
            let score = if is_known(candidate) {
                self.score(candidate)
            } else {
                best + f64::from(candidate.in_flight) * PREFILL_MEAN / self.nominal_throughput()
            };
            (score / TIE_S).round()
        };
        least(candidates.iter().map(score), rng)
    }

    fn score(&self, candidate: &Candidate) -> f64 {
        let load = &self.loads[candidate.endpoint.0 as usize];
        let scraped = &candidate.scraped;
        let polled = scraped.waiting.unwrap_or(0) + scraped.running.unwrap_or(0);
        let known = polled + load.dispatched_requests;
        let requests = polled + candidate.in_flight.saturating_sub(known);
        let queued = f64::from(requests) * PREFILL_MEAN;
        let throughput = if load.throughput > 0.0 { load.throughput } else { THROUGHPUT };
        let usage = f64::from(scraped.kv_usage.unwrap_or(0.0)).clamp(0.0, 0.999);
        (queued + load.dispatched as f64) / throughput + PRESSURE_S * usage / (1.0 - usage)
    }

    fn nominal_throughput(&self) -> f64 {
        let told = || self.loads.iter().map(|load| load.throughput).filter(|rate| *rate > 0.0);
        let count = told().count();
        if count > 0 { told().sum::<f64>() / count as f64 } else { THROUGHPUT }
    }

    pub(super) fn sent(&mut self, endpoint: usize, asked: &Asked<'_>) {
        let load = &mut self.loads[endpoint];
        load.dispatched += u64::from(asked.view.prompt_tokens);
        load.dispatched_requests += 1;
    }

    /// * `generated`: tokens that the endpoint counts since its start.
    pub(super) fn polled(&mut self, endpoint: usize, generated: u64, now: Timestamp) {
        let load = &mut self.loads[endpoint];
        let since = load.polled_at.map_or(0.0, |at| now.since(at).as_secs_f64());
        // A counter that fell is that of a restarted engine.
        let more = generated.saturating_sub(load.generated) as f64;
        let throughput = if since > 0.0 { more / since } else { 0.0 };
        *load = Load { polled_at: Some(now), generated, throughput, ..Load::default() };
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use sched::RequestView;
    use types::{EndpointId, Slot};

    use super::*;

    fn choose(policy: &LeastLoad, candidates: &[Candidate]) -> usize {
        policy.choose(candidates, &mut Pcg64Mcg::seed_from_u64(1)).unwrap()
    }

    #[test]
    fn work_counts_by_the_throughput_seen_and_what_was_dispatched_until_the_next_poll() {
        let candidates: Vec<_> =
            (0..2).map(|at| Candidate::idle(EndpointId(at), Slot(at as u16))).collect();
        let mut policy = LeastLoad::new(2);
        for (seconds, generated) in [(0, [0, 0]), (10, [40_000, 10_000])] {
            let now = Timestamp::from_millis(1000 * seconds);
            (0..2).for_each(|at| policy.polled(at, generated[at], now));
        }
        let view = RequestView { prompt_tokens: 1000, ..RequestView::default() };
        let asked =
            Asked { view, block_tokens: 64, hashes: &[], output_tokens: 1, is_sampled: false };
        (0..3).for_each(|_| policy.sent(0, &asked));
        policy.sent(1, &asked);
        assert_eq!(choose(&policy, &candidates), 0, "3,000 at 4,000/s before 1,000 at 1,000/s");
        (0..2).for_each(|_| policy.sent(0, &asked));
        assert_eq!(choose(&policy, &candidates), 1);
    }

    #[test]
    fn a_nearly_full_cache_keeps_requests_away() {
        let mut candidates: Vec<_> =
            (0..2).map(|at| Candidate::idle(EndpointId(at), Slot(at as u16))).collect();
        candidates[0].scraped.kv_usage = Some(0.97);
        assert_eq!(choose(&LeastLoad::new(2), &candidates), 1);
    }
}
