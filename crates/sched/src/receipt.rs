//! Why a request went where it went: every raw signal, filter, score and weight of one decision.

use types::EndpointId;

use crate::Candidate;

/// One decision, explained. Built only when asked for.
#[derive(Clone, Debug, Default)]
pub struct Receipt {
    pub profile: &'static str,
    pub picker: &'static str,
    /// Scorers in order, with their weights.
    pub scorers: Vec<(&'static str, f32)>,
    /// Every candidate that was offered, in the order given.
    pub candidates: Vec<CandidateReceipt>,
    /// Chosen endpoints, best first; empty if the pick failed.
    pub order: Vec<EndpointId>,
}

/// One candidate's part of a [`Receipt`].
#[derive(Clone, Debug)]
pub struct CandidateReceipt {
    pub candidate: Candidate,
    /// The filter that removed it.
    pub removed_by: Option<&'static str>,
    /// Expected time to the first token there, milliseconds; `None` if removed.
    pub predicted_ms: Option<f32>,
    /// One score per scorer, unweighted; empty if removed.
    pub scores: Vec<f32>,
    /// Sum of weight times score; 0.0 if removed.
    pub total: f32,
}

impl Receipt {
    /// What the filter `name` removed.
    pub fn removed_by<'a>(&'a self, name: &'a str) -> impl Iterator<Item = EndpointId> + 'a {
        self.candidates
            .iter()
            .filter(move |entry| entry.removed_by == Some(name))
            .map(|entry| entry.candidate.endpoint)
    }

    pub(crate) fn begin(&mut self, candidates: &[Candidate]) {
        self.candidates.clear();
        self.order.clear();
        self.scorers.clear();
        self.candidates.extend(candidates.iter().map(|candidate| CandidateReceipt {
            candidate: candidate.clone(),
            removed_by: None,
            predicted_ms: None,
            scores: Vec::new(),
            total: 0.0,
        }));
    }

    /// Those that no filter removed, in the order in which filters leave candidates: as given.
    pub(crate) fn survivors(&mut self) -> impl Iterator<Item = &mut CandidateReceipt> {
        self.candidates.iter_mut().filter(|entry| entry.removed_by.is_none())
    }

    pub(crate) fn entry(&mut self, endpoint: EndpointId) -> Option<&mut CandidateReceipt> {
        self.candidates.iter_mut().find(|entry| entry.candidate.endpoint == endpoint)
    }
}
