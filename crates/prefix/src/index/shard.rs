//! One shard: a table that readers share, and the writer that fills and replaces it.
//!
//! A table never moves a word while readers may look. Growing and cleaning build a new table.

mod survivors;
mod writer;

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use arc_swap::{ArcSwapOption, Guard};

use super::residency::Slots;
use super::row::Row;
use super::word::Word;
use crate::BlockHash;

pub(super) use writer::{Touch, Writer};

const BUCKET_WORDS: usize = 8;
/// Buckets that a block may lie in, from its home on.
const PROBES: usize = 10;

pub(super) fn shard_of(hash: BlockHash, shards: usize) -> usize {
    (hash.0 >> 32) as usize & (shards - 1)
}

pub(super) fn tag_of(hash: BlockHash) -> u32 {
    (hash.0 as u32).max(1)
}

/// One cache line of words.
#[derive(Debug, Default)]
#[repr(align(64))]
pub(super) struct Bucket(pub(super) [AtomicU64; BUCKET_WORDS]);

impl Bucket {
    /// Bits of the words with this tag, and whether the bucket has a never used word.
    ///
    /// Without branches: which word matches cannot be foreseen.
    pub(super) fn find(&self, tag: u32) -> (u32, bool) {
        let mut found = 0;
        for (at, cell) in self.0.iter().enumerate() {
            let word = Word(cell.load(Ordering::Acquire));
            found |= u32::from(word.tag() == tag) << at;
        }
        // Buckets fill from the front, and no word becomes empty again.
        let last = self.0[BUCKET_WORDS - 1].load(Ordering::Relaxed);
        (found, Word(last) == Word::EMPTY)
    }
}

#[derive(Debug)]
pub(super) struct Table {
    /// `homes + PROBES - 1`, so that probing never wraps.
    buckets: Box<[Bucket]>,
    homes: u32,
    rows: Box<[ArcSwapOption<Row>]>,
}

impl Table {
    pub(super) fn empty(memory: &Memory) -> Self {
        let table = Self::with_room(1, std::iter::empty(), 0);
        memory.add(table.bytes(), table.words());
        table
    }

    /// `room`: places for rows, at least as many as there are `rows`.
    fn with_room(homes: u32, rows: impl Iterator<Item = Arc<Row>>, room: usize) -> Self {
        let buckets = homes as usize + PROBES - 1;
        Self {
            buckets: (0..buckets).map(|_| Bucket::default()).collect(),
            homes,
            rows: rows
                .map(Some)
                .chain(std::iter::repeat(None))
                .take(room)
                .map(ArcSwapOption::new)
                .collect(),
        }
    }

    /// The buckets that a block may lie in. A probe ends behind the first with an empty word.
    pub(super) fn window(&self, tag: u32) -> &[Bucket] {
        let home = (u64::from(tag) * u64::from(self.homes)) >> 32;
        &self.buckets[home as usize..home as usize + PROBES]
    }

    /// Asks for the cache line where a block most likely lies, and waits for nothing.
    pub(super) fn prefetch(&self, tag: u32) -> u64 {
        self.window(tag)[0].0[0].load(Ordering::Relaxed)
    }

    pub(super) fn row(&self, row: usize) -> Guard<Option<Arc<Row>>> {
        self.rows.get(row).map_or_else(|| Guard::from_inner(None), ArcSwapOption::load)
    }

    /// Distinct blocks with a live holder.
    pub(super) fn count_blocks(&self, slots: &Slots) -> usize {
        let mut tags = Vec::new();
        for word in self.all_words() {
            let is_alive = match word.as_row() {
                Some(row) => {
                    let mut is_alive = false;
                    if let Some(row) = self.row(row).as_ref() {
                        row.for_each(|slot, epoch| is_alive |= slots.holds(slot, epoch));
                    }
                    is_alive
                }
                None => word.is_holder() && slots.holds(word.slot(), word.epoch()),
            };
            if is_alive {
                tags.push(word.tag());
            }
        }
        tags.sort_unstable();
        tags.dedup();
        tags.len()
    }

    fn all_words(&self) -> impl Iterator<Item = Word> {
        let cells = self.buckets.iter().flat_map(|bucket| &bucket.0);
        cells.map(|cell| Word(cell.load(Ordering::Acquire)))
    }

    fn words(&self) -> usize {
        self.buckets.len() * BUCKET_WORDS
    }

    /// Without what the rows point to.
    fn bytes(&self) -> usize {
        table_bytes(self.homes, self.rows.len())
    }
}

fn table_bytes(homes: u32, rows: usize) -> usize {
    (homes as usize + PROBES - 1) * size_of::<Bucket>() + rows * size_of::<ArcSwapOption<Row>>()
}

/// Blocks whose cache lines a writer asks for together, so that their misses overlap.
pub(super) const AHEAD: usize = 16;

/// Loads the lines of these blocks.
pub(super) fn prefetch<'a>(tables: &[Arc<Table>], hashes: impl Iterator<Item = &'a BlockHash>) {
    let line = |hash: &BlockHash| tables[shard_of(*hash, tables.len())].prefetch(tag_of(*hash));
    black_box(hashes.map(line).fold(0, |sum, word| sum ^ word));
}

/// Memory of all shards together, and its bound.
#[derive(Debug)]
pub(super) struct Memory {
    bytes_max: usize,
    bytes: AtomicUsize,
    words: AtomicUsize,
}

impl Memory {
    pub(super) fn new(bytes_max: usize, shards: usize) -> Self {
        let fixed = shards * (size_of::<Writer>() + size_of::<Table>() + 64);
        Self { bytes_max, bytes: AtomicUsize::new(fixed), words: AtomicUsize::new(0) }
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    pub(super) fn words(&self) -> usize {
        self.words.load(Ordering::Relaxed)
    }

    fn allows(&self, bytes_more: usize) -> bool {
        self.bytes().saturating_add(bytes_more) <= self.bytes_max
    }

    fn add(&self, bytes: usize, words: usize) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.words.fetch_add(words, Ordering::Relaxed);
    }

    fn sub(&self, bytes: usize, words: usize) {
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
        self.words.fetch_sub(words, Ordering::Relaxed);
    }
}
