//! How far each endpoint holds a prompt.
//!
//! A whole prompt is recorded at once, its first block as the most recently used. So an endpoint
//! that holds a block holds all blocks before it, and its longest match can be found by halving:
//! for 2,000 blocks 11 looks instead of 2,000, and none of it twice, because the endpoints are
//! halved together. They start as one set (a bitset) with one range; a look at the middle block
//! splits the set into those who hold it and those who do not, each with half the range. All
//! ranges of a level are looked at together, so that their cache misses overlap. Prompts of a few
//! blocks are walked block by block instead, which needs no assumption.
//!
//! A block with many holders answers with a bitset of its own, so a split costs a few ANDs. A bit
//! does not know its epoch; so those who hold the last block of their match by such a bit are
//! checked at the end, and searched again with epochs if it misled.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::residency::Slots;
use super::row::{Dense, Row, for_each_bit};
use super::shard::{Table, prefetch, shard_of, tag_of};
use super::word::Word;
use crate::matches::{Range, Search};
use crate::{BlockHash, Matches};

/// Longer prompts are halved.
const WALK_BLOCKS_MAX: usize = 64;

/// Fills `matches`, which is empty.
pub(super) fn longest_matches(
    tables: &[Arc<Table>],
    slots: &Slots,
    hashes: &[BlockHash],
    matches: &mut Matches,
) {
    let Some(first) = hashes.first() else { return };
    let finder = Finder { tables, slots, hashes };
    finder.touch_holders(*first, matches);
    if hashes.len() == 1 || matches.touched.is_empty() {
        return;
    }
    let mut search = std::mem::take(&mut matches.search);
    search.begin(matches, hashes.len());
    finder.run(&mut search, matches);
    search.sets.clear();
    matches.search = search;
}

/// When the endpoint in `slot` was last sent the block: its epoch, alive or not.
pub(super) fn epoch_of(tables: &[Arc<Table>], hash: BlockHash, slot: u16) -> Option<u16> {
    let mut epoch = None;
    visit(tables, hash, |found| match found {
        Holders::One(holder, at) if holder == slot => epoch = Some(at),
        Holders::One(..) => {}
        Holders::Many(dense) => epoch = dense.get(slot),
    });
    epoch
}

/// Blocks from the start for which something holds: halved or walked, as a lookup does.
pub(super) fn leading(hashes: &[BlockHash], mut holds: impl FnMut(&BlockHash) -> bool) -> usize {
    if hashes.len() > WALK_BLOCKS_MAX {
        return hashes.partition_point(holds);
    }
    hashes.iter().position(|hash| !holds(hash)).unwrap_or(hashes.len())
}

/// Holders of a block, alive or not.
enum Holders<'a> {
    /// A slot and its epoch.
    One(u16, u16),
    Many(&'a Dense),
}

