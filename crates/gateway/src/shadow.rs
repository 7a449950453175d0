//! A second policy that sees live requests and decides nothing.
//!
//! It rates a copy of the candidates, as they were before the real decision, with the same random
//! numbers, so that two equal policies always agree. A pool without a shadow pays for a look at an
//! `Option`.

#[cfg(test)]
mod tests;

use rand::RngExt;
use sched::{Candidate, Forecast, Profile, RequestView, Scratch};
use telemetry::PoolMetrics;
use telemetry::metrics::labels;
use types::EndpointId;

/// A pool's policy on trial.
#[derive(Debug)]
pub(crate) struct Shadow {
    pub(crate) profile: Profile,
    /// Share of requests that it rates, `0.0..=1.0`.
    pub(crate) share: f32,
}

/// Memory that one thread uses again for each of its shadow decisions.
pub(crate) struct ShadowDesk {
    candidates: Vec<Candidate>,
    scratch: Scratch,
    /// For the share; apart from the real decisions' numbers, so that a shadow cannot change them.
    chance: rand_pcg::Pcg64Mcg,
    /// The real decision's numbers from before it.
    rng: rand_pcg::Pcg64Mcg,
}

/// What the shadow would have done, beside what was done.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ShadowChoice {
    /// `None`: it found no endpoint.
    pub(crate) endpoint: Option<EndpointId>,
    pub(crate) is_same: bool,
    /// Expected time to the first token where the request went, milliseconds.
    pub(crate) chosen_ms: f32,
    /// The same where the shadow would have sent it.
    pub(crate) shadow_ms: Option<f32>,
}

impl ShadowDesk {
    pub(crate) fn new(chance: rand_pcg::Pcg64Mcg) -> Self {
        Self { candidates: Vec::new(), scratch: Scratch::default(), rng: chance.clone(), chance }
    }

    /// Keeps what the real decision is about to see, if the shadow rates this one.
    pub(crate) fn keep<'s>(
        &mut self,
        shadow: Option<&'s Shadow>,
        candidates: &[Candidate],
        rng: &rand_pcg::Pcg64Mcg,
    ) -> Option<&'s Shadow> {
        let shadow = shadow?;
        if self.chance.random::<f32>() >= shadow.share {
            return None;
        }
        self.candidates.clear();
        self.candidates.extend_from_slice(candidates);
        self.rng.clone_from(rng);
        Some(shadow)
    }

    /// Decides as the shadow would have, on what was kept.
    ///
    /// * `chosen`: the candidate that the request goes to.
    pub(crate) fn decide(
        &mut self,
        shadow: &Shadow,
        request: &RequestView<'_>,
        forecast: &Forecast<'_>,
        chosen: &Candidate,
    ) -> ShadowChoice {
        let Self { candidates, scratch, rng, .. } = self;
        let picked = shadow.profile.pick(request, candidates, scratch, rng, None).ok();
        let best = picked.and_then(|order| candidates.get(*order.first()? as usize));
        ShadowChoice {
            endpoint: best.map(|best| best.endpoint),
            is_same: best.is_some_and(|best| best.endpoint == chosen.endpoint),
            chosen_ms: forecast.ttft_ms(chosen),
            shadow_ms: best.map(|best| forecast.ttft_ms(best)),
        }
    }
}

impl ShadowChoice {
    /// What following the shadow would have saved, milliseconds; negative: what it would have cost.
    pub(crate) fn regret_ms(&self) -> Option<f32> {
        self.shadow_ms.map(|shadow_ms| self.chosen_ms - shadow_ms)
    }

    pub(crate) fn count(&self, metrics: &PoolMetrics) {
        let outcome = match self.endpoint {
            None => labels::Shadow::Refused,
            Some(_) if self.is_same => labels::Shadow::Same,
            Some(_) => labels::Shadow::Different,
        };
        metrics.shadow_decisions.of(outcome).inc();
        if let Some(regret_ms) = self.regret_ms() {
            metrics.shadow_regret.observe(f64::from(regret_ms) / 1000.0);
        }
    }
}
