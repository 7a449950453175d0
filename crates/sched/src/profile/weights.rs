//! Scorers by weight: ours by default, the field's under its own name.

use super::WeightedScorer;
use crate::{
    ExpectedTimeScorer, KvCacheScorer, LoraAffinityScorer, NoHitLruScorer, PrefixScorer,
    QueueScorer, RunningRequestsScorer, Scorer, SessionAffinityScorer, Signals,
};

/// One weight per scorer; 0.0 leaves a scorer out.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Weights {
    /// Default 0.
    pub queue: f32,
    /// Default 0.
    pub kv_cache: f32,
    /// Default 0.
    pub prefix: f32,
    /// Default 0.
    pub running_requests: f32,
    /// Default 0.
    pub lora_affinity: f32,
    /// Default 0.
    pub no_hit_lru: f32,
    /// Default 0.
    pub session_affinity: f32,
    /// Default 1.
    pub expected_time: f32,
    /// Default [`Signals::Accounted`].
    pub signals: Signals,
}

impl Default for Weights {
    /// The expected time alone, which the routing laboratory shows best over all of its scenarios.
    fn default() -> Self {
        Self { expected_time: 1.0, ..Self::ZERO }
    }
}

impl Weights {
    /// What the Gateway API Inference Extension and AWS's gateway do, bit for bit: 2/2/3 on what the
    /// engines said last.
    pub const REFERENCE: Self =
        Self { queue: 2.0, kv_cache: 2.0, prefix: 3.0, signals: Signals::Scraped, ..Self::ZERO };

    /// Nothing is scored: uniform choice.
    pub const ZERO: Self = Self {
        queue: 0.0,
        kv_cache: 0.0,
        prefix: 0.0,
        running_requests: 0.0,
        lora_affinity: 0.0,
        no_hit_lru: 0.0,
        session_affinity: 0.0,
        expected_time: 0.0,
        signals: Signals::Accounted,
    };

    /// Scorers with a positive, finite weight.
    pub(super) fn scorers(&self) -> Vec<WeightedScorer> {
        let signals = self.signals;
        let mut scorers = Vec::new();
        let mut add = |weight: f32, scorer: fn(Signals) -> Box<dyn Scorer>| {
            if weight > 0.0 && weight.is_finite() {
                scorers.push(WeightedScorer { scorer: scorer(signals), weight });
            }
        };
        add(self.queue, |signals| Box::new(QueueScorer { signals }));
        add(self.kv_cache, |signals| Box::new(KvCacheScorer { signals }));
        add(self.prefix, |signals| Box::new(PrefixScorer { signals }));
        add(self.running_requests, |signals| Box::new(RunningRequestsScorer { signals }));
        add(self.lora_affinity, |signals| Box::new(LoraAffinityScorer { signals }));
        add(self.no_hit_lru, |_| Box::new(NoHitLruScorer::default()));
        add(self.session_affinity, |_| Box::new(SessionAffinityScorer::default()));
        add(self.expected_time, |_| Box::new(ExpectedTimeScorer::default()));
        scorers
    }
}
