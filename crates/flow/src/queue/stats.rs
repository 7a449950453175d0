//! What a queue holds, for metrics.

use std::collections::HashMap;

use types::{Priority, Timestamp};

use super::Queue;

/// What a band holds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BandStats {
    pub priority: Priority,
    pub requests: u64,
    pub bytes: u64,
    pub tokens: u64,
    /// Flows with something queued.
    pub flows: u64,
    /// When the oldest was offered.
    pub oldest: Option<Timestamp>,
    /// Refused requests for which a place is kept.
    pub promises: u64,
}

impl<T> Queue<T> {
    /// Each band that has been used lately, highest first. O(queued).
    pub fn stats(&self) -> Vec<BandStats> {
        let mut oldest: HashMap<Priority, Timestamp> = HashMap::new();
        for (_, item) in self.store.iter() {
            let of_band = oldest.entry(item.work.flow.priority).or_insert(item.offered);
            *of_band = item.offered.min(*of_band);
        }
        let each = self.bands.iter().rev().map(|(priority, band)| BandStats {
            priority: *priority,
            requests: band.held.requests,
            bytes: band.held.bytes,
            tokens: band.held.tokens,
            flows: band.flows.active(),
            oldest: oldest.get(priority).copied(),
            promises: band.promised.requests,
        });
        each.collect()
    }

    /// Tokens per second that the pool takes while work waits. `None`: not known yet.
    pub fn tokens_per_second(&self) -> Option<f64> {
        self.capacity.per_second(self.now)
    }
}
