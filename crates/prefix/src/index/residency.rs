//! Which epochs of an endpoint are alive: an LRU in a few hundred bytes.
//!
//! Epochs are numbered by 16 bits that wrap. A *bin* counts the blocks whose last use fell into a
//! run of epochs; the last bin is the current epoch. A used block moves to the current epoch.
//! Blocks in the newest bins are exactly the most recently used ones, so dropping the oldest bins
//! until the rest fits the capacity is LRU, to within one bin: about 1/64 of the blocks.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// Blocks that an endpoint is taken to hold until its own count is known: the reference's 31,250
/// engine blocks of 16 tokens, in blocks of 64 tokens.
pub const DEFAULT_CAPACITY_BLOCKS: u64 = 31_250 / 4;

/// An epoch ends when it holds this part of the capacity, or of the blocks now held if those are
/// far fewer: the memory bound may keep them so, and then old epochs must still be small.
const EPOCHS: u32 = 64;
/// Blocks in an epoch at least, unless the capacity asks for fewer: an epoch's end costs a sweep.
const EPOCH_BLOCKS_MIN: u32 = 16;
/// More bins than epochs fit by count, because epochs thin out as their blocks are used again;
/// beyond, the two neighbours with the fewest blocks become one.
const BINS_MAX: usize = 160;
/// Live epochs must stay well apart from those that a wrapped number would be mistaken for.
const SPAN_MAX: u16 = 56_000;

/// Live epochs, `floor..=current` on the circle of 16-bit numbers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Live {
    floor: u16,
    current: u16,
}

impl Live {
    pub(super) fn holds(self, epoch: u16) -> bool {
        epoch.wrapping_sub(self.floor) <= self.current.wrapping_sub(self.floor)
    }

    /// 0 for the current epoch, 65,535 for the oldest alive.
    pub(super) fn age(self, epoch: u16) -> u32 {
        let span = u32::from(self.current.wrapping_sub(self.floor)).max(1);
        u32::from(self.current.wrapping_sub(epoch)) * u32::from(u16::MAX) / span
    }
}

/// One endpoint's clock.
#[derive(Debug, Default)]
pub(super) struct Residency {
    /// [`Live`], `floor << 16 | current`, for readers without the lock.
    live: AtomicU32,
    total: AtomicU32,
    bins: Mutex<Bins>,
}

