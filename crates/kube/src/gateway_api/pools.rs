//! InferencePool becomes a scheduler: pods by label and port, and the built-in picker.

use std::collections::BTreeSet;

use config::spec::LabelSelector;
use config::{AppProtocol, SchedulerSpec};
use types::{ModelName, PoolName};

use super::object::{Key, Object};
use super::resources::{PoolRef, PoolSpec};
use super::world::World;

/// The pools that a gateway serves.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pools {
    /// In the order in which they were named.
    pools: Vec<Key>,
    /// The same, to be asked.
    named: BTreeSet<Key>,
    /// Where the gateway is at home.
    home: String,
}

impl Pools {
    /// * `home`: the namespace of those that are named without one.
    pub fn new(pools: Vec<Key>, home: &str) -> Self {
        let place = |pool: Key| match pool.namespace.is_empty() {
            true => Key { namespace: home.to_owned(), ..pool },
            false => pool,
        };
        let mut named = BTreeSet::new();
        let pools = pools.into_iter().map(place).filter(|pool| named.insert(pool.clone()));
        let pools = pools.collect();
        Self { pools, named, home: home.to_owned() }
    }

    /// Namespaces in which something of this gateway can be.
    pub(super) fn namespaces(&self) -> BTreeSet<&str> {
        self.pools.iter().map(|pool| pool.namespace.as_str()).collect()
    }

    pub(super) fn serves(&self, pool: &Key) -> bool {
        self.named.contains(pool)
    }

    /// What the pool is called in settings, metrics and logs.
    pub(super) fn name(&self, pool: &Key) -> PoolName {
        PoolName::new(&pool.seen_from(&self.home))
    }

    /// What another resource is called.
    pub(super) fn label(&self, key: &Key) -> String {
        key.seen_from(&self.home)
    }

    /// The schedulers of those pools that are there, in the order in which they were named.
    pub(super) fn schedulers(&self, world: &World) -> Vec<SchedulerSpec> {
        let there = self.pools.iter().filter_map(|key| world.pools.get(key));
        there.filter_map(|pool| scheduler(pool, self.name(&pool.key))).collect()
    }

    pub(super) fn is_one(&self) -> bool {
        self.pools.len() == 1
    }
}

/// `None` for a pool without a port, which its definition does not allow.
fn scheduler(pool: &Object<PoolSpec>, name: PoolName) -> Option<SchedulerSpec> {
    let mut ports = pool.spec.target_ports.iter().map(|port| port.number);
    let model_name = ModelName::new(name.as_str());
    Some(SchedulerSpec {
        learns_models: true,
        namespace: Some(pool.key.namespace.clone()),
        model_selector: Some(LabelSelector {
            match_labels: pool.spec.selector.match_labels.clone(),
            match_expressions: Vec::new(),
        }),
        target_port: ports.next()?,
        further_ports: ports.collect(),
        app_protocol: match pool.spec.app_protocol.as_deref() {
            Some("kubernetes.io/h2c") => AppProtocol::H2c,
            _ => AppProtocol::Http1,
        },
        ..SchedulerSpec::new(name, model_name)
    })
}

/// What a resource's `poolRef` comes to.
pub(super) enum Referred {
    /// One of our pools.
    Ours(Key),
    /// A pool that other gateways may serve; its resources are not ours to judge.
    Others,
    /// One of our pools, which is not there.
    Missing(Key),
    /// No InferencePool at all.
    NoPool,
}

impl Pools {
    pub(super) fn refer(&self, world: &World, namespace: &str, to: &PoolRef) -> Referred {
        if !to.is_pool() {
            return Referred::NoPool;
        }
        let pool = Key::new(namespace, &to.name);
        match (self.serves(&pool), world.pools.contains_key(&pool)) {
            (true, true) => Referred::Ours(pool),
            (true, false) => Referred::Missing(pool),
            (false, _) => Referred::Others,
        }
    }
}
