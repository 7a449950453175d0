//! How requests leave the queue without being dispatched.

use types::Timestamp;

use super::Queue;
use crate::outcome::{Ended, Expiry};
use crate::store::Item;
use crate::work::Ticket;

impl<T> Queue<T> {
    /// Takes a request out: its client left. `None`: it left the queue before.
    pub fn cancel(&mut self, ticket: Ticket) -> Option<T> {
        if self.store.get(ticket.place).is_some_and(|item| item.number == ticket.number) {
            return self.remove(ticket.place).map(|item| item.payload);
        }
        let overdue = self.overdue.iter().position(|ended| ended.ticket == ticket)?;
        Some(self.overdue.swap_remove(overdue).payload)
    }

    /// Takes out all whose time is over.
    pub fn expired(&mut self, now: Timestamp, out: &mut Vec<Ended<T, Expiry>>) {
        let now = self.tick(now);
        self.end_overdue(now);
        out.append(&mut self.overdue);
    }

    /// When to call [`expired`](Self::expired) next.
    pub fn next_expiry(&self) -> Option<Timestamp> {
        match self.overdue.is_empty() {
            true => self.expiries.first().map(|(at, _)| *at),
            false => Some(Timestamp::ZERO),
        }
    }

    /// Whether the pool has any endpoint; it has until the contrary is said. While it has none nothing
    /// goes, the bands' TTLs stand still and [`NoEndpoint`](crate::NoEndpoint) bounds what waits.
    /// O(n log n) when it changes.
    pub fn has_endpoints(&mut self, yes: bool, now: Timestamp) {
        let now = self.tick(now);
        self.end_overdue(now);
        if yes == self.has_endpoints {
            return;
        }
        self.has_endpoints = yes;
        self.expiries.clear();
        for (place, item) in self.store.iter_mut() {
            let left = item.budget_end.since(now);
            item.budget_end = now + item.budget_other;
            item.budget_other = left;
            self.expiries.insert((item.expiry(), place));
        }
    }

    /// Moves all whose time is over to where they wait to be fetched.
    pub(super) fn end_overdue(&mut self, now: Timestamp) {
        while let Some((at, place)) = self.expiries.first().copied()
            && at <= now
        {
            let Some(item) = self.remove(place) else {
                self.expiries.pop_first();
                continue;
            };
            let why = self.why(&item, now);
            let retry_after = match why {
                Expiry::NoEndpoint => Some(super::forecast::UNKNOWN),
                Expiry::Ttl | Expiry::Deadline => Some(self.promise(&item.work, now)),
            };
            let Item { number, work, payload, .. } = item;
            let ticket = Ticket { place, number };
            self.overdue.push(Ended { ticket, work, payload, why, retry_after });
        }
    }

    fn why(&self, item: &Item<T>, now: Timestamp) -> Expiry {
        if item.last_start().is_some_and(|start| start <= now) {
            Expiry::Deadline
        } else if self.has_endpoints {
            Expiry::Ttl
        } else {
            Expiry::NoEndpoint
        }
    }
}
