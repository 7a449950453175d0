//! The members of the global tier, where this gateway is a router over the gateways of other clusters.
//!
//! A member is an endpoint of each pool whose model it serves. Which of them gets a request is decided by
//! [`fleet::Fleet`]; here its numbers meet endpoints, tenants and metrics. Heartbeats, probes and leases are
//! brought in by whoever speaks with the world ([`Clusters::heard`], [`Clusters::probed`], [`Clusters::tick`]).

mod build;
mod pace;
mod purses;
mod seats;
mod view;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use arc_swap::{ArcSwap, Guard};
use config::GlobalDocument;
use engines::models::ServedModel;
use fleet::{Condition, Event, Fleet, Heartbeat, MemberId, Rejected};
use telemetry::Metrics;
use telemetry::metrics::FleetMetrics;
use telemetry::metrics::labels;
use types::{EndpointAddress, EndpointId, TenantName, Timestamp};

use crate::Gateway;
pub use build::ClustersError;
use build::Policy;
use pace::Pace;
pub use pace::{FleetRates, MemberRates};
use purses::Purses;
pub use seats::Lost;
use seats::{Seat, Seats};
pub use view::{BudgetView, FleetView, MemberView, ModelView, SavingsView};

/// All members, as requests and heartbeats share them.
#[derive(Debug)]
pub struct Clusters {
    table: ArcSwap<Table>,
    metrics: Arc<FleetMetrics>,
    purses: Purses,
    pace: Mutex<Pace>,
    begun: Timestamp,
}

/// What one document makes of the members; replaced as a whole.
#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) fleet: Arc<Fleet>,
    seats: Seats,
    policies: HashMap<TenantName, Policy>,
    usual: Policy,
}

impl Clusters {
    /// # Errors
    /// A key that the document names cannot be read.
    pub fn new(
        document: &GlobalDocument,
        metrics: &Metrics,
        now: Timestamp,
    ) -> Result<Arc<Self>, ClustersError> {
        let table = Table::new(document, metrics, None, now)?;
        Ok(Arc::new(Self {
            table: ArcSwap::from_pointee(table),
            metrics: metrics.fleet(),
            purses: Purses::default(),
            pace: Mutex::default(),
            begun: now,
        }))
    }

    /// Puts a new document in force; members of the same name keep what is known of them.
    ///
    /// # Errors
    /// A key that the document names cannot be read: the old document stays in force.
    pub fn apply(
        &self,
        document: &GlobalDocument,
        gateway: &Arc<Gateway>,
        now: Timestamp,
    ) -> Result<(), ClustersError> {
        let former = self.table.load_full();
        let table = Table::new(document, &gateway.metrics, Some(&former), now)?;
        gateway.apply(&document.gateway);
        table.seats.place(&gateway.members());
        self.table.store(Arc::new(table));
        Ok(())
    }

    /// Learns which endpoint is which member.
    pub(crate) fn seat(&self, gateway: &Gateway) {
        let members = gateway.members();
        self.table.load().seats.place(&members);
    }

    pub(crate) fn table(&self) -> Guard<Arc<Table>> {
        self.table.load()
    }

    /// A panic elsewhere leaves at worst a look untaken.
    fn pace(&self) -> MutexGuard<'_, Pace> {
        self.pace.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn purses(&self) -> &Purses {
        &self.purses
    }

    pub fn metrics(&self) -> &FleetMetrics {
        &self.metrics
    }

    /// The member whose heartbeats prove this identity: one of a certificate's names.
    pub fn find(&self, member: &str) -> Option<MemberId> {
        self.table.load().fleet.find(member)
    }

    /// The name in the certificate of a member's heartbeats.
    pub fn identity(&self, member: MemberId) -> Option<Arc<str>> {
        Some(self.table.load().seats.get(member)?.identity.clone())
    }

    /// Takes a heartbeat of a member whose identity is proved.
    ///
    /// # Errors
    /// It is older than what is known, or nothing that a member can mean.
    pub fn heard(
        &self,
        gateway: &Arc<Gateway>,
        member: MemberId,
        mut heartbeat: Heartbeat,
        now: Timestamp,
    ) -> Result<(), Rejected> {
        let table = self.table.load();
        let Some(seat) = table.seats.get(member) else { return Err(Rejected::Unknown(member.0)) };
        seat.keep_allowed(&mut heartbeat);
        let served = served_by(&heartbeat);
        let outcome = table.fleet.heard(member, heartbeat, now);
        seat.metrics.heartbeats.of(heard_label(&outcome)).inc();
        let event = outcome?;
        gateway.note_served(&seat.address, served);
        self.note(&table, event, now);
        Ok(())
    }

    /// Takes what a probe met: the round trip, or `None` if the member was not reached.
    pub fn probed(&self, member: MemberId, round_trip: Option<Duration>, now: Timestamp) {
        let table = self.table.load();
        self.note(&table, table.fleet.probed(member, round_trip, now), now);
    }

    /// Members that should be probed now.
    pub fn wants_probe(&self, now: Timestamp) -> Vec<Probe> {
        let table = self.table.load();
        let wanted = table.fleet.wants_probe(now).into_iter();
        wanted.filter_map(|member| table.probe(member)).collect()
    }

    /// All members that take requests, and those that should be probed anyway.
    pub fn all_probes(&self) -> Vec<Probe> {
        let table = self.table.load();
        let count = u16::try_from(table.fleet.members().len()).unwrap_or(u16::MAX);
        let known = (0..count).map(MemberId).filter(|member| {
            !matches!(table.fleet.condition(*member), Condition::Unknown | Condition::Dead)
        });
        known.filter_map(|member| table.probe(member)).collect()
    }

