//! One template: the chain of blocks that stands for it, and where its prompts part from it.

use std::time::Duration;

use types::{PoolName, Timestamp};

use super::TemplateView;
use super::judge::Regression;
use super::memory::{Fade, Memory, Pace, span};
use crate::BlockHash;

/// Share of the usual depth that a prompt must follow a spine to be one that follows it.
const DEEP: f64 = 0.9;

#[derive(Debug)]
pub(super) struct Spine {
    pub(super) id: u64,
    pub(super) pool: PoolName,
    pub(super) hashes: Box<[BlockHash]>,
    /// The spine from which it branched off, and after how many blocks.
    pub(super) parent: Option<u64>,
    pub(super) branch: usize,
    pub(super) begun: Timestamp,
    /// Prompts by the number of blocks that they share with it: `0..=hashes.len()`.
    pub(super) parted: Box<[Memory]>,
    /// Usual depth, blocks; follows the long memory.
    pub(super) depth: usize,
    pub(super) prompts: Memory,
    pub(super) blocks: Memory,
    pub(super) believed: Memory,
    pub(super) tokens: Memory,
    pub(super) found: Memory,
    pub(super) regression: Option<Regression>,
}

impl Spine {
    pub(super) fn new(
        id: u64,
        pool: PoolName,
        chain: &[BlockHash],
        parent: Option<u64>,
        branch: usize,
        begun: Timestamp,
    ) -> Self {
        Self {
            id,
            pool,
            hashes: chain.into(),
            parent,
            branch,
            begun,
            parted: vec![Memory::default(); chain.len() + 1].into(),
            depth: 0,
            prompts: Memory::default(),
            blocks: Memory::default(),
            believed: Memory::default(),
            tokens: Memory::default(),
            found: Memory::default(),
            regression: None,
        }
    }

    pub(super) fn count(&mut self, shared: usize, blocks: usize, matched_blocks: u32) {
        if let Some(parted) = self.parted.get_mut(shared) {
            parted.add(1.0);
        }
        self.prompts.add(1.0);
        self.blocks.add(blocks as f64);
        self.believed.add(f64::from(matched_blocks).min(blocks as f64));
        if self.depth == 0 {
            self.depth = shared;
        }
    }

    /// Whether a prompt that shares so many blocks with it is one of its kind.
    pub(super) fn is_followed_to(&self, shared: usize) -> bool {
        self.depth > 0 && shared >= self.deep_from()
    }

    /// Blocks from which on a prompt follows it.
    pub(super) fn deep_from(&self) -> usize {
        ((self.depth as f64 * DEEP).ceil() as usize).max(1)
    }

    /// What would be lost with it: prompt blocks, of late and before.
    pub(super) fn weight(&self) -> f64 {
        if self.regression.is_some() { f64::INFINITY } else { self.blocks.long }
    }

    pub(super) fn fade(&mut self, fade: Fade) {
        for parted in &mut self.parted {
            parted.fade(fade);
        }
        for memory in [
            &mut self.prompts,
            &mut self.blocks,
            &mut self.believed,
            &mut self.tokens,
            &mut self.found,
        ] {
            memory.fade(fade);
        }
    }

    /// The depth that half of its prompts reach, by the long memory.
    pub(super) fn usual_depth(&self) -> usize {
        let all: f64 = self.parted.iter().map(|parted| parted.long).sum();
        let mut beyond = 0.0;
        for (shared, parted) in self.parted.iter().enumerate().rev() {
            beyond += parted.long;
            if beyond >= all / 2.0 {
                return shared;
            }
        }
        0
    }

    pub(super) fn age(&self, now: Timestamp) -> Duration {
        now.since(self.begun)
    }

    pub(super) fn view(&self, pace: Pace, now: Timestamp) -> TemplateView {
        let ratio = |part: f64, whole: f64| if whole > 0.0 { part / whole } else { 0.0 };
        let found = ratio(self.found.short, self.tokens.short);
        TemplateView {
            id: self.id,
            pool: self.pool.clone(),
            shared_blocks: u32::try_from(self.depth).unwrap_or(u32::MAX),
            prompt_blocks: ratio(self.blocks.long, self.prompts.long),
            prompts_per_minute: 60.0 * self.prompts.short / span(pace.short, self.age(now)),
            believed_ratio: ratio(self.believed.short, self.blocks.short),
            found_ratio: (self.tokens.short > 0.0).then_some(found),
            regression: self.regression.clone(),
        }
    }
}

/// Blocks that two chains have in common from their beginning. By halving: a block's hash stands for all
/// that comes before it.
pub(super) fn common(one: &[BlockHash], other: &[BlockHash]) -> usize {
    let length = one.len().min(other.len());
    let (mut low, mut high) = (0, length);
    while low < high {
        let middle = low + (high - low) / 2;
        if one[middle] == other[middle] {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}
