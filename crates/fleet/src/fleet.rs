//! The table of members, and who may change it.
//!
//! Changes go through one mutex for each member and are published as an immutable [`View`]; decisions read the view
//! and atomic counters, and never wait.

#[cfg(test)]
mod tests;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use types::Timestamp;

use crate::choice::Pick;
use crate::cost;
use crate::event::{Cause, Event};
use crate::heartbeat::{Heartbeat, Rejected};
use crate::member::{Member, MemberId};
use crate::outcome::Outcome;
use crate::report::Report;
use crate::settings::Settings;
use crate::status::{MemberStatus, ModelStatus, Status};
use crate::vitals::{Condition, Surroundings, Vitals};

/// Round trips where none was measured or configured.
const NEAR: Duration = Duration::from_millis(1);
const FAR: Duration = Duration::from_millis(80);

/// All members.
#[derive(Debug)]
pub struct Fleet {
    pub(crate) settings: Settings,
    pub(crate) members: Vec<Member>,
    started: Timestamp,
    /// One for each member.
    states: Vec<Arc<Mutex<State>>>,
    is_frozen: AtomicBool,
    view: ArcSwap<View>,
    /// So that of two who publish at once the later one reads what both have changed.
    publishing: Mutex<()>,
}

#[derive(Debug)]
struct State {
    vitals: Vitals,
    report: Option<Arc<Report>>,
    round_trip: Option<Duration>,
}

/// What decisions read.
#[derive(Debug, Default)]
pub(crate) struct View {
    /// One for each member.
    pub(crate) standings: Vec<Standing>,
    /// Requests that all routers send for each one of this.
    pub(crate) peers: f32,
    /// Some member is in its ramp.
    pub(crate) has_ramps: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Standing {
    pub(crate) condition: Condition,
    pub(crate) report: Option<Arc<Report>>,
    /// What may be used of it.
    pub(crate) ramp: f32,
    pub(crate) round_trip: Duration,
    pub(crate) failed: f32,
    pub(crate) is_local: bool,
    /// It reports, or has answered lately.
    pub(crate) is_heard: bool,
}

impl Fleet {
    /// * `former`: the fleet that this one replaces; members of the same name keep what is known of them.
    pub fn new(
        settings: Settings,
        members: Vec<Member>,
        former: Option<&Self>,
        now: Timestamp,
    ) -> Self {
        let states = members.iter().map(|member| {
            let known = former.and_then(|former| {
                let at = former.members.iter().position(|known| known.name == member.name)?;
                former.states.get(at).cloned()
            });
            known.unwrap_or_else(|| {
                let vitals = Vitals::new();
                Arc::new(Mutex::new(State { vitals, report: None, round_trip: None }))
            })
        });
        let fleet = Self {
            states: states.collect(),
            settings,
            members,
            started: former.map_or(now, |former| former.started),
            is_frozen: AtomicBool::new(former.is_some_and(Self::is_frozen)),
            view: ArcSwap::default(),
            publishing: Mutex::new(()),
        };
        fleet.publish(now);
        fleet
    }

    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    pub fn members(&self) -> &[Member] {
        &self.members
    }

    pub fn find(&self, name: &str) -> Option<MemberId> {
        let at = self.members.iter().position(|member| member.name.as_str() == name)?;
        u16::try_from(at).ok().map(MemberId)
    }

    pub fn member(&self, id: MemberId) -> Option<&Member> {
        self.members.get(usize::from(id.0))
    }

    pub fn condition(&self, id: MemberId) -> Condition {
        let view = self.view.load();
        view.standings.get(usize::from(id.0)).map_or(Condition::Unknown, |of| of.condition)
    }

    pub fn is_frozen(&self) -> bool {
        self.is_frozen.load(Ordering::Relaxed)
    }

    /// What the member said last.
    pub fn report(&self, id: MemberId) -> Option<Arc<Report>> {
        self.view.load().standings.get(usize::from(id.0))?.report.clone()
    }

    /// This router's requests at all members.
    pub fn in_flight(&self) -> u32 {
        let view = self.view.load();
        let reports = view.standings.iter().filter_map(|standing| standing.report.as_deref());
        reports.flat_map(Report::models).map(|(_, books)| books.slot.in_flight()).sum()
    }

