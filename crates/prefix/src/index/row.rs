//! The holders of a block that many endpoints hold.
//!
//! A list while they are few among the slots; beyond, a bitset with the epochs beside it, so that
//! a lookup settles 64 endpoints with one instruction.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::residency::Slots;

/// Holders of one block. Fixed room: a row that is full is replaced by a larger one.
///
/// An entry of a list is `(slot + 1) << 16 | epoch`, 0 is free.
#[derive(Debug)]
pub(super) enum Row {
    /// Beside the kind, where a pointer and a length would be.
    Short([AtomicU32; SHORT_ROOM]),
    List(Box<[AtomicU32]>),
    Dense(Dense),
}

/// By slot: a bit that the block was recorded there, and when. The bit may outlive the epoch.
///
/// One allocation: a word of bits for each group of 64 slots, then the epochs, four to a word.
#[derive(Debug)]
pub(super) struct Dense {
    words: Box<[AtomicU64]>,
}

const SHORT_ROOM: usize = 6;
/// Words of one group in a dense row.
const GROUP_WORDS: usize = 1 + 64 / EPOCHS_PER_WORD;
const EPOCHS_PER_WORD: usize = 4;
/// More holders than so many for each group of slots, and a few, become dense: then a holder takes
/// less than 14 bytes, and a lookup far less time than through a list.
const DENSE_PER_GROUP: usize = 10;
const DENSE_MIN: usize = 5;

/// How a row stores its holders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    Short,
    List { room: usize },
    Dense { groups: usize },
}

impl Shape {
    /// For so many holders whose slots are below `span`.
    fn of(holders: usize, span: usize) -> Self {
        let groups = span.div_ceil(64);
        if holders <= SHORT_ROOM {
            Self::Short
        } else if holders > DENSE_PER_GROUP * groups + DENSE_MIN {
            Self::Dense { groups }
        } else {
            Self::List { room: (holders + holders / 4).next_multiple_of(4) }
        }
    }

    fn bytes(self) -> usize {
        let content = match self {
            Self::Short => 0,
            Self::List { room } => room * size_of::<AtomicU32>(),
            Self::Dense { groups } => groups * GROUP_WORDS * size_of::<AtomicU64>(),
        };
        // A reference-counted allocation has two counts in front.
        content + size_of::<Row>() + 2 * size_of::<usize>()
    }
}

/// Bytes that a row for so many holders, whose slots are below `span`, would take.
pub(super) fn bytes_for(holders: usize, span: usize) -> usize {
    Shape::of(holders, span).bytes()
}

fn span(holders: &[(u16, u16)]) -> usize {
    holders.iter().map(|(slot, _)| usize::from(*slot) + 1).max().unwrap_or(0)
}

impl Row {
    /// A row for these holders, with room for more.
    pub(super) fn new(holders: &[(u16, u16)]) -> Self {
        let cell = |at: usize| {
            let entry = holders.get(at).map_or(0, |(slot, epoch)| entry(*slot, *epoch));
            AtomicU32::new(entry)
        };
        match Shape::of(holders.len(), span(holders)) {
            Shape::Short => Self::Short(std::array::from_fn(cell)),
            Shape::List { room } => Self::List((0..room).map(cell).collect()),
            Shape::Dense { groups } => {
                let words = (0..groups * GROUP_WORDS).map(|_| AtomicU64::new(0)).collect();
                let dense = Dense { words };
                for (slot, epoch) in holders {
                    dense.set(*slot, *epoch);
                }
                Self::Dense(dense)
            }
        }
    }

    pub(super) fn bytes(&self) -> usize {
        let shape = match self {
            Self::Short(_) => Shape::Short,
            Self::List(entries) => Shape::List { room: entries.len() },
            Self::Dense(dense) => Shape::Dense { groups: dense.groups() },
        };
        shape.bytes()
    }

    fn entries(&self) -> &[AtomicU32] {
        match self {
            Self::Short(entries) => entries,
            Self::List(entries) => entries,
            Self::Dense(_) => &[],
        }
    }