/// Shows all holders of a block.
fn visit(tables: &[Arc<Table>], hash: BlockHash, mut show: impl FnMut(Holders<'_>)) {
    let tag = tag_of(hash);
    let table = &tables[shard_of(hash, tables.len())];
    for bucket in table.window(tag) {
        let (mut found, has_empty) = bucket.find(tag);
        while found != 0 {
            let word = Word(bucket.0[found.trailing_zeros() as usize].load(Ordering::Acquire));
            found &= found - 1;
            let Some(number) = word.as_row() else {
                show(Holders::One(word.slot(), word.epoch()));
                continue;
            };
            let row = table.row(number);
            match row.as_deref() {
                Some(Row::Dense(row)) => show(Holders::Many(row)),
                Some(row) => row.for_each(|slot, epoch| show(Holders::One(slot, epoch))),
                None => {}
            }
            return;
        }
        if has_empty {
            return;
        }
    }
}

impl Search {
    /// One set of all that hold the first block.
    fn begin(&mut self, matches: &Matches, prompt_blocks: usize) {
        let group_of = |slot: &u16| usize::from(*slot / 64);
        let group = matches.touched.iter().map(group_of).min().unwrap_or(0);
        let last = matches.touched.iter().map(group_of).max().unwrap_or(0);
        self.sets.clear();
        self.sets.resize(last + 1 - group, 0);
        for slot in &matches.touched {
            self.sets[usize::from(*slot / 64) - group] |= 1 << (slot % 64);
        }
        self.ranges.clear();
        self.ranges_next.clear();
        self.ranges.push(Range {
            low: 0,
            high: prompt_blocks as u32,
            set: 0,
            groups: (last + 1 - group) as u16,
            group: group as u16,
            is_unsure: false,
            is_exact: false,
        });
    }

    fn set(&self, range: &Range) -> &[u64] {
        &self.sets[range.set as usize..][..usize::from(range.groups)]
    }

    /// Narrows a range to the groups that its set uses; `false` if it is empty.
    fn trim(&self, range: &mut Range) -> bool {
        let set = self.set(range);
        let Some(first) = set.iter().position(|bits| *bits != 0) else { return false };
        let last = set.iter().rposition(|bits| *bits != 0).unwrap_or(first);
        range.set += first as u32;
        range.group += first as u16;
        range.groups = (last + 1 - first) as u16;
        true
    }
}

struct Finder<'a> {
    tables: &'a [Arc<Table>],
    slots: &'a Slots,
    hashes: &'a [BlockHash],
}

