//! Prefers endpoints where the request costs least time.

#[cfg(test)]
mod tests;

use super::Scorer;
use crate::{Candidate, Forecast, Prices, RequestView};

/// Share by which costs may differ and be the same.
const SAME: f32 = 0.01;

/// Least cost / own cost, in milliseconds: 1.0 for the cheapest, 0.5 for one twice as dear.
///
/// A ratio, unlike (max − own) / (max − min), does not depend on how bad the worst endpoint is: one
/// that is a hundred times slower would push all others together at the upper end, and any other
/// scorer's whim would decide between them. Alone it picks the cheapest.
///
/// Costs within 1 % of the least are the least: no prediction is that exact, and among equals chance
/// spreads light traffic and keeps gateways from herding.
///
/// Source: shortest expected delay with learned speeds; the cost is [`Forecast::cost_ms`].
#[derive(Clone, Copy, Debug, Default)]
pub struct ExpectedTimeScorer {
    pub prices: Prices,
}

impl Scorer for ExpectedTimeScorer {
    fn name(&self) -> &'static str {
        "expected-time"
    }

    fn score(&self, request: &RequestView<'_>, candidates: &[Candidate], scores: &mut [f32]) {
        let forecast = Forecast::new(self.prices, request);
        let mut least = f32::MAX;
        for (score, candidate) in scores.iter_mut().zip(candidates) {
            *score = forecast.cost_ms(candidate);
            least = least.min(*score);
        }
        for score in scores {
            let share = least / *score;
            *score = if share > 1.0 - SAME { 1.0 } else { share };
        }
    }
}