    /// Writes a use. `Ok` has the epoch of the last use, if the slot had one; `Err`: no room.
    pub(super) fn touch(&self, slot: u16, epoch: u16, slots: &Slots) -> Result<Option<u16>, ()> {
        if let Self::Dense(dense) = self {
            if usize::from(slot / 64) >= dense.groups() {
                return Err(());
            }
            let before = dense.get(slot);
            if before != Some(epoch) {
                dense.set(slot, epoch);
            }
            return Ok(before);
        }
        let mut free = None;
        for cell in self.entries() {
            let value = cell.load(Ordering::Relaxed);
            match holder(value) {
                Some((holder, before)) if holder == slot => {
                    if before != epoch {
                        cell.store(entry(slot, epoch), Ordering::Release);
                    }
                    return Ok(Some(before));
                }
                Some((holder, before)) if slots.holds(holder, before) => {}
                _ => free = free.or(Some(cell)),
            }
        }
        let cell = free.ok_or(())?;
        cell.store(entry(slot, epoch), Ordering::Release);
        Ok(None)
    }

    pub(super) fn for_each(&self, mut visit: impl FnMut(u16, u16)) {
        if let Self::Dense(dense) = self {
            dense.for_each(visit);
            return;
        }
        for cell in self.entries() {
            if let Some((slot, epoch)) = holder(cell.load(Ordering::Acquire)) {
                visit(slot, epoch);
            }
        }
    }

    /// Removes holders whose epoch is over.
    pub(super) fn sweep(&self, slots: &Slots) {
        if let Self::Dense(dense) = self {
            dense.for_each(|slot, epoch| {
                if !slots.holds(slot, epoch) {
                    dense.remove(slot);
                }
            });
            return;
        }
        for cell in self.entries() {
            if let Some((slot, epoch)) = holder(cell.load(Ordering::Relaxed))
                && !slots.holds(slot, epoch)
            {
                cell.store(0, Ordering::Release);
            }
        }
    }
}

// Only the holder of the shard's lock writes, so a load and a store make a change.
impl Dense {
    fn groups(&self) -> usize {
        self.words.len() / GROUP_WORDS
    }

    /// Bits of the slots of one group of 64; none beyond the last.
    pub(super) fn bits(&self, group: usize) -> u64 {
        if group < self.groups() { self.words[group].load(Ordering::Acquire) } else { 0 }
    }

    pub(super) fn get(&self, slot: u16) -> Option<u16> {
        let is_set = self.bits(usize::from(slot / 64)) >> (slot % 64) & 1 == 1;
        is_set.then(|| self.epoch(slot))
    }

    pub(super) fn for_each(&self, mut visit: impl FnMut(u16, u16)) {
        for group in 0..self.groups() {
            for_each_bit(group, self.bits(group), |slot| visit(slot, self.epoch(slot)));
        }
    }

    fn set(&self, slot: u16, epoch: u16) {
        let (word, shift) = self.epoch_place(slot);
        let others = word.load(Ordering::Relaxed) & !(u64::from(u16::MAX) << shift);
        word.store(others | u64::from(epoch) << shift, Ordering::Relaxed);
        let bits = &self.words[usize::from(slot / 64)];
        bits.store(bits.load(Ordering::Relaxed) | 1 << (slot % 64), Ordering::Release);
    }

    fn remove(&self, slot: u16) {
        let bits = &self.words[usize::from(slot / 64)];
        bits.store(bits.load(Ordering::Relaxed) & !(1 << (slot % 64)), Ordering::Release);
    }

    fn epoch(&self, slot: u16) -> u16 {
        let (word, shift) = self.epoch_place(slot);
        (word.load(Ordering::Relaxed) >> shift) as u16
    }

    /// Word and shift of a slot's epoch; the slot is below `groups * 64`.
    fn epoch_place(&self, slot: u16) -> (&AtomicU64, usize) {
        let slot = usize::from(slot);
        let word = self.groups() + slot / EPOCHS_PER_WORD;
        (&self.words[word], slot % EPOCHS_PER_WORD * 16)
    }
}

/// Visits the slots of the set bits in one 64-slot group.
pub(super) fn for_each_bit(group: usize, mut bits: u64, mut visit: impl FnMut(u16)) {
    while bits != 0 {
        visit((group * 64) as u16 + bits.trailing_zeros() as u16);
        bits &= bits - 1;
    }
}

fn entry(slot: u16, epoch: u16) -> u32 {
    (u32::from(slot) + 1) << 16 | u32::from(epoch)
}

fn holder(entry: u32) -> Option<(u16, u16)> {
    ((entry >> 16) as u16).checked_sub(1).map(|slot| (slot, entry as u16))
}
