//! The members for people: `/debug/fleet`.

use std::collections::BTreeMap;
use std::time::Duration;

use fleet::{Condition, MemberStatus};
use serde::{Deserialize, Serialize};
use telemetry::metrics::FleetMemberMetrics;
use telemetry::metrics::labels::{EndpointState, Label, MemberReason};
use types::{EndpointId, Timestamp};

use super::{Clusters, state_label};

/// All members. The names of the fields are stable.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct FleetView {
    /// More than half of the members fell silent at once: silence changes no state.
    pub frozen: bool,
    /// Where this router is.
    pub region: String,
    pub uptime_ms: u64,
    pub members: Vec<MemberView>,
    pub savings: Vec<SavingsView>,
    /// Money left of each tenant's daily budget, as far as this router knows.
    pub budgets: Vec<BudgetView>,
}

/// One member.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct MemberView {
    pub member: String,
    pub url: String,
    pub region: String,
    /// `unknown`, `fresh`, `suspect`, `dead`, `ejected`, `returning` or `draining`.
    pub state: String,
    /// Whether its state lets it have requests at all.
    pub takes_requests: bool,
    /// An operator drains it.
    pub drained: bool,
    /// Of its last heartbeat; `null`: there was none.
    pub heartbeat_age_ms: Option<u64>,
    /// How much later than usual heartbeats come.
    pub heartbeat_lag_ms: u64,
    pub round_trip_ms: f64,
    /// What may be used of it: 1 is all.
    pub ramp: f32,
    /// Share of attempts that failed lately.
    pub failed: f32,
    /// This router's requests there now, and all so far.
    pub in_flight: u32,
    pub sent: u64,
    /// Share of all requests that this router has sent.
    pub share: f64,
    /// The same of the last five minutes, where there were requests.
    pub share_now: f64,
    /// Requests sent there so far by why it got them; reasons that never were are left out.
    pub reasons: BTreeMap<String, u64>,
    /// Of the last five minutes: requests sent there a second, and those that went elsewhere after it failed them.
    pub requests_per_second: f64,
    pub failovers_per_second: f64,
    pub models: Vec<ModelView>,
}

/// One model of a member.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ModelView {
    pub model: String,
    pub endpoints_ready: u32,
    pub in_flight: u32,
    pub in_flight_max: u32,
    pub waiting: u32,
    pub own_in_flight: u32,
    /// Use of what it can do, estimated for now.
    pub load: f32,
    /// Requests that reach it for each one of this router.
    pub peers: f32,
    /// Times take so many times what reports let expect.
    pub slowness: f32,
}

/// What was spent at a member, and what it would have been at the members that answer soonest.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct SavingsView {
    pub member: String,
    pub requests: u64,
    /// Of them, those that went there for the price.
    pub shaped: u64,
    pub spent: f64,
    pub soonest: f64,
    pub saved: f64,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct BudgetView {
    pub tenant: String,
    pub per_day: f64,
    pub remaining: f64,
}

impl Clusters {
    pub fn view(&self, now: Timestamp) -> FleetView {
        let table = self.table();
        let status = table.fleet.status(now);
        let all: u64 =
            status.members.iter().flat_map(|member| &member.models).map(|m| m.own_sent).sum();
        let mut rates = self.rates().members;
        let pace: f64 = rates.values().map(|member| member.requests).sum();
        let members = status.members.iter().map(|member| {
            let mut view = member_view(member, all);
            if let Some(seat) = table.seat(member.id) {
                view.url = seat.address.to_string();
                view.reasons = reasons(&seat.metrics);
            }
            if let Some(rates) = rates.remove(view.member.as_str()) {
                view.requests_per_second = rates.requests;
                if pace > 0.0 {
                    view.share_now = rates.requests / pace;
                }
                view.failovers_per_second = rates.failovers;
            }
            view
        });
        let savings = self.purses.savings(|savings| {
            let view =
                |(member, tally): (&std::sync::Arc<str>, &fleet::shaping::Tally)| SavingsView {
                    member: member.to_string(),
                    requests: tally.requests,
                    shaped: tally.shaped,
                    spent: tally.spent.units(),
                    soonest: tally.soonest.units(),
                    saved: tally.saved_units(),
                };
            savings.iter().map(view).collect()
        });
        let budgets = table.policies.iter().filter_map(|(tenant, policy)| {
            let budget = policy.budget?;
            Some(BudgetView {
                tenant: tenant.to_string(),
                per_day: budget.amount.units(),
                remaining: self.purses.remaining(tenant, &budget).units(),
            })
        });
        let mut budgets: Vec<_> = budgets.collect();
        budgets.sort_by(|a, b| a.tenant.cmp(&b.tenant));
        FleetView {
            frozen: status.is_frozen,
            region: table.fleet.settings().region.to_string(),
            uptime_ms: millis(now.since(self.begun)),
            members: members.collect(),
            savings,
            budgets,
        }
    }

