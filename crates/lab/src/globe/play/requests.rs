//! A request's life: chosen for, on its way, waiting, answered, or tried again.

use std::time::Duration;

use fleet::{Aim, Booking, Condition, Event as Change, MemberId, Pick};
use rand::RngExt;
use sched::RetryPermit;
use types::Timestamp;

use super::{Event, LIMITED, Play};
use crate::globe::cluster::Health;
use crate::globe::measure::Sample;
use crate::globe::router::{CONNECT, Wish, price};
use crate::globe::scenario::Deed;
use crate::globe::world::{ANSWER, MODELS, PROMPT};

/// Attempts of a router before the first token.
const ATTEMPTS_MAX: usize = 2;
/// After so long a connection on which nothing comes is broken.
const SILENCE: Duration = Duration::from_secs(30);
/// Tenants, of whom the busiest come far more often: Zipf, exponent 1.
const TENANTS: f64 = 1e6;
/// Of requests, those that belong to a session.
const SESSIONS: f64 = 0.3;
const WINDOW: u64 = 30;

/// A client's request.
#[derive(Debug)]
pub(crate) struct Query {
    at: Timestamp,
    region: usize,
    wish: Wish,
    /// Counts up with each attempt, so that what happens to former ones is nothing to it.
    attempt: u32,
    tried: Vec<MemberId>,
    /// How often its client has asked again.
    repeats: u32,
    sent: Timestamp,
    pick: Option<(Pick, Booking)>,
    is_running: bool,
    /// When the first token came.
    first: Option<Timestamp>,
    /// Position of its sample.
    sample: Option<u32>,
    retry: Option<RetryPermit>,
}

