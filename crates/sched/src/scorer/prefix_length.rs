//! Prefers endpoints that hold the prompt's beginning, a long beginning more than a short one.

use super::Scorer;
use crate::{Candidate, RequestView};

/// w · min(1, matched tokens / scale)² + (1 − w) · matched blocks / blocks of the prompt.
///
/// The share alone says that ten of ten blocks are as good as a thousand of a thousand; the square
/// keeps a short system prompt that all tenants share from deciding anything.
///
/// Source: `prefix-cache-scorer` of llm-d with a `matchLengthWeight` above 0; with 0 it is
/// [`PrefixScorer`] with [`Signals::Scraped`].
///
/// [`PrefixScorer`]: crate::PrefixScorer
/// [`Signals::Scraped`]: crate::Signals::Scraped
#[derive(Clone, Copy, Debug)]
pub struct PrefixLengthScorer {
    /// w, `0.0..=1.0`.
    pub length_weight: f64,
    /// Matched tokens that count in full. At least 1. The field's default: 8192.
    pub scale_tokens: u32,
}

impl Scorer for PrefixLengthScorer {
    fn name(&self) -> &'static str {
        "prefix-length"
    }

    fn score(&self, request: &RequestView<'_>, candidates: &[Candidate], scores: &mut [f32]) {
        if request.prompt_blocks == 0 {
            scores.fill(0.0);
            return;
        }
        let blocks = f64::from(request.prompt_blocks);
        let scale = f64::from(self.scale_tokens.max(1));
        let weight = self.length_weight.clamp(0.0, 1.0);
        for (score, candidate) in scores.iter_mut().zip(candidates) {
            let matched = f64::from(candidate.matched_blocks.min(request.prompt_blocks));
            let length = (matched * f64::from(request.block_tokens) / scale).min(1.0);
            *score = (weight * (length * length) + (1.0 - weight) * (matched / blocks)) as f32;
        }
    }
}
