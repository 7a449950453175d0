//! Prefers endpoints that have the request's adapter loaded.

use super::{NEUTRAL, Scorer, Signals};
use crate::{Candidate, LoraFit, RequestView};

/// Resident 1.0, room 0.8, waiting 0.6, else 0.0.
///
/// With [`Signals::Accounted`] an adapter that is resident but idle counts as resident, and an
/// endpoint that does not report adapters is neutral. Without an adapter in the request the score
/// is 0.0 for all.
///
/// Source: `lora-affinity-scorer` of the Gateway API Inference Extension.
#[derive(Clone, Copy, Debug, Default)]
pub struct LoraAffinityScorer {
    pub signals: Signals,
}

impl Scorer for LoraAffinityScorer {
    fn name(&self) -> &'static str {
        "lora-affinity"
    }

    fn score(&self, request: &RequestView<'_>, candidates: &[Candidate], scores: &mut [f32]) {
        if request.adapter.is_none() {
            scores.fill(0.0);
            return;
        }
        let (is_scraped, unknown) = match self.signals {
            Signals::Scraped => (true, 0.0),
            Signals::Accounted => (false, NEUTRAL),
        };
        for (score, candidate) in scores.iter_mut().zip(candidates) {
            let fit = if is_scraped { candidate.scraped.lora } else { candidate.lora };
            *score = match fit {
                LoraFit::Resident => 1.0,
                LoraFit::Room => 0.8,
                LoraFit::Waiting => 0.6,
                LoraFit::Unknown => unknown,
                LoraFit::Full | LoraFit::NotServed => 0.0,
            };
        }
    }
}
