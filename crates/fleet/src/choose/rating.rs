//! Who can take a request, what it would wait for there, and how gladly the member is used.

use types::Timestamp;

use crate::choice::Refusal;
use crate::cost::{self, Expected, Work};
use crate::fleet::{Fleet, Standing, View};
use crate::member::{Member, MemberId};
use crate::report::{self, Served};
use crate::request::{Aim, Request};
use crate::settings::Mode;
use crate::shaping::{Money, Price};
use crate::vitals::Condition;
use crate::weights::Weights;

use super::Scratch;

/// How much a suspect member is drawn in relation.
const SUSPECT: f32 = 0.25;
/// A queue for each ready endpoint, and a round trip, that are rated 0 by the weights.
const QUEUE_WORST: f32 = 8.0;
const WAY_WORST_MS: f32 = 300.0;
/// Where no price is known.
const DEAREST: Money = Money(u64::MAX);
/// Of two members one may fail and the other is left; fewer are filled up with those that are coming back.
const ENOUGH: usize = 2;

/// A member that could take the request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rated {
    pub(super) member: u16,
    pub(super) expected: Expected,
    pub(super) score: f32,
    /// Use of what may be used of it: above 1 it is beyond its ramp, or requests wait.
    pub(super) load: f32,
    /// What one more from each router would add to its load.
    pub(super) step: f32,
    /// For draws.
    pub(super) capacity: f32,
    pub(super) price: Money,
    pub(super) carbon: f32,
    pub(super) is_local: bool,
    pub(super) grade: Grade,
    /// Over what its ramp allows.
    pub(super) is_capped: bool,
}

/// How gladly a member is used; those of a later grade get requests only where there are none of an earlier one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Grade {
    /// It has room.
    Good,
    /// It has room, is elsewhere, and has been silent for a while.
    Suspect,
    /// Too much waits there, it refuses, or it has as much as its ramp allows.
    Full,
    /// It reports, and has not been found to be well yet.
    Returning,
    /// Requests failed there, or it has no endpoint that is ready; but it speaks. Better than to refuse: whether it
    /// answers is known only to who asks.
    Last,
}

/// Why a member is no candidate, from what rules out most to what rules out least.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Bar {
    UnknownModel,
    Policy,
    Unreachable,
    Tried,
}

impl Fleet {
    /// Writes who can take the request; at least one.
    pub(super) fn rate(
        &self,
        view: &View,
        request: &Request<'_>,
        scratch: &mut Scratch,
        now: Timestamp,
    ) -> Result<(), Refusal> {
        scratch.rated.clear();
        let rating = Rating { fleet: self, view, request, hash: report::hash(request.model), now };
        let whole = rating.whole();
        let mut least = Bar::UnknownModel;
        let mut others = false;
        for (at, (standing, member)) in view.standings.iter().zip(&self.members).enumerate() {
            match rating.bar(at, standing, member) {
                Ok(served) if standing.condition.takes_requests() && served.is_ready() => {
                    scratch.rated.push(rating.rated(at, standing, member, served, whole));
                }
                Ok(_) => others = true,
                Err(bar) => least = least.max(bar),
            }
        }
        if others && scratch.rated.len() < ENOUGH {
            self.rate_others(&rating, scratch);
        }
        if !scratch.rated.is_empty() {
            return Ok(());
        }
        Err(match least {
            Bar::UnknownModel => Refusal::UnknownModel,
            Bar::Policy => Refusal::Policy,
            Bar::Unreachable => Refusal::Unreachable,
            Bar::Tried => Refusal::Exhausted,
        })
    }

    /// Adds members that are not in use but speak: those that come back, and where there is nobody else, all.
    fn rate_others(&self, rating: &Rating<'_>, scratch: &mut Scratch) {
        for wanted in [Grade::Returning, Grade::Last] {
            if wanted == Grade::Last && !scratch.rated.is_empty() {
                return;
            }
            for (at, (standing, member)) in
                rating.view.standings.iter().zip(&self.members).enumerate()
            {
                let Ok(served) = rating.bar(at, standing, member) else { continue };
                if standing.condition.takes_requests() && served.is_ready() {
                    continue;
                }
                let comes_back = standing.condition == Condition::Returning && served.is_ready();
                let grade = if comes_back { Grade::Returning } else { Grade::Last };
                if grade == wanted {
                    let rated = rating.rated(at, standing, member, served, 1.0);
                    scratch.rated.push(Rated { grade, ..rated });
                }
            }
        }
    }
}

