//! From a request to a member.
//!
//! 1. Who can take it: serves the name, has the labels, is alive, is not over its ramp.
//! 2. What each would cost ([`crate::cost`], or the weights).
//! 3. Local members while they have room; price and carbon inside the slack of the latency target.
//! 4. Of those that differ by less than the margin: where the session is, else the better of two drawn by capacity.

#[cfg(test)]
mod tests;

use std::time::Duration;

use rand::Rng;
use types::Timestamp;

use crate::choice::{Candidate, Choice, Pick, Reason, Refusal};
use crate::cost::{self, Expected, Work};
use crate::fleet::{Fleet, Standing, View};
use crate::member::{Member, MemberId};
use crate::report::{self, Served};
use crate::request::{Aim, Request};
use crate::settings::{Mode, Settings};
use crate::shaping::{Money, Price};
use crate::vitals::Condition;
use crate::weights::Weights;

/// Of the latency target, what a price may use up: expectations are as old as reports.
const SLACK: f32 = 0.7;
/// Of the room that local members have, what is filled for a price: reports are old, and all routers fill it.
const SHAPED: f32 = 0.6;
/// Prices that differ by less are equal.
const SAME_PRICE: f32 = 0.02;
/// Scores that differ by less are equal.
const SAME_SCORE: f32 = 0.05;
/// How much a suspect member is drawn in relation.
const SUSPECT: f32 = 0.25;
/// Sessions are kept together at least up to this load, however little others have.
const BOUND_MIN: f32 = 0.2;
/// A queue for each ready endpoint, and a round trip, that are rated 0 by the weights.
const QUEUE_WORST: f32 = 8.0;
const WAY_WORST_MS: f32 = 300.0;

/// Memory that decisions reuse.
#[derive(Debug, Default)]
pub struct Scratch {
    rated: Vec<Rated>,
    /// Positions in `rated` of those that it is between.
    tier: Vec<u16>,
}

/// A member that could take the request.
#[derive(Clone, Copy, Debug)]
struct Rated {
    member: u16,
    expected: Expected,
    score: f32,
    load: f32,
    /// For draws.
    capacity: f32,
    price: Money,
    carbon: f32,
    is_local: bool,
    is_suspect: bool,
    is_full: bool,
}

impl Fleet {
    /// Decides. No allocation once `scratch` has grown.
    pub fn choose(
        &self,
        request: &Request<'_>,
        scratch: &mut Scratch,
        rng: &mut impl Rng,
        now: Timestamp,
    ) -> Result<Choice, Refusal> {
        let view = self.view();
        self.rate(&view, request, scratch, now)?;
        let (first, reason) = self.pick(request, scratch, rng);
        let Scratch { rated, .. } = scratch;
        let second = second(rated, first);
        let soonest = best(rated, |rated| rated.expected.ttft);
        let hash = report::hash(request.model);
        let pick = |at: usize| {
            let rated = rated.get(at)?;
            let standing = view.standings.get(usize::from(rated.member))?;
            let served = standing.report.as_deref()?.find(request.model, hash)?;
            Some(Pick {
                member: MemberId(rated.member),
                slot: served.books.slot.clone(),
                expected: millis(rated.expected.ttft),
                expected_inside: millis(rated.expected.inside),
                round_trip: standing.round_trip,
                price: rated.price,
            })
        };
        let price_soonest = rated.get(soonest).map_or(Money::ZERO, |rated| rated.price);
        Ok(Choice {
            first: pick(first).ok_or(Refusal::UnknownModel)?,
            second: second.and_then(pick),
            reason,
            price_soonest,
            candidates: rated.len() as u16,
        })
    }

    /// What a decision would see, for explanations.
    pub fn candidates(
        &self,
        request: &Request<'_>,
        scratch: &mut Scratch,
        now: Timestamp,
    ) -> Result<Vec<Candidate>, Refusal> {
        self.rate(&self.view(), request, scratch, now)?;
        let candidates = scratch.rated.iter().map(|rated| Candidate {
            member: MemberId(rated.member),
            expected: millis(rated.expected.ttft),
            score: rated.score,
            load: rated.load,
            price: rated.price,
            is_local: rated.is_local,
            is_full: rated.is_full,
        });
        Ok(candidates.collect())
    }

