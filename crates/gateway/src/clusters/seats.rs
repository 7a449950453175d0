//! What belongs to a member here: its endpoint, its key, its metrics, and who waits there.

use std::collections::BTreeSet;
use std::sync::Arc;

use arc_swap::ArcSwap;
use config::MEMBER_LABEL;
use fleet::{Heartbeat, MemberId};
use telemetry::metrics::FleetMemberMetrics;
use tokio::sync::watch;
use types::{EndpointAddress, EndpointId, ModelName};

use crate::Member;
use crate::pool::Secret;

/// Resolves when a member is given up.
#[derive(Clone, Debug)]
pub struct Lost(watch::Receiver<u64>);

/// One member's.
#[derive(Debug)]
pub(crate) struct Seat {
    pub(crate) name: Arc<str>,
    pub(crate) address: EndpointAddress,
    /// The name in its certificate.
    pub(crate) identity: Arc<str>,
    pub(crate) authorization: Option<Secret>,
    /// Models that it may get; empty: all.
    pub(crate) models: BTreeSet<ModelName>,
    pub(crate) metrics: Arc<FleetMemberMetrics>,
    /// Counts how often it was given up.
    pub(crate) lost: watch::Sender<u64>,
}

/// All members, by their id, and the endpoints that they are.
#[derive(Debug)]
pub(crate) struct Seats {
    seats: Vec<Arc<Seat>>,
    endpoints: ArcSwap<Vec<Option<EndpointId>>>,
}

impl Lost {
    /// Never resolves if the member leaves the document: what is under way there goes on.
    pub async fn lost(&mut self) {
        if self.0.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

impl Seat {
    /// For a request that is sent there now.
    pub(crate) fn watch(&self) -> Lost {
        let mut receiver = self.lost.subscribe();
        receiver.mark_unchanged();
        Lost(receiver)
    }

    /// Calls back what waits there for a first byte.
    pub(crate) fn lose(&self) {
        self.lost.send_modify(|count| *count += 1);
    }

    /// Drops models and adapters that the document does not want of it.
    pub(crate) fn keep_allowed(&self, heartbeat: &mut Heartbeat) {
        if self.models.is_empty() {
            return;
        }
        for load in &mut heartbeat.models {
            if !self.models.contains(&load.name) {
                load.adapters.retain(|adapter| self.models.contains(&adapter.name));
            }
        }
        // A base model that is not wanted stays as the home of adapters that are.
        heartbeat
            .models
            .retain(|load| self.models.contains(&load.name) || !load.adapters.is_empty());
    }
}

impl Seats {
    pub(crate) fn new(seats: Vec<Arc<Seat>>) -> Self {
        Self { seats, endpoints: ArcSwap::default() }
    }

    pub(crate) fn get(&self, member: MemberId) -> Option<&Arc<Seat>> {
        self.seats.get(usize::from(member.0))
    }

    pub(crate) fn all(&self) -> &[Arc<Seat>] {
        &self.seats
    }

    pub(crate) fn by_name(&self, name: &str) -> Option<&Arc<Seat>> {
        self.seats.iter().find(|seat| &*seat.name == name)
    }

    pub(crate) fn place(&self, members: &[Arc<Member>]) {
        let mut endpoints = vec![None; self.seats.len()];
        for member in members {
            let name = member.endpoint.labels.get(MEMBER_LABEL);
            let at = name.and_then(|name| self.seats.iter().position(|seat| *seat.name == **name));
            if let Some(place) = at.and_then(|at| endpoints.get_mut(at)) {
                *place = Some(member.endpoint.id);
            }
        }
        self.endpoints.store(Arc::new(endpoints));
    }

    pub(crate) fn member_at(&self, endpoint: EndpointId) -> Option<MemberId> {
        let at = self.endpoints.load().iter().position(|known| *known == Some(endpoint))?;
        u16::try_from(at).ok().map(MemberId)
    }

    pub(crate) fn endpoint_of(&self, member: MemberId) -> Option<EndpointId> {
        *self.endpoints.load().get(usize::from(member.0))?
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seat(models: &[&str]) -> Seat {
        Seat {
            name: "west".into(),
            address: "http://west".parse().unwrap(),
            identity: "west".into(),
            authorization: None,
            models: models.iter().copied().map(ModelName::from).collect(),
            metrics: Arc::default(),
            lost: watch::Sender::new(0),
        }
    }

    fn heartbeat() -> Heartbeat {
        let mut load = fleet::ModelLoad::new("llama");
        load.adapters = ["sql", "tone"]
            .map(|name| fleet::Adapter { name: name.into(), is_resident: false })
            .to_vec();
        Heartbeat { models: vec![load, fleet::ModelLoad::new("qwen")], ..Heartbeat::default() }
    }

    fn kept(models: &[&str]) -> Vec<String> {
        let mut heartbeat = heartbeat();
        seat(models).keep_allowed(&mut heartbeat);
        let mut names = Vec::new();
        for load in heartbeat.models {
            names.push(load.name.to_string());
            names.extend(load.adapters.iter().map(|adapter| adapter.name.to_string()));
        }
        names
    }

    #[test]
    fn a_member_gets_no_model_that_the_document_keeps_from_it() {
        assert_eq!(kept(&[]), ["llama", "sql", "tone", "qwen"]);
        assert_eq!(kept(&["qwen"]), ["qwen"]);
        assert_eq!(kept(&["tone"]), ["llama", "tone"]);
    }

    #[tokio::test]
    async fn a_request_learns_that_its_member_is_lost_and_not_of_former_losses() {
        let seat = seat(&[]);
        seat.lose();
        let mut lost = seat.watch();
        {
            let waiting = std::pin::pin!(lost.lost());
            let mut context = std::task::Context::from_waker(std::task::Waker::noop());
            assert!(waiting.poll(&mut context).is_pending());
        }
        seat.lose();
        lost.lost().await;
    }
}
