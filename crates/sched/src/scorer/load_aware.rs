//! Prefers endpoints whose queue is far below a threshold, whatever the others' queues are.

use super::Scorer;
use crate::{Candidate, RequestView};

/// 0.5 · (1 − min(waiting, threshold) / threshold), by what the engine said last. Nobody scores more
/// than 0.5, so with the same weight a cache hit goes before an empty queue.
///
/// Source: `load-aware-scorer` of llm-d.
#[derive(Clone, Copy, Debug)]
pub struct LoadAwareScorer {
    /// Waiting requests at which the score is 0.0. At least 1. Default 128.
    pub threshold: u32,
}

impl Default for LoadAwareScorer {
    fn default() -> Self {
        Self { threshold: 128 }
    }
}

impl Scorer for LoadAwareScorer {
    fn name(&self) -> &'static str {
        "load-aware"
    }

    fn score(&self, _request: &RequestView<'_>, candidates: &[Candidate], scores: &mut [f32]) {
        let threshold = f64::from(self.threshold.max(1));
        for (score, candidate) in scores.iter_mut().zip(candidates) {
            let waiting = f64::from(candidate.scraped.waiting.unwrap_or(0)).min(threshold);
            *score = (0.5 * (1.0 - waiting / threshold)) as f32;
        }
    }
}
