//! Recorded traffic on engines of learned speed.
//!
//! A recording tells when requests came, how long they were and what they shared, and how fast each
//! endpoint was found to be. That is less than a hardware row: attention and batching are folded
//! into two straight lines, and adapter loads are left out. How well it serves is to be measured by
//! replaying the recorded policy and comparing with what was recorded.

#[cfg(test)]
mod tests;

use std::time::Duration;

use rand::SeedableRng;
use rand_pcg::Pcg64Mcg;
pub use sched::{Speed, Weights};
use sim::engine::{EngineSpec, LoraSpec, Reservation, StepCosts};

use crate::measure::Run;
use crate::plan::Settings;
use crate::policy::{Chooser, Policy};
use crate::simulation::{Scene, Simulation};
use crate::workload::Request;

/// Context of an answer, tokens: what the learner assumes.
const CONTEXT_TOKENS: f32 = 1200.0;
/// KV of an engine that does not say how much it has, tokens: enough never to matter.
const KV_TOKENS_UNKNOWN: u64 = 1 << 20;
/// Requests that such an engine runs at once: the smallest default of vLLM's server.
const RUNNING_UNKNOWN: u32 = 256;
/// Largest KV that is believed, tokens.
const KV_TOKENS_MAX: u64 = 1 << 26;
const BLOCK_SIZE_DEFAULT: u32 = 16;
const STEP_TOKENS_MAX: u32 = 8192;

/// An engine as a gateway came to know it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LearnedEngine {
    pub speed: Speed,
    pub block_size_tokens: Option<u32>,
    pub block_count: Option<u64>,
    pub running_max: Option<u32>,
}

impl LearnedEngine {
    /// An engine whose step is `step_ms + prefill · prompt tokens + share of step_ms · answers`,
    /// so that a gateway would learn this same speed from it. What a speed says beyond reason is
    /// brought into it.
    pub fn spec(&self) -> EngineSpec {
        let sane = |ms: f32, least: f64| {
            let ms = f64::from(ms);
            if ms.is_finite() { ms.clamp(least, 1e5) } else { least }
        };
        let speed = &self.speed;
        let step_ms = sane(speed.step_ms, 0.1);
        let token_ms = sane(speed.prefill_ms_per_token, 1e-4);
        let per_request_ms = sane(speed.step_ms_per_answer(CONTEXT_TOKENS), 0.0);
        let base_ms = sane(speed.base_ms, 0.0);
        let block_size = self.block_size_tokens.unwrap_or(BLOCK_SIZE_DEFAULT).clamp(1, 4096);
        let kv_tokens = self.block_count.map_or(KV_TOKENS_UNKNOWN, |count| {
            count.saturating_mul(u64::from(block_size)).min(KV_TOKENS_MAX)
        });
        let block_count = u32::try_from(kv_tokens / u64::from(block_size)).unwrap_or(u32::MAX);
        EngineSpec {
            costs: StepCosts {
                overhead_ms: step_ms,
                weights_ms: 0.0,
                token_us: token_ms * 1e3,
                prefill_pair_ns: 0.0,
                context_token_ns: 0.0,
                // A decoding request is also one of the step's tokens, which must not count twice.
                sequence_us: (per_request_ms - token_ms) * 1e3,
                experts: false,
            },
            block_size,
            block_count: block_count.max(1),
            sequences_max: self.running_max.unwrap_or(RUNNING_UNKNOWN).max(1),
            batched_tokens_max: STEP_TOKENS_MAX,
            model_len_max: u32::MAX,
            prefill_chunk_max: u32::MAX,
            prefix_caching: true,
            reservation: Reservation::OnDemand,
            queued_requests_max: None,
            lora: LoraSpec { gpu_slots: 0, cpu_slots: 0, adapter_bytes: 0, step_factor: 0.0 },
            // A first token takes this, and one step.
            api_delay: Duration::from_secs_f64((base_ms - step_ms).max(0.0) * 1e-3),
            jitter: 0.0,
        }
    }
}

/// Traffic and fleet of a recording.
#[derive(Clone, Debug)]
pub struct Replay {
    specs: Vec<EngineSpec>,
    requests: Vec<Request>,
    settings: Settings,
}

impl Replay {
    /// * `engines`: at least one.
    /// * `requests`: brought into the order of arrival; adapters are dropped. The first fifth of
    ///   their time, a minute at most, fills caches and is not counted.
    pub fn new(engines: &[LearnedEngine], mut requests: Vec<Request>) -> Self {
        requests.sort_by_key(|request| request.at);
        requests.iter_mut().for_each(|request| request.adapter = None);
        let whole = requests.last().map_or(Duration::ZERO, |last| last.at.as_duration());
        let warm_up = (whole / 5).min(Duration::from_secs(60));
        // The window's end is outside, and the last request shall count.
        let duration = whole - warm_up + Duration::from_nanos(1);
        let settings = Settings { warm_up, ..Settings::new(duration) };
        Self { specs: engines.iter().map(LearnedEngine::spec).collect(), requests, settings }
    }

    /// The same under other weights than the default of [`Policy::Wicketgate`].
    #[must_use]
    pub fn with_weights(mut self, weights: Weights) -> Self {
        self.settings.weights = Some(weights);
        self
    }

    /// * `seed`: decides ties and random choices; the traffic is as recorded.
    ///
    /// The run's records are in the order of arrival, one for each request.
    pub fn run(&self, policy: Policy, seed: u64) -> Run {
        let scene = Scene {
            specs: &self.specs,
            requests: &self.requests,
            faults: &[],
            gateways: 1,
            settings: &self.settings,
            seed,
            guests: None,
            is_stepwise: false,
        };
        Simulation::new(&scene, policy).run()
    }
}

/// Scorers that a replay has nothing to say about: it knows no adapters and no sessions.
const NOT_REPLAYED: [&str; 2] = ["lora-affinity", "session-affinity"];

/// The policy that decides as a recorded profile did; `None` if the laboratory has no such one.
///
/// * `profile`: its name, such as `weighted` or `round-robin`.
/// * `scorers`: names and weights, in any order.
pub fn policy_of(profile: &str, scorers: &[(String, f32)]) -> Option<Policy> {
    let wanted = told(scorers.iter().map(|(name, weight)| (name.as_str(), *weight)));
    if scorers.is_empty() {
        return Policy::find(profile).ok();
    }
    // A recording does not say whether load was accounted or only scraped, so of two with the same
    // weights the first is taken.
    let ours = Policy::ALL.into_iter();
    let mut plays = ours.filter_map(|policy| {
        let mut rng = Pcg64Mcg::seed_from_u64(0);
        match Chooser::new(policy, None, 1, &mut rng) {
            Chooser::Profile(profile, ..) => Some((policy, profile)),
            _ => None,
        }
    });
    let found = plays.find(|(_, profile)| {
        let scorers = profile.scorers.iter().map(|one| (one.scorer.name(), one.weight));
        !profile.scorers.is_empty() && told(scorers) == wanted
    });
    found.map(|(policy, _)| policy)
}

/// What there is to compare, in one order. Weights in thousandths.
fn told<'a>(scorers: impl Iterator<Item = (&'a str, f32)>) -> Vec<(&'a str, i64)> {
    let told = scorers.filter(|(name, weight)| *weight > 0.0 && !NOT_REPLAYED.contains(name));
    let mut told: Vec<_> = told.map(|(name, weight)| (name, (weight * 1e3) as i64)).collect();
    told.sort_unstable();
    told
}
