//! What an engine counts, from which each dialect's metrics page is made.

use types::AdapterId;

/// Gauges now and counters since the engine's start.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EngineStats {
    pub running: u32,
    /// Wait for blocks or a place in the batch.
    pub waiting_capacity: u32,
    /// Wait because the step's adapters left no room for theirs.
    pub waiting_deferred: u32,
    pub blocks: u32,
    /// Blocks that some request refers to.
    pub blocks_used: u32,
    /// Blocks whose content would be found again, referred to or not.
    pub blocks_cached: u32,
    /// Adapters of running requests, each once, in order of admission.
    pub running_adapters: Vec<AdapterId>,
    pub waiting_adapters: Vec<AdapterId>,
    /// Prompt tokens looked up in the prefix cache.
    pub prefix_query_tokens: u64,
    pub prefix_hit_tokens: u64,
    pub preemptions: u64,
    /// Prompt tokens of requests whose prompt is computed, cached ones included.
    pub prompt_tokens: u64,
    /// Those of them that came from the prefix cache.
    pub prompt_tokens_cached: u64,
    pub generation_tokens: u64,
    pub steps: u64,
    pub adapter_loads: u64,
    /// Requests refused because the queue was full.
    pub rejected: u64,
}

/// What an engine holds at the moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gauges {
    pub running: u32,
    /// Wait for blocks or a place in the batch.
    pub waiting_capacity: u32,
    /// Wait because the step's adapters left no room for theirs.
    pub waiting_deferred: u32,
    pub blocks: u32,
    /// Blocks that some request refers to.
    pub blocks_used: u32,
}

impl Gauges {
    pub fn waiting(&self) -> u32 {
        self.waiting_capacity + self.waiting_deferred
    }

    /// Share of the blocks that requests refer to, 0 to 1.
    pub fn kv_usage(&self) -> f64 {
        kv_usage(self.blocks_used, self.blocks)
    }
}

impl EngineStats {
    pub fn waiting(&self) -> u32 {
        self.waiting_capacity + self.waiting_deferred
    }

    /// Share of the blocks that requests refer to, 0 to 1.
    pub fn kv_usage(&self) -> f64 {
        kv_usage(self.blocks_used, self.blocks)
    }
}

fn kv_usage(used: u32, blocks: u32) -> f64 {
    if blocks == 0 { 0.0 } else { f64::from(used) / f64::from(blocks) }
}
