//! Fewest waiting, fewest running, fewest in flight: three loads, one formula.

use super::{Scorer, Signals, cap, finite};
use crate::{Candidate, RequestView};

/// Prefers endpoints with few waiting requests: (max − own) / (max − min), all equal 1.0.
///
/// Source: `queue-scorer` of the Gateway API Inference Extension.
#[derive(Clone, Copy, Debug, Default)]
pub struct QueueScorer {
    pub signals: Signals,
}

impl Scorer for QueueScorer {
    fn name(&self) -> &'static str {
        "queue"
    }

    fn score(&self, _request: &RequestView<'_>, candidates: &[Candidate], scores: &mut [f32]) {
        match self.signals {
            Signals::Scraped => fewest(candidates, scores, |c| known(c.scraped.waiting)),
            Signals::Accounted => {
                fewest(candidates, scores, |c| c.waiting);
                cap_unknown(candidates, scores, |c| c.scraped.waiting.is_some());
            }
        }
    }
}

/// Prefers endpoints with few running requests, by the same formula.
///
/// By our own account those that wait count too: of what an engine does not report nobody knows
/// which of the two it does.
///
/// Source: `running-requests-size-scorer` of the Gateway API Inference Extension.
#[derive(Clone, Copy, Debug, Default)]
pub struct RunningRequestsScorer {
    pub signals: Signals,
}

impl Scorer for RunningRequestsScorer {
    fn name(&self) -> &'static str {
        "running-requests"
    }

    fn score(&self, _request: &RequestView<'_>, candidates: &[Candidate], scores: &mut [f32]) {
        match self.signals {
            Signals::Scraped => fewest(candidates, scores, |c| known(c.scraped.running)),
            Signals::Accounted => {
                fewest(candidates, scores, |c| c.running + c.waiting);
                cap_unknown(candidates, scores, |c| c.scraped.running.is_some());
            }
        }
    }
}

/// Prefers endpoints where this gateway has few requests: the plain policy `least-request`.
#[derive(Clone, Copy, Debug, Default)]
pub struct LeastRequestScorer;

impl Scorer for LeastRequestScorer {
    fn name(&self) -> &'static str {
        "in-flight"
    }

    fn score(&self, _request: &RequestView<'_>, candidates: &[Candidate], scores: &mut [f32]) {
        fewest(candidates, scores, |candidate| candidate.in_flight as f32);
    }
}

fn known(value: Option<u32>) -> f32 {
    value.unwrap_or(0) as f32
}

fn fewest(candidates: &[Candidate], scores: &mut [f32], load: impl Fn(&Candidate) -> f32) {
    let (mut min, mut max) = (f32::MAX, 0.0_f32);
    for (score, candidate) in scores.iter_mut().zip(candidates) {
        *score = finite(load(candidate), f32::MAX);
        min = min.min(*score);
        max = max.max(*score);
    }
    for score in scores {
        *score = if max > min { (max - *score) / (max - min) } else { 1.0 };
    }
}

fn cap_unknown(
    candidates: &[Candidate],
    scores: &mut [f32],
    is_known: impl Fn(&Candidate) -> bool,
) {
    let freshness = |c: &Candidate| if is_known(c) { finite(c.freshness, 0.0) } else { 0.0 };
    let freshest = candidates.iter().map(freshness).fold(0.0, f32::max);
    for (score, candidate) in scores.iter_mut().zip(candidates) {
        *score = score.min(cap(freshness(candidate), freshest));
    }
}
