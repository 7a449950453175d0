//! Who may wait, and who makes room.

use std::time::Duration;

use types::{Priority, Saturation, Standing, Timestamp};

use super::dispatch::RECOVERED;
use super::{Queue, forecast};
use crate::config::{BandConfig, Limits, OnSaturation};
use crate::held::Held;
use crate::outcome::{Bound, Ended, Evicted, Reason, Refused, Scope, Victim};
use crate::promises::Return;
use crate::store::Item;
use crate::work::{Ticket, Work};

/// A request that has to leave for another one.
#[derive(Clone, Copy, Debug)]
pub(super) struct GivesWay {
    place: u32,
    held: Held,
    why: Victim,
}

impl<T> Queue<T> {
    /// Queues a request or says why not.
    ///
    /// * `evicted`: receives those who had to make room.
    ///
    /// Call [`next`](Self::next) afterwards: what was queued may be able to go.
    pub fn offer(
        &mut self,
        mut work: Work,
        payload: T,
        saturation: impl Into<Saturation>,
        now: Timestamp,
        evicted: &mut Vec<Evicted<T>>,
    ) -> Result<Ticket, Refused> {
        let now = self.tick(now);
        self.end_overdue(now);
        self.band(work.flow.priority).lately.note(&work.flow.id, now);
        let saturation = saturation.into().of(self.standing_of(&work, now).0);
        let found = self.promises.find(work.fingerprint, now);
        let returned = found.returned();
        let is_due = returned.is_some();
        if let Return::Due { received, .. } = found {
            work.received = received.min(work.received);
        }
        self.band(work.flow.priority);
        let config = self.config.band(work.flow.priority).clone();
        let held = Held::one(work.bytes, self.counted(&config, &work));
        let refused = self
            .too_large(&config, held)
            .or_else(|| self.hopeless(&work, &config, saturation, &found, now))
            .or_else(|| self.make_room(&work, &config, held, is_due, now, evicted));
        if let Some(reason) = refused {
            let retry_after = match reason {
                Reason::TooLarge { .. } => None,
                Reason::NoEndpoint => Some(forecast::UNKNOWN),
                _ => Some(self.promise(&work, now)),
            };
            let ahead = self.position(&work.flow);
            return Err(Refused { reason, retry_after, ahead });
        }
        self.redeem(work.fingerprint, now);
        Ok(self.push(work, payload, (held, returned), now))
    }

    /// What it counts with: an estimate must not make it larger than what may be held at all.
    pub(super) fn counted(&self, config: &BandConfig, work: &Work) -> u64 {
        let all = [&config.flow_limits, &config.limits, &self.config.limits];
        all.into_iter().filter_map(|limits| limits.tokens_max).fold(work.cost(), u64::min)
    }

    pub(super) fn too_large(&self, config: &BandConfig, held: Held) -> Option<Reason> {
        let scopes = [
            (Scope::Flow, &config.flow_limits),
            (Scope::Band, &config.limits),
            (Scope::Pool, &self.config.limits),
        ];
        let beyond = |limits: &Limits| limits.bytes_max.is_some_and(|max| held.bytes > max);
        let (scope, _) = scopes.into_iter().find(|(_, limits)| beyond(limits))?;
        Some(Reason::TooLarge { scope, bound: Bound::Bytes })
    }

    /// Why it would wait in vain, or may not wait.
    pub(super) fn hopeless(
        &self,
        work: &Work,
        config: &BandConfig,
        saturation: f32,
        found: &Return,
        now: Timestamp,
    ) -> Option<Reason> {
        if !self.has_endpoints {
            let is_full = self.len() as u64 >= self.config.no_endpoint.requests_max;
            return is_full.then_some(Reason::NoEndpoint);
        }
        let priority = work.flow.priority;
        let is_due = matches!(found, Return::Due { .. });
        let is_early = matches!(found, Return::Early { .. });
        let saturation = if is_early { saturation / RECOVERED } else { saturation };
        let is_free = self.is_free(priority, saturation);
        let wait = |assumed: f64| match is_free {
            true => Some(Duration::ZERO),
            false if is_due => self.wait_when_due(priority, now),
            false => self.wait(&work.flow, work.cost(), assumed, now),
        };
        if let Some(deadline) = work.deadline {
            let wait = wait(forecast::HALF_COME).unwrap_or_default();
            let predicted = wait.saturating_add(work.service);
            if now + predicted > deadline {
                return Some(Reason::Deadline { predicted });
            }
        }
        if config.on_saturation == OnSaturation::Shed && !is_free && !is_due {
            return Some(Reason::Saturated);
        }
        if is_early && !is_free {
            // It has a place already; else who tries most often would get most.
            return Some(Reason::Full { scope: Scope::Band, bound: Bound::Time });
        }
        let is_in_vain = !is_due && wait(forecast::FEW_COME).is_some_and(|wait| wait > config.ttl);
        (is_in_vain && self.capacity.is_measured())
            .then_some(Reason::Full { scope: Scope::Band, bound: Bound::Time })
    }

