//! What is to be written, given what is known.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use config::spec::LabelSelector;
use config::{ApiGroup, Document};
use kube::api::DynamicObject;
use serde_json::Value;

use super::{Gateway, Owned, State, is_newer, version};
use crate::controller::desired::{self, Wish};
use crate::controller::key::{Key, Kind};
use crate::controller::rollout::Rollout;
use crate::controller::status::{self, Facts, Failure, NAMING, Notice, Refusal};
use crate::fleet::Target;

/// An object to be written.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Write {
    pub kind: Kind,
    pub object: Value,
    pub fingerprint: u64,
    /// The uid of the gateway that it belongs to.
    pub owner_uid: String,
    /// It is there and belongs to the gateway; else somebody else's may be in its place.
    pub is_known: bool,
}

/// An object that was written, as the server has it now.
#[derive(Debug)]
pub(crate) struct Applied {
    pub kind: Kind,
    pub fingerprint: u64,
    pub object: DynamicObject,
}

/// A status to be written.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct StatusPlan {
    pub uid: String,
    pub status: Value,
    /// The same as a merge: what is no longer said is null.
    pub change: Value,
    pub notices: Vec<Notice>,
}

impl State {
    /// The objects that are missing or not as they should be, in the order in which they are made.
    pub(crate) fn plan_objects(&self, key: &Key) -> Vec<Write> {
        let Some(gateway) = self.gateways.get(key) else { return Vec::new() };
        let Ok(document) = self.document(key, gateway) else { return Vec::new() };
        let wish = Wish { key, uid: &gateway.uid, document: &document, spec: &gateway.spec };
        let writes =
            desired::objects(wish, &self.images).into_iter().filter_map(|(kind, object)| {
                let fingerprint = fingerprint(&object);
                let there = self.owned.get(&(kind, key.clone()));
                let there = there.filter(|owned| owned.owner_uid == gateway.uid);
                let is_as_written = match (there, gateway.applied.get(&kind)) {
                    (Some(owned), Some((written, version))) => {
                        *written == fingerprint && *version == owned.version
                    }
                    _ => false,
                };
                let owner_uid = gateway.uid.clone();
                let is_known = there.is_some();
                (!is_as_written).then_some(Write { kind, object, fingerprint, owner_uid, is_known })
            });
        writes.collect()
    }

    /// Notes what was written and what could not be.
    pub(crate) fn note_applied(
        &mut self,
        key: &Key,
        applied: Vec<Applied>,
        failure: Option<Failure>,
    ) {
        let Some(gateway) = self.gateways.get_mut(key) else { return };
        gateway.failure = failure;
        for Applied { kind, fingerprint, object } in applied {
            let version = version(&object);
            gateway.applied.insert(kind, (fingerprint, version.clone()));
            let rollout = (kind == Kind::Deployment).then(|| Rollout::of(&object));
            let owned = Owned { owner_uid: gateway.uid.clone(), version, rollout };
            self.owned.insert((kind, key.clone()), owned);
        }
    }

    /// The status, if it is another than the one that is there.
    ///
    /// * `now`: RFC 3339.
    pub(crate) fn plan_status(&mut self, key: &Key, now: &str) -> Option<StatusPlan> {
        self.settle(&key.namespace);
        let gateway = self.gateways.get(key)?;
        let home = self.namespaces.get(&key.namespace);
        let document = self.document(key, gateway);
        let owned = |kind| {
            let owned = self.owned.get(&(kind, key.clone()));
            owned.filter(|owned| owned.owner_uid == gateway.uid)
        };
        let facts = Facts {
            key,
            generation: gateway.generation,
            spec: &gateway.spec,
            document: document.as_deref().map_err(|refusal| &**refusal),
            rollout: owned(Kind::Deployment).and_then(|owned| owned.rollout.as_ref()),
            trouble: home.and_then(|home| home.trouble(&key.name)),
            has_service: owned(Kind::Service).is_some(),
            failure: gateway.failure.as_ref(),
            pools: &home.map(|home| home.standings(key)).unwrap_or_default(),
            before: &gateway.status,
            now,
        };
        let status = status::status(&facts);
        let change = status::change(&gateway.status, &status);
        let is_empty = change.as_object().is_none_or(|change| change.is_empty());
        (!is_empty).then(|| StatusPlan {
            uid: gateway.uid.clone(),
            notices: status::notices(&gateway.status, &status),
            change,
            status,
        })
    }

    /// Notes that the server has this status now.
    pub(crate) fn note_status(&mut self, key: &Key, written: &DynamicObject) {
        let Some(gateway) = self.gateways.get_mut(key) else { return };
        let version = written.metadata.resource_version.clone().unwrap_or_default();
        if written.metadata.uid.as_deref() == Some(&gateway.uid)
            && is_newer(&version, &gateway.resource_version)
        {
            gateway.resource_version = version;
            gateway.status = written.data.get("status").cloned().unwrap_or_default();
        }
    }

    /// The document to act upon, or why there is none.
    fn document(&self, key: &Key, gateway: &Gateway) -> Result<Arc<Document>, Arc<Refusal>> {
        let rival = Key { group: ApiGroup::Wicketgate, ..key.clone() };
        if key.group == ApiGroup::Aws && self.gateways.contains_key(&rival) {
            return Err(Arc::new(Refusal {
                reason: NAMING,
                message: format!(
                    "{} of the same name is there, and its objects would have the same names; rename one of them",
                    ApiGroup::Wicketgate.api_version()
                ),
                selectors: Vec::new(),
            }));
        }
        gateway.document.clone()
    }

    /// Brings the targets of a namespace up to date.
    fn settle(&mut self, namespace: &Arc<str>) {
        if !self.namespaces.get(namespace).is_some_and(|home| home.is_stale) {
            return;
        }
        let here = self.gateways.iter().filter(|(key, _)| key.namespace == *namespace);
        let targets = here.map(|(key, gateway)| {
            let document = gateway.document.as_ref();
            (key.clone(), document.map(|document| targets(document)).unwrap_or_default())
        });
        let targets = targets.collect();
        if let Some(home) = self.namespaces.get_mut(namespace) {
            home.settle(targets);
        }
    }
}

/// One target for each scheduler.
fn targets(document: &Document) -> Vec<Target> {
    let target = |scheduler: &config::SchedulerSpec| Target {
        pool: scheduler.name.clone(),
        ports: vec![scheduler.target_port],
        selector: scheduler.model_selector.clone().unwrap_or_else(nothing),
    };
    document.spec.schedulers.iter().map(target).collect()
}

/// No label has an empty key.
fn nothing() -> LabelSelector {
    let match_labels = [(String::new(), String::new())].into();
    LabelSelector { match_labels, match_expressions: Vec::new() }
}

fn fingerprint(object: &Value) -> u64 {
    let mut hasher = DefaultHasher::new();
    object.to_string().hash(&mut hasher);
    hasher.finish()
}
