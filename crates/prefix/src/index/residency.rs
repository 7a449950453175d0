//! Which epochs of an endpoint are alive: an LRU in a few hundred bytes.
//!
//! Epochs are numbered by 16 bits that wrap. A *bin* counts the blocks whose last use fell into a
//! run of epochs; the last bin is the current epoch. A used block moves to the current epoch.
//! Blocks in the newest bins are exactly the most recently used ones, so dropping the oldest bins
//! until the rest fits the capacity is LRU, to within one bin: about 1/64 of the blocks.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use super::correction::Correction;
use crate::{Answer, Belief};

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
const BINS_MAX: usize = 127;
/// Live epochs must stay well apart from those that a wrapped number would be mistaken for.
const SPAN_MAX: u16 = 56_000;

/// Live epochs, `floor..=current` on the circle of 16-bit numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Live {
    floor: u16,
    current: u16,
}

impl Live {
    fn pack(self) -> u32 {
        u32::from(self.floor) << 16 | u32::from(self.current)
    }

    fn unpack(packed: u32) -> Self {
        Self { floor: (packed >> 16) as u16, current: packed as u16 }
    }

    /// The epoch in which blocks are used now.
    pub(super) fn current(self) -> u16 {
        self.current
    }

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
#[derive(Clone, Copy)]
pub(super) struct Residency<'a> {
    group: &'a Group,
    at: usize,
}

impl<'a> Residency<'a> {
    pub(super) fn live(self) -> Live {
        Live::unpack(self.group.live[self.at].load(Ordering::Relaxed))
    }

    pub(super) fn lock(self) -> MutexGuard<'a, Bins> {
        self.group.bins[self.at].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Shows readers what changed under the lock; before words of a new epoch are written.
    pub(super) fn publish(self, bins: &Bins) {
        self.group.live[self.at].store(bins.live().pack(), Ordering::Release);
        self.group.totals[self.at].store(bins.total, Ordering::Relaxed);
    }

    fn total(self) -> u32 {
        self.group.totals[self.at].load(Ordering::Relaxed)
    }
}

/// Blocks by age.
#[derive(Debug)]
pub(super) struct Bins {
    /// Oldest first; never empty.
    bins: VecDeque<Bin>,
    total: u32,
    correction: Correction,
    /// The index's sweep hand when this endpoint's newest epoch began.
    sweep_seen: usize,
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
        let correction = Correction::new(DEFAULT_CAPACITY_BLOCKS as u32);
        Self { bins, total: 0, correction, sweep_seen: 0 }
    }
}

impl Bins {
    pub(super) fn total(&self) -> u32 {
        self.total
    }

    pub(super) fn live(&self) -> Live {
        Live { floor: self.floor(), current: self.current() }
    }

    fn current(&self) -> u16 {
        self.bins.back().map_or(0, |bin| bin.begin)
    }

    pub(super) fn set_capacity(&mut self, blocks: u64) {
        self.correction.report(u32::try_from(blocks).unwrap_or(u32::MAX));
        self.evict();
    }

    /// Takes into account what an answer found of what was believed.
    pub(super) fn correct(&mut self, belief: &Belief, answer: &Answer) {
        self.correction.learn(belief, answer);
        self.evict();
    }

    /// Blocks that the endpoint is taken to hold at most.
    pub(super) fn capacity(&self) -> u32 {
        self.correction.effective()
    }

    /// Blocks used since a block was last used in the live epoch `epoch`; exact to within a bin.
    pub(super) fn depth(&self, epoch: u16) -> u32 {
        let floor = self.floor();
        let age = epoch.wrapping_sub(floor);
        let newer = self.bins.iter().rev().take_while(|bin| bin.begin.wrapping_sub(floor) > age);
        let (bins, blocks) = newer
            .fold((0, 0_u32), |(bins, blocks), bin| (bins + 1, blocks.saturating_add(bin.blocks)));
        let own = self.bins.iter().rev().nth(bins).map_or(0, |bin| bin.blocks / 2);
        blocks.saturating_add(own)
    }

    /// Notes where the sweep is; `true` if it moved since.
    pub(super) fn see_sweep(&mut self, hand: usize) -> bool {
        std::mem::replace(&mut self.sweep_seen, hand) != hand
    }

    /// Counts a block that was not held.
    pub(super) fn added(&mut self) {
        self.total = self.total.saturating_add(1);
        self.used();
    }