    /// Evicts who has to give way to this request; why it may not be queued, else. Then nobody was
    /// evicted.
    fn make_room(
        &mut self,
        work: &Work,
        config: &BandConfig,
        held: Held,
        is_due: bool,
        now: Timestamp,
        evicted: &mut Vec<Evicted<T>>,
    ) -> Option<Reason> {
        let priority = work.flow.priority;
        match self.who_gives_way(work, config, held, is_due) {
            Err(reason) => return Some(reason),
            Ok(Some(one)) => self.evict(one.place, one.why, now, evicted),
            Ok(None) => {}
        }
        while self.config.limits.exceeded_by(self.held.plus(held)).is_some()
            && let Some(place) = self.last_of_lowest_band(priority)
        {
            self.evict(place, Victim::OfPriority, now, evicted);
        }
        None
    }

    /// The request of its own band that would have to give way, lower bands aside; why it may not be queued.
    pub(super) fn who_gives_way(
        &self,
        work: &Work,
        config: &BandConfig,
        held: Held,
        is_due: bool,
    ) -> Result<Option<GivesWay>, Reason> {
        let (priority, id) = (work.flow.priority, &work.flow.id);
        let flow = self.bands.get(&priority).and_then(|band| band.flows.get(id));
        let own = flow.map(|flow| flow.held).unwrap_or_default();
        let fresh = if is_due { self.last_fresh(work) } else { None };
        let mut gives: Option<GivesWay> = None;
        let freed =
            |gives: &Option<GivesWay>| gives.as_ref().map_or(Held::default(), |one| one.held);
        if let Some(bound) = config.flow_limits.exceeded_by(own.plus(held)) {
            gives = fresh;
            if config.flow_limits.exceeded_by(own.minus(freed(&gives)).plus(held)).is_some() {
                return Err(Reason::Full { scope: Scope::Flow, bound });
            }
        }
        let kept = if is_due { Held::default() } else { self.kept(work, config) };
        let in_band = self.bands.get(&priority).map(|band| band.held).unwrap_or_default();
        if let Some(bound) = config.limits.exceeded_by(in_band.plus(held)) {
            gives = fresh.or_else(|| self.longest_flow_gives_way(work, own.plus(held)));
            if config.limits.exceeded_by(in_band.minus(freed(&gives)).plus(held)).is_some() {
                return Err(Reason::Full { scope: Scope::Band, bound });
            }
        } else if let Some(bound) = config.limits.exceeded_by(in_band.plus(kept).plus(held)) {
            return Err(Reason::Full { scope: Scope::Band, bound });
        }
        let whole = self.held.minus(freed(&gives)).plus(held);
        if let Some(bound) = self.config.limits.exceeded_by(whole) {
            let lower = self.bands.range(..priority).map(|(_, band)| band.held);
            let lower = lower.fold(Held::default(), Held::plus);
            if self.config.limits.exceeded_by(whole.minus(lower)).is_some() {
                // Not even without all lower bands; perhaps one of its own.
                gives =
                    gives.or(fresh).or_else(|| self.longest_flow_gives_way(work, own.plus(held)));
                let whole = self.held.minus(freed(&gives)).minus(lower).plus(held);
                if gives.is_none() || self.config.limits.exceeded_by(whole).is_some() {
                    return Err(Reason::Full { scope: Scope::Pool, bound });
                }
            }
        }
        Ok(gives)
    }

