//! Prefers endpoints that already hold the prompt's beginning.

use super::{Scorer, Signals, finite};
use crate::{Candidate, RequestView};

/// Matched blocks / blocks of the prompt.
///
/// With [`Signals::Accounted`], a holder whose queue is longer than `4 + mean queue` scores less
/// in proportion, so that a hot prefix spreads to more endpoints as its load grows (bounded
/// loads, as in consistent hashing). With weights 2/2/3 a holder gives way once its queue is
/// about 1.5 times that bound.
///
/// Source: `prefix-cache-scorer` of the Gateway API Inference Extension with
/// `matchLengthWeight` 0.
#[derive(Clone, Copy, Debug, Default)]
pub struct PrefixScorer {
    pub signals: Signals,
}

/// Requests that may wait at a holder whatever the others' queues.
const QUEUE_SLACK: f32 = 4.0;

impl Scorer for PrefixScorer {
    fn name(&self) -> &'static str {
        "prefix"
    }

    fn score(&self, request: &RequestView<'_>, candidates: &[Candidate], scores: &mut [f32]) {
        if request.prompt_blocks == 0 {
            // Shorter than one block: stay neutral and let the load scorers decide.
            scores.fill(0.0);
            return;
        }
        let blocks = request.prompt_blocks as f32;
        for (score, candidate) in scores.iter_mut().zip(candidates) {
            *score = (candidate.matched_blocks as f32 / blocks).min(1.0);
        }
        if self.signals == Signals::Accounted {
            let sum: f32 = candidates.iter().map(|c| finite(c.waiting, 0.0).min(1e30)).sum();
            let bound = QUEUE_SLACK + sum / candidates.len() as f32;
            for (score, candidate) in scores.iter_mut().zip(candidates) {
                *score *= (bound / finite(candidate.waiting, 0.0).max(bound)).clamp(0.0, 1.0);
            }
        }
    }
}