    /// Takes a heartbeat of a member whose identity is proved.
    pub fn heard(
        &self,
        id: MemberId,
        heartbeat: Heartbeat,
        now: Timestamp,
    ) -> Result<Option<Event>, Rejected> {
        heartbeat.check()?;
        let around = self.surroundings(id, now);
        let Some(mut state) = self.state(id) else { return Err(Rejected::Unknown(id.0)) };
        let from = state.vitals.condition;
        let cause = state.vitals.heard(&heartbeat, around, &self.settings, now)?;
        let lag = state.vitals.lag;
        state.report = Some(Arc::new(Report::new(heartbeat, state.report.as_deref(), lag, now)));
        let event = changed(id, from, state.vitals.condition, cause);
        drop(state);
        self.publish(now);
        Ok(event)
    }

    /// Takes what an attempt met.
    pub fn outcome(&self, pick: &Pick, outcome: Outcome, now: Timestamp) -> Option<Event> {
        let mut state = self.state(pick.member)?;
        let from = state.vitals.condition;
        let cause = match outcome {
            Outcome::Answered { ttft } => {
                state.vitals.answered(now);
                if let Some(ttft) = ttft {
                    pick.slot.learn(
                        pick.expected_inside,
                        ttft.saturating_sub(pick.round_trip),
                        now,
                    );
                }
                None
            }
            Outcome::Refused { retry_after } => {
                pick.slot.refuse_for(retry_after, now);
                state.vitals.answered(now);
                None
            }
            Outcome::Unreachable => state.vitals.failed_once(true, &self.settings, now),
            Outcome::Failed => state.vitals.failed_once(false, &self.settings, now),
        };
        let event = changed(pick.member, from, state.vitals.condition, cause);
        drop(state);
        if event.is_some() {
            self.publish(now);
        }
        event
    }

    /// Takes what a probe met: the round trip, or `None` if the member was not reached.
    pub fn probed(
        &self,
        id: MemberId,
        round_trip: Option<Duration>,
        now: Timestamp,
    ) -> Option<Event> {
        let around = self.surroundings(id, now);
        let mut state = self.state(id)?;
        let from = state.vitals.condition;
        let cause = if let Some(time) = round_trip {
            state.round_trip = Some(state.round_trip.map_or(time, |mean| (mean * 7 + time) / 8));
            state.vitals.probed(around, &self.settings, now)
        } else {
            state.vitals.failed_once(true, &self.settings, now)
        };
        let event = changed(id, from, state.vitals.condition, cause);
        drop(state);
        self.publish(now);
        event
    }

    /// Members that the router should try to reach, once a second or so.
    pub fn wants_probe(&self, now: Timestamp) -> Vec<MemberId> {
        let ids = self.ids();
        ids.filter(|id| {
            let state = self.state(*id);
            state.is_some_and(|state| state.vitals.wants_probe(&self.settings, now))
        })
        .collect()
    }

    /// Takes a member out for as long as an operator wants, or back in.
    pub fn drain(&self, id: MemberId, is_drained: bool, now: Timestamp) -> Option<Event> {
        let mut state = self.state(id)?;
        let from = state.vitals.condition;
        let cause = state.vitals.drain(is_drained);
        let event = changed(id, from, state.vitals.condition, cause);
        drop(state);
        self.publish(now);
        event
    }

    /// Lets time pass: to be called at least twice a second.
    pub fn tick(&self, now: Timestamp) -> Vec<Event> {
        let mut events = Vec::new();
        let (mut used, mut silent) = (0, 0);
        for state in self.ids().filter_map(|id| self.state(id)) {
            if state.vitals.condition.takes_requests() {
                used += 1;
                silent += usize::from(state.vitals.is_silent(&self.settings, now));
            }
        }
        let is_frozen = silent * 2 > used;
        if self.is_frozen.swap(is_frozen, Ordering::Relaxed) != is_frozen {
            events.push(if is_frozen { Event::Frozen } else { Event::Thawed });
        }
        for id in self.ids() {
            let around = self.surroundings(id, now);
            let Some(mut state) = self.state(id) else { continue };
            let from = state.vitals.condition;
            let cause = state.vitals.tick(around, &self.settings, now);
            events.extend(changed(id, from, state.vitals.condition, cause));
        }
        self.publish(now);
        events
    }

