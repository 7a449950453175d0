//! Who holds which block.
//!
//! # Layout
//!
//! A (block, holder) pair is one 64-bit word: 32 bits of the block's hash, the holder's slot, and
//! the *epoch* in which the holder last used the block. Words lie in shards of open-addressed
//! cache-line buckets. A block with many holders has one word that points to a *row* of holders.
//!
//! # What an endpoint still holds
//!
//! Engines evict the least recently used block. We follow with a clock of epochs per endpoint: an
//! epoch ends once about 1/64 of the endpoint's blocks was used within it, and the oldest epochs
//! go when the blocks of all epochs outgrow the capacity (see `residency`). A word is alive while
//! its epoch is. So evicting, or forgetting a whole endpoint, moves one number, and dead words are
//! overwritten when met. The capacity is what the endpoint reports, corrected by what its answers
//! found (see `correction`).
//!
//! # Threads
//!
//! Readers take no lock: they load the table set once and read atomics. A writer holds its
//! endpoint's lock, and one shard's at a time. Lock order: endpoint, publication, shard.
//! A reader that races a writer may miss a block just being moved; the answer is a hint anyway.
//!
//! # Bounds
//!
//! Shards grow by about a quarter each, one at a time. At `bytes_max` they stop growing, and whichever
//! endpoint holds most gives up its oldest epoch. A lookup of a block that is nowhere finds a
//! false holder with a probability of about stored words / 2^42.

mod correction;
mod lookup;
mod residency;
mod row;
mod shard;
mod word;

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::ArcSwap;
use types::Slot;

use crate::{Answer, Belief, BlockHash, Matches};
use residency::{Bins, Slots};
use shard::{AHEAD, Memory, Table, Touch, Writer};
use word::SLOT_MAX;

pub use residency::DEFAULT_CAPACITY_BLOCKS;

/// Settings of a [`PrefixIndex`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Most memory that the index takes, in bytes. A (block, holder) pair takes about 12, at most
    /// 16; less where many hold a block.
    pub bytes_max: usize,
}

impl Default for Config {
    /// 64 MiB: about six million blocks.
    fn default() -> Self {
        Self { bytes_max: 64 << 20 }
    }
}

/// How full a [`PrefixIndex`] is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Distinct blocks; an estimate from a sample of the shards.
    pub blocks: u64,
    /// (block, holder) pairs.
    pub holders: u64,
    /// Memory taken, free room in the tables included.
    pub bytes: u64,
}

/// Shards are made for about so many bytes each, so that rebuilding one takes microseconds.
const SHARD_BYTES: usize = 256 << 10;
const SHARDS_MIN: usize = 16;
const SHARDS_MAX: usize = 4096;
/// A block is not stamped again while fewer blocks than this part of the capacity were used since.
const FRESH_PART: u32 = 16;
/// Rebuilds that one new block may cause: each makes its window less likely to be full.
const REBUILDS_MAX: usize = 8;
/// Epoch advances of one endpoint in which the whole table is swept at least once. A dead epoch's
/// number comes into use again after more (see `residency::SPAN_MAX`).
const SWEEP_STEPS: usize = 8192;

/// Remembers which endpoint was sent which blocks; shared by threads.
#[derive(Debug)]
pub struct PrefixIndex {
    tables: ArcSwap<Vec<Arc<Table>>>,
    writers: Vec<Mutex<Writer>>,
    publication: Mutex<()>,
    slots: Slots,
    memory: Memory,
    sweep_hand: AtomicUsize,
    holders: AtomicU64,
    /// A shard is crowded and may not grow.
    is_crowded: AtomicBool,
}

impl PrefixIndex {
    pub fn new(config: Config) -> Self {
        let shards = (config.bytes_max / SHARD_BYTES).next_power_of_two();
        let shards = shards.clamp(SHARDS_MIN, SHARDS_MAX);
        let memory = Memory::new(config.bytes_max, shards);
        let tables: Vec<_> = (0..shards).map(|_| Arc::new(Table::empty(&memory))).collect();
        let writers = tables.iter().map(|table| Mutex::new(Writer::new(Arc::clone(table))));
        Self {
            writers: writers.collect(),
            tables: ArcSwap::from_pointee(tables),
            publication: Mutex::new(()),
            slots: Slots::default(),
            memory,
            sweep_hand: AtomicUsize::new(0),
            holders: AtomicU64::new(0),
            is_crowded: AtomicBool::new(false),
        }
    }

