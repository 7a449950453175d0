//! What we believed of an endpoint when a prompt was sent, and what its answer said.

/// Places at which a belief knows the age of what it believes.
const SAMPLES: usize = 8;

/// What the index took an endpoint to hold of a prompt at the moment when it was sent there.
///
/// Comes from [`PrefixIndex::record`](crate::PrefixIndex::record) and goes back to
/// [`PrefixIndex::correct`](crate::PrefixIndex::correct) with the answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Belief {
    blocks: u32,
    /// See [`Belief::depth`]; at the ends of eight equal parts of `blocks`, rising.
    depths: [u32; SAMPLES],
    has_dead_next: bool,
}

impl Belief {
    /// * `blocks`: held from the prompt's start.
    /// * `depth_of`: for the block at an index below `blocks`, the blocks that the endpoint used
    ///   since it used that one.
    /// * `has_dead_next`: the endpoint held the block after those once.
    pub(crate) fn new(
        blocks: u32,
        has_dead_next: bool,
        mut depth_of: impl FnMut(usize) -> u32,
    ) -> Self {
        let mut belief = Self { blocks, depths: [0; SAMPLES], has_dead_next };
        let mut deepest = 0;
        for part in 0..SAMPLES {
            if let Some(at) = belief.end_of(part).checked_sub(1) {
                deepest = depth_of(at as usize).max(deepest);
            }
            belief.depths[part] = deepest;
        }
        belief
    }

    /// Blocks from the prompt's start that the endpoint was taken to hold.
    pub fn blocks(&self) -> u32 {
        self.blocks
    }

    /// The endpoint held the block after [`Belief::blocks`] once, by our count no longer.
    pub(crate) fn has_dead_next(&self) -> bool {
        self.has_dead_next
    }

    /// How many blocks the endpoint used since it used the block at this index, at least.
    pub(crate) fn depth_at_least(&self, at: u32) -> u32 {
        let part = (0..SAMPLES).rfind(|part| self.end_of(*part) <= at.saturating_add(1));
        part.map_or(0, |part| self.depths[part])
    }

    /// The same, at most.
    pub(crate) fn depth_at_most(&self, at: u32) -> u32 {
        let part = (0..SAMPLES).find(|part| self.end_of(*part) > at);
        self.depths[part.unwrap_or(SAMPLES - 1)]
    }

    /// One past the last block of a part.
    fn end_of(&self, part: usize) -> u32 {
        let end = (part as u64 + 1) * u64::from(self.blocks) / SAMPLES as u64;
        u32::try_from(end).unwrap_or(self.blocks)
    }
}

/// What an answer's usage says about the prompt.
///
/// Ours are estimated tokens (the gateway counts characters), the engine's are real ones; the two
/// counts of the whole prompt give the rate between them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// `usage.prompt_tokens_details.cached_tokens` and its like. `None`: usage has no such number;
    /// some engines leave it out when nothing was cached.
    pub cached_tokens: Option<u32>,
    /// `usage.prompt_tokens`: the whole prompt, cached or not. 0 if unknown.
    pub prompt_tokens: u32,
    /// The whole prompt as it was estimated when it was cut into blocks. 0 if unknown.
    pub estimated_tokens: u32,
    /// Size of the blocks that were recorded, in estimated tokens.
    pub block_tokens: u32,
    /// Size of the engine's own blocks, in its tokens. 0 if unknown.
    pub engine_block_tokens: u32,
}

impl Answer {
    /// Whole blocks of ours that the engine found in its cache; 0 if it did not say.
    pub fn found_blocks(&self) -> u32 {
        self.blocks_of(self.cached_tokens.unwrap_or(0))
    }

    /// How many blocks the engine may find less than it holds, because it finds whole blocks of
    /// its own and always computes the last token.
    pub(crate) fn granularity_blocks(&self) -> u32 {
        self.blocks_of(self.engine_block_tokens).saturating_add(1)
    }

    fn blocks_of(&self, tokens: u32) -> u32 {
        let mut ours = u64::from(tokens);
        if self.prompt_tokens > 0 && self.estimated_tokens > 0 {
            ours = ours * u64::from(self.estimated_tokens) / u64::from(self.prompt_tokens);
        }
        u32::try_from(ours / u64::from(self.block_tokens.max(1))).unwrap_or(u32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::{Answer, Belief};

    #[test]
    fn a_belief_brackets_the_depth_of_every_block() {
        for blocks in [1, 2, 7, 8, 9, 100, 2048] {
            let depth = |at: usize| at as u32 * 3 + 5;
            let belief = Belief::new(blocks, false, depth);
            for at in 0..blocks {
                let true_depth = depth(at as usize);
                assert!(belief.depth_at_least(at) <= true_depth, "{at} of {blocks}");
                assert!(belief.depth_at_most(at) >= true_depth, "{at} of {blocks}");
            }
            let last = depth(blocks as usize - 1);
            assert_eq!(belief.depth_at_least(blocks - 1), last);
            assert_eq!(belief.depth_at_most(blocks - 1), last);
        }
    }

    #[test]
    fn real_tokens_become_our_blocks_by_the_lengths_of_the_whole_prompt() {
        let answer = Answer {
            cached_tokens: Some(640),
            prompt_tokens: 1280,
            estimated_tokens: 1920,
            block_tokens: 64,
            engine_block_tokens: 16,
        };
        assert_eq!(answer.found_blocks(), 15);
        assert_eq!(Answer { prompt_tokens: 0, ..answer }.found_blocks(), 10);
        assert_eq!(Answer { block_tokens: 0, ..answer }.found_blocks(), 960);
        assert_eq!(Answer { cached_tokens: None, ..answer }.found_blocks(), 0);
        assert_eq!(answer.granularity_blocks(), 1);
        assert_eq!(Answer { engine_block_tokens: 256, ..answer }.granularity_blocks(), 7);
        let extreme =
            Answer { cached_tokens: Some(u32::MAX), estimated_tokens: u32::MAX, ..answer };
        assert_eq!(extreme.found_blocks(), u32::MAX);
    }
}
