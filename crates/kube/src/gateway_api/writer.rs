//! Writes statuses: only our own conditions, and only where they differ.

use std::time::{Duration, SystemTime};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;
use kube::api::{Patch, PatchParams};
use kube::core::DynamicObject;
use kube::{Api, Client};
use serde_json::{Value, json};
use tokio::sync::watch;

use super::conditions::StatusPatch;
use super::kind::Kind;
use super::object::Key;
use super::world::World;

/// Pause before what the API server could not take is tried again.
const PAUSE: Duration = Duration::from_secs(5);

/// A status that differs from what it should be.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Due {
    kind: Kind,
    key: Key,
    /// The version that it was read of: who has changed it meanwhile tells us of it.
    resource_version: String,
    status: Value,
}

pub(super) fn due(wanted: &[StatusPatch], world: &World, now: SystemTime) -> Vec<Due> {
    let now = Time(Timestamp::try_from(now).unwrap_or(Timestamp::UNIX_EPOCH));
    let differing = wanted.iter().filter_map(|patch| {
        let status = patch.merged(world.status(patch.kind, &patch.key)?, &now)?;
        Some(Due {
            kind: patch.kind,
            key: patch.key.clone(),
            resource_version: patch.resource_version.clone(),
            status,
        })
    });
    differing.collect()
}

/// Writes what is due, the newest list each time, until nobody sends any more.
pub(super) async fn write(client: Client, mut told: watch::Receiver<Vec<Due>>) {
    let mut is_forbidden = false;
    while told.changed().await.is_ok() {
        loop {
            let all = told.borrow_and_update().clone();
            let mut is_unfinished = false;
            for due in &all {
                match put(&client, due).await {
                    Ok(()) => {}
                    Err(kube::Error::Api(status)) if status.code == 403 => {
                        if !std::mem::replace(&mut is_forbidden, true) {
                            tracing::info!(
                                reason = status.message,
                                "statuses of resources are not written: we may not"
                            );
                        }
                    }
                    // Changed or gone meanwhile: the news of it is on its way.
                    Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => {}
                    Err(error) => {
                        is_unfinished = true;
                        let error = &error as &dyn std::error::Error;
                        tracing::debug!(error, key = %due.key, "a status could not be written");
                    }
                }
            }
            if !is_unfinished {
                break;
            }
            // Whatever comes first: a newer list, or the time to try again.
            if let Ok(Err(_)) = tokio::time::timeout(PAUSE, told.changed()).await {
                return;
            }
        }
    }
}

async fn put(client: &Client, due: &Due) -> Result<(), kube::Error> {
    let resource = due.kind.resource();
    let api: Api<DynamicObject> = match due.key.namespace.as_str() {
        "" => Api::all_with(client.clone(), &resource),
        namespace => Api::namespaced_with(client.clone(), namespace, &resource),
    };
    let patch = Patch::Merge(json!({
        "metadata": { "resourceVersion": due.resource_version },
        "status": due.status,
    }));
    api.patch_status(&due.key.name, &PatchParams::default(), &patch).await?;
    Ok(())
}
