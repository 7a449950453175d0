//! Which of the members that could take a request gets it.

use rand::Rng;

use crate::choice::Reason;
use crate::fleet::Fleet;
use crate::request::{Aim, Request};
use crate::settings::{Mode, Settings};

use super::Scratch;
use super::rating::{Grade, Rated};

/// Of the latency target, what a price may use up: expectations are as old as reports.
const SLACK: f32 = 0.7;
/// Of the room that local members have, what is filled for a price: reports are old, and all routers fill it.
const SHAPED: f32 = 0.6;
/// Prices that differ by less are equal.
const SAME_PRICE: f32 = 0.02;
/// Scores that differ by less are equal.
const SAME_SCORE: f32 = 0.05;
/// Sessions are kept together at least up to this load, however little others have.
const BOUND_MIN: f32 = 0.2;

impl Fleet {
    /// The first member's position in `rated`, and why.
    pub(super) fn pick(
        &self,
        request: &Request<'_>,
        Scratch { rated, tier }: &mut Scratch,
        rng: &mut impl Rng,
    ) -> (usize, Reason) {
        if let [_] = rated.as_slice() {
            let reason = if request.tried.is_empty() { Reason::Only } else { Reason::Failover };
            return (0, reason);
        }
        let grade = rated.iter().map(|rated| rated.grade).min().unwrap_or(Grade::Last);
        keep(tier, rated, |rated| rated.grade == grade);
        let mut reason = if grade < Grade::Full { Reason::Soonest } else { Reason::Overflow };
        if tier.iter().any(|at| rated[usize::from(*at)].is_capped) {
            // Nobody has room, so ramps cannot keep requests elsewhere: each member gets what it may take, in relation.
            return (self.draw(rated, tier, rng, |rated| rated.load), reason);
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
        // All routers find the same member cheap, and each sees only its own requests before the next report. Where
        // there is room for fewer requests than there are routers, so many of them send one as there is room for.
        let part = uniform(rng);
        let can = |at: &u16| {
            let rated = &rated[usize::from(*at)];
            rated.expected.cost <= slack && rated.load + rated.step * part <= room
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
pub(super) fn best(rated: &[Rated], value: impl Fn(&Rated) -> f32) -> usize {
    let all = rated.iter().enumerate();
    all.min_by(|(_, a), (_, b)| value(a).total_cmp(&value(b))).map_or(0, |(at, _)| at)
}

/// Where to go next if the first fails: the soonest of those with room, else of all. What is over its ramp comes last.
pub(super) fn second(rated: &[Rated], first: usize) -> Option<usize> {
    let others = rated.iter().enumerate().filter(|(at, _)| *at != first);
    let rank = |rated: &Rated| (rated.grade, rated.is_capped);
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