    pub fn status(&self, now: Timestamp) -> Status {
        let members = self.ids().filter_map(|id| {
            let (state, member) = (self.state(id)?, self.member(id)?);
            let report = state.report.as_deref();
            let models = report.into_iter().flat_map(Report::models).map(|(load, books)| {
                let now_there = report.map_or(0.0, |report| cost::load(report, load, books, now));
                ModelStatus {
                    name: load.name.clone(),
                    endpoints_ready: load.endpoints_ready,
                    in_flight: load.in_flight,
                    in_flight_max: load.in_flight_max,
                    waiting: load.waiting,
                    own_in_flight: books.slot.in_flight(),
                    own_sent: books.slot.sent(),
                    load: now_there,
                    peers: books.peers,
                    slowness: books.slot.slowness(now),
                }
            });
            Some(MemberStatus {
                id,
                name: member.name.clone(),
                region: member.region.clone(),
                condition: state.vitals.condition,
                age: state.vitals.age(now),
                lag: state.vitals.lag,
                sequence: state.vitals.sequence,
                is_drained: state.vitals.is_drained,
                ramp: state.vitals.ramp.as_ref().map_or(1.0, |ramp| ramp.share(now)),
                round_trip: self.round_trip(member, state.round_trip),
                failed: state.vitals.failed(now),
                models: models.collect(),
            })
        });
        Status { is_frozen: self.is_frozen(), members: members.collect() }
    }

    pub(crate) fn view(&self) -> arc_swap::Guard<Arc<View>> {
        self.view.load()
    }

    fn ids(&self) -> impl Iterator<Item = MemberId> + use<> {
        (0..self.states.len()).filter_map(|at| u16::try_from(at).ok().map(MemberId))
    }

    /// A panic elsewhere leaves numbers that are each valid.
    fn state(&self, id: MemberId) -> Option<MutexGuard<'_, State>> {
        let state = self.states.get(usize::from(id.0))?;
        Some(state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn surroundings(&self, id: MemberId, now: Timestamp) -> Surroundings {
        let view = self.view.load();
        let mut others = view.standings.iter().enumerate();
        let is_alone =
            !others.any(|(at, other)| at != usize::from(id.0) && other.condition.takes_requests());
        Surroundings {
            is_cold: now.since(self.started) < self.settings.cold_start,
            is_alone,
            is_frozen: self.is_frozen(),
        }
    }

    fn round_trip(&self, member: &Member, measured: Option<Duration>) -> Duration {
        let is_local = member.region == self.settings.region;
        measured.or(member.round_trip).unwrap_or(if is_local { NEAR } else { FAR })
    }

    fn publish(&self, now: Timestamp) {
        let _turn = self.publishing.lock().unwrap_or_else(PoisonError::into_inner);
        let standings = self.ids().zip(&self.members).filter_map(|(id, member)| {
            let state = self.state(id)?;
            Some(Standing {
                condition: state.vitals.condition,
                report: state.report.clone(),
                ramp: state.vitals.ramp.as_ref().map_or(1.0, |ramp| ramp.share(now)),
                round_trip: self.round_trip(member, state.round_trip),
                failed: state.vitals.failed(now),
                is_local: member.region == self.settings.region,
                is_heard: state.vitals.is_heard(&self.settings, now),
            })
        });
        let standings: Vec<Standing> = standings.collect();
        let reports = standings.iter().filter_map(|standing| standing.report.as_deref());
        let (all, own) = reports.flat_map(Report::models).fold((0.0, 0.0), |(all, own), model| {
            (all + model.0.arrivals_per_second, own + model.1.rate)
        });
        let peers = if own > 0.1 { (all / own).clamp(1.0, 1000.0) } else { 1.0 };
        let has_ramps = standings.iter().any(|standing| standing.ramp < 1.0);
        self.view.store(Arc::new(View { standings, peers, has_ramps }));
    }
}

fn changed(
    member: MemberId,
    from: Condition,
    to: Condition,
    cause: Option<Cause>,
) -> Option<Event> {
    (from != to).then_some(Event::Changed { member, from, to, cause: cause? })
}