impl Finder<'_> {
    fn touch_holders(&self, hash: BlockHash, matches: &mut Matches) {
        let mut touch = |slot, epoch| {
            if self.slots.holds(slot, epoch) {
                matches.touch(slot);
            }
        };
        visit(self.tables, hash, |found| match found {
            Holders::One(slot, epoch) => touch(slot, epoch),
            Holders::Many(dense) => dense.for_each(&mut touch),
        });
    }

    fn run(&self, search: &mut Search, matches: &mut Matches) {
        let is_walk = self.hashes.len() <= WALK_BLOCKS_MAX;
        if is_walk {
            prefetch(self.tables, self.hashes.iter().skip(1));
        }
        let mut level = 0;
        while !search.ranges.is_empty() {
            // Two levels at once: the middle of each half is asked for with the middle itself.
            if !is_walk && level % 2 == 0 {
                let wanted = search.ranges.iter().flat_map(|range| {
                    let middle = self.next_look(range);
                    let lower = range.low + (middle - range.low) / 2;
                    [middle, lower, middle + (range.high - middle) / 2]
                });
                let hashes = wanted.filter_map(|at| self.hashes.get(at as usize));
                prefetch(self.tables, hashes);
            }
            let mut ranges = std::mem::take(&mut search.ranges);
            for range in ranges.drain(..) {
                let at = if is_walk { range.low + 1 } else { self.next_look(&range) };
                self.split(range, at, search, matches);
            }
            search.ranges = std::mem::replace(&mut search.ranges_next, ranges);
            level += 1;
        }
        // They swap, so the next lookup may need in one what this one needed in the other.
        search.ranges.reserve(search.ranges_next.capacity());
        search.ranges_next.reserve(search.ranges.capacity());
    }

    /// The block to look at: the last one first, because most of what matches at all matches to
    /// the end or nearly; then the middle.
    fn next_look(&self, range: &Range) -> u32 {
        let is_first = range.low == 0 && range.high as usize == self.hashes.len();
        if is_first { range.high - 1 } else { range.low + (range.high - range.low) / 2 }
    }

    /// Looks at block `at`, which lies within the range.
    fn split(&self, range: Range, at: u32, search: &mut Search, matches: &mut Matches) {
        let begin = search.sets.len();
        search.sets.resize(begin + usize::from(range.groups), 0);
        let (known, holding) = search.sets.split_at_mut(begin);
        let known = &known[range.set as usize..][..holding.len()];
        let is_unsure = self.mark_holders(&range, at, known, holding);

        let mut upper = Range { low: at, set: begin as u32, is_unsure, ..range };
        let mut lower = Range { high: at, ..range };
        if known == holding {
            // All of them: no second set is needed.
            search.sets.truncate(begin);
            upper.set = range.set;
            self.follow(upper, search, matches);
            return;
        }
        let (known, holding) = search.sets.split_at_mut(begin);
        let known = &mut known[range.set as usize..][..holding.len()];
        for (known, holding) in known.iter_mut().zip(holding.iter()) {
            *known &= !*holding;
        }
        if search.trim(&mut upper) {
            self.follow(upper, search, matches);
        } else {
            search.sets.truncate(begin);
        }
        if search.trim(&mut lower) {
            self.follow(lower, search, matches);
        }
    }

    /// Sets the bits of those in `known` that hold block `at`; `true` if some only may.
    fn mark_holders(&self, range: &Range, at: u32, known: &[u64], holding: &mut [u64]) -> bool {
        let first = usize::from(range.group);
        let mut is_unsure = false;
        visit(self.tables, self.hashes[at as usize], |found| match found {
            Holders::One(slot, epoch) => {
                let number = usize::from(slot / 64).wrapping_sub(first);
                let bit = known.get(number).map_or(0, |known| known & 1 << (slot % 64));
                if bit != 0 && self.slots.holds(slot, epoch) {
                    holding[number] |= bit;
                }
            }
            Holders::Many(dense) => {
                for (number, (known, holding)) in known.iter().zip(holding.iter_mut()).enumerate() {
                    let bits = known & dense.bits(first + number);
                    *holding |=
                        if range.is_exact { self.alive(dense, first + number, bits) } else { bits };
                }
                is_unsure = !range.is_exact;
            }
        });
        is_unsure
    }

    /// Those among `bits` whose epoch is alive.
    fn alive(&self, dense: &Dense, group: usize, bits: u64) -> u64 {
        let mut alive = 0;
        for_each_bit(group, bits, |slot| {
            if dense.get(slot).is_some_and(|epoch| self.slots.holds(slot, epoch)) {
                alive |= 1 << (slot % 64);
            }
        });
        alive
    }

    /// Goes on with a range, or notes its matches if it is down to one block.
    fn follow(&self, range: Range, search: &mut Search, matches: &mut Matches) {
        if range.high - range.low > 1 {
            search.ranges_next.push(range);
        } else if range.is_unsure {
            self.check(range, search, matches);
        } else {
            note_all(&range, search, matches);
        }
    }

    /// Notes the matches of those whose block `low` is alive, and searches again for the others.
    fn check(&self, range: Range, search: &mut Search, matches: &mut Matches) {
        let begin = search.sets.len();
        search.sets.resize(begin + usize::from(range.groups), 0);
        let (known, alive) = search.sets.split_at_mut(begin);
        let known = &mut known[range.set as usize..][..alive.len()];
        let exact = Range { is_exact: true, is_unsure: false, ..range };
        self.mark_holders(&exact, range.low, known, alive);
        for (known, alive) in known.iter_mut().zip(alive.iter()) {
            *known &= !*alive;
        }
        note_all(&Range { set: begin as u32, ..exact }, search, matches);
        search.sets.truncate(begin);
        // Block 0 was asked for epochs at the start, so they hold that at least.
        let mut others = Range { low: 0, high: range.low, ..exact };
        if range.low > 0 && search.trim(&mut others) {
            self.follow(others, search, matches);
        }
    }
}

/// Notes that all in a range match up to its end.
fn note_all(range: &Range, search: &Search, matches: &mut Matches) {
    for (group, bits) in (usize::from(range.group)..).zip(search.set(range)) {
        for_each_bit(group, *bits, |slot| matches.blocks[usize::from(slot)] = range.high);
    }
}