    /// What is kept free of the band's bounds for those who will come back, at most half. A flow that
    /// has less than an equal part of the band is let in all the same.
    fn kept(&self, work: &Work, config: &BandConfig) -> Held {
        let Some(band) = self.bands.get(&work.flow.priority) else { return Held::default() };
        if band.promised.requests == 0 {
            return Held::default();
        }
        let (own, flows) = match band.flows.get(&work.flow.id) {
            Some(flow) => (flow.held.plus(flow.promised), band.flows.claimants()),
            None => (Held::default(), band.flows.claimants() + 1),
        };
        let limits = &config.limits;
        let beyond =
            |max: Option<u64>, value: u64| max.is_some_and(|max| value >= max / flows.max(1));
        let is_beyond = beyond(limits.requests_max, own.requests + 1)
            || beyond(limits.tokens_max, own.tokens + work.cost());
        if !is_beyond {
            return Held::default();
        }
        let shown = self.promises.shown(forecast::FEW_COME);
        let part = |value: u64, max: Option<u64>| {
            ((value as f64 * shown) as u64).min(max.unwrap_or(u64::MAX) / 2)
        };
        Held {
            requests: part(band.promised.requests, limits.requests_max),
            bytes: 0,
            tokens: part(band.promised.tokens, limits.tokens_max),
        }
    }

    /// The last request of the band's longest flow, if that flow stays the longest without it.
    ///
    /// * `own`: what the newcomer's flow would hold.
    fn longest_flow_gives_way(&self, work: &Work, own: Held) -> Option<GivesWay> {
        let flows = &self.bands.get(&work.flow.priority)?.flows;
        let (flow, place) = flows.longest()?;
        if flows.is_flow(flow, &work.flow.id) {
            return None;
        }
        let freed = self.store.get(place)?.held;
        let stays = flows.held(flow).minus(freed).tokens;
        let one = GivesWay { place, held: freed, why: Victim::OfFairness };
        (stays >= own.tokens).then_some(one)
    }

    /// Of its flow's requests that nothing was promised to, the one that would go last: whoever was told to
    /// come goes before those who only just came.
    fn last_fresh(&self, work: &Work) -> Option<GivesWay> {
        let place = self.bands.get(&work.flow.priority)?.flows.last_fresh(&work.flow.id)?;
        let held = self.store.get(place)?.held;
        Some(GivesWay { place, held, why: Victim::OfPromise })
    }

    fn last_of_lowest_band(&self, below: Priority) -> Option<u32> {
        let (_, band) = self.bands.range(..below).find(|(_, band)| band.has_work())?;
        band.flows.longest().map(|(_, place)| place)
    }

    fn evict(&mut self, place: u32, why: Victim, now: Timestamp, evicted: &mut Vec<Evicted<T>>) {
        let Some(item) = self.remove(place) else { return };
        let retry_after = Some(self.promise(&item.work, now));
        let Item { number, work, payload, .. } = item;
        evicted.push(Ended { ticket: Ticket { place, number }, work, payload, why, retry_after });
    }

    fn push(
        &mut self,
        work: Work,
        payload: T,
        (held, returned): (Held, Option<Standing>),
        now: Timestamp,
    ) -> Ticket {
        let (ttl, none) = (self.config.band(work.flow.priority).ttl, self.config.no_endpoint.ttl);
        let (runs, other) = if self.has_endpoints { (ttl, none) } else { (none, ttl) };
        let mut item = Item {
            number: self.store.next_number(),
            work,
            payload,
            held,
            flow: 0,
            key: 0,
            offered: now,
            returned,
            budget_end: now + runs,
            budget_other: other,
        };
        let (flow, cost, expiry) = (item.work.flow.clone(), item.work.cost(), item.expiry());
        item.key = self.band(flow.priority).order_key(&item);
        let is_fresh = returned.is_none();
        let key = (item.key, item.number);
        let ticket = self.store.insert(item);
        let band = self.band(flow.priority);
        band.held.add(held);
        band.arrivals.add(cost as f64, now);
        let at = band.flows.push(&flow.id, key, (ticket.place, is_fresh), held, now);
        if let Some(item) = self.store.get_mut(ticket.place) {
            item.flow = at;
        }
        self.held.add(held);
        self.expiries.insert((expiry, ticket.place));
        ticket
    }
}
