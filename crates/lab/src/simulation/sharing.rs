//! Gateways that share their books, all at the same moments.

use sched::Credit;
use types::Timestamp;

use super::{Event, Simulation};

impl Simulation<'_> {
    /// Orders the next sharing, if there is anybody to share with.
    pub(super) fn order_sharing(&mut self, now: Timestamp) {
        if let Some(interval) = self.settings.share_interval
            && self.gateways.len() > 1
            && self.policy.is_ours()
            && self.open > 0
        {
            self.order(now + interval, Event::Share);
        }
    }

    /// Every gateway learns what the others have and sent. In life each tells at its own time and the
    /// network takes a fraction of a millisecond; here all do at once, in none.
    pub(super) fn share(&mut self, now: Timestamp) {
        let over = self.settings.share_interval.unwrap_or_default();
        for endpoint in 0..self.endpoints.len() {
            let credits: Vec<_> =
                self.gateways.iter().map(|gateway| gateway.credit(endpoint, now)).collect();
            for (own, gateway) in self.gateways.iter().enumerate() {
                let others = credits.iter().enumerate().filter(|(at, _)| *at != own);
                let sum = others.fold(Credit::default(), |sum, (_, credit)| sum.plus(*credit));
                gateway.set_peers(endpoint, sum, over, now);
            }
        }
        for own in 0..self.gateways.len() {
            for (endpoint, hashes) in self.gateways[own].take_told() {
                let others = self.gateways.iter().enumerate().filter(|(at, _)| *at != own);
                others.for_each(|(_, other)| other.record_for_peer(endpoint, &hashes));
            }
        }
        self.order_sharing(now);
    }
}
