//! Keeps the endpoints that a rule about labels names.

use types::EndpointId;

use super::Filter;
use crate::{Candidate, RequestView};

/// Drops every endpoint that is not on a list, even if none is left. Labels change only with the list
/// of endpoints, so the rule is evaluated when that is, not for each request.
///
/// Source: `label-selector-filter`, `by-label` and `decode-filter` of llm-d.
#[derive(Clone, Debug)]
pub struct LabelFilter {
    /// Sorted.
    kept: Box<[EndpointId]>,
}

impl LabelFilter {
    pub fn new(kept: impl IntoIterator<Item = EndpointId>) -> Self {
        let mut kept: Vec<_> = kept.into_iter().collect();
        kept.sort_unstable();
        Self { kept: kept.into() }
    }
}

impl Filter for LabelFilter {
    fn name(&self) -> &'static str {
        "label-selector"
    }

    fn filter(&self, _request: &RequestView<'_>, candidates: &[Candidate], keep: &mut [bool]) {
        for (keep, candidate) in keep.iter_mut().zip(candidates) {
            *keep = self.kept.binary_search(&candidate.endpoint).is_ok();
        }
    }

    fn knows_more(&self) -> bool {
        true
    }
}
