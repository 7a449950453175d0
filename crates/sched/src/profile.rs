//! A named list of filters, weighted scorers and one picker: how one decision is made.

#[cfg(test)]
mod tests;
mod weights;

pub use weights::Weights;

use std::fmt;
use std::sync::atomic::AtomicU32;

use rand::Rng;

use crate::speed::Company;
use crate::{
    AsleepFilter, Candidate, EjectedFilter, Filter, Forecast, LeastRequestScorer, NotServingFilter,
    PICKS_MAX, Picker, Prices, Receipt, RequestView, Scorer, StaleFilter, saturation,
};

/// Filter name under which saturated candidates are removed.
const SATURATED: &str = "saturated";

/// Why a request got no endpoint.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScheduleError {
    #[error("the pool has no endpoint")]
    NoCandidates,
    #[error("filter `{filter}` removed every candidate")]
    FilteredOut { filter: &'static str },
    /// Shed the request: come back when work has drained.
    #[error("every endpoint is saturated")]
    Saturated,
}

/// A scorer and what its scores are multiplied by.
pub struct WeightedScorer {
    pub scorer: Box<dyn Scorer>,
    /// Finite and not negative.
    pub weight: f32,
}

/// How to decide.
#[derive(Debug)]
pub struct Profile {
    pub name: &'static str,
    /// Applied in order.
    pub filters: Vec<Box<dyn Filter>>,
    pub scorers: Vec<WeightedScorer>,
    pub picker: Picker,
    /// Removes saturated endpoints after the filters; `None` sends whatever the load.
    pub saturation: Option<saturation::Config>,
    /// Sends to a full endpoint while another has room, if the scorers prefer it: the expected time
    /// knows what waiting there means, and the one with room may have a long prompt before it.
    pub keeps_full: bool,
    /// Endpoints in one answer, 1 to [`PICKS_MAX`].
    pub picks_max: usize,
    /// What the endpoints' learned speeds say of each other.
    pub company: Company,
}

/// Buffers that decisions reuse, one per thread; after the first few no decision allocates.
#[derive(Clone, Debug, Default)]
pub struct Scratch {
    keep: Vec<bool>,
    scores: Vec<f32>,
    totals: Vec<f32>,
    order: Vec<u32>,
}

impl Profile {
    /// The field's weighted scorers, with our own accounting of load.
    pub fn from_weights(weights: &Weights) -> Self {
        Self {
            scorers: weights.scorers(),
            keeps_full: weights.expected_time > 0.0,
            ..Self::bare("weighted", Picker::MaxScore)
        }
    }

    /// Each endpoint in turn, whatever its load. For comparison.
    pub fn round_robin() -> Self {
        Self {
            saturation: None,
            ..Self::bare("round-robin", Picker::RoundRobin(AtomicU32::new(0)))
        }
    }

    /// The endpoint with the fewest requests of this gateway. For comparison.
    pub fn least_request() -> Self {
        let scorer = WeightedScorer { scorer: Box::new(LeastRequestScorer), weight: 1.0 };
        Self {
            saturation: None,
            scorers: vec![scorer],
            ..Self::bare("least-request", Picker::MaxScore)
        }
    }

    /// Sets the largest share of a pool that failures may eject, `0.0..=1.0`.
    #[must_use]
    pub fn with_ejected_max(mut self, failing_max: f32) -> Self {
        for filter in &mut self.filters {
            if filter.name() == EjectedFilter::NAME {
                *filter = Box::new(EjectedFilter { failing_max });
            }
        }
        self
    }

    /// The standard filters and nothing to score by.
    fn bare(name: &'static str, picker: Picker) -> Self {
        Self {
            name,
            filters: vec![
                Box::new(NotServingFilter),
                Box::new(AsleepFilter),
                Box::new(EjectedFilter::default()),
                Box::new(StaleFilter),
            ],
            scorers: Vec::new(),
            picker,
            saturation: Some(saturation::Config::default()),
            keeps_full: false,
            picks_max: PICKS_MAX,
            company: Company::default(),
        }
    }

