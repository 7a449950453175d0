//! From all that was seen to what a gateway does, and to what resources are told.

use config::Additions;

use super::conditions::StatusPatch;
use super::pools::Pools;
use super::served::Served;
use super::world::World;
use super::{gateways, objectives, rewrites};

/// What follows from a world.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Resolved {
    pub(super) additions: Additions,
    /// What each resource is to be told, whether or not it knows.
    pub(super) statuses: Vec<StatusPatch>,
}

pub(super) fn resolve(world: &World, served: &Served) -> Resolved {
    match served {
        Served::Pools(pools) => {
            let mut resolved = resolve_pools(world, pools);
            // One pool is an endpoint picker's whole world: what it cannot name, it serves all the same.
            resolved.additions.catches_all = pools.is_one();
            resolved
        }
        Served::Gateway(gateway) => {
            let routing = gateways::resolve(world, gateway);
            let mut resolved = resolve_pools(world, &routing.pools);
            resolved.additions.routes = Some(routing.routes);
            resolved.statuses.extend(routing.statuses);
            resolved
        }
    }
}

/// The pools and what belongs to them.
fn resolve_pools(world: &World, pools: &Pools) -> Resolved {
    let (objectives, mut statuses) = objectives::resolve(world, pools);
    let (model_rewrites, of_rewrites) = rewrites::resolve(world, pools);
    statuses.extend(of_rewrites);
    let schedulers = pools.schedulers(world);
    let additions = Additions { schedulers, objectives, model_rewrites, ..Additions::default() };
    Resolved { additions, statuses }
}
