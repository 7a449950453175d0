//! The Lease of the election, on the API server.

use std::time::Duration;

use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, PostParams};
use kube::{Client, Error};
use serde_json::{Value, json};
use telemetry::clock;
use tokio::time::{sleep, timeout};

use super::election::{Election, Record, Step};
use super::settings::ControllerSettings;

/// A candidate, and its lease.
pub(super) struct Candidate {
    api: Api<DynamicObject>,
    name: String,
    election: Election,
}

impl Candidate {
    pub(super) fn new(client: Client, settings: &ControllerSettings) -> Self {
        let kind = GroupVersionKind::gvk("coordination.k8s.io", "v1", "Lease");
        let kind = ApiResource::from_gvk_with_plural(&kind, "leases");
        Self {
            api: Api::namespaced_with(client, &settings.lease_namespace, &kind),
            name: settings.lease_name.clone(),
            election: Election::new(settings.identity.clone(), settings.timing),
        }
    }

    /// Ends when we lead.
    pub(super) async fn lead(&mut self) {
        let mut is_told = false;
        loop {
            self.turn().await;
            if self.election.leads(clock::now()) {
                tracing::info!(identity = self.election.identity(), "leading");
                return;
            }
            if !std::mem::replace(&mut is_told, true) {
                tracing::info!(lease = self.name, "waiting to lead");
            }
            sleep(self.election.timing().retry).await;
        }
    }

    /// Ends when we lead no longer.
    pub(super) async fn keep(&mut self) {
        while self.election.leads(clock::now()) {
            sleep(self.election.timing().retry).await;
            self.turn().await;
        }
    }

    /// Gives the lease back, so that another need not wait.
    pub(super) async fn give_back(&mut self) {
        if !self.election.leads(clock::now()) {
            return;
        }
        let given_back = async {
            let Ok(Some(mut lease)) = self.api.get_opt(&self.name).await else { return };
            if lease.data["spec"]["holderIdentity"] == self.election.identity() {
                lease.data["spec"]["holderIdentity"] = json!("");
                let _ = self.api.replace(&self.name, &PostParams::default(), &lease).await;
            }
        };
        let _ = timeout(self.election.timing().retry, given_back).await;
    }

    /// One look at the lease, and a write where one is due. Whatever fails is tried again in the next turn.
    async fn turn(&mut self) {
        let asked = clock::now();
        let patience = self.election.timing().renew_within / 2;
        match timeout(patience, self.try_turn()).await {
            Ok(Ok(true)) => {
                self.election.wrote(asked);
            }
            Ok(Ok(false)) => {}
            Ok(Err(error)) => {
                let error = &error as &dyn std::error::Error;
                tracing::warn!(error, lease = self.name, "the lease could not be read or written");
            }
            Err(_) => tracing::warn!(lease = self.name, "the API server does not answer"),
        }
    }

    /// Whether it was written.
    async fn try_turn(&mut self) -> Result<bool, Error> {
        let lease = self.api.get_opt(&self.name).await?;
        let now = clock::now();
        let step = self.election.look(lease.as_ref().map(record), now);
        let Step::Write { transitions } = step else { return Ok(false) };
        let is_ours = lease
            .as_ref()
            .is_some_and(|lease| lease.data["spec"]["holderIdentity"] == self.election.identity());
        let time = micro_time();
        let mut spec = json!({
            "holderIdentity": self.election.identity(),
            "leaseDurationSeconds": seconds(self.election.timing().lease),
            "renewTime": time,
            "acquireTime": time,
            "leaseTransitions": transitions,
        });
        let written = match lease {
            None => {
                let lease = json!({
                    "apiVersion": "coordination.k8s.io/v1",
                    "kind": "Lease",
                    "metadata": { "name": self.name },
                    "spec": spec,
                });
                let Ok(lease) = serde_json::from_value(lease) else { return Ok(false) };
                self.api.create(&PostParams::default(), &lease).await
            }
            // Its version is that which we have seen: of two who write, one is told of a conflict.
            Some(mut lease) => {
                if is_ours && let Some(since) = lease.data["spec"].get("acquireTime") {
                    spec["acquireTime"] = since.clone();
                }
                lease.data["spec"] = spec;
                self.api.replace(&self.name, &PostParams::default(), &lease).await
            }
        };
        match written {
            Ok(_) => Ok(true),
            Err(Error::Api(status)) if status.code == 409 => Ok(false),
            Err(error) => Err(error),
        }
    }
}

fn record(lease: &DynamicObject) -> Record {
    let spec = &lease.data["spec"];
    let text = |key: &str| spec[key].as_str().unwrap_or_default().to_owned();
    let number = |key: &str| spec[key].as_u64().unwrap_or_default();
    Record {
        holder: text("holderIdentity"),
        seconds: number("leaseDurationSeconds"),
        renewed: text("renewTime"),
        transitions: number("leaseTransitions"),
    }
}

/// Kubernetes counts whole seconds, and wants at least one.
fn seconds(lease: Duration) -> u64 {
    lease.as_secs().max(1)
}

/// Kubernetes' `MicroTime`: exactly six digits after the point.
fn micro_time() -> Value {
    let mut text = Vec::new();
    clock::push_rfc3339(clock::wall(), &mut text);
    let text = String::from_utf8_lossy(&text);
    json!(format!("{}000Z", text.trim_end_matches('Z')))
}