    /// Orders the candidates: indices into `candidates` as it is after the call, best first.
    ///
    /// * `candidates`: one per endpoint of the pool, with `matched_blocks` filled in. They are
    ///   reordered (survivors of the filters first) and get their `saturation`.
    /// * `receipt`: filled with everything that led to the decision; costs allocations.
    ///
    /// Allocates nothing once `scratch` is warm, unless there is a receipt.
    pub fn pick<'s, R: Rng + ?Sized>(
        &self,
        request: &RequestView<'_>,
        candidates: &mut [Candidate],
        scratch: &'s mut Scratch,
        rng: &mut R,
        mut receipt: Option<&mut Receipt>,
    ) -> Result<&'s [u32], ScheduleError> {
        self.company.renew(candidates.iter().map(|candidate| &candidate.speed), request.now);
        let (mut in_order, mut some_has_room) = (request.excluded.is_empty(), false);
        for candidate in candidates.iter_mut() {
            candidate.speed = self.company.settle(&candidate.speed);
            if let Some(saturation) = &self.saturation {
                candidate.saturation = saturation.endpoint(candidate);
                some_has_room |= candidate.saturation < 1.0;
            }
            in_order &= candidate.is_in_order();
        }
        if let Some(receipt) = receipt.as_deref_mut() {
            receipt.begin(candidates);
            receipt.profile = self.name;
            receipt.picker = self.picker.name();
            receipt.scorers.extend(self.scorers.iter().map(|s| (s.scorer.name(), s.weight)));
        }
        let is_idle = in_order
            && (self.saturation.is_none() || (self.keeps_full && some_has_room))
            && !self.filters.iter().any(|filter| filter.knows_more());
        let survivors = match is_idle && !candidates.is_empty() {
            true => candidates.len(),
            false => self.filter(request, candidates, &mut scratch.keep, receipt.as_deref_mut())?,
        };
        let candidates = &mut candidates[..survivors];
        self.score(request, candidates, scratch, receipt.as_deref_mut());
        let Scratch { totals, order, .. } = scratch;
        self.picker.pick(candidates, totals, self.picks_max, order, rng);
        let picked = &candidates[order[0] as usize];
        for weighted in &self.scorers {
            weighted.scorer.picked(request, candidates, picked);
        }
        if let Some(receipt) = receipt {
            receipt.order.extend(order.iter().map(|at| candidates[*at as usize].endpoint));
        }
        Ok(order)
    }

    /// Moves survivors to the front and says how many there are, at least one.
    fn filter(
        &self,
        request: &RequestView<'_>,
        candidates: &mut [Candidate],
        keep: &mut Vec<bool>,
        mut receipt: Option<&mut Receipt>,
    ) -> Result<usize, ScheduleError> {
        let mut survivors = candidates.len();
        if survivors == 0 {
            return Err(ScheduleError::NoCandidates);
        }
        for filter in &self.filters {
            let kept = &mut candidates[..survivors];
            keep.clear();
            keep.resize(survivors, true);
            filter.filter(request, kept, keep);
            survivors = remove(kept, keep, filter.name(), receipt.as_deref_mut());
            if survivors == 0 {
                return Err(ScheduleError::FilteredOut { filter: filter.name() });
            }
        }
        if self.saturation.is_some() {
            let kept = &mut candidates[..survivors];
            keep.clear();
            let has_room = |candidate: &Candidate| candidate.saturation < 1.0;
            // All or none: with room somewhere, or without any for a request whose turn has come.
            let some_has_room = kept.iter().any(has_room);
            if (self.keeps_full && some_has_room) || (request.is_admitted && !some_has_room) {
                return Ok(survivors);
            }
            keep.extend(kept.iter().map(has_room));
            survivors = remove(kept, keep, SATURATED, receipt);
            if survivors == 0 {
                return Err(ScheduleError::Saturated);
            }
        }
        Ok(survivors)
    }

    fn score(
        &self,
        request: &RequestView<'_>,
        candidates: &[Candidate],
        scratch: &mut Scratch,
        mut receipt: Option<&mut Receipt>,
    ) {
        let Scratch { scores, totals, .. } = scratch;
        totals.clear();
        totals.resize(candidates.len(), 0.0);
        scores.clear();
        scores.resize(candidates.len(), 0.0);
        if let Some(receipt) = receipt.as_deref_mut() {
            let forecast = Forecast::new(Prices::default(), request);
            for (entry, candidate) in receipt.survivors().zip(candidates) {
                entry.predicted_ms = Some(forecast.ttft_ms(candidate));
            }
        }
        for WeightedScorer { scorer, weight } in &self.scorers {
            scorer.score(request, candidates, scores);
            debug_assert!(
                scores.iter().all(|score| (0.0..=1.0).contains(score)),
                "`{}` left 0..=1",
                scorer.name()
            );
            for (total, score) in totals.iter_mut().zip(scores.iter()) {
                *total += weight * score;
            }
            if let Some(receipt) = receipt.as_deref_mut() {
                for (entry, score) in receipt.survivors().zip(scores.iter()) {
                    entry.scores.push(*score);
                    entry.total += weight * score;
                }
            }
        }
    }
}

/// Moves kept candidates to the front in their order and returns their number.
fn remove(
    candidates: &mut [Candidate],
    keep: &[bool],
    filter: &'static str,
    mut receipt: Option<&mut Receipt>,
) -> usize {
    if keep.iter().all(|keep| *keep) {
        return candidates.len();
    }
    let mut kept = 0;
    for at in 0..candidates.len() {
        if keep[at] {
            if kept != at {
                candidates.swap(kept, at);
            }
            kept += 1;
        } else if let Some(receipt) = receipt.as_deref_mut()
            && let Some(entry) = receipt.entry(candidates[at].endpoint)
        {
            entry.removed_by = Some(filter);
        }
    }
    kept
}

impl fmt::Debug for WeightedScorer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} * {}", self.weight, self.scorer.name())
    }
}

impl fmt::Debug for dyn Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
