//! Writes to the API server: objects by server-side apply, statuses, and events.

use std::time::Duration;

use k8s_openapi::api::core::v1::ObjectReference;
use kube::api::{Api, DynamicObject, Patch, PatchParams};
use kube::runtime::events::{Event, EventType, Recorder, Reporter};
use kube::{Client, Error};
use serde_json::json;
use tokio::time::timeout;

use super::key::{Key, Kind};
use super::state::{Applied, StatusPlan, Write};
use super::status::{Failure, is_webhooks};
use crate::resource;

/// Who owns the fields that we write.
const MANAGER: &str = "wicketgate-controller";
/// Longest wait for one answer of the API server.
const ANSWER: Duration = Duration::from_secs(30);

/// Writes for one controller.
#[derive(Clone)]
pub(super) struct Writer {
    client: Client,
    recorder: Recorder,
}

impl Writer {
    pub(super) fn new(client: Client, identity: &str) -> Self {
        let instance = Some(identity.to_owned());
        let reporter = Reporter { controller: MANAGER.to_owned(), instance };
        Self { recorder: Recorder::new(client.clone(), reporter), client }
    }

    /// Writes objects one after the other, up to the first failure.
    pub(super) async fn write(
        &self,
        key: &Key,
        writes: Vec<Write>,
    ) -> (Vec<Applied>, Option<Failure>) {
        let mut applied = Vec::new();
        for write in writes {
            match self.write_one(key, &write).await {
                Ok(object) => {
                    applied.push(Applied {
                        kind: write.kind,
                        fingerprint: write.fingerprint,
                        object,
                    });
                }
                Err(message) => {
                    let name = key.object_name();
                    let is_denied = is_webhooks(&message);
                    let message = format!("cannot write {} `{name}`: {message}", write.kind.name());
                    return (applied, Some(Failure { message, is_denied }));
                }
            }
        }
        (applied, None)
    }

    async fn write_one(&self, key: &Key, write: &Write) -> Result<DynamicObject, String> {
        let api = self.api(key, write.kind);
        let name = key.object_name();
        if !write.is_known {
            // Something of that name may be there that is not ours, or was another gateway's.
            let there = answered(api.get_opt(&name)).await?;
            if let Some(there) = there
                && Key::of_owner(&there).is_none_or(|(_, uid)| uid != write.owner_uid)
            {
                return Err("one of that name is there and belongs to somebody else; remove it, or rename the gateway".to_owned());
            }
        }
        let parameters = PatchParams::apply(MANAGER).force();
        answered(api.patch(&name, &parameters, &Patch::Apply(&write.object))).await
    }

    /// Writes a status. `None`: the resource is gone, or another one has its name now.
    pub(super) async fn write_status(
        &self,
        key: &Key,
        plan: &StatusPlan,
    ) -> Result<Option<DynamicObject>, String> {
        let kind = resource::kind(key.group);
        let api: Api<DynamicObject> =
            Api::namespaced_with(self.client.clone(), &key.namespace, &kind);
        // A merge: applying costs an API server several times as much where schedulers are hundreds.
        let patch = Patch::Merge(json!({ "metadata": { "uid": plan.uid }, "status": plan.change }));
        let parameters =
            PatchParams { field_manager: Some(MANAGER.to_owned()), ..PatchParams::default() };
        let written = api.patch_status(&key.name, &parameters, &patch);
        match timeout(ANSWER, written).await {
            Ok(Ok(object)) => Ok(Some(object)),
            Ok(Err(Error::Api(status))) if status.code == 404 => Ok(None),
            Ok(Err(error)) => Err(text(&error)),
            Err(_) => Err(TOO_LONG.to_owned()),
        }
    }

    /// Tells what changed; that it could not be told is no failure of anything.
    pub(super) async fn tell(&self, key: &Key, plan: &StatusPlan) {
        let about = ObjectReference {
            api_version: Some(key.group.api_version().to_owned()),
            kind: Some(config::KIND.to_owned()),
            name: Some(key.name.to_string()),
            namespace: Some(key.namespace.to_string()),
            uid: Some(plan.uid.clone()),
            ..ObjectReference::default()
        };
        for notice in &plan.notices {
            /// The longest that an event takes.
            const NOTE_MAX: usize = 1000;
            let event = Event {
                type_: if notice.is_warning { EventType::Warning } else { EventType::Normal },
                reason: notice.reason.clone(),
                note: Some(notice.message.chars().take(NOTE_MAX).collect()),
                action: "Reconcile".to_owned(),
                secondary: None,
            };
            match timeout(ANSWER, self.recorder.publish(&event, &about)).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => {
                    tracing::debug!(%key, error = text(&error), "an event could not be written")
                }
                Err(_) => tracing::debug!(%key, "an event could not be written: {TOO_LONG}"),
            }
        }
    }

    fn api(&self, key: &Key, kind: Kind) -> Api<DynamicObject> {
        Api::namespaced_with(self.client.clone(), &key.namespace, &kind.resource())
    }
}

const TOO_LONG: &str = "the API server did not answer in time";

async fn answered<T>(asked: impl Future<Output = Result<T, Error>>) -> Result<T, String> {
    match timeout(ANSWER, asked).await {
        Ok(answer) => answer.map_err(|error| text(&error)),
        Err(_) => Err(TOO_LONG.to_owned()),
    }
}

/// What the API server said, without what the library adds.
fn text(error: &Error) -> String {
    match error {
        Error::Api(status) => status.message.clone(),
        other => other.to_string(),
    }
}
