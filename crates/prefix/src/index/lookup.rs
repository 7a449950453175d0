//! How far each endpoint holds a prompt.
//!
//! A whole prompt is recorded at once, its first block as the most recently used. So an endpoint
//! that holds a block holds all blocks before it, and where few endpoints hold the first block each
//! one's longest match is found by halving. Where many do, one walk along the blocks serves all:
//!
//! Sparse blocks name their holders; each holder that matched all blocks before gets one more. In
//! a run of dense blocks the endpoints still matching are a bitset, so a block costs a few ANDs.
//! A bit does not know its epoch, so an endpoint's last dense block is checked when it drops out.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::residency::Slots;
use super::row::{Dense, Row, for_each_bit};
use super::shard::{AHEAD, Table, prefetch, shard_of, tag_of};
use super::word::Word;
use crate::{BlockHash, Matches};

pub(super) fn longest_matches(
    tables: &[Arc<Table>],
    slots: &Slots,
    hashes: &[BlockHash],
    matches: &mut Matches,
) {
    matches.clear();
    if hashes.len() >= HALVING_BLOCKS_MIN && halve(tables, slots, hashes, matches) {
        return;
    }
    matches.clear();
    let mut walk = Walk { tables, slots, hashes, matches, dense: None };
    let mut at = 0;
    // The first block alone: most prompts that match nothing end here.
    let (mut group, mut rest) = hashes.split_at(hashes.len().min(1));
    while !group.is_empty() {
        for hash in group {
            if !walk.step(at, *hash) {
                walk.leave_dense(at);
                return;
            }
            at += 1;
        }
        (group, rest) = rest.split_at(rest.len().min(AHEAD));
        prefetch(tables, group);
    }
    walk.leave_dense(at);
}

/// Shorter prompts are walked: there is little to save.
const HALVING_BLOCKS_MIN: usize = 16;
/// Holders of the first block above which one walk is cheaper than halving for each.
const HALVING_HOLDERS_MAX: usize = 16;

/// Finds each holder's match by halving; `false` if there are too many holders of the first block.
fn halve(
    tables: &[Arc<Table>],
    slots: &Slots,
    hashes: &[BlockHash],
    matches: &mut Matches,
) -> bool {
    let mut walk = Walk { tables, slots, hashes, matches, dense: None };
    walk.step(0, hashes[0]);
    if walk.dense.is_some() || walk.matches.touched.len() > HALVING_HOLDERS_MAX {
        return false;
    }
    for at in 0..walk.matches.touched.len() {
        let slot = walk.matches.touched[at];
        let rest = &hashes[1..];
        let more = rest.partition_point(|hash| walk.holds(*hash, slot));
        walk.matches.blocks[usize::from(slot)] = 1 + more as u32;
    }
    true
}

/// When the endpoint in `slot` was last sent the block: its epoch, alive or not.
pub(super) fn epoch_of(tables: &[Arc<Table>], hash: BlockHash, slot: u16) -> Option<u16> {
    let tag = tag_of(hash);
    let table = &tables[shard_of(hash, tables.len())];
    for bucket in table.window(tag) {
        let (mut found, has_empty) = bucket.find(tag);
        while found != 0 {
            let word = Word(bucket.0[found.trailing_zeros() as usize].load(Ordering::Acquire));
            found &= found - 1;
            let epoch = match word.as_row() {
                Some(row) => table.row(row).and_then(|row| row.get(slot)),
                None => Some(word.epoch()).filter(|_| word.slot() == slot),
            };
            if epoch.is_some() {
                return epoch;
            }
        }
        if has_empty {
            break;
        }
    }
    None
}

struct Walk<'a> {
    tables: &'a [Arc<Table>],
    slots: &'a Slots,
    hashes: &'a [BlockHash],
    matches: &'a mut Matches,
    /// The dense block before, while in a run of them; `matches.active` are those matching it.
    dense: Option<&'a Dense>,
}

