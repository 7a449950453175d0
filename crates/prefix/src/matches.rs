//! What a lookup found.

use types::Slot;

/// Matched blocks per endpoint; reusable scratch, so that a lookup need not allocate.
#[derive(Clone, Debug, Default)]
pub struct Matches {
    /// By slot index; only slots in `touched` are not zero.
    pub(crate) blocks: Vec<u32>,
    pub(crate) touched: Vec<u16>,
    /// Bitset of slots that match so far, within a run of widely held blocks.
    pub(crate) active: Vec<u64>,
}

impl Matches {
    /// Blocks from the prompt's start that the endpoint in `slot` holds without a gap.
    pub fn blocks(&self, slot: Slot) -> u32 {
        self.blocks.get(slot.index()).copied().unwrap_or(0)
    }

    /// Longest match of any endpoint.
    pub fn longest(&self) -> u32 {
        self.touched.iter().map(|slot| self.blocks(Slot(*slot))).max().unwrap_or(0)
    }

    pub(crate) fn grow(&mut self, slot: u16) {
        if self.blocks.len() <= usize::from(slot) {
            self.blocks.resize(usize::from(slot) + 1, 0);
        }
    }

    /// Forgets the last lookup, keeps the memory.
    pub fn clear(&mut self) {
        for slot in self.touched.drain(..) {
            self.blocks[usize::from(slot)] = 0;
        }
    }
}