    /// Writes who can take the request; at least one.
    fn rate(
        &self,
        view: &View,
        request: &Request<'_>,
        scratch: &mut Scratch,
        now: Timestamp,
    ) -> Result<(), Refusal> {
        scratch.rated.clear();
        let hash = report::hash(request.model);
        // Where it is cheapest it is so for all routers, whoever sent there before.
        let peers = if request.aim == Aim::Soonest { 1.0 } else { view.peers };
        let (mut serve, mut allowed, mut alive, mut untried) = (false, false, false, false);
        for (at, (standing, member)) in view.standings.iter().zip(&self.members).enumerate() {
            let Some(report) = standing.report.as_deref() else { continue };
            let Some(served) = report.find(request.model, hash) else { continue };
            serve = true;
            if !member.labels.has_all(request.labels) {
                continue;
            }
            allowed = true;
            if !standing.condition.takes_requests() || served.load.endpoints_ready == 0 {
                continue;
            }
            alive = true;
            let member_id = at as u16;
            if request.tried.contains(&MemberId(member_id)) {
                continue;
            }
            untried = true;
            let work = cost::work(report, served.load, served.books, peers, now);
            let cap = (cost::places(served.load) * standing.ramp).max(1.0);
            if standing.ramp < 1.0 && work.in_flight >= cap {
                continue;
            }
            let rated = rate(standing, member, served, work, request, &self.settings, now);
            scratch.rated.push(Rated { member: member_id, ..rated });
        }
        match (serve, allowed, alive, untried) {
            _ if !scratch.rated.is_empty() => Ok(()),
            (false, ..) => Err(Refusal::UnknownModel),
            (_, false, ..) => Err(Refusal::Policy),
            (_, _, false, _) => Err(Refusal::Unreachable),
            (_, _, _, false) => Err(Refusal::Exhausted),
            // Ramps grow by the second.
            _ => Err(Refusal::Full { retry_after: Duration::from_secs(1) }),
        }
    }

    /// The first member's position in `rated`, and why.
    fn pick(
        &self,
        request: &Request<'_>,
        Scratch { rated, tier }: &mut Scratch,
        rng: &mut impl Rng,
    ) -> (usize, Reason) {
        if let [_] = rated.as_slice() {
            let reason = if request.tried.is_empty() { Reason::Only } else { Reason::Failover };
            return (0, reason);
        }
        // What is full, or suspect and elsewhere, is for when there is nothing else.
        keep(tier, rated, |rated| !rated.is_full && (!rated.is_suspect || rated.is_local));
        let mut reason = Reason::Soonest;
        if tier.is_empty() {
            keep(tier, rated, |rated| !rated.is_full);
        }
        if tier.is_empty() {
            keep(tier, rated, |_| true);
            reason = Reason::Overflow;
        }
        if let Mode::Weights(_) = self.settings.mode {
            let highest = most(rated, tier, |rated| rated.score);
            tier.retain(|at| rated[usize::from(*at)].score >= highest - SAME_SCORE);
            let at = self.draw(rated, tier, rng, |rated| -rated.score);
            return (at, if reason == Reason::Soonest { Reason::Weights } else { reason });
        }
        if self.shape(request, rated, tier, rng) {
            return (self.draw(rated, tier, rng, |of| of.expected.cost), Reason::Shaped);
        }
        if reason == Reason::Soonest {
            reason = self.prefer_local(request, rated, tier, rng);
        }
        let least = least(rated, tier, |rated| rated.expected.cost);
        let bound = self.within_margin(least);
        tier.retain(|at| rated[usize::from(*at)].expected.cost <= bound);
        if let Some(key) = request.affinity
            && let Some(at) = self.of_session(rated, tier, key)
        {
            return (at, if reason == Reason::Overflow { reason } else { Reason::Affinity });
        }
        let at = self.draw(rated, tier, rng, |rated| rated.expected.cost);
        (at, if request.tried.is_empty() { reason } else { Reason::Failover })
    }

    /// What is not worth a change.
    fn within_margin(&self, least: f32) -> f32 {
        let Settings { margin, margin_min, .. } = &self.settings;
        (least * (1.0 + margin)).max(least + margin_min.as_secs_f32() * 1e3)
    }

    /// The load up to which a member has room for what could as well go elsewhere: always below one use, never above
    /// another, in between in proportion. A switch would swing: all requests at once, there and back.
    fn room(&self, rng: &mut impl Rng) -> f32 {
        let Settings { spill_above, spill_below, .. } = self.settings;
        spill_below + (1.0 - uniform(rng)) * (spill_above - spill_below)
    }