    /// Notes that this prompt was sent to that endpoint.
    ///
    /// * `hashes`: the whole chain from the prompt's first block.
    ///
    /// The first block counts as the most recently used: engines evict a prompt from its end.
    /// Returns what the endpoint was taken to hold before, for [`PrefixIndex::correct`].
    pub fn record(&self, slot: Slot, hashes: &[BlockHash]) -> Belief {
        if slot.0 > SLOT_MAX || hashes.is_empty() {
            return Belief::default();
        }
        let residency = self.slots.get_or_create(slot.0);
        let mut bins = residency.lock();
        let before = bins.total();
        let tables = self.tables.load();
        let live = residency.live();
        let epoch_of = |hash: &BlockHash| lookup::epoch_of(&tables, *hash, slot.0);
        let held = lookup::leading(hashes, |hash| epoch_of(hash).is_some_and(|at| live.holds(at)));
        let has_dead_next = hashes.get(held).is_some_and(|next| epoch_of(next).is_some());
        let depth_of = |at: usize| epoch_of(&hashes[at]).map_or(0, |epoch| bins.depth(epoch));
        let belief = Belief::new(held as u32, has_dead_next, depth_of);
        // Blocks used a short while ago need no new stamp, and they come first. So a prefix that is
        // used all the time costs a few probes, at the price that an age may be short by a
        // sixteenth of the capacity. Not so for a prompt long enough to evict them.
        let capacity = bins.capacity();
        let fresh_max = if hashes.len() as u64 > u64::from(capacity) / 2 { 0 } else { held };
        let stamped = lookup::leading(&hashes[..fresh_max], |hash| {
            epoch_of(hash).is_some_and(|epoch| bins.depth(epoch) <= capacity / FRESH_PART)
        });
        drop(tables);
        let hashes = &hashes[stamped..];
        let mut rebuilt = Vec::new();
        for (at, hash) in hashes.iter().enumerate().rev() {
            if (hashes.len() - 1 - at).is_multiple_of(AHEAD) {
                let next = &hashes[(at + 1).saturating_sub(AHEAD)..=at];
                shard::prefetch(&self.tables.load(), next.iter());
            }
            let live = bins.live();
            match self.touch(*hash, slot.0, live.current(), &mut rebuilt) {
                Touch::Same | Touch::Dropped => {}
                Touch::Moved { from } => bins.moved(from),
                Touch::New => bins.added(),
            }
            if bins.live() != live {
                // Else the next block could be taken for held though it was just evicted.
                residency.publish(&bins);
            }
            if bins.live().current() != live.current() {
                self.sweep_step(&mut bins);
            }
        }
        residency.publish(&bins);
        self.account(before, &bins);
        drop(bins);
        self.publish(&rebuilt);
        if self.is_crowded.swap(false, Ordering::Relaxed) {
            self.relieve();
        }
        belief
    }

    /// Learns from an answer how much the endpoint really holds.
    ///
    /// Call once for each answer that carried usage, also if that has no `cached_tokens`; with
    /// what [`PrefixIndex::record`] returned when the prompt was sent. When blocks that should be
    /// there are missing again and again, the endpoint is taken to hold less than it reports; when
    /// the oldest blocks believed in are found, more again, up to what it reports. One block short,
    /// or one block of the engine's, is agreement. An endpoint that never names a number above
    /// zero is taken not to count, and changes nothing. No I/O, no allocation, a few hundred
    /// nanoseconds.
    pub fn correct(&self, slot: Slot, belief: &Belief, answer: &Answer) {
        if slot.0 <= SLOT_MAX && self.slots.get(slot.0).is_some() {
            self.change(slot, |bins| bins.correct(belief, answer));
        }
    }

    /// How many blocks the endpoint is taken to hold at most: as reported, less what answers
    /// taught. For metrics and `explain`.
    pub fn effective_capacity(&self, slot: Slot) -> u64 {
        let residency = self.slots.get(slot.0);
        residency.map_or(DEFAULT_CAPACITY_BLOCKS, |residency| residency.lock().capacity().into())
    }

    /// Finds, per endpoint, how many blocks from the start it holds without a gap.
    ///
    /// Looks at about 11 of 2,000 blocks for each place where matches end. Takes no lock; allocates
    /// only to make `matches` larger.
    pub fn longest_matches(&self, hashes: &[BlockHash], matches: &mut Matches) {
        matches.clear();
        lookup::longest_matches(&self.tables.load(), &self.slots, hashes, matches);
    }

    /// Sets how many blocks the endpoint holds: its own block count times its block size, in
    /// blocks of ours. [`DEFAULT_CAPACITY_BLOCKS`] until set.
    pub fn set_capacity(&self, slot: Slot, blocks: u64) {
        if slot.0 <= SLOT_MAX {
            self.change(slot, |bins| bins.set_capacity(blocks));
        }
    }

