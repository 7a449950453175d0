//! Shared by the index tests.
#![allow(dead_code, reason = "each test file uses a part")]

use types::Slot;
use wicketgate_prefix::{BlockHash, Config, Matches, PrefixIndex, block_hashes};

pub(crate) fn index() -> PrefixIndex {
    PrefixIndex::new(Config { bytes_max: 16 << 20 })
}

/// The block hashes of a prompt that shares nothing with other names.
pub(crate) fn chain(name: u64, blocks: usize) -> Vec<BlockHash> {
    let mut hashes = Vec::new();
    let text = vec![0; blocks * 8];
    block_hashes(name, &[&text], 8, usize::MAX, &mut hashes);
    hashes
}

pub(crate) fn matched(index: &PrefixIndex, slot: Slot, hashes: &[BlockHash]) -> u32 {
    let mut matches = Matches::default();
    index.longest_matches(hashes, &mut matches);
    matches.blocks(slot)
}
