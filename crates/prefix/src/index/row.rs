//! The holders of a block that many endpoints hold.
//!
//! A list while they are few among the slots; beyond, a bitset, so that a lookup settles 64
//! endpoints with one instruction, with the epochs beside it.

use std::sync::atomic::{AtomicU16, AtomicU32, AtomicU64, Ordering};

use super::residency::Slots;

/// Holders of one block. Fixed room: a row that is full is replaced by a larger one.
#[derive(Debug)]
pub(super) enum Row {
    /// `(slot + 1) << 16 | epoch`, 0 is free.
    List(Box<[AtomicU32]>),
    Dense(Dense),
}

/// By slot: a bit that the block was recorded there, and when. The bit may outlive the epoch.
#[derive(Debug)]
pub(super) struct Dense {
    pub(super) bits: Box<[AtomicU64]>,
    epochs: Box<[AtomicU16]>,
}

/// A list longer than this part of the slots it spans becomes dense: 2 bytes a slot against 4 a
/// holder, but a far cheaper lookup.
const DENSE_SHARE: usize = 16;
const LIST_MIN: usize = 8;

impl Row {
    /// A row for these holders, with room for more.
    pub(super) fn new(holders: &[(u16, u16)]) -> Self {
        let span = holders.iter().map(|(slot, _)| usize::from(*slot) + 1).max().unwrap_or(0);
        if holders.len() > LIST_MIN.max(span / DENSE_SHARE) {
            let groups = span.div_ceil(64);
            let dense = Dense {
                bits: (0..groups).map(|_| AtomicU64::new(0)).collect(),
                epochs: (0..groups * 64).map(|_| AtomicU16::new(0)).collect(),
            };
            for (slot, epoch) in holders {
                dense.set(*slot, *epoch);
            }
            return Self::Dense(dense);
        }
        let room = (holders.len() + holders.len() / 4).next_multiple_of(4).max(LIST_MIN);
        let mut entries: Vec<_> =
            holders.iter().map(|(slot, epoch)| AtomicU32::new(entry(*slot, *epoch))).collect();
        entries.resize_with(room, || AtomicU32::new(0));
        Self::List(entries.into())
    }

    pub(super) fn bytes(&self) -> usize {
        // A reference-counted allocation has two counts in front.
        let content = match self {
            Self::List(entries) => entries.len() * size_of::<AtomicU32>(),
            Self::Dense(dense) => dense.epochs.len() * 2 + dense.bits.len() * 8,
        };
        content + size_of::<Self>() + 2 * size_of::<usize>()
    }

    /// Writes a use. `Ok` has the epoch of the last use, if the slot had one; `Err`: no room.
    pub(super) fn touch(&self, slot: u16, epoch: u16, slots: &Slots) -> Result<Option<u16>, ()> {
        match self {
            Self::Dense(dense) => {
                if usize::from(slot) >= dense.epochs.len() {
                    return Err(());
                }
                let before = dense.get(slot);
                if before != Some(epoch) {
                    dense.set(slot, epoch);
                }
                Ok(before)
            }
            Self::List(entries) => {
                let mut free = None;
                for cell in entries {
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
        }
    }

    /// Epoch of the slot's last use.
    pub(super) fn get(&self, slot: u16) -> Option<u16> {
        match self {
            Self::Dense(dense) => dense.get(slot),
            Self::List(_) => {
                let mut found = None;
                self.for_each(|holder, epoch| {
                    if holder == slot {
                        found = Some(epoch);
                    }
                });
                found
            }
        }
    }

    pub(super) fn for_each(&self, mut visit: impl FnMut(u16, u16)) {
        match self {
            Self::List(entries) => {
                for cell in entries {
                    if let Some((slot, epoch)) = holder(cell.load(Ordering::Acquire)) {
                        visit(slot, epoch);
                    }
                }
            }
            Self::Dense(dense) => {
                for (group, bits) in dense.bits.iter().enumerate() {
                    for_each_bit(group, bits.load(Ordering::Acquire), |slot| {
                        visit(slot, dense.epochs[usize::from(slot)].load(Ordering::Relaxed));
                    });
                }
            }
        }
    }

    /// Removes holders whose epoch is over.
    pub(super) fn sweep(&self, slots: &Slots) {
        match self {
            Self::List(entries) => {
                for cell in entries {
                    if let Some((slot, epoch)) = holder(cell.load(Ordering::Relaxed))
                        && !slots.holds(slot, epoch)
                    {
                        cell.store(0, Ordering::Release);
                    }
                }
            }
            Self::Dense(dense) => self.for_each(|slot, epoch| {
                if !slots.holds(slot, epoch) {
                    let mask = !(1_u64 << (slot % 64));
                    dense.bits[usize::from(slot / 64)].fetch_and(mask, Ordering::Release);
                }
            }),
        }
    }
}

impl Dense {
    pub(super) fn get(&self, slot: u16) -> Option<u16> {
        let bits = self.bits.get(usize::from(slot / 64))?.load(Ordering::Acquire);
        let is_set = bits >> (slot % 64) & 1 == 1;
        is_set.then(|| self.epochs[usize::from(slot)].load(Ordering::Relaxed))
    }

    fn set(&self, slot: u16, epoch: u16) {
        self.epochs[usize::from(slot)].store(epoch, Ordering::Relaxed);
        self.bits[usize::from(slot / 64)].fetch_or(1 << (slot % 64), Ordering::Release);
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
