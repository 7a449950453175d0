//! The flows of a band: what each holds, and whose turn it is.

mod clock;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use types::Timestamp;

use crate::config::Fairness;
use crate::held::Held;
use clock::Clock;

/// Flows without work whose history is kept at most; beyond it those with the least are forgotten.
pub(crate) const HISTORIES_MAX: usize = 100_000;
/// Histories that one operation forgets at most, so that none takes long.
const FORGOTTEN_AT_ONCE: usize = 32;

/// Flows that are passed over at most because they have more than their part, while one further down
/// may go. Who waits longest unserved stands in front, so it is rarely more than a few.
const PASSED_MAX: usize = 64;

/// Place in a flow's order, then the item's number.
pub(crate) type Key = (u64, u64);

#[derive(Debug)]
pub(crate) struct Flow {
    id: Arc<str>,
    /// What it was served, on the band's [`Clock`]: the least goes next.
    rank: f64,
    /// Equals take turns.
    turn: u64,
    /// Places in the store, in order.
    items: BTreeMap<Key, u32>,
    /// Those of them that had no place promised.
    fresh: BTreeMap<Key, u32>,
    pub(crate) held: Held,
    /// Refused, with a place kept.
    pub(crate) promised: Held,
    /// Dispatched and not ended yet.
    in_flight: Held,
    active: Option<(u64, u64)>,
}

/// Every operation takes O(log n), n the flows and the items of one.
#[derive(Debug)]
pub(crate) struct Flows {
    by_id: HashMap<Arc<str>, u32>,
    flows: Vec<Flow>,
    free: Vec<u32>,
    /// With items; the first goes next.
    active: BTreeSet<(u64, u64, u32)>,
    /// The same by tokens held.
    longest: BTreeSet<(u64, u32)>,
    /// Without items or promises, by rank.
    idle: BTreeSet<(u64, u32)>,
    /// With items or promises.
    claimants: u64,
    /// Of all flows.
    in_flight: Held,
    /// Flows with something queued or in flight.
    present: u64,
    turns: u64,
    clock: Clock,
}

impl Flows {
    pub(crate) fn new(fairness: Fairness) -> Self {
        Self {
            by_id: HashMap::new(),
            flows: Vec::new(),
            free: Vec::new(),
            active: BTreeSet::new(),
            longest: BTreeSet::new(),
            idle: BTreeSet::new(),
            claimants: 0,
            in_flight: Held::default(),
            present: 0,
            turns: 0,
            clock: Clock::new(fairness),
        }
    }

    pub(crate) fn get(&self, id: &str) -> Option<&Flow> {
        self.by_id.get(id).map(|at| &self.flows[*at as usize])
    }

    /// Flows with something queued.
    pub(crate) fn active(&self) -> u64 {
        self.active.len() as u64
    }

    /// Flows with something queued or promised.
    pub(crate) fn claimants(&self) -> u64 {
        self.claimants
    }

    /// Nothing queued, promised or remembered. What is in flight may be there.
    pub(crate) fn is_forgotten(&self) -> bool {
        self.claimants == 0 && self.idle.is_empty()
    }

    /// Adds an item; gives its flow.
    ///
    /// * `is_fresh`: no place had been promised to it.
    pub(crate) fn push(
        &mut self,
        id: &Arc<str>,
        key: Key,
        (place, is_fresh): (u32, bool),
        held: Held,
        now: Timestamp,
    ) -> u32 {
        let at = self.find_or_make(id, now);
        self.turns += 1;
        let (turn, floor) = (self.turns, self.clock.floor(now));
        self.edit(at, now, |flow| {
            if flow.items.is_empty() {
                flow.rank = flow.rank.max(floor);
                flow.turn = turn;
            }
            flow.items.insert(key, place);
            if is_fresh {
                flow.fresh.insert(key, place);
            }
            flow.held.add(held);
        });
        at
    }

    /// Takes an item out that was not served.
    pub(crate) fn take(&mut self, at: u32, key: Key, held: Held, now: Timestamp) {
        self.edit(at, now, |flow| {
            flow.remove(key);
            flow.held.take(held);
        });
    }