    /// Forgets all that the endpoint holds, at once: it restarted, or left and its slot is free.
    /// Its reported capacity stays until set again; what answers taught about it goes.
    pub fn clear(&self, slot: Slot) {
        if self.slots.get(slot.0).is_some() {
            self.change(slot, |bins| {
                bins.clear();
                self.sweep_step(bins);
            });
        }
    }

    pub fn stats(&self) -> Stats {
        let tables = self.tables.load();
        // A sixteenth of a large index is sample enough.
        let stride = if self.memory.bytes() < 1 << 20 { 1 } else { tables.len().min(16) };
        let counted: usize =
            tables.iter().step_by(stride).map(|table| table.count_blocks(&self.slots)).sum();
        Stats {
            blocks: (counted * stride) as u64,
            holders: self.holders.load(Ordering::Relaxed),
            bytes: (self.memory.bytes() + self.slots.bytes()) as u64,
        }
    }

    fn change(&self, slot: Slot, change: impl FnOnce(&mut Bins)) {
        let residency = self.slots.get_or_create(slot.0);
        let mut bins = residency.lock();
        let before = bins.total();
        change(&mut bins);
        residency.publish(&bins);
        self.account(before, &bins);
    }

    fn touch(&self, hash: BlockHash, slot: u16, epoch: u16, rebuilt: &mut Vec<usize>) -> Touch {
        let shard = shard::shard_of(hash, self.writers.len());
        let tag = shard::tag_of(hash);
        let mut writer = lock(&self.writers[shard]);
        match writer.touch(tag, slot, epoch, &self.slots, &self.memory) {
            Some(touch) => touch,
            None => {
                for _ in 0..REBUILDS_MAX {
                    let is_rebuilt = self.make_room(&mut writer);
                    if is_rebuilt && !rebuilt.contains(&shard) {
                        rebuilt.push(shard);
                    }
                    let touch = writer.touch(tag, slot, epoch, &self.slots, &self.memory);
                    match touch {
                        Some(touch) => return touch,
                        None if is_rebuilt => {}
                        None => break,
                    }
                }
                writer.force(tag, slot, epoch, &self.slots, &self.memory)
            }
        }
    }

    /// Rebuilds a shard without its dead words, larger if those that live need it. `false` if
    /// that would gain nothing. Readers keep to the old table until [`Self::publish`].
    fn make_room(&self, writer: &mut Writer) -> bool {
        let is_rebuilt = writer.rebuild(&self.slots, &self.memory);
        if writer.is_crowded() {
            self.is_crowded.store(true, Ordering::Relaxed);
        }
        is_rebuilt
    }

    /// Shows readers the newest tables of these shards: once for all that a prompt caused, because
    /// the list of tables is copied for it.
    fn publish(&self, shards: &[usize]) {
        if shards.is_empty() {
            return;
        }
        let _guard = lock(&self.publication);
        let mut tables = Vec::clone(&self.tables.load());
        for shard in shards {
            tables[*shard] = lock(&self.writers[*shard]).table();
        }
        self.tables.store(Arc::new(tables));
    }

    /// At the memory bound: whoever holds most gives up its oldest blocks, until about a
    /// thousandth of the table is free again.
    fn relieve(&self) {
        let mut wanted = (self.memory.words() / 1024) as u64 + 1;
        while let Some(residency) = self.slots.largest() {
            let mut bins = residency.lock();
            let before = bins.total();
            bins.give_up_oldest();
            residency.publish(&bins);
            self.account(before, &bins);
            let freed = u64::from(before.saturating_sub(bins.total()));
            if freed == 0 || freed >= wanted {
                return;
            }
            wanted -= freed;
        }
    }

    fn account(&self, before: u32, bins: &Bins) {
        // Two's complement: adding a wrapped difference subtracts.
        let change = u64::from(bins.total()).wrapping_sub(u64::from(before));
        self.holders.fetch_add(change, Ordering::Relaxed);
    }

    /// Sweeps a part of the table, unless others did since this endpoint's last epoch began: a part
    /// for each epoch of the busiest endpoint is enough for all.
    fn sweep_step(&self, bins: &mut Bins) {
        let hand = self.sweep_hand.load(Ordering::Relaxed);
        if bins.see_sweep(hand) {
            return;
        }
        let step = self.sweep_hand.fetch_add(1, Ordering::Relaxed) % SWEEP_STEPS;
        let parts = SWEEP_STEPS / self.writers.len();
        lock(&self.writers[step / parts]).sweep(step % parts, parts, &self.slots);
        bins.see_sweep(hand.wrapping_add(1));
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