    /// How to probe one member.
    pub fn probe_of(&self, member: MemberId) -> Option<Probe> {
        self.table.load().probe(member)
    }

    /// Counts a heartbeat that was not even looked into.
    pub fn count_refused(&self, member: MemberId, as_what: labels::Heartbeat) {
        if let Some(seat) = self.table.load().seats.get(member) {
            seat.metrics.heartbeats.of(as_what).inc();
        }
    }

    /// Lets time pass: to be called at least twice a second.
    pub fn tick(&self, now: Timestamp) {
        let table = self.table.load();
        for event in table.fleet.tick(now) {
            self.note(&table, Some(event), now);
        }
    }

    /// Takes a member out for as long as an operator wants, or back in. `None`: there is no such member.
    pub fn drain(&self, member: &str, is_drained: bool, now: Timestamp) -> Option<()> {
        let table = self.table.load();
        let id = table.fleet.find(member)?;
        let event = table.fleet.drain(id, is_drained, now);
        tracing::info!(member, is_drained, "an operator drains a member, or takes it back");
        self.note(&table, event, now);
        Some(())
    }

    /// Tells people, counts, and calls back requests from who is lost.
    pub(crate) fn note(&self, table: &Table, event: Option<Event>, now: Timestamp) {
        match event {
            None => {}
            Some(Event::Frozen) => {
                self.metrics.frozen.set(1);
                tracing::error!(
                    "more than half of the members fell silent at once: this router distrusts itself and holds \
                     on to what it knew"
                );
            }
            Some(Event::Thawed) => {
                self.metrics.frozen.set(0);
                tracing::info!("most members report again");
            }
            Some(Event::Changed { member, from, to, cause }) => {
                let Some(seat) = table.seats.get(member) else { return };
                let name = table.fleet.member(member).map_or("", |member| member.name.as_str());
                let (from, cause) = (from.name(), cause.name());
                if matches!(to, Condition::Dead | Condition::Ejected) {
                    tracing::warn!(member = name, from, to = to.name(), cause, "member out");
                } else {
                    tracing::info!(member = name, from, to = to.name(), cause, "member");
                }
                seat.metrics.transitions.of(state_label(to)).inc();
                // One that still reports may well answer what it has.
                let is_silent = || {
                    let heard = table.fleet.report(member).map(|report| report.heard);
                    let patience = table.fleet.settings().suspect_after;
                    heard.is_none_or(|heard| now.since(heard) > patience)
                };
                if to == Condition::Dead || (to == Condition::Ejected && is_silent()) {
                    seat.lose();
                }
            }
        }
    }
}

/// A member to be probed: who, where, and by which key.
#[derive(Clone, Debug)]
pub struct Probe {
    pub member: MemberId,
    pub address: EndpointAddress,
    /// Value of `Authorization`.
    pub authorization: Option<Arc<str>>,
}

impl Table {
    fn probe(&self, member: MemberId) -> Option<Probe> {
        let seat = self.seats.get(member)?;
        Some(Probe {
            member,
            address: seat.address.clone(),
            authorization: seat.authorization.as_ref().map(|key| key.0.clone()),
        })
    }

    pub(crate) fn seat(&self, member: MemberId) -> Option<&Seat> {
        self.seats.get(member).map(|seat| &**seat)
    }

    pub(crate) fn member_at(&self, endpoint: EndpointId) -> Option<MemberId> {
        self.seats.member_at(endpoint)
    }

    pub(crate) fn endpoint_of(&self, member: MemberId) -> Option<EndpointId> {
        self.seats.endpoint_of(member)
    }

    pub(crate) fn policy(&self, tenant: &TenantName) -> &Policy {
        self.policies.get(tenant).unwrap_or(&self.usual)
    }
}

/// Which names a member serves, in the form of an engine's model list.
fn served_by(heartbeat: &Heartbeat) -> Vec<ServedModel> {
    let mut served = Vec::with_capacity(heartbeat.models.len());
    for load in &heartbeat.models {
        let max_model_len = (load.context_max > 0).then_some(u64::from(load.context_max));
        let base = load.name.as_str();
        served.push(ServedModel { id: base.to_owned(), parent: None, max_model_len });
        for adapter in &load.adapters {
            served.push(ServedModel {
                id: adapter.name.as_str().to_owned(),
                parent: Some(base.to_owned()),
                max_model_len,
            });
        }
    }
    served
}

fn heard_label<T>(outcome: &Result<T, Rejected>) -> labels::Heartbeat {
    match outcome {
        Ok(_) => labels::Heartbeat::Taken,
        Err(Rejected::Old { .. } | Rejected::FormerLife(_)) => labels::Heartbeat::Old,
        Err(_) => labels::Heartbeat::Refused,
    }
}

pub(crate) fn state_label(condition: Condition) -> labels::MemberState {
    match condition {
        Condition::Unknown => labels::MemberState::Unknown,
        Condition::Fresh => labels::MemberState::Fresh,
        Condition::Suspect => labels::MemberState::Suspect,
        Condition::Dead => labels::MemberState::Dead,
        Condition::Ejected => labels::MemberState::Ejected,
        Condition::Returning => labels::MemberState::Returning,
        Condition::Draining => labels::MemberState::Draining,
    }
}