    /// Counts a block last used in the live epoch `from`, used again now.
    pub(super) fn moved(&mut self, from: u16) {
        let floor = self.floor();
        let age = from.wrapping_sub(floor);
        let at = self.bins.partition_point(|bin| bin.begin.wrapping_sub(floor) <= age);
        let Some(bin) = at.checked_sub(1).and_then(|at| self.bins.get_mut(at)) else { return };
        bin.blocks = bin.blocks.saturating_sub(1);
        if bin.blocks == 0 && at > 1 && at < self.bins.len() {
            self.bins.remove(at - 1);
        }
        self.used();
    }

    /// Nothing recorded so far is held any longer.
    pub(super) fn clear(&mut self) {
        let begin = self.current().wrapping_add(1);
        self.bins.clear();
        self.bins.push_back(Bin { begin, blocks: 0 });
        self.total = 0;
        self.correction = Correction::new(self.correction.reported());
    }

    /// Drops the oldest bin, be it the only one.
    pub(super) fn give_up_oldest(&mut self) {
        if self.bins.len() == 1 {
            self.begin_epoch();
        }
        self.drop_oldest();
    }

    fn used(&mut self) {
        let by_total = (self.total / EPOCHS).max(EPOCH_BLOCKS_MIN);
        let epoch_blocks = (self.capacity() / EPOCHS).min(by_total).max(1);
        let Some(current) = self.bins.back_mut() else { return };
        current.blocks += 1;
        if current.blocks >= epoch_blocks {
            self.begin_epoch();
        }
        self.evict();
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
        while self.total > self.capacity() && self.bins.len() > 1 {
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

const GROUP: usize = 64;

/// The clocks of 64 slots. Apart from each other what all readers ask for, and what only writers
/// do: a lookup among a thousand endpoints stays within a few cache lines.
#[derive(Debug)]
struct Group {
    /// [`Live`], packed, for readers without the lock.
    live: [AtomicU32; GROUP],
    totals: [AtomicU32; GROUP],
    bins: [Mutex<Bins>; GROUP],
}

impl Default for Group {
    fn default() -> Self {
        Self {
            live: std::array::from_fn(|_| AtomicU32::default()),
            totals: std::array::from_fn(|_| AtomicU32::default()),
            bins: std::array::from_fn(|_| Mutex::default()),
        }
    }
}

/// Clocks by slot, made in groups when a slot is first used.
#[derive(Debug)]
pub(super) struct Slots {
    groups: Vec<OnceLock<Box<Group>>>,
    /// One past the highest group in use.
    groups_used: AtomicUsize,
}

impl Default for Slots {
    fn default() -> Self {
        let groups = (0..(usize::from(u16::MAX) + 1) / GROUP).map(|_| OnceLock::new()).collect();
        Self { groups, groups_used: AtomicUsize::new(0) }
    }
}

impl Slots {
    pub(super) fn get(&self, slot: u16) -> Option<Residency<'_>> {
        let slot = usize::from(slot);
        self.groups[slot / GROUP].get().map(|group| Residency { group, at: slot % GROUP })
    }

    pub(super) fn get_or_create(&self, slot: u16) -> Residency<'_> {
        let slot = usize::from(slot);
        let group = self.groups[slot / GROUP].get_or_init(|| {
            self.groups_used.fetch_max(slot / GROUP + 1, Ordering::Relaxed);
            Box::default()
        });
        Residency { group, at: slot % GROUP }
    }

    pub(super) fn holds(&self, slot: u16, epoch: u16) -> bool {
        self.get(slot).is_some_and(|residency| residency.live().holds(epoch))
    }

    /// The endpoint with the most blocks; `None` if nobody has any.
    pub(super) fn largest(&self) -> Option<Residency<'_>> {
        let largest = self.used().max_by_key(|residency| residency.total());
        largest.filter(|residency| residency.total() > 0)
    }

    fn used(&self) -> impl Iterator<Item = Residency<'_>> {
        let used = self.groups_used.load(Ordering::Relaxed);
        let groups = self.groups[..used].iter().filter_map(OnceLock::get);
        groups.flat_map(|group| (0..GROUP).map(move |at| Residency { group, at }))
    }

    /// Memory, if every clock in use has a full set of bins.
    pub(super) fn bytes(&self) -> usize {
        let used = self.used().filter(|residency| residency.total() > 0).count();
        let groups = self.groups[..self.groups_used.load(Ordering::Relaxed)].iter();
        self.groups.len() * size_of::<OnceLock<Box<Group>>>()
            + groups.filter_map(OnceLock::get).count() * size_of::<Group>()
            + used * BINS_MAX.next_power_of_two() * size_of::<Bin>()
    }
}
