//! Which prompts are made from one template, how much of it they share, and when they begin to share less.
//!
//! A template is known by a *spine*: the chain of blocks of one prompt that others were seen to begin with.
//! Each prompt is held against the spines that begin like it, and where the two part is counted: in a short
//! memory and in a long one. When prompts that used to follow a spine to its depth part from it early, all
//! at one block, somebody edited the template there. Bounded in memory and time; what is rare is forgotten.
//!
//! Pure: the time is an argument. Nothing of a prompt leaves but counts and positions.

mod judge;
mod memory;
mod probation;
mod spine;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::time::Duration;

use types::{PoolName, Timestamp};

use crate::BlockHash;
pub use judge::{Cause, Event, Regression};
use memory::{Memory, Pace};
use probation::Probation;
use spine::{Spine, common};

/// Prompts of fewer blocks share too little to matter.
const BLOCKS_MIN: usize = 4;
/// Blocks of a prompt that are looked at: 32,768 tokens of 64-token blocks.
pub(crate) const SPINE_BLOCKS_MAX: usize = 512;
/// Spines in all: two mebibytes.
const SPINES_MAX: usize = 256;
/// Spines that begin with the same block.
const SIBLINGS_MAX: usize = 16;

/// Templates of all pools.
#[derive(Debug)]
pub struct Templates {
    pace: Pace,
    spines: Vec<Spine>,
    /// By first block.
    by_first: HashMap<BlockHash, Vec<usize>>,
    probation: Probation,
    pools: HashMap<PoolName, Strangers>,
    ids: u64,
    ticked: Timestamp,
}

/// Prompts of a pool that begin like no spine.
#[derive(Debug)]
struct Strangers {
    prompts: Memory,
    blocks: Memory,
    begun: Timestamp,
}

/// Where a prompt was counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TemplateRef {
    at: usize,
    id: u64,
}

/// One template as it stands; numbers only.
#[derive(Clone, Debug, PartialEq)]
pub struct TemplateView {
    /// Counts up; of no meaning outside this process.
    pub id: u64,
    pub pool: PoolName,
    /// Blocks from the beginning that its prompts have in common.
    pub shared_blocks: u32,
    /// Mean length of its prompts.
    pub prompt_blocks: f64,
    pub prompts_per_minute: f64,
    /// Share of its blocks that the chosen endpoint was believed to hold, 0 to 1.
    pub believed_ratio: f64,
    /// Share of its tokens that engines found cached, of answers that say so.
    pub found_ratio: Option<f64>,
    pub regression: Option<Regression>,
}

impl Default for Templates {
    fn default() -> Self {
        Self::telling_within(Duration::from_secs(10))
    }
}

impl Templates {
    /// * `short`: half-life of the short memory, at least a millisecond. An edit is told after about two of
    ///   them, if eight prompts come in one; what is usual is remembered 60 times as long.
    pub fn telling_within(short: Duration) -> Self {
        Self {
            pace: Pace { short: short.max(Duration::from_millis(1)) },
            spines: Vec::new(),
            by_first: HashMap::new(),
            probation: Probation::default(),
            pools: HashMap::new(),
            ids: 0,
            ticked: Timestamp::ZERO,
        }
    }

    /// Half-life of the short memory.
    pub fn short_memory(&self) -> Duration {
        self.pace.short
    }

