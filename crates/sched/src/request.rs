//! What a decision needs to know of a request.

use types::{AdapterId, Timestamp};

/// A request as filters and scorers see it.
#[derive(Clone, Copy, Debug, Default)]
pub struct RequestView<'a> {
    pub now: Timestamp,
    /// Full prefix blocks of the prompt; [`Candidate::matched_blocks`] counts within these.
    ///
    /// [`Candidate::matched_blocks`]: crate::Candidate::matched_blocks
    pub prompt_blocks: u32,
    /// Estimated tokens of the prompt.
    pub prompt_tokens: u32,
    /// The adapter that the request names; `None` for the base model.
    pub adapter: Option<AdapterId>,
    /// Hash of the session that the request belongs to.
    pub session: Option<u64>,
    /// Endpoints that must not be chosen (again), as a retry excludes those that failed.
    pub excluded: &'a [types::EndpointId],
}