impl Residency {
    pub(super) fn live(&self) -> Live {
        let packed = self.live.load(Ordering::Relaxed);
        Live { floor: (packed >> 16) as u16, current: packed as u16 }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Bins> {
        self.bins.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Shows readers what changed under the lock; before words of a new epoch are written.
    pub(super) fn publish(&self, bins: &Bins) {
        let packed = u32::from(bins.floor()) << 16 | u32::from(bins.current());
        self.live.store(packed, Ordering::Release);
        self.total.store(bins.total, Ordering::Relaxed);
    }
}

/// Blocks by age.
#[derive(Debug)]
pub(super) struct Bins {
    /// Oldest first; never empty.
    bins: VecDeque<Bin>,
    total: u32,
    capacity: u32,
}

#[derive(Clone, Copy, Debug)]
struct Bin {
    /// First epoch; the bin reaches up to the next one's.
    begin: u16,
    blocks: u32,
}

impl Default for Bins {
    fn default() -> Self {
        let bins = VecDeque::from([Bin { begin: 0, blocks: 0 }]);
        Self { bins, total: 0, capacity: DEFAULT_CAPACITY_BLOCKS as u32 }
    }
}

impl Bins {
    pub(super) fn total(&self) -> u32 {
        self.total
    }

    pub(super) fn current(&self) -> u16 {
        self.bins.back().map_or(0, |bin| bin.begin)
    }

    pub(super) fn set_capacity(&mut self, blocks: u64) {
        self.capacity = u32::try_from(blocks).unwrap_or(u32::MAX).max(1);
        self.evict();
    }

    /// Counts a block that was not held; `true` if a new epoch began.
    pub(super) fn added(&mut self) -> bool {
        self.total = self.total.saturating_add(1);
        self.used()
    }

    /// Counts a block last used in the live epoch `from`, used again now; `true` as in `added`.
    pub(super) fn moved(&mut self, from: u16) -> bool {
        let floor = self.floor();
        let age = from.wrapping_sub(floor);
        let at = self.bins.partition_point(|bin| bin.begin.wrapping_sub(floor) <= age);
        let Some(bin) = at.checked_sub(1).and_then(|at| self.bins.get_mut(at)) else {
            return false;
        };
        bin.blocks = bin.blocks.saturating_sub(1);
        if bin.blocks == 0 && at > 1 && at < self.bins.len() {
            self.bins.remove(at - 1);
        }
        self.used()
    }

    /// Nothing recorded so far is held any longer.
    pub(super) fn clear(&mut self) {
        let begin = self.current().wrapping_add(1);
        self.bins.clear();
        self.bins.push_back(Bin { begin, blocks: 0 });
        self.total = 0;
    }

    /// Drops the oldest bin, be it the only one.
    pub(super) fn give_up_oldest(&mut self) {
        if self.bins.len() == 1 {
            self.begin_epoch();
        }
        self.drop_oldest();
    }

    fn used(&mut self) -> bool {
        let by_total = (self.total / EPOCHS).max(EPOCH_BLOCKS_MIN);
        let epoch_blocks = (self.capacity / EPOCHS).min(by_total).max(1);
        let Some(current) = self.bins.back_mut() else { return false };
        current.blocks += 1;
        let is_full = current.blocks >= epoch_blocks;
        if is_full {
            self.begin_epoch();
        }
        self.evict();
        is_full
    }

    fn begin_epoch(&mut self) {
        let begin = self.current().wrapping_add(1);
        self.bins.push_back(Bin { begin, blocks: 0 });
        if self.bins.len() > BINS_MAX {
            self.merge_smallest_neighbours();
        }
        while begin.wrapping_sub(self.floor()) > SPAN_MAX {
            self.drop_oldest();
        }
    }

    fn evict(&mut self) {
        while self.total > self.capacity && self.bins.len() > 1 {
            self.drop_oldest();
        }
    }

    fn drop_oldest(&mut self) {
        if self.bins.len() > 1
            && let Some(bin) = self.bins.pop_front()
        {
            self.total = self.total.saturating_sub(bin.blocks);
        }
    }

    fn merge_smallest_neighbours(&mut self) {
        let pair = |at: &usize| self.bins[*at].blocks + self.bins[*at + 1].blocks;
        // Not the last pair: the current epoch stays a bin of its own.
        if let Some(at) = (0..self.bins.len().saturating_sub(2)).min_by_key(pair)
            && let Some(newer) = self.bins.remove(at + 1)
        {
            self.bins[at].blocks += newer.blocks;
        }
    }

    fn floor(&self) -> u16 {
        self.bins.front().map_or(0, |bin| bin.begin)
    }
}

const CHUNK: usize = 64;

/// Clocks by slot, made in chunks when a slot is first used.
#[derive(Debug)]
pub(super) struct Slots {
    chunks: Vec<OnceLock<Box<[Residency]>>>,
    /// One past the highest chunk in use.
    chunks_used: AtomicUsize,
}

impl Default for Slots {
    fn default() -> Self {
        let chunks = (0..(usize::from(u16::MAX) + 1) / CHUNK).map(|_| OnceLock::new()).collect();
        Self { chunks, chunks_used: AtomicUsize::new(0) }
    }
}

impl Slots {
    pub(super) fn get(&self, slot: u16) -> Option<&Residency> {
        let slot = usize::from(slot);
        self.chunks[slot / CHUNK].get().map(|chunk| &chunk[slot % CHUNK])
    }

    pub(super) fn get_or_create(&self, slot: u16) -> &Residency {
        let slot = usize::from(slot);
        let chunk = self.chunks[slot / CHUNK].get_or_init(|| {
            self.chunks_used.fetch_max(slot / CHUNK + 1, Ordering::Relaxed);
            (0..CHUNK).map(|_| Residency::default()).collect()
        });
        &chunk[slot % CHUNK]
    }

    pub(super) fn holds(&self, slot: u16, epoch: u16) -> bool {
        self.get(slot).is_some_and(|residency| residency.live().holds(epoch))
    }

    /// The endpoint with the most blocks; `None` if nobody has any.
    pub(super) fn largest(&self) -> Option<&Residency> {
        let used = self.chunks_used.load(Ordering::Relaxed);
        let all = self.chunks[..used].iter().filter_map(OnceLock::get).flatten();
        let total = |residency: &&Residency| residency.total.load(Ordering::Relaxed);
        all.max_by_key(total).filter(|residency| total(residency) > 0)
    }

    /// Memory, if every clock in use has a full set of bins.
    pub(super) fn bytes(&self) -> usize {
        let used = self.chunks[..self.chunks_used.load(Ordering::Relaxed)]
            .iter()
            .filter_map(OnceLock::get)
            .flatten()
            .filter(|residency| residency.total.load(Ordering::Relaxed) > 0)
            .count();
        let chunks = self.chunks_used.load(Ordering::Relaxed);
        self.chunks.len() * size_of::<OnceLock<Box<[Residency]>>>()
            + chunks * CHUNK * size_of::<Residency>()
            + used * BINS_MAX * size_of::<Bin>()
    }
}
