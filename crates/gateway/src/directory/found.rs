//! Endpoints that no document names: somebody who watches a cluster found them.

use std::collections::HashMap;
use std::sync::Arc;

use config::EndpointSpec;
use types::{EndpointAddress, PoolName};

/// An endpoint that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    pub endpoint: EndpointSpec,
    /// Another text: another server behind the same address, of which nothing is known yet.
    pub instance: Arc<str>,
}

/// What was found for each scheduler; names without one are kept, since the document may follow.
#[derive(Debug, Default)]
pub(super) struct FoundEndpoints {
    pools: HashMap<PoolName, Arc<[Found]>>,
    /// Which server stood at each address when members were last worked out.
    instances: HashMap<EndpointAddress, Arc<str>>,
}

impl FoundEndpoints {
    /// Whether that is news.
    pub(super) fn replace(&mut self, pools: HashMap<PoolName, Arc<[Found]>>) -> bool {
        if self.pools == pools {
            return false;
        }
        self.pools = pools;
        true
    }

    pub(super) fn of(&self, pool: &PoolName) -> &[Found] {
        self.pools.get(pool).map_or(&[], |found| found)
    }

    /// Takes over who stands where now, and tells whom to forget: addresses behind which another
    /// server stands than before.
    pub(super) fn replaced(&mut self) -> Vec<EndpointAddress> {
        let found = || self.pools.values().flat_map(|found| found.iter());
        let now: HashMap<EndpointAddress, Arc<str>> =
            found().map(|one| (one.endpoint.url.clone(), one.instance.clone())).collect();
        let is_another = |(address, instance): &(&EndpointAddress, &Arc<str>)| {
            self.instances.get(*address).is_some_and(|known| known != *instance)
        };
        let replaced = now.iter().filter(is_another).map(|(address, _)| address.clone()).collect();
        self.instances = now;
        replaced
    }
}
