//! What an endpoint says about itself.

use crate::{AdapterId, EngineKind, Ratio};

/// One scrape, translated from the engine's own names. `None`: this engine does not say.
///
/// Filled by one parser per engine (`engines`), read by `sched`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EndpointMetrics {
    pub engine: EngineKind,
    /// Requests accepted but not in the running batch.
    pub waiting: Option<u32>,
    /// Of these, requests set aside for want of an adapter slot or the like, while others pass them.
    pub waiting_deferred: Option<u32>,
    /// Requests in the running batch.
    pub running: Option<u32>,
    /// Most requests the running batch can hold.
    pub running_max: Option<u32>,
    /// Share of KV blocks that running requests refer to. Says nothing about what is cached.
    pub kv_usage: Option<Ratio>,
    /// Tokens in one KV block.
    pub block_size_tokens: Option<u32>,
    /// KV blocks in all.
    pub block_count: Option<u64>,
    /// Prompt tokens looked up in the engine's prefix cache since its start.
    pub prefix_query_tokens: Option<u64>,
    /// Those of them that were found.
    pub prefix_hit_tokens: Option<u64>,
    /// The engine sleeps (weights off the GPU) and must not get requests.
    pub asleep: bool,
    pub lora: Option<LoraMetrics>,
}

/// Adapters as the engine reports them: only those with requests, not those resident and idle.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LoraMetrics {
    /// Adapters that fit on the GPU at once.
    pub max: u32,
    pub running: Vec<AdapterId>,
    pub waiting: Vec<AdapterId>,
}
