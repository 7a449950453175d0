//! What the controller knows: a state without I/O, fed with what the API server says.
//!
//! The order in which things come does not matter: what is planned depends on what is there, not on how it came
//! to be.

mod lists;
mod namespace;
mod plan;
#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use config::{ApiGroup, Document};
use k8s_openapi::api::core::v1::Pod;
use kube::api::DynamicObject;
use kube::runtime::watcher::Event;
use serde_json::Value;

use super::key::{Key, Kind};
use super::queue::Extent;
use super::rollout::Rollout;
use super::settings::Images;
use super::status::{self, Failure, Refusal};
use crate::document;
use lists::Lists;
use namespace::Namespace;

pub(crate) use plan::{Applied, StatusPlan, Write};

/// Something that the API server said.
#[allow(clippy::large_enum_variant, reason = "taken in at once, and nearly all are pods")]
#[derive(Debug)]
pub(crate) enum News {
    Gateway(ApiGroup, Event<DynamicObject>),
    Owned(Kind, Event<DynamicObject>),
    Pod(Event<Pod>),
}

/// What one of the watches shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Source {
    Gateways(ApiGroup),
    Owned(Kind),
    Pods,
}

#[derive(Debug)]
pub(crate) struct State {
    images: Images,
    gateways: HashMap<Key, Gateway>,
    namespaces: HashMap<Arc<str>, Namespace>,
    owned: HashMap<(Kind, Key), Owned>,
    lists: Lists,
    /// Of what was never listed whole nothing is known.
    incomplete: HashSet<Source>,
}

#[derive(Debug)]
struct Gateway {
    uid: String,
    generation: i64,
    resource_version: String,
    spec: Value,
    status: Value,
    document: Result<Arc<Document>, Arc<Refusal>>,
    /// What could not be written, until it could.
    failure: Option<Failure>,
    /// What was written of each kind: its fingerprint, and the version that it had then.
    applied: HashMap<Kind, (u64, String)>,
}

/// An object of a gateway as it is in the cluster.
#[derive(Debug)]
struct Owned {
    owner_uid: String,
    version: String,
    rollout: Option<Rollout>,
}

type Due = Vec<(Key, Extent)>;

impl State {
    pub(crate) fn new(images: Images, sources: impl IntoIterator<Item = Source>) -> Self {
        Self {
            images,
            gateways: HashMap::new(),
            namespaces: HashMap::new(),
            owned: HashMap::new(),
            lists: Lists::default(),
            incomplete: sources.into_iter().collect(),
        }
    }

    /// Whether all is known once; before that nothing may be concluded.
    pub(crate) fn is_complete(&self) -> bool {
        self.incomplete.is_empty()
    }

    /// Gateways and pods that are known.
    pub(crate) fn sizes(&self) -> (usize, usize) {
        let pods = self.namespaces.values().map(Namespace::pods).sum();
        (self.gateways.len(), pods)
    }

    /// Takes news in. What is due because of it.
    pub(crate) fn take(&mut self, news: News) -> Due {
        match news {
            News::Gateway(group, event) => {
                let source = Source::Gateways(group);
                let name = |one: &DynamicObject| place(&one.metadata);
                let (changed, gone) = self.lists.sort(source, event, name);
                self.note_complete(source);
                let mut due = Due::new();
                if let Some(one) = changed {
                    due.extend(self.put_gateway(&one, group));
                }
                for (namespace, name) in gone {
                    due.extend(self.drop_gateway(&Key { group, namespace, name }));
                }
                due
            }
            News::Owned(kind, event) => {
                let source = Source::Owned(kind);
                let name = |one: &DynamicObject| place(&one.metadata);
                let (changed, gone) = self.lists.sort(source, event, name);
                self.note_complete(source);
                let mut due = Due::new();
                if let Some(one) = changed {
                    due.extend(self.put_owned(kind, &one));
                }
                for (namespace, name) in gone {
                    due.extend(self.drop_owned(kind, &namespace, &name));
                }
                due
            }
            News::Pod(event) => {
                let name = |pod: &Pod| place(&pod.metadata);
                let (changed, gone) = self.lists.sort(Source::Pods, event, name);
                self.note_complete(Source::Pods);
                let mut due = Due::new();
                if let Some(pod) = changed {
                    let (namespace, name) = place(&pod.metadata);
                    let home = self.namespaces.entry(namespace.clone()).or_default();
                    due.extend(home.put_pod(&namespace, &name, Some(pod)));
                }
                for (namespace, name) in gone {
                    if let Some(home) = self.namespaces.get_mut(&namespace) {
                        due.extend(home.put_pod(&namespace, &name, None));
                    }
                }
                due
            }
        }
    }

    fn note_complete(&mut self, source: Source) {
        if self.lists.is_whole(source) {
            self.incomplete.remove(&source);
        }
    }

