//! A decision once more, under another policy, from what its receipt holds.

use std::str::FromStr;

use rand::SeedableRng;
use sched::{Candidate, Profile, Receipt, Scratch, Weights};
use telemetry::clock;
use types::Timestamp;

use crate::Gateway;
use crate::decisions::Decision;
use crate::exchange::placement::request_view;
use crate::explain::DecisionView;

/// The policy by which to rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RatedBy {
    /// The expected time, as in a document that says nothing of policies.
    Wicketgate,
    /// The field's 2/2/3.
    Reference,
}

/// The name is none of a policy's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no such policy: `wicketgate` and `reference` can be asked for")]
pub struct UnknownPolicy;

impl FromStr for RatedBy {
    type Err = UnknownPolicy;

    fn from_str(name: &str) -> Result<Self, UnknownPolicy> {
        match name {
            "wicketgate" => Ok(Self::Wicketgate),
            "reference" => Ok(Self::Reference),
            _ => Err(UnknownPolicy),
        }
    }
}

impl Gateway {
    /// What would have become of a decision under another policy. Nothing is reserved or remembered.
    ///
    /// The candidates are those of the receipt, as they were then. Their learned speeds had been settled
    /// with their company and are settled once more, which moves a prediction by a few per cent; equal
    /// totals are drawn anew. `None`: the decision is no longer kept.
    pub fn rerate(&self, number: usize, by: RatedBy, now: Timestamp) -> Option<DecisionView> {
        // Copied, so that the request that wants this place next need not wait for the rating.
        let (target, route, prompt, mut candidates) = self.decisions.with(number, |decision| {
            let Decision { target, route, decided, receipt, .. } = decision;
            let candidates: Vec<Candidate> =
                receipt.candidates.iter().map(|entry| entry.candidate.clone()).collect();
            (target.clone(), *route, decided.prompt, candidates)
        })?;
        let weights = match by {
            RatedBy::Wicketgate => Weights::default(),
            RatedBy::Reference => Weights::REFERENCE,
        };
        let mut profile =
            Profile::from_weights(&weights).with_ejected_max(self.spec().ejection.share.get());
        profile.saturation = Some(target.pool.settings.saturation);
        let request = request_view(self, &prompt, now);
        let (mut scratch, mut receipt) = (Scratch::default(), Receipt::default());
        // The same numbers each time: who asks twice is told the same.
        let mut rng = rand_pcg::Pcg64Mcg::seed_from_u64(number as u64);
        let begun = clock::now();
        let picked =
            profile.pick(&request, &mut candidates, &mut scratch, &mut rng, Some(&mut receipt));
        let took = clock::now().since(begun);
        let refused = picked.err().map(|error| error.to_string());
        let mut view = DecisionView::new(route, &target, &prompt, &receipt);
        view.took_us = took.as_nanos() as f64 / 1000.0;
        view.refused = refused;
        Some(view)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{at, body, exchange, gateway, pool_of, scrape};

    #[test]
    fn the_field_follows_the_shorter_queue_where_the_expected_time_does_not() {
        let gateway = gateway(
            "  schedulers:\n  - name: chat\n    modelName: llama\n    weights: { kvCache: 1, predictedLatency: 0 }\n    \
             endpoints: [{ url: 'http://10.0.0.1:8000' }, { url: 'http://10.0.0.2:8000' }]\n",
        );
        scrape(&gateway, 0, 0, 0.8);
        scrape(&gateway, 1, 20, 0.1);
        exchange(&gateway).place(&body("llama"), None, at(0)).unwrap();
        let decision = &gateway.decisions(None, 1)[0];
        assert_eq!(decision.order[0], "10.0.0.2:8000");
        let number = decision.number.unwrap();

        let reference = gateway.rerate(number, RatedBy::Reference, at(1)).unwrap();
        let names: Vec<_> = reference.scorers.iter().map(|scorer| scorer.name.as_str()).collect();
        assert_eq!(names, ["queue", "kv-cache", "prefix"]);
        assert_eq!(reference.candidates.len(), 2);
        assert_eq!(reference.number, None, "nothing was decided");
        let ours = gateway.rerate(number, RatedBy::Wicketgate, at(1)).unwrap();
        assert_eq!(ours.order[0], "10.0.0.1:8000", "twenty wait at the other");
    }

    #[test]
    fn rating_again_leaves_no_trace() {
        let gateway = pool_of(2);
        exchange(&gateway).place(&body("llama"), None, at(0)).unwrap();
        let number = gateway.decisions(None, 1)[0].number.unwrap();
        let before = crate::testing::in_flight(&gateway);
        gateway.rerate(number, RatedBy::Reference, at(1)).unwrap();
        assert_eq!(gateway.decisions(None, 10).len(), 1);
        assert_eq!(crate::testing::in_flight(&gateway), before);
    }

    #[test]
    fn a_decision_that_is_no_longer_kept_is_not_rated() {
        let gateway = pool_of(1);
        for _ in 0..300 {
            exchange(&gateway).place(&body("llama"), None, at(0)).unwrap();
        }
        assert!(gateway.rerate(0, RatedBy::Reference, at(1)).is_none());
        assert!(gateway.rerate(299, RatedBy::Reference, at(1)).is_some());
        assert!(gateway.rerate(300, RatedBy::Reference, at(1)).is_none());
    }

    #[test]
    fn only_known_policies_have_names() {
        assert_eq!("reference".parse(), Ok(RatedBy::Reference));
        assert_eq!("wicketgate".parse(), Ok(RatedBy::Wicketgate));
        assert_eq!("random".parse::<RatedBy>(), Err(UnknownPolicy));
    }
}
