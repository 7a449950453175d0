//! From a request to a member.
//!
//! 1. Who can take it: serves the name, has the labels, is alive ([`rating`]).
//! 2. What each would cost ([`crate::cost`], or the weights), and how gladly it is used.
//! 3. Local members while they have room; price and carbon inside the slack of the latency target ([`picking`]).
//! 4. Of those that differ by less than the margin: where the session is, else the better of two drawn by capacity.

mod picking;
mod rating;
#[cfg(test)]
mod tests;

use std::time::Duration;

use rand::Rng;
use types::Timestamp;

use crate::choice::{Candidate, Choice, Pick, Refusal};
use crate::fleet::Fleet;
use crate::member::MemberId;
use crate::report;
use crate::request::Request;
use crate::shaping::Money;
use picking::{best, second};
use rating::{Grade, Rated};

/// Memory that decisions reuse.
#[derive(Debug, Default)]
pub struct Scratch {
    rated: Vec<Rated>,
    /// Positions in `rated` of those that it is between.
    tier: Vec<u16>,
}

impl Fleet {
    /// Decides. No allocation once `scratch` has grown.
    pub fn choose(
        &self,
        request: &Request<'_>,
        scratch: &mut Scratch,
        rng: &mut impl Rng,
        now: Timestamp,
    ) -> Result<Choice, Refusal> {
        let view = self.view();
        self.rate(&view, request, scratch, now)?;
        let (first, reason) = self.pick(request, scratch, rng);
        let Scratch { rated, .. } = scratch;
        let second = second(rated, first);
        let soonest = best(rated, |rated| rated.expected.ttft);
        let hash = report::hash(request.model);
        let pick = |at: usize| {
            let rated = rated.get(at)?;
            let standing = view.standings.get(usize::from(rated.member))?;
            let served = standing.report.as_deref()?.find(request.model, hash)?;
            Some(Pick {
                member: MemberId(rated.member),
                slot: served.books.slot.clone(),
                expected: millis(rated.expected.ttft),
                expected_inside: millis(rated.expected.inside),
                round_trip: standing.round_trip,
                price: rated.price,
            })
        };
        let price_soonest = rated.get(soonest).map_or(Money::ZERO, |rated| rated.price);
        Ok(Choice {
            first: pick(first).ok_or(Refusal::UnknownModel)?,
            second: second.and_then(pick),
            reason,
            price_soonest,
            candidates: rated.len() as u16,
        })
    }

    /// What a decision would see, for explanations.
    pub fn candidates(
        &self,
        request: &Request<'_>,
        scratch: &mut Scratch,
        now: Timestamp,
    ) -> Result<Vec<Candidate>, Refusal> {
        self.rate(&self.view(), request, scratch, now)?;
        let candidates = scratch.rated.iter().map(|rated| Candidate {
            member: MemberId(rated.member),
            expected: millis(rated.expected.ttft),
            score: rated.score,
            load: rated.load,
            price: rated.price,
            is_local: rated.is_local,
            is_full: rated.grade >= Grade::Full,
        });
        Ok(candidates.collect())
    }
}

fn millis(ms: f32) -> Duration {
    Duration::from_secs_f32(ms.clamp(0.0, 1e7) / 1e3)
}
