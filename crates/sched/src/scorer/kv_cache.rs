//! Prefers endpoints with free KV blocks.

use super::{NEUTRAL, Scorer, Signals, finite};
use crate::{Candidate, RequestView};

/// 1 − KV use; fades to neutral as the scrape ages.
///
/// Source: `kv-cache-utilization-scorer` of the Gateway API Inference Extension.
#[derive(Clone, Copy, Debug, Default)]
pub struct KvCacheScorer {
    pub signals: Signals,
}

impl Scorer for KvCacheScorer {
    fn name(&self) -> &'static str {
        "kv-cache"
    }

    fn score(&self, _request: &RequestView<'_>, candidates: &[Candidate], scores: &mut [f32]) {
        for (score, candidate) in scores.iter_mut().zip(candidates) {
            let free = candidate.scraped.kv_usage.map(|usage| 1.0 - finite(usage, 1.0).min(1.0));
            *score = match self.signals {
                Signals::Scraped => free.unwrap_or(1.0),
                Signals::Accounted => {
                    let freshness = finite(candidate.freshness, 0.0).min(1.0);
                    let free = free.unwrap_or(NEUTRAL);
                    freshness * free + (1.0 - freshness) * NEUTRAL
                }
            };
        }
    }
}
