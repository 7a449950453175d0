//! All resources that were seen, without I/O.

use std::collections::{BTreeMap, BTreeSet};

use kube::core::DynamicObject;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::kind::{Group, Kind};
use super::object::{Key, Object};
use super::resources::{
    ClassSpec, GatewaySpec, GrantSpec, NamespaceSpec, ObjectiveSpec, PoolSpec, RewriteSpec,
    RouteSpec,
};

/// Resources of one kind, in the order of namespace and name.
pub(super) type Table<S> = BTreeMap<Key, Object<S>>;
/// Of a kind that two groups have; those of one name stand side by side, the older group last.
pub(super) type Twofold<S> = BTreeMap<(Key, Group), Object<S>>;

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct World {
    pub(super) classes: Table<ClassSpec>,
    pub(super) gateways: Table<GatewaySpec>,
    pub(super) routes: Table<RouteSpec>,
    pub(super) grants: Table<GrantSpec>,
    pub(super) namespaces: Table<NamespaceSpec>,
    pub(super) pools: Table<PoolSpec>,
    pub(super) objectives: Twofold<ObjectiveSpec>,
    pub(super) rewrites: Twofold<RewriteSpec>,
}

impl World {
    /// A resource is there, or changed. Whether that is news.
    pub(super) fn put(&mut self, kind: Kind, object: DynamicObject) -> bool {
        let Some(key) = Key::of(&object) else { return false };
        match kind {
            Kind::Class => put(&mut self.classes, key, kind, object),
            Kind::Gateway => put(&mut self.gateways, key, kind, object),
            Kind::Route => put(&mut self.routes, key, kind, object),
            Kind::Grant => put(&mut self.grants, key, kind, object),
            Kind::Namespace => put(&mut self.namespaces, key, kind, object),
            Kind::Pool => put(&mut self.pools, key, kind, object),
            Kind::Objective(group) => put(&mut self.objectives, (key, group), kind, object),
            Kind::Rewrite(group) => put(&mut self.rewrites, (key, group), kind, object),
        }
    }

    /// A resource is gone. Whether it was there.
    pub(super) fn remove(&mut self, kind: Kind, key: &Key) -> bool {
        match kind {
            Kind::Class => self.classes.remove(key).is_some(),
            Kind::Gateway => self.gateways.remove(key).is_some(),
            Kind::Route => self.routes.remove(key).is_some(),
            Kind::Grant => self.grants.remove(key).is_some(),
            Kind::Namespace => self.namespaces.remove(key).is_some(),
            Kind::Pool => self.pools.remove(key).is_some(),
            Kind::Objective(group) => self.objectives.remove(&(key.clone(), group)).is_some(),
            Kind::Rewrite(group) => self.rewrites.remove(&(key.clone(), group)).is_some(),
        }
    }

    /// All resources of one kind in one namespace at once (empty: in all). Whether that is news.
    pub(super) fn replace(
        &mut self,
        kind: Kind,
        namespace: &str,
        objects: Vec<DynamicObject>,
    ) -> bool {
        let listed: BTreeSet<Key> = objects.iter().filter_map(Key::of).collect();
        let gone: Vec<Key> =
            self.keys(kind, namespace).filter(|key| !listed.contains(key)).cloned().collect();
        let removed = gone.iter().fold(false, |news, key| news | self.remove(kind, key));
        objects.into_iter().fold(removed, |news, object| news | self.put(kind, object))
    }

    /// The status of a resource as it was seen last.
    pub(super) fn status(&self, kind: Kind, key: &Key) -> Option<&Value> {
        match kind {
            Kind::Class => self.classes.get(key).map(|object| &object.status),
            Kind::Gateway => self.gateways.get(key).map(|object| &object.status),
            Kind::Route => self.routes.get(key).map(|object| &object.status),
            // Nobody tells these anything.
            Kind::Grant | Kind::Namespace => None,
            Kind::Pool => self.pools.get(key).map(|object| &object.status),
            Kind::Objective(group) => {
                self.objectives.get(&(key.clone(), group)).map(|object| &object.status)
            }
            Kind::Rewrite(group) => {
                self.rewrites.get(&(key.clone(), group)).map(|object| &object.status)
            }
        }
    }

    fn keys<'a>(&'a self, kind: Kind, namespace: &'a str) -> impl Iterator<Item = &'a Key> {
        let keys: Box<dyn Iterator<Item = &Key>> = match kind {
            Kind::Class => Box::new(self.classes.keys()),
            Kind::Gateway => Box::new(self.gateways.keys()),
            Kind::Route => Box::new(self.routes.keys()),
            Kind::Grant => Box::new(self.grants.keys()),
            Kind::Namespace => Box::new(self.namespaces.keys()),
            Kind::Pool => Box::new(self.pools.keys()),
            Kind::Objective(group) => Box::new(of_group(self.objectives.keys(), group)),
            Kind::Rewrite(group) => Box::new(of_group(self.rewrites.keys(), group)),
        };
        keys.filter(move |key| namespace.is_empty() || key.namespace == namespace)
    }
}

fn of_group<'a>(
    keys: impl Iterator<Item = &'a (Key, Group)>,
    group: Group,
) -> impl Iterator<Item = &'a Key> {
    keys.filter(move |(_, own)| *own == group).map(|(key, _)| key)
}

/// What cannot be read is as if it were not there: the definition in the cluster is another than ours.
fn put<K: Ord, S: DeserializeOwned + PartialEq>(
    table: &mut BTreeMap<K, Object<S>>,
    key: K,
    kind: Kind,
    object: DynamicObject,
) -> bool {
    let name = Key::of(&object);
    match Object::read(object) {
        Ok(object) => {
            let is_news = table.get(&key) != Some(&object);
            table.insert(key, object);
            is_news
        }
        Err(error) => {
            let name = name.map(|key| key.to_string()).unwrap_or_default();
            let error = &error as &dyn std::error::Error;
            tracing::warn!(error, kind = kind.resource().kind, %name, "a resource cannot be read and is left out");
            table.remove(&key).is_some()
        }
    }
}
