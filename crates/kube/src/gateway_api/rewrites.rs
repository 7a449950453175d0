//! InferenceModelRewrite becomes a rewrite of its pool's models.

use std::collections::BTreeSet;

use config::{ModelRewrite, RewriteRule, RewriteTarget, Sticky};
use types::{ModelName, PoolName};

use super::conditions::{Condition, StatusPatch};
use super::kind::{Group, Kind};
use super::object::Object;
use super::objectives::{missing, no_pool, overruled, told};
use super::pools::{Pools, Referred};
use super::resources::{RewriteSpec, Rule, Target};
use super::world::World;

/// Rewrites of the pools, the oldest first, and what each resource is told.
pub(super) fn resolve(world: &World, pools: &Pools) -> (Vec<ModelRewrite>, Vec<StatusPatch>) {
    let mut objects: Vec<_> = world.rewrites.iter().collect();
    objects.sort_by_key(|((key, group), object)| (object.created, key, *group));
    let mut rewrites: Vec<ModelRewrite> = Vec::new();
    let mut statuses = Vec::new();
    // Names of a pool's models that a rule has already.
    let mut taken: BTreeSet<(PoolName, Option<ModelName>)> = BTreeSet::new();
    for ((key, group), object) in objects {
        let pool_ref = &object.spec.pool_ref;
        let condition = match pools.refer(world, &key.namespace, pool_ref) {
            Referred::Others => continue,
            Referred::NoPool => no_pool(&pool_ref.group, &pool_ref.kind),
            Referred::Missing(pool) => missing(&pool.name),
            Referred::Ours(_) if *group == Group::Legacy && has_twin(world, pools, object) => {
                overruled("rewrite")
            }
            Referred::Ours(pool) => {
                let rewrite = ModelRewrite {
                    name: pools.label(key).into(),
                    pool: Some(pools.name(&pool)),
                    rules: object.spec.rules.iter().filter_map(rule).collect(),
                };
                let condition = judge(&rewrite, &pool.name, &mut taken);
                rewrites.push(rewrite);
                condition
            }
        };
        statuses.push(told(Kind::Rewrite(*group), object, condition));
    }
    statuses.sort_by(|one, other| (&one.key, one.kind).cmp(&(&other.key, other.kind)));
    (rewrites, statuses)
}

/// Whether the other group has one of the same name for a pool of ours, which goes first.
fn has_twin(world: &World, pools: &Pools, object: &Object<RewriteSpec>) -> bool {
    let twin = world.rewrites.get(&(object.key.clone(), Group::LlmD));
    twin.is_some_and(|twin| {
        let referred = pools.refer(world, &twin.key.namespace, &twin.spec.pool_ref);
        matches!(referred, Referred::Ours(_))
    })
}

/// Accepted, unless older rewrites have taken all that it matches.
fn judge(
    rewrite: &ModelRewrite,
    pool: &str,
    taken: &mut BTreeSet<(PoolName, Option<ModelName>)>,
) -> Condition {
    let Some(pool_name) = &rewrite.pool else { return Condition::accepted("") };
    let mut lost = Vec::new();
    let mut won = 0_usize;
    for rule in &rewrite.rules {
        let all = rule.matches.is_empty().then_some(None);
        for name in rule.matches.iter().map(Some).chain(all) {
            if taken.insert((pool_name.clone(), name.cloned())) {
                won += 1;
            } else {
                lost.push(name.map_or("everything", |name| name.as_str()).to_owned());
            }
        }
    }
    lost.sort();
    lost.dedup();
    match (won, lost.is_empty()) {
        (0, true) => Condition::refused("NoRules", "no rule has a target"),
        (_, true) => {
            Condition::accepted(format!("requests to the pool `{pool}` are rewritten by this"))
        }
        (0, false) => Condition::refused(
            "Conflicted",
            format!("rules before these have all that they match: {}", lost.join(", ")),
        ),
        (_, false) => Condition::accepted(format!(
            "requests to the pool `{pool}` are rewritten by this, save what rules before these have: {}",
            lost.join(", ")
        )),
    }
}

/// `None` for a rule without targets, which changes nothing.
fn rule(rule: &Rule) -> Option<RewriteRule> {
    let targets = targets(&rule.targets);
    if targets.is_empty() {
        return None;
    }
    let named = rule.matches.iter().map(|one| one.model.as_ref());
    // One match without a model matches everything, whatever stands beside it.
    let names: Option<BTreeSet<&str>> = named.map(|one| Some(one?.value.as_str())).collect();
    Some(RewriteRule {
        matches: names.unwrap_or_default().into_iter().map(ModelName::new).collect(),
        targets,
        sticky: Sticky::None,
        mirror: None,
        rollback: None,
    })
}

/// Without any weight all are alike; among weights, none is 0. A name that comes twice is one target.
fn targets(targets: &[Target]) -> Vec<RewriteTarget> {
    let has_weights = targets.iter().any(|target| target.weight > 0);
    let mut parts: Vec<RewriteTarget> = Vec::new();
    for target in targets {
        let weight = if has_weights { target.weight } else { 1 };
        match parts.iter_mut().find(|part| part.model.as_str() == target.model_rewrite) {
            Some(part) => part.weight = part.weight.saturating_add(weight),
            None => parts.push(RewriteTarget {
                model: ModelName::new(&target.model_rewrite),
                weight,
                stable: false,
            }),
        }
    }
    parts
}
