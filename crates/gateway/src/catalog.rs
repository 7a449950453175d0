//! Which names are served, and by which pool.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use openai::ModelCard;
use types::{AdapterId, EndpointId, ModelName, PoolName};

use crate::{Pool, Rewrites};

/// One immutable answer to "who serves this name"; replaced as a whole.
#[derive(Debug, Default)]
pub struct Catalog {
    names: HashMap<ModelName, Target>,
    /// Names that each pool serves, whoever else does.
    own_names: HashMap<PoolName, HashMap<ModelName, Target>>,
    /// Positions in `pools` of those that hold an endpoint.
    homes: HashMap<EndpointId, Vec<usize>>,
    pub pools: Vec<Arc<Pool>>,
    /// Body-based routing is off: this pool gets every request, whatever its model.
    pub catch_all: Option<Arc<Pool>>,
    /// For `/v1/models`, by name.
    pub cards: BTreeMap<ModelName, ModelCard>,
    /// Looked at before the names.
    pub rewrites: Rewrites,
}

/// What a model name stands for.
#[derive(Clone, Debug)]
pub struct Target {
    pub pool: Arc<Pool>,
    /// The configured name, for labels and logs.
    pub name: ModelName,
    /// Set when the name is a LoRA adapter of the pool's base model.
    pub adapter: Option<AdapterId>,
}

impl Catalog {
    pub(crate) fn new(catch_all: Option<Arc<Pool>>) -> Self {
        Self { catch_all, ..Self::default() }
    }

    /// All pools at once.
    pub(crate) fn set_pools(&mut self, pools: Vec<Arc<Pool>>) {
        self.homes.clear();
        for (position, pool) in pools.iter().enumerate() {
            for member in &pool.members {
                self.homes.entry(member.member.endpoint.id).or_default().push(position);
            }
        }
        self.pools = pools;
    }

    /// The pools that hold an endpoint.
    pub(crate) fn pools_of(&self, endpoint: EndpointId) -> impl Iterator<Item = &Arc<Pool>> {
        let positions = self.homes.get(&endpoint).into_iter().flatten();
        positions.filter_map(|position| self.pools.get(*position))
    }

    /// Adds a name; the first to claim it keeps it. Whether it was free.
    pub(crate) fn claim(&mut self, target: Target, card: ModelCard) -> bool {
        if self.names.contains_key(target.name.as_str()) {
            return false;
        }
        self.cards.insert(target.name.clone(), card);
        self.names.insert(target.name.clone(), target);
        true
    }

    /// Notes a name that a pool serves, whether or not another has it.
    pub(crate) fn own(&mut self, target: Target) {
        let names = self.own_names.entry(target.pool.name.clone()).or_default();
        names.entry(target.name.clone()).or_insert(target);
    }

    /// What a name stands for in one pool; the pool itself where it does not list it.
    pub(crate) fn get_in(&self, pool: &Arc<Pool>, name: Option<&str>) -> Target {
        let names = self.own_names.get(&pool.name);
        let own = names.zip(name).and_then(|(names, name)| names.get(name)).cloned();
        own.unwrap_or_else(|| Target {
            pool: pool.clone(),
            name: pool.model.clone(),
            adapter: None,
        })
    }

    pub(crate) fn pool(&self, name: &PoolName) -> Option<&Arc<Pool>> {
        self.pools.iter().find(|pool| pool.name == *name)
    }

    pub fn get(&self, name: &str) -> Option<&Target> {
        self.names.get(name)
    }

    /// What an adapter of this pool is called.
    pub(crate) fn adapter_name(&self, pool: &Pool, adapter: AdapterId) -> Option<&ModelName> {
        // Names of adapters are known by their hash alone; few look, and then at one endpoint.
        let is_it =
            |target: &&Target| target.adapter == Some(adapter) && target.pool.name == pool.name;
        self.names.values().find(is_it).map(|target| &target.name)
    }

    /// The base model behind a name that a client may write, aliases included.
    pub fn base_of(&self, name: &str) -> Option<&ModelName> {
        let served = self.get(name);
        let home = || self.rewrites.find(name, self).and_then(|matched| matched.rule.home());
        served.or_else(home).map(|target| &target.pool.model)
    }

    /// Whether clients may write names that no endpoint serves.
    pub fn has_aliases(&self) -> bool {
        self.cards.len() > self.names.len()
    }

    /// Served names that look like `name`, the nearest first.
    pub fn near(&self, name: &str) -> Vec<String> {
        const MOST: usize = 3;
        let names = self.cards.keys().map(ModelName::as_str);
        openai::near_names(name, names, MOST).into_iter().map(str::to_owned).collect()
    }

    /// The one pool, if there is only one.
    pub fn only_pool(&self) -> Option<&Arc<Pool>> {
        match self.pools.as_slice() {
            [pool] => Some(pool),
            _ => None,
        }
    }
}
