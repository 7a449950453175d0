//! How much an endpoint really holds, learned from what its answers found.
//!
//! An engine reports how many blocks it has, but part of them is taken by requests under way, by
//! what it generates, and by traffic that we do not see. What is left for the prompts that we
//! remember is the *effective capacity*. Engines evict the least recently used block, so a block
//! that is missing although only `d` blocks were used since says "less than `d`"; one that is
//! there says "at least `d`". The estimate goes down to the largest of eight missing depths that nothing
//! contradicts, and creeps up, faster and faster, while blocks close to its end are found.
//!
//! So it lies at the upper end of what an engine holds as its load comes and goes. To believe too
//! little costs more than too much: a request that is taken for homeless goes elsewhere and takes room
//! there a second time, while one that comes home in vain only computes what it would have computed.

use crate::{Answer, Belief};

/// Missing blocks, with none found deeper in between, that it takes to lower the estimate.
const MISSES: usize = 8;
/// The largest fall at once, in parts of the estimate: chance brings outliers together too.
const FALL_PART: u32 = 8;
/// A block used among the newest part of this size may be missing for other reasons than eviction:
/// the request before is still computing it, or was preempted.
const FRESH_PART: u32 = 16;
/// A block within the oldest part of this size is near the end of what we believe.
const END_PART: u32 = 16;
/// One step up, in parts of the estimate.
const STEP_PART: u32 = 256;
/// Finds near the end, without a miss between, after which steps grow by one.
const STREAK: u32 = 8;
/// Largest step, in small ones.
const STEPS_MAX: u32 = 8;
/// The estimate stays above this part of the reported capacity.
const FLOOR_PART: u32 = 64;
/// Part of the believed blocks by which the rate of characters to tokens may mislead.
const SLACK_PART: u32 = 16;
/// Silence about a fresh block, against answers that speak, until silence means nothing any more.
const SILENCE_STEP: u8 = 4;
const SILENCE_MAX: u8 = 8;

/// An endpoint's capacity in blocks: as reported, and as found.
#[derive(Clone, Copy, Debug)]
pub(super) struct Correction {
    reported: u32,
    effective: u32,
    /// Depths at which blocks were missing, not yet contradicted; the first `missing` count.
    depths: [u32; MISSES],
    missing: u8,
    streak: u32,
    /// The engine has named a number above zero: it counts.
    speaks: bool,
    silence: u8,
}

/// What one answer says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Evidence {
    /// A block is gone though at most so many were used since.
    Missing { depth: u32 },
    /// A block is there though at least so many were used since.
    Held { depth: u32 },
    /// A block is there that we took for evicted.
    Outlived,
}

impl Correction {
    pub(super) fn new(reported: u32) -> Self {
        let reported = reported.max(1);
        Self {
            reported,
            effective: reported,
            depths: [0; MISSES],
            missing: 0,
            streak: 0,
            speaks: false,
            silence: 0,
        }
    }

    /// Blocks that the endpoint is taken to hold; at least 1.
    pub(super) fn effective(&self) -> u32 {
        self.effective
    }

    pub(super) fn reported(&self) -> u32 {
        self.reported
    }

    /// A number reported again changes nothing; another one is another engine, and all is open.
    pub(super) fn report(&mut self, blocks: u32) {
        if blocks.max(1) != self.reported {
            *self = Self::new(blocks);
        }
    }

    /// Takes an answer into account.
    pub(super) fn learn(&mut self, belief: &Belief, answer: &Answer) {
        let is_silent = answer.cached_tokens.is_none();
        if answer.cached_tokens.is_some_and(|tokens| tokens > 0) {
            self.speaks = true;
            self.silence = self.silence.saturating_sub(1);
        }
        if !self.speaks || belief.blocks() == 0 && !belief.has_dead_next() {
            return;
        }
        let evidence = weigh(belief, answer);
        if is_silent && evidence.is_some_and(|evidence| self.is_fresh(evidence)) {
            self.silence = self.silence.saturating_add(SILENCE_STEP).min(2 * SILENCE_MAX);
        }
        if is_silent && self.silence >= SILENCE_MAX {
            return;
        }
        match evidence {
            Some(Evidence::Missing { depth }) => self.miss(depth),
            Some(Evidence::Held { depth }) => self.hold(depth),
            Some(Evidence::Outlived) => self.step_up(),
            None => {}
        }
    }

    fn is_fresh(&self, evidence: Evidence) -> bool {
        matches!(evidence, Evidence::Missing { depth } if depth < self.effective / FRESH_PART)
    }

    fn miss(&mut self, depth: u32) {
        if depth >= self.effective || self.is_fresh(Evidence::Missing { depth }) {
            return;
        }
        self.streak = 0;
        self.depths[usize::from(self.missing)] = depth;
        self.missing += 1;
        if usize::from(self.missing) == MISSES {
            self.missing = 0;
            let floor = (self.reported / FLOOR_PART).max(1);
            let lowest = (self.effective - self.effective / FALL_PART).max(floor);
            let deepest = self.depths.iter().copied().max().unwrap_or(lowest);
            self.effective = deepest.max(lowest).min(self.effective);
        }
    }

    fn hold(&mut self, depth: u32) {
        self.contradict(depth);
        if depth >= self.effective - self.effective / END_PART {
            self.step_up();
        }
    }

    /// A block so deep is there: the shallowest miss that says otherwise was something else.
    fn contradict(&mut self, depth: u32) {
        let pending = &self.depths[..usize::from(self.missing)];
        let shallowest = (0..pending.len()).min_by_key(|at| pending[*at]);
        if let Some(at) = shallowest
            && pending[at] <= depth
        {
            self.missing -= 1;
            self.depths.swap(at, usize::from(self.missing));
        }
    }

    fn step_up(&mut self) {
        self.streak = self.streak.saturating_add(1);
        let steps = (1 + self.streak / STREAK).min(STEPS_MAX);
        let step = (self.effective / STEP_PART).max(1).saturating_mul(steps);
        self.effective = self.effective.saturating_add(step).min(self.reported);
    }
}

/// Compares what was believed with what was found.
fn weigh(belief: &Belief, answer: &Answer) -> Option<Evidence> {
    let (believed, found) = (belief.blocks(), answer.found_blocks());
    let slack = answer.granularity_blocks().saturating_add(believed / SLACK_PART);
    let gone = found.saturating_add(slack);
    if gone < believed {
        return Some(Evidence::Missing { depth: belief.depth_at_most(gone) });
    }
    if belief.has_dead_next() && found > believed.saturating_add(slack) {
        return Some(Evidence::Outlived);
    }
    let last = believed.min(found).checked_sub(1)?;
    Some(Evidence::Held { depth: belief.depth_at_least(last) })
}
