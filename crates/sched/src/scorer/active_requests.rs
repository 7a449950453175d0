//! Prefers endpoints with few requests of this gateway, with a say for what counts as idle.

use super::Scorer;
use crate::{Candidate, RequestView};

/// At most `idle_threshold` in flight: 1.0. Else (max − own) / max · `busy_score_max`, with the most
/// that any candidate has.
///
/// Source: `active-request-scorer` of llm-d.
#[derive(Clone, Copy, Debug)]
pub struct ActiveRequestsScorer {
    /// Requests in flight up to which an endpoint counts as idle. Default 0.
    pub idle_threshold: u32,
    /// What an endpoint that is not idle may score at most, `0.0..=1.0`. Default 1.0.
    pub busy_score_max: f64,
}

impl Default for ActiveRequestsScorer {
    fn default() -> Self {
        Self { idle_threshold: 0, busy_score_max: 1.0 }
    }
}

impl Scorer for ActiveRequestsScorer {
    fn name(&self) -> &'static str {
        "active-requests"
    }

    fn score(&self, _request: &RequestView<'_>, candidates: &[Candidate], scores: &mut [f32]) {
        let most = candidates.iter().map(|candidate| candidate.in_flight).max().unwrap_or(0);
        let busy_score_max = self.busy_score_max.clamp(0.0, 1.0);
        for (score, candidate) in scores.iter_mut().zip(candidates) {
            let own = candidate.in_flight;
            *score = if own <= self.idle_threshold {
                1.0
            } else {
                (f64::from(most - own) / f64::from(most) * busy_score_max) as f32
            };
        }
    }
}