/// What the rating of all members has in common.
struct Rating<'a> {
    fleet: &'a Fleet,
    view: &'a View,
    request: &'a Request<'a>,
    /// Of the model's name.
    hash: u64,
    now: Timestamp,
}

impl<'a> Rating<'a> {
    /// The largest part that may be used of any member that could take the request. Where all are in their ramps this
    /// counts for the whole and the others in relation: a ramp keeps requests with members that are whole, and there
    /// are none.
    fn whole(&self) -> f32 {
        if !self.view.has_ramps {
            return 1.0;
        }
        let members = self.view.standings.iter().zip(&self.fleet.members).enumerate();
        let usable = members.filter(|(at, (standing, member))| {
            let served = self.bar(*at, standing, member);
            standing.condition.takes_requests()
                && served.map_or_else(|bar| bar == Bar::Tried, Served::is_ready)
        });
        let most = usable.map(|(_, (standing, _))| standing.ramp).reduce(f32::max);
        most.unwrap_or(1.0).max(1e-3)
    }

    /// What rules a member out, if anything does.
    fn bar(&self, at: usize, standing: &'a Standing, member: &Member) -> Result<Served<'a>, Bar> {
        let served = standing.report.as_deref().and_then(|report| {
            let served = report.find(self.request.model, self.hash);
            served.map(|served| (report, served))
        });
        let Some((_, served)) = served else { return Err(Bar::UnknownModel) };
        if !member.labels.has_all(self.request.labels) {
            return Err(Bar::Policy);
        }
        let speaks = standing.condition.takes_requests()
            || (standing.is_heard
                && matches!(standing.condition, Condition::Returning | Condition::Ejected));
        if !speaks {
            return Err(Bar::Unreachable);
        }
        if self.request.tried.contains(&MemberId(at as u16)) {
            return Err(Bar::Tried);
        }
        Ok(served)
    }

    /// * `whole`: see [`Self::whole`].
    fn rated(
        &self,
        at: usize,
        standing: &Standing,
        member: &Member,
        served: Served<'_>,
        whole: f32,
    ) -> Rated {
        let Self { fleet: Fleet { settings, .. }, view, request, now, .. } = *self;
        let Served { load, books, report, .. } = served;
        // Where it is cheapest it is so for all routers, whoever sent there before.
        let peers = if request.aim == Aim::Soonest { 1.0 } else { view.peers };
        let work = cost::work(report, load, books, peers, now);
        let ramp = (standing.ramp / whole).min(1.0);
        let places = cost::places(load);
        let is_capped = ramp < 1.0 && work.in_flight >= (places * ramp).max(1.0);
        let endpoints = load.endpoints_ready.max(1) as f32;
        let is_full =
            work.waiting / endpoints > settings.waiting_max || books.slot.is_refusing(now);
        let is_suspect = standing.condition == Condition::Suspect;
        let trust = if is_suspect { SUSPECT } else { 1.0 };
        Rated {
            member: at as u16,
            expected: cost::expected(standing, served, work, request, settings, now),
            score: match &settings.mode {
                Mode::Cost => 0.0,
                Mode::Weights(weights) => score(weights, standing, served, work),
            },
            load: work.load / ramp.max(1e-3),
            step: books.peers.max(peers) / places.max(1.0),
            capacity: cost::drain(load) * ramp * member.weight * trust,
            price: price(member, report, request),
            carbon: report.carbon.or(member.carbon).unwrap_or(f32::MAX),
            is_local: standing.is_local,
            grade: match (is_full || is_capped, is_suspect && !standing.is_local) {
                (true, _) => Grade::Full,
                (false, true) => Grade::Suspect,
                (false, false) => Grade::Good,
            },
            is_capped,
        }
    }
}

fn price(member: &Member, report: &report::Report, request: &Request<'_>) -> Money {
    let price = member.prices.as_ref().map(|sheet| sheet.at(request.unix));
    price.or(report.price).map_or(DEAREST, |price: Price| {
        price.of(request.prompt_tokens.into(), request.output_tokens.into())
    })
}

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
