//! What a decision needs to know of a request.

use types::{AdapterId, Timestamp};

use crate::Candidate;

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
    /// Tokens in one of those blocks; 0 if the blocks share the prompt's tokens evenly.
    pub block_tokens: u32,
    /// The adapter that the request names; `None` for the base model.
    pub adapter: Option<AdapterId>,
    /// Hash of the session that the request belongs to.
    pub session: Option<u64>,
    /// Endpoints that must not be chosen (again), as a retry excludes those that failed.
    pub excluded: &'a [types::EndpointId],
    /// Its turn has come: it goes even if every endpoint is full by now.
    pub is_admitted: bool,
}

impl RequestView<'_> {
    /// Prompt tokens that the candidate would have to compute. An engine that holds the whole
    /// prompt still computes its last token.
    pub fn uncached_tokens(&self, candidate: &Candidate) -> f32 {
        let prompt = self.prompt_tokens as f32;
        let matched = candidate.matched_blocks.min(self.prompt_blocks) as f32;
        let cached = match self.block_tokens {
            0 if self.prompt_blocks == 0 => 0.0,
            0 => prompt * matched / self.prompt_blocks as f32,
            tokens => matched * tokens as f32,
        };
        (prompt - cached).max(1.0)
    }
}