    /// How a member stands, in an endpoint's words.
    pub(crate) fn standing(&self, endpoint: EndpointId) -> EndpointState {
        let table = self.table();
        match table.member_at(endpoint).map(|member| table.fleet.condition(member)) {
            Some(condition) if condition.takes_requests() => EndpointState::Ready,
            Some(Condition::Ejected) => EndpointState::Ejected,
            _ => EndpointState::Stale,
        }
    }

    /// Brings the gauges up to date. To be called before they are read.
    pub(crate) fn refresh_gauges(&self, now: Timestamp) {
        let table = self.table();
        let (mut capacity, mut headroom) = (0.0, 0.0);
        for member in table.fleet.status(now).members {
            if member.condition.takes_requests() {
                for model in &member.models {
                    capacity += f64::from(model.in_flight_max);
                    headroom += f64::from(model.in_flight_max.saturating_sub(model.in_flight));
                }
            }
            let Some(seat) = table.seat(member.id) else { continue };
            let metrics = &seat.metrics;
            let state = state_label(member.condition);
            for label in <telemetry::metrics::labels::MemberState as Label>::ALL {
                metrics.state.of(*label).set(i64::from(*label == state));
            }
            metrics.heartbeat_age.set(member.age.map(|age| age.as_secs_f64()));
            metrics.round_trip.set(member.round_trip.as_secs_f64());
            metrics.ramp.set(f64::from(member.ramp));
            let own: u32 = member.models.iter().map(|model| model.own_in_flight).sum();
            metrics.in_flight.set(i64::from(own));
        }
        self.metrics.pace.capacity_requests.set(capacity);
        self.metrics.pace.headroom_requests.set(headroom);
        self.purses.savings(|savings| {
            for (member, tally) in savings.iter() {
                if let Some(seat) = table.seats.by_name(member) {
                    seat.metrics.spent.set(tally.spent.units());
                    seat.metrics.saved.set(tally.saved_units());
                }
            }
        });
    }
}

fn reasons(metrics: &FleetMemberMetrics) -> BTreeMap<String, u64> {
    let counts =
        MemberReason::ALL.iter().map(|reason| (reason, metrics.decisions.of(*reason).get()));
    counts.filter(|(_, n)| *n > 0).map(|(reason, n)| (reason.as_str().to_owned(), n)).collect()
}

fn member_view(member: &MemberStatus, all: u64) -> MemberView {
    let sent: u64 = member.models.iter().map(|model| model.own_sent).sum();
    MemberView {
        member: member.name.to_string(),
        url: String::new(),
        region: member.region.to_string(),
        state: member.condition.name().to_owned(),
        takes_requests: member.condition.takes_requests(),
        drained: member.is_drained,
        heartbeat_age_ms: member.age.map(millis),
        heartbeat_lag_ms: millis(member.lag),
        round_trip_ms: member.round_trip.as_secs_f64() * 1000.0,
        ramp: member.ramp,
        failed: member.failed,
        in_flight: member.models.iter().map(|model| model.own_in_flight).sum(),
        sent,
        share: if all > 0 { sent as f64 / all as f64 } else { 0.0 },
        share_now: if all > 0 { sent as f64 / all as f64 } else { 0.0 },
        reasons: BTreeMap::new(),
        requests_per_second: 0.0,
        failovers_per_second: 0.0,
        models: member
            .models
            .iter()
            .map(|model| ModelView {
                model: model.name.to_string(),
                endpoints_ready: model.endpoints_ready,
                in_flight: model.in_flight,
                in_flight_max: model.in_flight_max,
                waiting: model.waiting,
                own_in_flight: model.own_in_flight,
                load: model.load,
                peers: model.peers,
                slowness: model.slowness,
            })
            .collect(),
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
