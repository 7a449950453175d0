//! InferenceObjective becomes an objective of its pool.

use config::Objective;
use types::{ObjectiveName, Priority};

use super::conditions::{Condition, Says, StatusPatch};
use super::kind::{Group, Kind};
use super::object::Object;
use super::pools::{Pools, Referred};
use super::resources::ObjectiveSpec;
use super::world::World;

/// Objectives of the pools, by namespace and name, and what each resource is told.
pub(super) fn resolve(world: &World, pools: &Pools) -> (Vec<Objective>, Vec<StatusPatch>) {
    let mut objectives: Vec<Objective> = Vec::new();
    let mut statuses = Vec::new();
    for ((key, group), object) in &world.objectives {
        let pool_ref = &object.spec.pool_ref;
        let condition = match pools.refer(world, &key.namespace, pool_ref) {
            Referred::Others => continue,
            Referred::NoPool => no_pool(&pool_ref.group, &pool_ref.kind),
            Referred::Missing(pool) => missing(&pool.name),
            Referred::Ours(pool) => {
                // Requests name an objective without a group.
                let twin = world.objectives.get(&(key.clone(), Group::LlmD));
                match twin.filter(|twin| *group == Group::Legacy && pools_agree(twin, object)) {
                    Some(_) => overruled("objective"),
                    None => {
                        objectives.push(Objective {
                            name: ObjectiveName::new(&key.name),
                            priority: Priority(object.spec.priority),
                            ttft: None,
                            scheduler: Some(pools.name(&pool)),
                        });
                        let priority = Priority(object.spec.priority);
                        Condition::accepted(format!(
                            "requests to the pool `{}` can have priority {}",
                            pool.name, priority.0
                        ))
                    }
                }
            }
        };
        statuses.push(told(Kind::Objective(*group), object, condition));
    }
    (objectives, statuses)
}

fn pools_agree(one: &Object<ObjectiveSpec>, other: &Object<ObjectiveSpec>) -> bool {
    one.spec.pool_ref == other.spec.pool_ref
}

/// What one resource is told.
pub(super) fn told<S>(kind: Kind, object: &Object<S>, condition: Condition) -> StatusPatch {
    StatusPatch::of(kind, object, Says::Conditions(vec![condition]))
}

pub(super) fn no_pool(group: &str, kind: &str) -> Condition {
    let mut message = format!("`poolRef` names a {kind} of group `{group}`");
    message.push_str(": only InferencePool of `inference.networking.k8s.io` is served");
    Condition::refused("InvalidPoolRef", message)
}

pub(super) fn missing(pool: &str) -> Condition {
    let message = format!("there is no InferencePool `{pool}` in this namespace");
    Condition::refused("PoolNotFound", message)
}

pub(super) fn overruled(what: &str) -> Condition {
    let mut message = format!("an {what} of the same name in group `llm-d.ai` goes first");
    message.push_str("; delete one of the two");
    Condition::refused("Conflicted", message)
}
