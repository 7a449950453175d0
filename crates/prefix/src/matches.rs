//! What a lookup found.

use types::Slot;

/// Matched blocks per endpoint; reusable scratch, so that a lookup need not allocate.
#[derive(Clone, Debug, Default)]
pub struct Matches {
    /// By slot index; only slots in `touched` are not zero.
    pub(crate) blocks: Vec<u32>,
    pub(crate) touched: Vec<u16>,
    pub(crate) search: Search,
}

/// Room for the search itself, empty between lookups.
#[derive(Clone, Debug, Default)]
pub(crate) struct Search {
    /// Bitsets of slots, one after the other.
    pub(crate) sets: Vec<u64>,
    /// Ranges looked at now, and those to look at next.
    pub(crate) ranges: Vec<Range>,
    pub(crate) ranges_next: Vec<Range>,
}

/// Endpoints whose match ends within the same run of blocks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Range {
    /// All of them hold this block.
    pub(crate) low: u32,
    /// None of them holds this one, or the prompt ends before it.
    pub(crate) high: u32,
    /// Where their bitset begins in `sets`, its 64-slot groups, and the first group's number.
    pub(crate) set: u32,
    pub(crate) groups: u16,
    pub(crate) group: u16,
    /// They hold `low` as far as a bit says, which does not know its epoch.
    pub(crate) is_unsure: bool,
    /// Bits did mislead before: ask for epochs too.
    pub(crate) is_exact: bool,
}

impl Matches {
    /// Blocks from the prompt's start that the endpoint in `slot` holds without a gap.
    pub fn blocks(&self, slot: Slot) -> u32 {
        self.blocks.get(slot.index()).copied().unwrap_or(0)
    }

    /// Longest match of any endpoint.
    pub fn longest(&self) -> u32 {
        self.iter().map(|(_, blocks)| blocks).max().unwrap_or(0)
    }

    /// The endpoints that hold at least the first block, and their matches; each once, in no
    /// order. Far fewer than all, as a rule: filling them in costs less than asking for each.
    pub fn iter(&self) -> impl Iterator<Item = (Slot, u32)> + '_ {
        self.touched.iter().map(|slot| (Slot(*slot), self.blocks(Slot(*slot))))
    }

    /// Notes that the endpoint holds the first block.
    pub(crate) fn touch(&mut self, slot: u16) {
        if self.blocks.len() <= usize::from(slot) {
            self.blocks.resize(usize::from(slot) + 1, 0);
        }
        if self.blocks[usize::from(slot)] == 0 {
            self.blocks[usize::from(slot)] = 1;
            self.touched.push(slot);
        }
    }

    /// Forgets the last lookup, keeps the memory. Costs as much as the lookup found.
    pub fn clear(&mut self) {
        for slot in self.touched.drain(..) {
            self.blocks[usize::from(slot)] = 0;
        }
    }
}
