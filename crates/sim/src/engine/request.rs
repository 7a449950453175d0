//! A request as the engine sees it: lengths, block hashes and an adapter; never text.

use types::{AdapterId, Timestamp};

use super::blocks::{Block, BlockHash};

/// Names a request; chosen by whoever submits it, unique among those in the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub u64);

/// What is submitted.
#[derive(Clone, Debug)]
pub struct RequestSpec {
    pub id: RequestId,
    /// Hashes of the prompt's full blocks, in order: `prompt_tokens / block_size` of them, or
    /// none if the prompt shares nothing with anyone.
    pub prompt_blocks: Vec<BlockHash>,
    /// Hashes of the blocks that the answer fills, the first of them begun by the prompt's last
    /// tokens. May be empty: then the answer is not found again.
    pub answer_blocks: Vec<BlockHash>,
    /// At least 1.
    pub prompt_tokens: u32,
    /// Tokens after which the request is finished, at least 1. The engine does not look ahead.
    pub output_tokens: u32,
    /// Most tokens that the answer could have, as far as the server knows; what
    /// [`super::Reservation::WholeAnswer`] reserves.
    pub output_tokens_max: u32,
    pub adapter: Option<AdapterId>,
    /// When the HTTP request was complete.
    pub arrived: Timestamp,
}

/// Why a request was not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SubmitError {
    #[error("the waiting queue is full")]
    QueueFull,
    #[error("{tokens} tokens do not fit into a context of {limit}")]
    TooLong { tokens: u32, limit: u32 },
    #[error("this engine takes no LoRA adapters")]
    LoraDisabled,
    #[error("a request with this id is already here")]
    Duplicate,
}

/// What happened in a step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Event {
    /// Taken into the running batch; `cached_tokens` of the prompt were found.
    Admitted { id: RequestId, cached_tokens: u32 },
    /// The prompt is computed and the first output token is there.
    FirstToken { id: RequestId },
    /// One more output token.
    Token { id: RequestId },
    /// All tokens are there. Comes right after the last token.
    Finished { id: RequestId, times: RequestTimes },
    /// Lost its blocks to the requests before it and starts over.
    Preempted { id: RequestId },
    /// Brought onto the GPU within the step; everyone in it waited.
    AdapterLoaded { adapter: AdapterId },
}

/// A finished request's life.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RequestTimes {
    pub arrived: Timestamp,
    pub admitted: Timestamp,
    pub first_token: Timestamp,
    pub finished: Timestamp,
    pub prompt_tokens: u32,
    pub cached_tokens: u32,
    pub output_tokens: u32,
    pub preemptions: u32,
}

/// A request inside the engine.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) spec: RequestSpec,
    pub(super) blocks: Vec<Block>,
    /// Leading blocks that bear their hash already.
    pub(super) named: u32,
    /// Tokens whose KV is in `blocks`.
    pub(super) computed: u32,
    /// Output tokens so far.
    pub(super) generated: u32,
    pub(super) cached_tokens: u32,
    pub(super) admitted: Option<Timestamp>,
    pub(super) first_token: Option<Timestamp>,
    pub(super) preemptions: u32,
}

impl Request {
    pub(super) fn new(spec: RequestSpec) -> Self {
        Self {
            spec,
            blocks: Vec::new(),
            named: 0,
            computed: 0,
            generated: 0,
            cached_tokens: 0,
            admitted: None,
            first_token: None,
            preemptions: 0,
        }
    }

    /// Prompt and output tokens there are.
    pub(super) fn length(&self) -> u32 {
        self.spec.prompt_tokens + self.generated
    }

    /// Tokens not yet computed; 1 while decoding.
    pub(super) fn left(&self) -> u32 {
        self.length() - self.computed
    }

    /// The hash of the block at `at`, if its content is known.
    pub(super) fn hash(&self, at: usize) -> Option<BlockHash> {
        let prompt = &self.spec.prompt_blocks;
        prompt.get(at).or_else(|| self.spec.answer_blocks.get(at - prompt.len())).copied()
    }

    pub(super) fn times(&self, finished: Timestamp) -> RequestTimes {
        RequestTimes {
            arrived: self.spec.arrived,
            admitted: self.admitted.unwrap_or(finished),
            first_token: self.first_token.unwrap_or(finished),
            finished,
            prompt_tokens: self.spec.prompt_tokens,
            cached_tokens: self.cached_tokens,
            output_tokens: self.generated,
            preemptions: self.preemptions,
        }
    }
}