    /// The item whose turn it is, by place: that of the first flow in turn that may go. No more than
    /// [`PASSED_MAX`] flows are passed over.
    ///
    /// * `leave`: told a flow and the place of its first item.
    pub(crate) fn first<L>(&self, leave: impl Fn(&Flow, u32) -> Option<L>) -> Option<(u32, L)> {
        self.active.iter().take(PASSED_MAX).find_map(|(.., at)| {
            let flow = &self.flows[*at as usize];
            let (_, place) = flow.items.first_key_value()?;
            Some((*place, leave(flow, *place)?))
        })
    }

    /// Something of a flow is on its way.
    pub(crate) fn depart(&mut self, id: &Arc<str>, held: Held, now: Timestamp) {
        let at = self.find_or_make(id, now);
        self.edit(at, now, |flow| flow.in_flight.add(held));
        self.in_flight.add(held);
    }

    /// Something that departed has ended.
    pub(crate) fn arrive(&mut self, id: &str, held: Held, now: Timestamp) {
        let Some(at) = self.by_id.get(id).copied() else { return };
        // Never more than departed, whatever the caller says.
        let there = self.flows[at as usize].in_flight;
        let gone = there.minus(there.minus(held));
        self.edit(at, now, |flow| flow.in_flight.take(gone));
        self.in_flight.take(gone);
    }

    /// Whether a flow has more than half as much again as an equal part of what is in flight; by less
    /// than that flows differ that ask for the same. Somebody else is reckoned with, present or not.
    pub(crate) fn is_beyond(&self, id: &str) -> bool {
        let Some(flow) = self.get(id) else { return false };
        let others = (self.present - u64::from(flow.is_present())).max(1);
        let own = u128::from(flow.in_flight.tokens) * u128::from(others + 1);
        self.clock.remembers() && 2 * own > 3 * u128::from(self.in_flight.tokens)
    }

    /// Takes an item out and charges its flow.
    pub(crate) fn serve(&mut self, at: u32, key: Key, held: Held, cost: u64, now: Timestamp) {
        self.rebase_if_due(now);
        let served = self.clock.serve(self.flows[at as usize].rank, cost, now);
        self.turns += 1;
        let turn = self.turns;
        self.edit(at, now, |flow| {
            flow.remove(key);
            flow.held.take(held);
            flow.rank = served;
            flow.turn = turn;
        });
        if self.active.is_empty() {
            self.clock.rest();
            self.forget(now);
        }
    }

    /// Adds to what a flow was served; negative takes off.
    pub(crate) fn charge(&mut self, id: &Arc<str>, tokens: f64, now: Timestamp) {
        if !self.clock.remembers() || (tokens <= 0.0 && !self.by_id.contains_key(id)) {
            return;
        }
        self.rebase_if_due(now);
        let at = self.find_or_make(id, now);
        let (floor, charged) = (self.clock.floor(now), tokens * self.clock.scale(now));
        self.edit(at, now, |flow| flow.rank = (flow.rank.max(floor) + charged).max(floor));
    }

    pub(crate) fn promise(&mut self, id: &Arc<str>, held: Held, now: Timestamp) {
        let at = self.find_or_make(id, now);
        self.edit(at, now, |flow| flow.promised.add(held));
    }

    pub(crate) fn unpromise(&mut self, id: &str, held: Held, now: Timestamp) {
        if let Some(at) = self.by_id.get(id).copied() {
            self.edit(at, now, |flow| flow.promised.take(held));
        }
    }

    /// The flow that holds most tokens: its number, and of its items the one that would go last.
    pub(crate) fn longest(&self) -> Option<(u32, u32)> {
        let (_, at) = self.longest.last()?;
        let last = self.flows[*at as usize].items.last_key_value();
        last.map(|(_, place)| (*at, *place))
    }

    /// Of a flow's items that nothing was promised to, the one that would go last.
    pub(crate) fn last_fresh(&self, id: &str) -> Option<u32> {
        self.get(id)?.fresh.last_key_value().map(|(_, place)| *place)
    }

