//! What a gateway serves: pools that it is named, or whatever a Gateway's routes lead to.

use std::collections::BTreeSet;

use super::kind::Kind;
use super::object::Key;
use super::pools::Pools;

#[derive(Clone, Debug)]
pub enum Served {
    Pools(Pools),
    Gateway(ServedGateway),
}

/// One Gateway, which this process is.
#[derive(Clone, Debug)]
pub struct ServedGateway {
    pub(super) key: Key,
    /// Where clients reach it, for its status: IP addresses and host names.
    pub(super) addresses: Vec<String>,
}

impl ServedGateway {
    /// * `home`: the namespace of one that is named without it.
    pub fn new(key: Key, addresses: Vec<String>, home: &str) -> Self {
        let key = match key.namespace.is_empty() {
            true => Key { namespace: home.to_owned(), ..key },
            false => key,
        };
        Self { key, addresses }
    }
}

impl Served {
    /// What must be seen: kinds, each with a namespace or, empty, in all.
    pub(super) fn sources(&self) -> Vec<(Kind, String)> {
        match self {
            Self::Pools(pools) => {
                let namespaces: BTreeSet<&str> = pools.namespaces();
                let of = |namespace: &str| {
                    let namespace = namespace.to_owned();
                    Kind::of_pools().map(move |kind| (kind, namespace.clone()))
                };
                namespaces.into_iter().flat_map(of).collect()
            }
            // Routes, and the pools that they name, can be anywhere.
            Self::Gateway(_) => Kind::ROUTING
                .into_iter()
                .chain(Kind::of_pools())
                .map(|kind| (kind, String::new()))
                .collect(),
        }
    }
}
