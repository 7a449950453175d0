//! Prefers endpoints that are set up for prompts of this length.

use std::sync::Arc;

use types::EndpointId;

use super::Scorer;
use crate::{Candidate, Filter, RequestView};

/// Prompt lengths that endpoints are meant for, from their labels.
#[derive(Clone, Debug, Default)]
pub struct ContextRanges {
    /// Sorted by endpoint.
    ranges: Arc<[(EndpointId, ContextRange)]>,
}

/// What one endpoint's label says. An endpoint without label is for all lengths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContextRange {
    /// Both ends included; `min <= max`.
    Tokens { min: u32, max: u32 },
    /// No range can be read from it.
    Unreadable,
}

impl ContextRange {
    /// Reads `MIN-MAX`, in tokens.
    pub fn of_label(text: &str) -> Self {
        let bounds = text.split_once('-');
        let number = |text: &str| text.trim().parse::<u32>().ok();
        match bounds.and_then(|(min, max)| Some((number(min)?, number(max)?))) {
            Some((min, max)) if min <= max => Self::Tokens { min, max },
            _ => Self::Unreadable,
        }
    }

    /// In range: 0.3 + 0.7 · (0.7 / (1 + width / 10000) + 0.3 · headroom / width), and 1.0 for a range
    /// of one length; else 0.3 / (1 + distance / 1000).
    fn score(self, tokens: u32) -> f64 {
        const OUTSIDE_MAX: f64 = 0.3;
        let Self::Tokens { min, max } = self else { return 0.0 };
        if !(min..=max).contains(&tokens) {
            let distance = if tokens > max { tokens - max } else { min - tokens };
            return OUTSIDE_MAX / (1.0 + f64::from(distance) / 1000.0);
        }
        let width = f64::from(max - min);
        if width == 0.0 {
            return 1.0;
        }
        let narrowness = 1.0 / (1.0 + width / 10_000.0);
        let headroom = f64::from(max - tokens) / width;
        OUTSIDE_MAX + (0.7 * narrowness + 0.3 * headroom) * (1.0 - OUTSIDE_MAX)
    }
}

impl ContextRanges {
    pub fn new(ranges: impl IntoIterator<Item = (EndpointId, ContextRange)>) -> Self {
        let mut ranges: Vec<_> = ranges.into_iter().collect();
        ranges.sort_by_key(|(endpoint, _)| *endpoint);
        Self { ranges: ranges.into() }
    }

    fn of(&self, endpoint: EndpointId) -> Option<ContextRange> {
        let at = self.ranges.binary_search_by_key(&endpoint, |(endpoint, _)| *endpoint).ok()?;
        self.ranges.get(at).map(|(_, range)| *range)
    }
}

/// Rates how well the prompt's length fits the endpoint's range: above 0.3 within it, narrow ranges
/// first; up to 0.3 outside, near ones first; 0.5 without a range.
///
/// Source: `context-length-aware` of llm-d.
#[derive(Clone, Debug)]
pub struct ContextLengthScorer {
    pub ranges: ContextRanges,
}

impl Scorer for ContextLengthScorer {
    fn name(&self) -> &'static str {
        "context-length"
    }

    fn score(&self, request: &RequestView<'_>, candidates: &[Candidate], scores: &mut [f32]) {
        for (score, candidate) in scores.iter_mut().zip(candidates) {
            let range = self.ranges.of(candidate.endpoint);
            *score = range.map_or(0.5, |range| range.score(request.prompt_tokens) as f32);
        }
    }
}

/// Drops endpoints whose range does not contain the prompt's length, even if none is left.
///
/// Source: `context-length-aware` of llm-d with `enableFiltering`.
#[derive(Clone, Debug)]
pub struct ContextLengthFilter {
    pub ranges: ContextRanges,
}

impl Filter for ContextLengthFilter {
    fn name(&self) -> &'static str {
        "context-length"
    }

    fn filter(&self, request: &RequestView<'_>, candidates: &[Candidate], keep: &mut [bool]) {
        for (keep, candidate) in keep.iter_mut().zip(candidates) {
            *keep = match self.ranges.of(candidate.endpoint) {
                None => true,
                Some(ContextRange::Unreadable) => false,
                Some(ContextRange::Tokens { min, max }) => {
                    (min..=max).contains(&request.prompt_tokens)
                }
            };
        }
    }

    fn knows_more(&self) -> bool {
        true
    }
}
