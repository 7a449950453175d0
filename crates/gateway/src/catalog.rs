//! Which names are served, and by which pool.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use openai::ModelCard;
use types::{AdapterId, ModelName};

use crate::Pool;

/// One immutable answer to "who serves this name"; replaced as a whole.
#[derive(Debug, Default)]
pub struct Catalog {
    names: HashMap<ModelName, Target>,
    pub pools: Vec<Arc<Pool>>,
    /// Body-based routing is off: this pool gets every request, whatever its model.
    pub catch_all: Option<Arc<Pool>>,
    /// For `/v1/models`, by name.
    pub cards: BTreeMap<ModelName, ModelCard>,
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

    /// Adds a name; the first to claim it keeps it. Whether it was free.
    pub(crate) fn claim(&mut self, target: Target, card: ModelCard) -> bool {
        if self.names.contains_key(target.name.as_str()) {
            return false;
        }
        self.cards.insert(target.name.clone(), card);
        self.names.insert(target.name.clone(), target);
        true
    }

    pub fn get(&self, name: &str) -> Option<&Target> {
        self.names.get(name)
    }

    /// Served names that look like `name`, the nearest first.
    pub fn near(&self, name: &str) -> Vec<String> {
        const MOST: usize = 3;
        let names = self.names.keys().map(ModelName::as_str);
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
