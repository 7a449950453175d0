//! Keeps to endpoints that hold most of the prompt, while that does not cost too much waiting.

use super::Filter;
use crate::{Candidate, Forecast, Prices, RequestView};

/// Keeps the holders: endpoints with at least `share_min` of the prompt's blocks. All stay if there are
/// none, or if the best holder is expected to take more than `penalty_ms_max` longer than the best
/// other endpoint.
///
/// Source: `prefix-cache-affinity-filter` of llm-d without exploration.
#[derive(Clone, Copy, Debug)]
pub struct PrefixAffinityFilter {
    /// `0.0..=1.0`; 0.0 keeps everybody. The field's default: 0.8.
    pub share_min: f64,
    /// 0.0: holders are kept at any cost. The field's default: 18,000.
    pub penalty_ms_max: f64,
    pub expected: ExpectedWait,
}

/// Where the expected time to the first token comes from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ExpectedWait {
    /// Prompt tokens in flight at this many per second, the same for all endpoints. The field's default:
    /// 15,928, measured for Qwen-32B on two H100.
    PrefillTokensPerSecond(f64),
    /// What each endpoint has shown.
    Learned,
}

impl PrefixAffinityFilter {
    fn is_holder(&self, request: &RequestView<'_>, candidate: &Candidate) -> bool {
        let blocks = f64::from(request.prompt_blocks);
        blocks > 0.0 && f64::from(candidate.matched_blocks) / blocks >= self.share_min
    }

    fn wait_ms(&self, forecast: &Forecast<'_>, candidate: &Candidate) -> f64 {
        match self.expected {
            ExpectedWait::PrefillTokensPerSecond(pace) => {
                candidate.prefill_tokens as f64 / pace.max(f64::MIN_POSITIVE) * 1000.0
            }
            ExpectedWait::Learned => f64::from(forecast.ttft_ms(candidate)),
        }
    }
}

impl Filter for PrefixAffinityFilter {
    fn name(&self) -> &'static str {
        "prefix-affinity"
    }

    fn filter(&self, request: &RequestView<'_>, candidates: &[Candidate], keep: &mut [bool]) {
        if candidates.len() <= 1 || self.share_min <= 0.0 {
            return;
        }
        let forecast = Forecast::new(Prices::default(), request);
        let (mut holder_ms, mut other_ms) = (f64::INFINITY, f64::INFINITY);
        for candidate in candidates {
            let best =
                if self.is_holder(request, candidate) { &mut holder_ms } else { &mut other_ms };
            *best = best.min(self.wait_ms(&forecast, candidate));
        }
        let is_too_dear = self.penalty_ms_max > 0.0 && holder_ms - other_ms > self.penalty_ms_max;
        if holder_ms == f64::INFINITY || is_too_dear {
            return;
        }
        for (keep, candidate) in keep.iter_mut().zip(candidates) {
            *keep = self.is_holder(request, candidate);
        }
    }

    fn knows_more(&self) -> bool {
        true
    }
}
