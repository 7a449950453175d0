//! Who may go.

use types::{Priority, Saturation, Standing, Timestamp};

use super::{Dispatch, Queue};
use crate::config::Fairness;
use crate::held::Held;
use crate::promises::Return;
use crate::work::{FlowKey, Ticket, Work};

/// Part of its ceiling below which a pool has plainly recovered.
pub(super) const RECOVERED: f32 = 0.5;

impl<T> Queue<T> {
    /// The short way: whether this request may be sent at once, without being queued. That is so if
    /// its band's ceiling is not reached, there is an endpoint, and nothing of its own or a higher
    /// band waits. If so it counts as dispatched, as what it goes. `None`: it is to be offered.
    ///
    /// One that was told to come back later passes only if the pool has plainly recovered: else who
    /// tries most often would get most.
    pub fn pass(
        &mut self,
        work: &Work,
        saturation: impl Into<Saturation>,
        now: Timestamp,
    ) -> Option<Standing> {
        let now = self.tick(now);
        let priority = work.flow.priority;
        self.band(priority).lately.note(&work.flow.id, now);
        let (standing, found) = self.standing_of(work, now);
        let saturation = saturation.into().of(standing);
        let saturation = match found {
            Return::Early { .. } => saturation / RECOVERED,
            Return::Fresh | Return::Due { .. } => saturation,
        };
        if !self.is_free(priority, saturation) {
            return None;
        }
        self.redeem(work.fingerprint, now);
        let band = self.band(priority);
        band.arrivals.add(work.cost() as f64, now);
        if band.config.fairness == Fairness::LeastAttainedService {
            band.flows.charge(&work.flow.id, work.cost() as f64, now);
        }
        self.depart(&work.flow, work.cost(), now);
        let is_busy = !self.is_empty();
        self.account(priority, work.cost(), saturation, is_busy);
        Some(standing)
    }

    /// Whether work of this priority could go at once.
    pub(super) fn is_free(&self, priority: Priority, saturation: f32) -> bool {
        let ceiling = self.config.band(priority).ceiling.get();
        // Also false for what is no number.
        self.has_endpoints
            && saturation < ceiling
            && self.bands.range(priority..).all(|(_, band)| !band.has_work())
            && self.due(saturation).is_none()
    }

    /// The request that may go now, if one may. To be called until `None` whenever something was
    /// queued or capacity freed, with the saturation that includes what was dispatched before. Never
    /// gives a request whose time is over; those come out of [`expired`](Self::expired).
    pub fn next(
        &mut self,
        saturation: impl Into<Saturation>,
        now: Timestamp,
    ) -> Option<Dispatch<T>> {
        let now = self.tick(now);
        let saturation = saturation.into();
        self.end_overdue(now);
        if !self.has_endpoints {
            return None;
        }
        let (best, band) = self.bands.iter().rev().find(|(_, band)| band.has_work())?;
        let roomiest = saturation.least();
        let priority = match self.due(roomiest) {
            Some(due) => due,
            None if band.is_below_ceiling(roomiest) => *best,
            None => return None,
        };
        let is_below_higher = self.is_below_higher(priority, now);
        let (place, standing) =
            self.bands.get(&priority)?.first(&self.store, saturation, is_below_higher, now)?;
        let saturation = saturation.of(standing);
        let item = self.store.remove(place)?;
        self.expiries.remove(&(item.expiry(), place));
        self.held.take(item.held);
        // Before it leaves, so that the last of a band is accounted like others.
        self.account(priority, item.work.cost(), saturation, true);
        let band = self.bands.get_mut(&priority)?;
        band.held.take(item.held);
        let key = (item.key, item.number);
        band.flows.serve(item.flow, key, item.held, item.work.cost(), now);
        self.depart(&item.work.flow, item.work.cost(), now);
        Some(Dispatch {
            ticket: Ticket { place, number: item.number },
            waited: now.since(item.offered),
            work: item.work,
            standing,
            payload: item.payload,
        })
    }

    /// A flow against its equal part.
    pub fn standing(&self, flow: &FlowKey, now: Timestamp) -> Standing {
        let is_below_higher = self.is_below_higher(flow.priority, now);
        match self.bands.get(&flow.priority) {
            Some(band) => band.standing(&flow.id, None, is_below_higher, now),
            None if is_below_higher => Standing::Lower,
            None => Standing::Within,
        }
    }

    /// The standing of a request, and what is known of it.
    pub(super) fn standing_of(&self, work: &Work, now: Timestamp) -> (Standing, Return) {
        let found = self.promises.find(work.fingerprint, now);
        let standing = match (self.bands.get(&work.flow.priority), found.returned()) {
            (Some(band), Some(promised)) => {
                let is_below_higher = self.is_below_higher(work.flow.priority, now);
                band.standing(&work.flow.id, Some(promised), is_below_higher, now)
            }
            _ => self.standing(&work.flow, now),
        };
        (standing, found)
    }

    fn is_below_higher(&self, priority: Priority, now: Timestamp) -> bool {
        let higher = self.bands.range(priority..).filter(|(other, _)| **other > priority);
        higher.into_iter().any(|(_, band)| band.lately.anybody(now))
    }

    fn depart(&mut self, flow: &FlowKey, cost: u64, now: Timestamp) {
        let held = Held::one(0, cost);
        self.band(flow.priority).flows.depart(&flow.id, held, now);
    }

    /// A dispatched request was never sent, or has ended.
    pub fn unsent(&mut self, flow: &FlowKey, tokens: u32, now: Timestamp) {
        let now = self.tick(now);
        let held = Held::one(0, u64::from(tokens.clamp(1, crate::work::TOKENS_MAX)));
        if let Some(band) = self.bands.get_mut(&flow.priority) {
            band.flows.arrive(&flow.id, held, now);
        }
    }

    /// The band whose reserved share lags most, of those that may go.
    fn due(&self, saturation: f32) -> Option<Priority> {
        let due = self
            .bands
            .iter()
            .filter(|(_, band)| band.is_due() && band.is_below_ceiling(saturation));
        due.max_by(|(_, a), (_, b)| a.owed.total_cmp(&b.owed)).map(|(priority, _)| *priority)
    }

    /// Books a dispatch of `priority`.
    ///
    /// * `is_busy`: something waited before it.
    fn account(&mut self, priority: Priority, cost: u64, saturation: f32, is_busy: bool) {
        if is_busy {
            self.capacity.dispatched(cost);
        }
        let sum: f64 = self.bands.values().filter(|band| band.has_work()).map(reserved).sum();
        for (other, band) in &mut self.bands {
            // One that its ceiling holds up is owed nothing meanwhile.
            if *other == priority || band.is_below_ceiling(saturation) {
                let share = reserved(band) / sum.max(1.0);
                band.account(share, cost as f64, *other == priority);
            }
        }
    }
}

fn reserved(band: &crate::band::Band) -> f64 {
    f64::from(band.config.reserved_share.get())
}