    /// Leaves the cheapest or cleanest that keep the latency target. Whether there is any.
    fn shape(
        &self,
        request: &Request<'_>,
        rated: &[Rated],
        tier: &mut Vec<u16>,
        rng: &mut impl Rng,
    ) -> bool {
        if request.aim == Aim::Soonest {
            return false;
        }
        let target = request.ttft_target.unwrap_or(self.settings.ttft_target);
        let slack = target.as_secs_f32() * 1e3 * SLACK;
        let room = self.room(rng) * SHAPED;
        let can = |at: &u16| {
            let rated = &rated[usize::from(*at)];
            rated.expected.cost <= slack && rated.load <= room
        };
        if !tier.iter().any(can) {
            return false;
        }
        tier.retain(can);
        let value = |rated: &Rated| match request.aim {
            Aim::Soonest | Aim::Cheapest => rated.price.units() as f32,
            Aim::Cleanest => rated.carbon,
            Aim::Weighed { ms_per_unit, ms_per_carbon } => {
                rated.expected.cost
                    + rated.price.units() as f32 * ms_per_unit
                    + rated.carbon / 100.0 * ms_per_carbon
            }
        };
        let least = least(rated, tier, value);
        let bound = least + least.abs() * SAME_PRICE;
        tier.retain(|at| value(&rated[usize::from(*at)]) <= bound);
        true
    }

    /// Leaves local members, if one has room and waits no longer than what is worth a change; the others, if local
    /// members have no room and another one keeps the latency target.
    fn prefer_local(
        &self,
        request: &Request<'_>,
        rated: &[Rated],
        tier: &mut Vec<u16>,
        rng: &mut impl Rng,
    ) -> Reason {
        let of = |at: &u16| &rated[usize::from(*at)];
        let emptiest = tier.iter().map(of).filter(|rated| rated.is_local);
        let Some(emptiest) = emptiest.map(|rated| rated.load).reduce(f32::min) else {
            let had = rated.iter().any(|rated| rated.is_local);
            return if had { Reason::Spill } else { Reason::Soonest };
        };
        if tier.iter().all(|at| of(at).is_local) {
            return Reason::Local;
        }
        let near = |at: &u16, bound: f32| of(at).expected.cost <= bound;
        if emptiest > self.room(rng) {
            let target = request.ttft_target.unwrap_or(self.settings.ttft_target);
            let target = target.as_secs_f32() * 1e3;
            if tier.iter().any(|at| !of(at).is_local && near(at, target)) {
                tier.retain(|at| !of(at).is_local);
            }
            return Reason::Spill;
        }
        let bound = self.within_margin(least(rated, tier, |rated| rated.expected.cost));
        if tier.iter().any(|at| of(at).is_local && near(at, bound)) {
            tier.retain(|at| of(at).is_local);
            return Reason::Local;
        }
        Reason::Spill
    }

    /// Where the session lives: the highest of hashes weighted by capacity, the same in all routers, save members
    /// that have more than their share.
    fn of_session(&self, rated: &[Rated], tier: &[u16], key: u64) -> Option<usize> {
        let members = || tier.iter().map(|at| (usize::from(*at), &rated[usize::from(*at)]));
        let (sum, whole) = members().fold((0.0, 0.0), |(sum, whole), (_, rated)| {
            (sum + rated.load * rated.capacity, whole + rated.capacity)
        });
        let bound = (sum / f32::max(whole, 1e-6) * self.settings.bounded_load).max(BOUND_MIN);
        let by_hash = |rated: &Rated| {
            let uniform = (mix(key, rated.member) >> 40) as f32 + 1.0;
            // Weighted rendezvous: the least of -ln U / weight.
            -(uniform / (1 << 24) as f32 * 0.999_999).ln() / rated.capacity.max(1e-6)
        };
        let within = members().filter(|(_, rated)| rated.load <= bound);
        within.min_by(|(_, a), (_, b)| by_hash(a).total_cmp(&by_hash(b))).map(|(at, _)| at)
    }

    /// The better of two drawn by capacity.
    fn draw(
        &self,
        rated: &[Rated],
        tier: &[u16],
        rng: &mut impl Rng,
        value: impl Fn(&Rated) -> f32,
    ) -> usize {
        let one = drawn(rated, tier, rng);
        let other = drawn(rated, tier, rng);
        if value(&rated[other]) < value(&rated[one]) { other } else { one }
    }
}