    fn put_gateway(&mut self, object: &DynamicObject, group: ApiGroup) -> Due {
        let Some(key) = Key::of(object, group) else { return Due::new() };
        let spec = object.data.get("spec").cloned().unwrap_or_default();
        let status = object.data.get("status").cloned().unwrap_or_default();
        let uid = object.metadata.uid.clone().unwrap_or_default();
        let resource_version = object.metadata.resource_version.clone().unwrap_or_default();
        if object.metadata.deletion_timestamp.is_some() {
            // Somebody else's finalizer holds it; there is nothing to do for us any more.
            return self.drop_gateway(&key);
        }
        if let Some(known) = self.gateways.get_mut(&key)
            && known.uid == uid
            && known.spec == spec
        {
            known.generation = object.metadata.generation.unwrap_or_default();
            if is_newer(&resource_version, &known.resource_version) {
                known.resource_version = resource_version;
                known.status = status;
            }
            return vec![(key, Extent::Status)];
        }
        let parsed = config::parse(&document::text(object), &key.to_string());
        let document = match status::refusal(&key, parsed.as_ref()) {
            Some(refusal) => Err(Arc::new(refusal)),
            None => parsed.map(Arc::new).map_err(|errors| {
                let (message, selectors) = (errors.to_string(), Vec::new());
                Arc::new(Refusal { reason: "InvalidSpec", message, selectors })
            }),
        };
        let before = self.gateways.remove(&key).filter(|before| before.uid == uid);
        let (failure, applied) =
            before.map(|before| (before.failure, before.applied)).unwrap_or_default();
        let generation = object.metadata.generation.unwrap_or_default();
        let gateway =
            Gateway { uid, generation, resource_version, spec, status, document, failure, applied };
        self.gateways.insert(key.clone(), gateway);
        self.namespaces.entry(key.namespace.clone()).or_default().is_stale = true;
        let mut due = vec![(key.clone(), Extent::Whole)];
        due.extend(self.other(&key));
        due
    }

    fn drop_gateway(&mut self, key: &Key) -> Due {
        if self.gateways.remove(key).is_none() {
            return Due::new();
        }
        if let Some(home) = self.namespaces.get_mut(&key.namespace) {
            home.is_stale = true;
        }
        self.other(key).into_iter().collect()
    }

    /// The gateway of the same name in the other group, which may have to make room, or have it again.
    fn other(&self, key: &Key) -> Option<(Key, Extent)> {
        let group = match key.group {
            ApiGroup::Wicketgate => ApiGroup::Aws,
            ApiGroup::Aws => ApiGroup::Wicketgate,
        };
        let other = Key { group, ..key.clone() };
        self.gateways.contains_key(&other).then_some((other, Extent::Whole))
    }

    fn put_owned(&mut self, kind: Kind, object: &DynamicObject) -> Due {
        let Some((key, uid)) = Key::of_owner(object) else { return Due::new() };
        if object.metadata.name.as_deref() != Some(&key.object_name()) {
            return Due::new();
        }
        let version = version(object);
        let rollout = (kind == Kind::Deployment).then(|| Rollout::of(object));
        let known = self.gateways.get(&key);
        let is_ours = known
            .and_then(|gateway| gateway.applied.get(&kind))
            .is_some_and(|(_, applied)| *applied == version);
        let owned = Owned { owner_uid: uid.to_owned(), version, rollout };
        self.owned.insert((kind, key.clone()), owned);
        match known {
            None => Due::new(),
            Some(_) if is_ours => vec![(key, Extent::Status)],
            Some(_) => vec![(key, Extent::Whole)],
        }
    }

    fn drop_owned(&mut self, kind: Kind, namespace: &Arc<str>, name: &str) -> Due {
        let Some(gateway) = name.strip_suffix("-gateway") else { return Due::new() };
        let of_group = |group| Key { group, namespace: namespace.clone(), name: gateway.into() };
        let keys = [ApiGroup::Wicketgate, ApiGroup::Aws].map(of_group);
        let mut due = Due::new();
        for key in keys {
            if self.owned.remove(&(kind, key.clone())).is_some() && self.gateways.contains_key(&key)
            {
                due.push((key, Extent::Whole));
            }
        }
        due
    }
}

/// Namespace and name.
fn place(
    metadata: &k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta,
) -> (Arc<str>, Arc<str>) {
    let text = |text: &Option<String>| text.as_deref().unwrap_or_default().into();
    (text(&metadata.namespace), text(&metadata.name))
}

/// Changes with what we write, and not, where the server tells them apart, with what controllers report.
fn version(object: &DynamicObject) -> String {
    match object.metadata.generation {
        Some(generation) => format!("g{generation}"),
        None => format!("r{}", object.metadata.resource_version.clone().unwrap_or_default()),
    }
}

/// Whether a version of one object is later than another; what cannot be compared is taken for it.
fn is_newer(version: &str, than: &str) -> bool {
    match (version.parse::<u64>(), than.parse::<u64>()) {
        (Ok(version), Ok(than)) => version > than,
        _ => version != than,
    }
}