    pub(crate) fn held(&self, at: u32) -> Held {
        self.flows[at as usize].held
    }

    pub(crate) fn is_flow(&self, at: u32, id: &str) -> bool {
        *self.flows[at as usize].id == *id
    }

    fn find_or_make(&mut self, id: &Arc<str>, now: Timestamp) -> u32 {
        if let Some(at) = self.by_id.get(id) {
            return *at;
        }
        let flow = Flow {
            id: id.clone(),
            rank: self.clock.floor(now),
            turn: 0,
            items: BTreeMap::new(),
            fresh: BTreeMap::new(),
            held: Held::default(),
            promised: Held::default(),
            in_flight: Held::default(),
            active: None,
        };
        let at = match self.free.pop() {
            Some(at) => {
                self.flows[at as usize] = flow;
                at
            }
            None => {
                self.flows.push(flow);
                (self.flows.len() - 1) as u32
            }
        };
        self.by_id.insert(id.clone(), at);
        at
    }

    /// Changes a flow, keeping all indices.
    fn edit(&mut self, at: u32, now: Timestamp, change: impl FnOnce(&mut Flow)) {
        self.unindex(at);
        change(&mut self.flows[at as usize]);
        self.index(at, now);
        self.forget(now);
    }

    fn unindex(&mut self, at: u32) {
        let flow = &mut self.flows[at as usize];
        if let Some((first, second)) = flow.active.take() {
            self.active.remove(&(first, second, at));
            self.longest.remove(&(flow.held.tokens, at));
        } else {
            self.idle.remove(&(flow.rank.to_bits(), at));
        }
        self.claimants -= u64::from(flow.is_claimant());
        self.present -= u64::from(flow.is_present());
    }

    fn index(&mut self, at: u32, now: Timestamp) {
        let flow = &mut self.flows[at as usize];
        self.claimants += u64::from(flow.is_claimant());
        self.present += u64::from(flow.is_present());
        if let Some((head, _)) = flow.items.first_key_value() {
            let remembers = self.clock.remembers();
            let (first, second) = if remembers { (flow.rank.to_bits(), flow.turn) } else { *head };
            flow.active = Some((first, second));
            self.active.insert((first, second, at));
            self.longest.insert((flow.held.tokens, at));
        } else if flow.promised.requests > 0 || flow.in_flight.requests > 0 {
            // Stays, in no index.
        } else if self.clock.remembers() && flow.rank > self.clock.floor(now) {
            self.idle.insert((flow.rank.to_bits(), at));
        } else {
            self.drop_flow(at);
        }
    }

    /// Drops histories that say nothing any more, and the least of too many.
    fn forget(&mut self, now: Timestamp) {
        let floor = self.clock.floor(now).to_bits();
        for _ in 0..FORGOTTEN_AT_ONCE {
            match self.idle.first().copied() {
                Some((rank, at)) if rank <= floor || self.idle.len() > HISTORIES_MAX => {
                    self.idle.remove(&(rank, at));
                    self.drop_flow(at);
                }
                _ => return,
            }
        }
    }

    fn drop_flow(&mut self, at: u32) {
        self.by_id.remove(&self.flows[at as usize].id);
        self.free.push(at);
    }

    /// Ranks of a fading clock grow for ever; before they leave the range of numbers all are divided.
    /// O(n) every few hours.
    fn rebase_if_due(&mut self, now: Timestamp) {
        let Some(divisor) = self.clock.rebase_if_due(now) else { return };
        let all: Vec<u32> = self.by_id.values().copied().collect();
        for at in all {
            self.unindex(at);
            self.flows[at as usize].rank /= divisor;
            self.index(at, now);
        }
    }
}

impl Flow {
    fn remove(&mut self, key: Key) {
        self.items.remove(&key);
        self.fresh.remove(&key);
    }

    fn is_claimant(&self) -> bool {
        !self.items.is_empty() || self.promised.requests > 0
    }

    fn is_present(&self) -> bool {
        !self.items.is_empty() || self.in_flight.requests > 0
    }

    pub(crate) fn id(&self) -> &str {
        &self.id
    }
}