impl Play<'_> {
    pub(super) fn arrive(&mut self, region: usize) {
        let rates = self.rates(region);
        let sum: f64 = rates.iter().sum();
        let pause = -(1.0 - self.rng.random::<f64>()).ln() / sum.max(1e-9);
        self.later(Duration::from_secs_f64(pause), Event::Arrive(region));
        let mut left = self.rng.random::<f64>() * sum;
        let model = rates.iter().position(|rate| {
            left -= rate;
            left < 0.0
        });
        let spread = |rng: &mut rand_pcg::Pcg64Mcg, mean: f64| {
            // Exponential, with a fifth at least: few are long.
            mean * (0.2 - 0.8 * (1.0 - rng.random::<f64>()).ln()).min(8.0)
        };
        let prompt = spread(&mut self.rng, PROMPT) as u32;
        let answer = spread(&mut self.rng, ANSWER).max(1.0) as u32;
        let tenant = TENANTS.powf(self.rng.random::<f64>()) as u64;
        let affinity = self.rng.random_bool(SESSIONS).then(|| tenant.wrapping_mul(0x9e37_79b9));
        let aim = match self.scenario.deed {
            Deed::Prices(_) if self.is_on() => Aim::Cheapest,
            _ => Aim::Soonest,
        };
        let is_limited = self.limits.is_some() && self.rng.random_bool(LIMITED);
        if is_limited && let Some(limits) = &mut self.limits {
            // What the limit refuses is no request of the fleet.
            if limits.ask(region, u64::from(prompt + answer), self.now).is_none() {
                return;
            }
        }
        let model = model.unwrap_or(MODELS.len() - 1);
        self.requests.push(Query {
            at: self.now,
            region,
            wish: Wish { model, prompt, answer, affinity, aim },
            attempt: 0,
            tried: Vec::new(),
            repeats: 0,
            sent: self.now,
            pick: None,
            is_running: false,
            first: None,
            sample: None,
            retry: None,
        });
        self.books.taken += 1;
        self.send(self.requests.len() as u32 - 1);
    }

    fn send(&mut self, id: u32) {
        let now = self.now;
        let query = &mut self.requests[id as usize];
        query.attempt += 1;
        let (attempt, region) = (query.attempt, query.region);
        let router = &mut self.routers[region];
        let choice = router.choose(self.world, query.wish, &query.tried, &mut self.rng, now);
        let Ok(choice) = choice else { return self.give_up(id) };
        let pick = choice.first;
        let at = usize::from(pick.member.0);
        let cluster = &self.clusters[at];
        self.books.attempts += 1;
        let cost = price(cluster.price, query.wish.prompt, query.wish.answer).units();
        self.books.spent += cost;
        self.books.soonest += choice.price_soonest.units().min(1e6);
        let window = (now.as_duration().as_secs() / WINDOW) as usize;
        while self.books.sent.len() <= window {
            self.books.sent.push(vec![0; self.clusters.len()]);
        }
        self.books.sent[window][at] += 1;
        if cluster.health != Health::Up {
            let dead = now.since(cluster.since).as_secs_f64();
            self.books.to_dead_after = self.books.to_dead_after.max(dead);
            self.books.to_dead += u64::from(dead > 12.0);
        }
        let way = self.world.round_trip(region, cluster.site.region);
        query.tried.push(pick.member);
        query.sent = now;
        let booking = pick.slot.book();
        query.pick = Some((pick, booking));
        (query.is_running, query.first) = (false, None);
        self.inside[at].insert(id);
        self.later(way / 2, Event::Reach(id, attempt));
    }

    /// Of a request whose attempt is still this one: its cluster and the way back.
    fn current(&self, id: u32, attempt: u32) -> Option<(usize, Duration)> {
        let query = &self.requests[id as usize];
        let (pick, _) = query.pick.as_ref().filter(|_| query.attempt == attempt)?;
        let at = usize::from(pick.member.0);
        let way = self.world.round_trip(query.region, self.clusters[at].site.region) / 2;
        Some((at, way))
    }

    pub(super) fn reach(&mut self, id: u32, attempt: u32) {
        let Some((at, way)) = self.current(id, attempt) else { return };
        let wish = self.requests[id as usize].wish;
        let fails = self.rng.random_bool(self.clusters[at].failing);
        let cluster = &mut self.clusters[at];
        match cluster.health {
            Health::Reset => return self.later(way, Event::Unreachable(id, attempt)),
            Health::Blackhole => return self.later(CONNECT, Event::Unreachable(id, attempt)),
            Health::Up => {}
        }
        let pool = &mut cluster.pools[wish.model];
        pool.count_arrival();
        if fails {
            pool.count_failed();
            self.later(way, Event::Failed(id, attempt));
        } else if pool.busy < pool.places {
            self.start(id, attempt);
        } else if pool.is_full() {
            self.later(way, Event::Refused(id, attempt));
        } else {
            pool.queue.push_back(id);
        }
    }

    fn start(&mut self, id: u32, attempt: u32) {
        let Some((at, way)) = self.current(id, attempt) else { return };
        let query = &mut self.requests[id as usize];
        let Wish { model, prompt, answer, .. } = query.wish;
        query.is_running = true;
        let noise = self.rng.random_range(0.8..=1.2);
        let cluster = &mut self.clusters[at];
        cluster.pools[model].busy += 1;
        let (first, stay) = cluster.times(model, prompt, answer, noise);
        self.later(first + way, Event::First(id, attempt));
        self.later(stay.max(first + way), Event::Finish(id, attempt));
    }

    pub(super) fn first(&mut self, id: u32, attempt: u32) {
        if self.current(id, attempt).is_none() {
            return;
        }
        let query = &mut self.requests[id as usize];
        query.first = Some(self.now);
        let ttft = self.now.since(query.sent);
        let whole = self.now.since(query.at).as_secs_f32() * 1e3;
        query.sample = Some(self.books.samples.len() as u32);
        let at = query.at.as_duration().as_secs_f32();
        self.books.samples.push(Sample { at, ttft_ms: Some(whole), is_cut: false });
        let region = query.region;
        let Some((pick, _)) = &query.pick else { return };
        let outcome = fleet::Outcome::Answered { ttft: Some(ttft) };
        let event = self.routers[region].fleet.outcome(pick, outcome, self.now);
        self.note(region, event);
    }

    pub(super) fn finish(&mut self, id: u32, attempt: u32) {
        let Some((at, _)) = self.current(id, attempt) else { return };
        let query = &mut self.requests[id as usize];
        (query.pick, query.retry) = (None, None);
        let model = query.wish.model;
        self.inside[at].remove(&id);
        self.free(at, model);
    }

    /// A place is free: whoever waits longest gets it.
    fn free(&mut self, at: usize, model: usize) {
        while let Some(next) = self.clusters[at].pools[model].finish() {
            let attempt = self.requests[next as usize].attempt;
            // Those that left the queue elsewhere are not in this cluster any more.
            if self.inside[at].contains(&next) && self.current(next, attempt).is_some() {
                return self.start(next, attempt);
            }
            self.clusters[at].pools[model].busy += 1;
        }
    }

    pub(super) fn fail(&mut self, id: u32, attempt: u32, outcome: fleet::Outcome) {
        let Some((at, _)) = self.current(id, attempt) else { return };
        let query = &mut self.requests[id as usize];
        let region = query.region;
        let Some((pick, _)) = query.pick.take() else { return };
        self.inside[at].remove(&id);
        let was_running = std::mem::take(&mut query.is_running);
        let model = query.wish.model;
        if was_running && self.clusters[at].health == Health::Up {
            self.free(at, model);
        }
        let event = self.routers[region].fleet.outcome(&pick, outcome, self.now);
        self.note(region, event);
        self.again(id);
    }

    /// Tries another member, unless the answer has begun, two have been tried, or the router's budget is spent.
    fn again(&mut self, id: u32) {
        let query = &mut self.requests[id as usize];
        query.retry = None;
        if let Some(sample) = query.sample {
            self.books.cut += 1;
            self.books.samples[sample as usize].is_cut = true;
            return;
        }
        if query.tried.len() < ATTEMPTS_MAX {
            let router = &self.routers[query.region];
            query.retry = router.retries.take(router.fleet.in_flight(), self.now);
            if query.retry.is_some() {
                return self.send(id);
            }
        }
        self.give_up(id);
    }

    /// The client gets an error, and may come back at once.
    fn give_up(&mut self, id: u32) {
        let repeats = if matches!(self.scenario.deed, Deed::Retries(_)) { 3 } else { 0 };
        let query = &mut self.requests[id as usize];
        if query.repeats < repeats {
            query.repeats += 1;
            query.tried.clear();
            self.books.taken += 1;
            return self.send(id);
        }
        let at = query.at.as_duration().as_secs_f32();
        self.books.samples.push(Sample { at, ttft_ms: None, is_cut: false });
    }

    /// A router has learned something of a member: what waits there without an answer goes elsewhere.
    pub(super) fn note(&mut self, router: usize, change: Option<Change>) {
        let Some(Change::Changed { member, to, .. }) = change else { return };
        if !matches!(to, Condition::Dead | Condition::Ejected) {
            return;
        }
        let at = usize::from(member.0);
        if self.clusters[at].health == Health::Up {
            return;
        }
        let waiting = |id: &&u32| {
            let query = &self.requests[**id as usize];
            query.region == router && query.first.is_none()
        };
        let ids: Vec<u32> = self.inside[at].iter().filter(waiting).copied().collect();
        for id in ids {
            let query = &mut self.requests[id as usize];
            (query.pick, query.is_running) = (None, false);
            self.inside[at].remove(&id);
            self.again(id);
        }
    }

    /// All connections to a cluster end, seen at once or after a long silence.
    pub(super) fn break_all(&mut self, at: usize, is_seen: bool) {
        let ids: Vec<u32> = self.inside[at].iter().copied().collect();
        for id in ids {
            let attempt = self.requests[id as usize].attempt;
            let Some((_, way)) = self.current(id, attempt) else { continue };
            self.later(if is_seen { way } else { SILENCE }, Event::Failed(id, attempt));
        }
    }
}