impl<'a> Walk<'a> {
    /// Looks at block `at`; `false` if no endpoint matches up to and including it.
    fn step(&mut self, at: usize, hash: BlockHash) -> bool {
        let tag = tag_of(hash);
        let table = &self.tables[shard_of(hash, self.tables.len())];
        let mut has_match = false;
        'window: for bucket in table.window(tag) {
            let (mut found, has_empty) = bucket.find(tag);
            while found != 0 {
                let word = Word(bucket.0[found.trailing_zeros() as usize].load(Ordering::Acquire));
                found &= found - 1;
                match word.as_row() {
                    None => {
                        self.leave_dense(at);
                        has_match |= self.advance(at, word.slot(), word.epoch());
                    }
                    Some(row) => {
                        has_match |= table.row(row).is_some_and(|row| self.advance_row(at, row));
                        break 'window;
                    }
                }
            }
            if has_empty {
                break;
            }
        }
        has_match
    }

    fn advance(&mut self, at: usize, slot: u16, epoch: u16) -> bool {
        if !self.slots.holds(slot, epoch) {
            return false;
        }
        self.matches.grow(slot);
        let blocks = &mut self.matches.blocks[usize::from(slot)];
        if *blocks as usize != at {
            return false;
        }
        *blocks += 1;
        if at == 0 {
            self.matches.touched.push(slot);
        }
        true
    }

    fn advance_row(&mut self, at: usize, row: &'a Row) -> bool {
        if let Row::Dense(dense) = row {
            return self.advance_dense(at, dense);
        }
        self.leave_dense(at);
        let mut has_match = false;
        row.for_each(|slot, epoch| has_match |= self.advance(at, slot, epoch));
        has_match
    }

    fn advance_dense(&mut self, at: usize, dense: &'a Dense) -> bool {
        if self.dense.is_none() {
            self.enter_dense(at, dense);
        }
        let mut has_match = false;
        let groups = self.matches.active.len();
        for group in 0..groups {
            let active = self.matches.active[group];
            if active == 0 {
                continue;
            }
            let bits = dense.bits.get(group).map_or(0, |bits| bits.load(Ordering::Acquire));
            let dropped = active & !bits;
            if dropped != 0 {
                for_each_bit(group, dropped, |slot| self.settle(at, slot));
            }
            self.matches.active[group] = active & bits;
            has_match |= active & bits != 0;
        }
        self.dense = Some(dense);
        has_match
    }

    /// Makes the bitset of those that match all of the `at` blocks before.
    fn enter_dense(&mut self, at: usize, dense: &Dense) {
        let matches = &mut *self.matches;
        matches.active.clear();
        matches.active.resize(dense.bits.len(), 0);
        if at == 0 {
            for (group, bits) in dense.bits.iter().enumerate() {
                for_each_bit(group, bits.load(Ordering::Acquire), |slot| {
                    let epoch = dense.get(slot);
                    if epoch.is_some_and(|epoch| self.slots.holds(slot, epoch)) {
                        matches.grow(slot);
                        matches.touched.push(slot);
                        matches.active[group] |= 1 << (slot % 64);
                    }
                });
            }
            return;
        }
        for slot in &matches.touched {
            let group = usize::from(slot / 64);
            let bits = dense.bits.get(group).map_or(0, |bits| bits.load(Ordering::Acquire));
            if matches.blocks[usize::from(*slot)] as usize == at
                && let Some(active) = matches.active.get_mut(group)
            {
                *active |= bits & 1 << (slot % 64);
            }
        }
    }

    /// Ends a run of dense blocks before block `at`.
    fn leave_dense(&mut self, at: usize) {
        if self.dense.is_none() {
            return;
        }
        for group in 0..self.matches.active.len() {
            for_each_bit(group, self.matches.active[group], |slot| self.settle(at, slot));
        }
        self.dense = None;
    }

    /// Notes that a slot's dense run ended before block `at`, as far as its blocks are alive.
    fn settle(&mut self, at: usize, slot: u16) {
        let last = self.dense.and_then(|dense| dense.get(slot));
        let is_alive = last.is_some_and(|epoch| self.slots.holds(slot, epoch));
        let blocks = if is_alive {
            at
        } else {
            let before = &self.hashes[..at];
            before.partition_point(|hash| self.holds(*hash, slot))
        };
        self.matches.blocks[usize::from(slot)] = blocks as u32;
    }

    fn holds(&self, hash: BlockHash, slot: u16) -> bool {
        epoch_of(self.tables, hash, slot).is_some_and(|epoch| self.slots.holds(slot, epoch))
    }
}