fn rate(
    standing: &Standing,
    member: &Member,
    served: Served<'_>,
    work: Work,
    request: &Request<'_>,
    settings: &Settings,
    now: Timestamp,
) -> Rated {
    let Served { load, books, .. } = served;
    let expected = cost::expected(standing, served, work, request, settings, now);
    let report = standing.report.as_deref();
    let price = member.prices.as_ref().map(|sheet| sheet.at(request.unix));
    let price = price.or_else(|| report.and_then(|report| report.price));
    let price = price.map_or(DEAREST, |price: Price| {
        price.of(request.prompt_tokens.into(), request.output_tokens.into())
    });
    let carbon = report.and_then(|report| report.carbon).or(member.carbon);
    let endpoints = load.endpoints_ready.max(1) as f32;
    let is_suspect = standing.condition == Condition::Suspect;
    let trust = if is_suspect { SUSPECT } else { 1.0 };
    Rated {
        member: 0,
        expected,
        score: match &settings.mode {
            Mode::Cost => 0.0,
            Mode::Weights(weights) => score(weights, standing, served, work),
        },
        load: work.load / standing.ramp.max(1e-3),
        capacity: cost::drain(load) * standing.ramp * member.weight * trust,
        price,
        carbon: carbon.unwrap_or(f32::MAX),
        is_local: standing.is_local,
        is_suspect,
        is_full: work.waiting / endpoints > settings.waiting_max || books.slot.is_refusing(now),
    }
}

/// Where no price is known.
const DEAREST: Money = Money(u64::MAX);

fn score(weights: &Weights, standing: &Standing, served: Served<'_>, work: Work) -> f32 {
    let load = served.load;
    let endpoints = load.endpoints_ready.max(1) as f32;
    let queue = 1.0 - (work.waiting / endpoints / QUEUE_WORST).min(1.0);
    let way = standing.round_trip.as_secs_f32() * 1e3;
    let near = 1.0 - (way / WAY_WORST_MS).min(1.0);
    let failed = standing.failed.max(load.failed.get());
    weights.kv_headroom.get() * (1.0 - load.kv_used.get())
        + weights.queue_depth.get() * queue
        + weights.region_proximity.get() * near
        + weights.error_rate.get() * (1.0 - failed)
}

fn keep(tier: &mut Vec<u16>, rated: &[Rated], is_kept: impl Fn(&Rated) -> bool) {
    tier.clear();
    let all = rated.iter().enumerate().filter(|(_, rated)| is_kept(rated));
    tier.extend(all.map(|(at, _)| at as u16));
}

fn least(rated: &[Rated], tier: &[u16], value: impl Fn(&Rated) -> f32) -> f32 {
    tier.iter().map(|at| value(&rated[usize::from(*at)])).fold(f32::INFINITY, f32::min)
}

fn most(rated: &[Rated], tier: &[u16], value: impl Fn(&Rated) -> f32) -> f32 {
    -least(rated, tier, |rated| -value(rated))
}

/// Position of the least value.
fn best(rated: &[Rated], value: impl Fn(&Rated) -> f32) -> usize {
    let all = rated.iter().enumerate();
    all.min_by(|(_, a), (_, b)| value(a).total_cmp(&value(b))).map_or(0, |(at, _)| at)
}

/// Where to go next if the first fails: the soonest of those with room, else of all.
fn second(rated: &[Rated], first: usize) -> Option<usize> {
    let others = rated.iter().enumerate().filter(|(at, _)| *at != first);
    let rank = |rated: &Rated| (rated.is_full, rated.is_suspect);
    others
        .min_by(|(_, a), (_, b)| {
            rank(a).cmp(&rank(b)).then(a.expected.cost.total_cmp(&b.expected.cost))
        })
        .map(|(at, _)| at)
}

fn drawn(rated: &[Rated], tier: &[u16], rng: &mut impl Rng) -> usize {
    let capacity = |at: &u16| rated[usize::from(*at)].capacity;
    let sum: f32 = tier.iter().map(capacity).sum();
    let mut left = uniform(rng) * sum;
    for at in tier {
        left -= capacity(at);
        if left < 0.0 {
            return usize::from(*at);
        }
    }
    // Rounding, or nothing but spares.
    tier.last().map_or(0, |at| usize::from(*at))
}

/// From 0 to below 1.
fn uniform(rng: &mut impl Rng) -> f32 {
    (rng.next_u32() >> 8) as f32 / (1 << 24) as f32
}

/// Stafford's thirteenth mixer, over the session and the member.
fn mix(key: u64, member: u16) -> u64 {
    let mut hash = key ^ (u64::from(member) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ (hash >> 31)
}

fn millis(ms: f32) -> Duration {
    Duration::from_secs_f32(ms.clamp(0.0, 1e7) / 1e3)
}
