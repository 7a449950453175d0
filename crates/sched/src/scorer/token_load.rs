//! Prefers endpoints with few prompt tokens before them, this request's own included.

use super::Scorer;
use crate::{Candidate, RequestView};

/// 1 − min(tokens, threshold) / threshold, where the tokens are those sent there and not yet answered
/// and what this prompt would add to them.
///
/// Source: `token-load-scorer` of llm-d.
#[derive(Clone, Copy, Debug)]
pub struct TokenLoadScorer {
    /// Tokens at which the score is 0.0. At least 1. Default 4,194,304: 128 prompts of 32k tokens.
    pub threshold_tokens: u64,
}

impl Default for TokenLoadScorer {
    fn default() -> Self {
        Self { threshold_tokens: 4_194_304 }
    }
}

impl Scorer for TokenLoadScorer {
    fn name(&self) -> &'static str {
        "token-load"
    }

    fn score(&self, request: &RequestView<'_>, candidates: &[Candidate], scores: &mut [f32]) {
        let threshold = self.threshold_tokens.max(1) as f64;
        for (score, candidate) in scores.iter_mut().zip(candidates) {
            let own = f64::from(request.uncached_tokens(candidate));
            let tokens = (candidate.prefill_tokens as f64 + own).min(threshold);
            *score = (1.0 - tokens / threshold) as f32;
        }
    }
}
