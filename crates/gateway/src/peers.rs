//! Where a gateway meets its peers: what it leaves for them, and what it takes from them.
//!
//! How peers find and reach each other is not known here. Nothing on a request's way waits for
//! them: a prompt that was sent is copied into a bounded box, which another task empties.

#[cfg(test)]
mod tests;

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use prefix::BlockHash;
use types::Slot;

use crate::{Gateway, Member};

/// What a gateway shares with its peers.
#[derive(Debug)]
pub struct Peering {
    /// Key of the hashes of prompts, the same in all of them.
    pub hash_key: u64,
    pub outbox: Arc<Outbox>,
}

/// Prompts that were sent to endpoints since they were last collected.
#[derive(Debug)]
pub struct Outbox {
    waiting: Mutex<SentPrompts>,
    blocks_max: usize,
    prompts_dropped: AtomicU64,
}

/// Prompts and where they went, in order.
#[derive(Debug, Default)]
pub struct SentPrompts {
    hashes: Vec<BlockHash>,
    prompts: Vec<(Slot, Range<usize>)>,
}

impl Outbox {
    /// * `blocks_max`: room for so many blocks (8 bytes each); a prompt that finds none is left out.
    pub fn new(blocks_max: usize) -> Self {
        Self { waiting: Mutex::default(), blocks_max, prompts_dropped: AtomicU64::new(0) }
    }

    /// Empties the box into `prompts`, whose memory it takes in exchange.
    pub fn take(&self, prompts: &mut SentPrompts) {
        prompts.clear();
        std::mem::swap(&mut *self.lock(), prompts);
    }

    /// Prompts left out since the last call, because nobody collected in time.
    pub fn take_dropped(&self) -> u64 {
        self.prompts_dropped.swap(0, Ordering::Relaxed)
    }

    pub(crate) fn put(&self, slot: Slot, hashes: &[BlockHash]) {
        if hashes.is_empty() {
            return;
        }
        let mut waiting = self.lock();
        let from = waiting.hashes.len();
        if from + hashes.len() > self.blocks_max {
            self.prompts_dropped.fetch_add(1, Ordering::Relaxed);
            return;
        }
        waiting.hashes.extend_from_slice(hashes);
        waiting.prompts.push((slot, from..from + hashes.len()));
    }

    fn lock(&self) -> MutexGuard<'_, SentPrompts> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SentPrompts {
    /// Each prompt's blocks from its first, and the slot of the endpoint that got it.
    pub fn iter(&self) -> impl Iterator<Item = (Slot, &[BlockHash])> {
        self.prompts.iter().map(|(slot, range)| (*slot, &self.hashes[range.clone()]))
    }

    pub fn is_empty(&self) -> bool {
        self.prompts.is_empty()
    }

    pub fn clear(&mut self) {
        self.hashes.clear();
        self.prompts.clear();
    }
}

impl Gateway {
    /// Begins to share with peers. Only the first call counts; it must come before traffic, for
    /// prompts that were hashed with another key are not found again.
    pub fn join_peers(&self, peering: Peering) {
        // A second set of peers would have another key, which cannot be changed any more.
        let _ = self.peering.set(peering);
    }

    /// Notes that a peer sent a prompt to an endpoint.
    ///
    /// * `hashes`: blocks that follow on each other, hashed with the common key.
    pub fn record_for_peer(&self, member: &Member, hashes: &[BlockHash]) {
        self.index.record(member.endpoint.slot, hashes);
    }

    /// Blocks from the prompt's start that an endpoint is taken to hold.
    pub fn held_blocks(&self, member: &Member, hashes: &[BlockHash]) -> u32 {
        let mut matches = prefix::Matches::default();
        self.index.longest_matches(hashes, &mut matches);
        matches.blocks(member.endpoint.slot)
    }

    /// Leaves word for the peers of a prompt that goes to an endpoint.
    pub(crate) fn tell_peers(&self, slot: Slot, hashes: &[BlockHash]) {
        if let Some(peering) = self.peering.get() {
            peering.outbox.put(slot, hashes);
        }
    }
}
