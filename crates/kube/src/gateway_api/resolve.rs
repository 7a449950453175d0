//! From all that was seen to what a gateway does, and to what resources are told.

use config::Additions;

use super::conditions::StatusPatch;
use super::pools::Pools;
use super::world::World;
use super::{objectives, rewrites};

/// What follows from a world.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Resolved {
    pub(super) additions: Additions,
    /// What each resource of our pools is to be told, whether or not it knows.
    pub(super) statuses: Vec<StatusPatch>,
}

pub(super) fn resolve(world: &World, pools: &Pools) -> Resolved {
    let (objectives, mut statuses) = objectives::resolve(world, pools);
    let (model_rewrites, of_rewrites) = rewrites::resolve(world, pools);
    statuses.extend(of_rewrites);
    let additions = Additions {
        schedulers: pools.schedulers(world),
        objectives,
        model_rewrites,
        // One pool is an endpoint picker's whole world: what it cannot name, it serves all the same.
        catches_all: pools.is_one(),
    };
    Resolved { additions, statuses }
}
