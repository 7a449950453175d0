//! What gateways tell each other.

use std::time::Duration;

use prefix::BlockHash;
use sched::Credit;
use types::Timestamp;

use super::Gateway;

impl Gateway {
    /// What this gateway has on an endpoint now.
    pub(crate) fn credit(&self, endpoint: usize, now: Timestamp) -> Credit {
        self.states[endpoint].credit(now)
    }

    /// What the others have there.
    pub(crate) fn set_peers(
        &self,
        endpoint: usize,
        credit: Credit,
        over: Duration,
        now: Timestamp,
    ) {
        self.states[endpoint].set_peers(credit, over, now);
    }

    /// Prompts sent since the last call.
    pub(crate) fn take_told(&mut self) -> Vec<(usize, Vec<BlockHash>)> {
        self.told.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Another gateway sent this prompt there.
    pub(crate) fn record_for_peer(&self, endpoint: usize, hashes: &[BlockHash]) {
        self.index.record(self.states[endpoint].slot(), hashes);
    }
}