    /// Counts a prompt. `None`: it is too short, or not known to be of a template.
    ///
    /// * `hashes`: its blocks, chained.
    /// * `matched_blocks`: how many of them the chosen endpoint is believed to hold.
    pub fn observe(
        &mut self,
        pool: &PoolName,
        hashes: &[BlockHash],
        matched_blocks: u32,
        now: Timestamp,
    ) -> Option<TemplateRef> {
        if hashes.len() < BLOCKS_MIN {
            return None;
        }
        if self.ticked == Timestamp::ZERO {
            self.ticked = now;
        }
        let blocks = hashes.len();
        let hashes = &hashes[..blocks.min(SPINE_BLOCKS_MAX)];
        let best = self.best(hashes);
        if let Some((at, shared)) = best
            && self.spines[at].is_followed_to(shared)
        {
            return Some(self.count(at, shared, blocks, matched_blocks));
        }
        let shared = best.map_or(0, |(_, shared)| shared);
        if let Some((chain, common)) = self.probation.meet(pool, hashes, shared) {
            let parent = best.map(|(at, _)| self.spines[at].id);
            let at = self.admit(pool, &chain, parent, shared, now);
            return Some(self.count(at, common, blocks, matched_blocks));
        }
        let Some((at, shared)) = best else {
            let strangers = self.pools.entry(pool.clone()).or_insert_with(|| Strangers {
                prompts: Memory::default(),
                blocks: Memory::default(),
                begun: now,
            });
            strangers.prompts.add(1.0);
            strangers.blocks.add(blocks as f64);
            return None;
        };
        Some(self.count(at, shared, blocks, matched_blocks))
    }

    /// Notes what an answer said of the prompt's cached tokens.
    pub fn answered(&mut self, template: TemplateRef, prompt_tokens: u64, cached_tokens: u64) {
        if let Some(spine) = self.spines.get_mut(template.at)
            && spine.id == template.id
        {
            spine.tokens.add(prompt_tokens as f64);
            spine.found.add(cached_tokens as f64);
        }
    }

    /// All templates, those of most blocks first.
    pub fn views(&self, now: Timestamp) -> Vec<TemplateView> {
        let mut views: Vec<_> =
            self.spines.iter().map(|spine| spine.view(self.pace, now)).collect();
        views.sort_by(|a, b| {
            let weight = |view: &TemplateView| view.prompts_per_minute * view.prompt_blocks;
            weight(b).total_cmp(&weight(a))
        });
        views
    }

    /// The spine that the prompt follows longest, and how far.
    fn best(&self, hashes: &[BlockHash]) -> Option<(usize, usize)> {
        let siblings = self.by_first.get(hashes.first()?)?;
        let lengths = siblings.iter().map(|at| (*at, common(&self.spines[*at].hashes, hashes)));
        lengths.max_by_key(|(_, length)| *length)
    }

    fn count(
        &mut self,
        at: usize,
        shared: usize,
        blocks: usize,
        matched_blocks: u32,
    ) -> TemplateRef {
        let spine = &mut self.spines[at];
        spine.count(shared, blocks, matched_blocks);
        TemplateRef { at, id: spine.id }
    }

    /// Makes a spine of a chain that two prompts had in common.
    fn admit(
        &mut self,
        pool: &PoolName,
        chain: &[BlockHash],
        parent: Option<u64>,
        branch: usize,
        now: Timestamp,
    ) -> usize {
        self.ids += 1;
        let spine = Spine::new(self.ids, pool.clone(), chain, parent, branch, now);
        let siblings = self.by_first.get(&chain[0]).map_or(0, Vec::len);
        if self.spines.len() < SPINES_MAX && siblings < SIBLINGS_MAX {
            self.spines.push(spine);
            let at = self.spines.len() - 1;
            self.by_first.entry(chain[0]).or_default().push(at);
            return at;
        }
        // The least of the siblings goes, or of all; never one whose fall is being told.
        let crowded = (siblings >= SIBLINGS_MAX).then(|| self.by_first[&chain[0]].clone());
        let all = || (0..self.spines.len()).collect::<Vec<_>>();
        let candidates = crowded.unwrap_or_else(all);
        let least = candidates.into_iter().min_by(|a, b| {
            let weight = |at: &usize| self.spines[*at].weight();
            weight(a).total_cmp(&weight(b))
        });
        let at = least.unwrap_or(0);
        self.unlink(at);
        self.spines[at] = spine;
        self.by_first.entry(chain[0]).or_default().push(at);
        at
    }

    fn unlink(&mut self, at: usize) {
        let first = self.spines[at].hashes[0];
        if let Some(siblings) = self.by_first.get_mut(&first) {
            siblings.retain(|other| *other != at);
            if siblings.is_empty() {
                self.by_first.remove(&first);
            }
        }
    }

    /// How often [`Self::tick`] should be called.
    pub fn tick_every(&self) -> Duration {
        self.pace.tick()
    }
}
