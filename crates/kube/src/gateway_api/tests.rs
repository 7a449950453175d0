mod gateways;

use config::{Additions, AppProtocol};
use kube::core::DynamicObject;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::conditions::{Says, StatusPatch};
use super::kind::{Group, Kind};
use super::object::Key;
use super::pools::Pools;
use super::resolve::resolve as resolve_served;
use super::served::Served;
use super::world::World;

const LLM_D: Kind = Kind::Objective(Group::LlmD);
const LEGACY: Kind = Kind::Objective(Group::Legacy);
const REWRITE: Kind = Kind::Rewrite(Group::LlmD);

/// An object of the namespace `models`, made at this second.
fn object(name: &str, created: i64, spec: Value) -> DynamicObject {
    let time = format!("2026-11-30T10:00:{created:02}Z");
    serde_json::from_value(json!({
        "metadata": { "namespace": "models", "name": name, "generation": 1, "creationTimestamp": time },
        "spec": spec,
    }))
    .unwrap()
}

fn pool(name: &str, ports: &[u16]) -> (Kind, DynamicObject) {
    let ports: Vec<_> = ports.iter().map(|number| json!({ "number": number })).collect();
    let spec = json!({ "selector": { "matchLabels": { "app": name } }, "targetPorts": ports });
    (Kind::Pool, object(name, 0, spec))
}

fn objective(kind: Kind, name: &str, pool: &str, priority: i32) -> (Kind, DynamicObject) {
    (kind, object(name, 0, json!({ "priority": priority, "poolRef": { "name": pool } })))
}

/// * `rules`: the name that is matched, empty for all, and the targets with their weights.
fn rewrite(
    name: &str,
    created: i64,
    pool: &str,
    rules: &[(&str, &[(&str, u32)])],
) -> (Kind, DynamicObject) {
    let rules: Vec<_> = rules
        .iter()
        .map(|(model, targets)| {
            let targets: Vec<_> = targets
                .iter()
                .map(|(model, weight)| match weight {
                    0 => json!({ "modelRewrite": model }),
                    weight => json!({ "modelRewrite": model, "weight": weight }),
                })
                .collect();
            match *model {
                "" => json!({ "targets": targets }),
                model => {
                    json!({ "matches": [{ "model": { "value": model } }], "targets": targets })
                }
            }
        })
        .collect();
    (REWRITE, object(name, created, json!({ "poolRef": { "name": pool }, "rules": rules })))
}

fn world(objects: impl IntoIterator<Item = (Kind, DynamicObject)>) -> World {
    let mut world = World::default();
    for (kind, object) in objects {
        world.put(kind, object);
    }
    world
}

/// Pools of `models`, for a gateway at home there.
fn pools(names: &[&str]) -> Pools {
    Pools::new(names.iter().map(|name| name.parse().unwrap()).collect(), "models")
}

fn resolve(world: &World, pools: &Pools) -> super::resolve::Resolved {
    resolve_served(world, &Served::Pools(pools.clone()))
}

fn additions(objects: Vec<(Kind, DynamicObject)>, of: &[&str]) -> Additions {
    resolve(&world(objects), &pools(of)).additions
}

/// `Accepted` as `reason: message` for each resource that is told something.
fn told(objects: Vec<(Kind, DynamicObject)>, of: &[&str]) -> Vec<(Kind, String, String)> {
    let statuses = resolve(&world(objects), &pools(of)).statuses;
    let line = |patch: StatusPatch| {
        let Says::Conditions(conditions) = patch.says else { panic!("no conditions") };
        let [condition] = conditions.try_into().unwrap();
        assert_eq!(condition.is_true, condition.reason == "Accepted");
        (patch.kind, patch.key.name, format!("{}: {}", condition.reason, condition.message))
    };
    statuses.into_iter().map(line).collect()
}

/// Rules as `matches => target=weight …`, in order.
fn rules(additions: &Additions) -> Vec<String> {
    let rules = additions.model_rewrites.iter().flat_map(|rewrite| &rewrite.rules);
    let text = |rule: &config::RewriteRule| {
        let matches: Vec<_> = rule.matches.iter().map(|name| name.as_str()).collect();
        let targets: Vec<_> =
            rule.targets.iter().map(|one| format!("{}={}", one.model, one.weight)).collect();
        format!("{} => {}", matches.join(","), targets.join(" "))
    };
    rules.map(text).collect()
}

#[test]
fn a_pool_becomes_a_scheduler_of_its_pods_on_all_ports() {
    let mut chat = pool("chat", &[8000, 8001, 8002]);
    chat.1.data["spec"]["appProtocol"] = json!("kubernetes.io/h2c");
    let additions = additions(vec![chat, pool("other", &[1])], &["chat"]);
    let [scheduler] = additions.schedulers.try_into().unwrap();
    assert_eq!(scheduler.name.as_str(), "chat");
    assert_eq!((scheduler.target_port, scheduler.further_ports), (8000, vec![8001, 8002]));
    assert_eq!(scheduler.app_protocol, AppProtocol::H2c);
    assert_eq!(scheduler.namespace.as_deref(), Some("models"));
    let labels = scheduler.model_selector.unwrap().match_labels;
    assert_eq!(labels.into_iter().collect::<Vec<_>>(), [("app".to_owned(), "chat".to_owned())]);
    assert!(scheduler.learns_models, "a pool does not say which model it serves");
    assert!(additions.catches_all);
}

#[test]
fn a_pool_that_is_not_there_yet_adds_nothing_and_several_pools_catch_nothing() {
    let additions = additions(vec![pool("chat", &[1])], &["chat", "code"]);
    assert_eq!(additions.schedulers.len(), 1);
    assert!(!additions.catches_all);
}

#[test]
fn a_pool_of_another_namespace_is_called_by_both_names() {
    let far = Pools::new(vec!["models/chat".parse().unwrap(), "chat".parse().unwrap()], "web");
    let schedulers = resolve(&world([pool("chat", &[1])]), &far).additions.schedulers;
    let names: Vec<_> = schedulers.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(names, ["models/chat"], "web/chat is not there");
}

#[test]
fn objectives_of_the_pool_hold_and_those_of_others_are_left_alone() {
    let objects = vec![
        pool("chat", &[1]),
        pool("code", &[1]),
        objective(LLM_D, "fast", "chat", 100),
        objective(LEGACY, "batch", "chat", -10),
        objective(LLM_D, "elsewhere", "code", 1),
    ];
    let held = additions(objects.clone(), &["chat"]).objectives;
    let held: Vec<_> = held
        .iter()
        .map(|one| (one.name.as_str(), one.priority.0, one.scheduler.as_ref().unwrap().as_str()))
        .collect();
    assert_eq!(held, [("batch", -10, "chat"), ("fast", 100, "chat")]);
    let names: Vec<_> = told(objects, &["chat"]).into_iter().map(|(_, name, _)| name).collect();
    assert_eq!(names, ["batch", "fast"]);
}

#[test]
fn an_objective_in_both_groups_holds_as_the_newer_says_and_the_older_is_told() {
    let objects = vec![
        pool("chat", &[1]),
        objective(LEGACY, "fast", "chat", 1),
        objective(LLM_D, "fast", "chat", 100),
    ];
    let held = additions(objects.clone(), &["chat"]).objectives;
    assert_eq!(held.iter().map(|one| one.priority.0).collect::<Vec<_>>(), [100]);
    let told = told(objects, &["chat"]);
    assert!(told[0].2.starts_with("Accepted: "), "{told:?}");
    assert_eq!(told[1].0, LEGACY);
    assert_eq!(
        told[1].2,
        "Conflicted: an objective of the same name in group `llm-d.ai` goes first; delete one of the two"
    );
}

#[test]
fn who_names_no_pool_is_told_why_it_has_no_effect() {
    let mut service = objective(LLM_D, "b", "chat", 1);
    service.1.data["spec"]["poolRef"]["kind"] = json!("Service");
    let objects = vec![
        objective(LLM_D, "a", "chat", 1),
        service,
        rewrite("c", 0, "chat", &[("x", &[("y", 0)])]),
    ];
    assert_eq!(additions(objects.clone(), &["chat"]).objectives, []);
    let told: Vec<_> = told(objects, &["chat"]).into_iter().map(|(_, _, text)| text).collect();
    assert_eq!(
        told,
        [
            "PoolNotFound: there is no InferencePool `chat` in this namespace",
            "InvalidPoolRef: `poolRef` names a Service of group `inference.networking.k8s.io`: only InferencePool of `inference.networking.k8s.io` is served",
            "PoolNotFound: there is no InferencePool `chat` in this namespace",
        ]
    );
}

#[test]
fn weights_are_read_as_the_specification_says() {
    let rewrite = |targets| {
        let objects = vec![pool("chat", &[1]), rewrite("r", 0, "chat", &[("alias", targets)])];
        rules(&additions(objects, &["chat"]))
    };
    assert_eq!(rewrite(&[("a", 70), ("b", 30)]), ["alias => a=70 b=30"]);
    assert_eq!(rewrite(&[("a", 0), ("b", 0)]), ["alias => a=1 b=1"], "none: all alike");
    assert_eq!(rewrite(&[("a", 9), ("b", 0)]), ["alias => a=9 b=0"], "among weights: never");
    assert_eq!(rewrite(&[("a", 2), ("a", 3)]), ["alias => a=5"], "one model is one target");
    assert!(rewrite(&[]).is_empty(), "no target: no rule");
}

#[test]
fn the_oldest_rewrite_goes_first_and_the_others_are_told_what_they_lost() {
    let objects = vec![
        pool("chat", &[1]),
        rewrite("a", 9, "chat", &[("x", &[("late", 0)])]),
        rewrite("b", 1, "chat", &[("x", &[("early", 0)])]),
        rewrite("c", 9, "chat", &[("x", &[("late", 0)]), ("", &[("all", 0)])]),
    ];
    assert_eq!(
        rules(&additions(objects.clone(), &["chat"])),
        ["x => early=1", "x => late=1", "x => late=1", " => all=1"]
    );
    let told: Vec<_> = told(objects, &["chat"]).into_iter().map(|(_, _, text)| text).collect();
    assert_eq!(
        told,
        [
            "Conflicted: rules before these have all that they match: x",
            "Accepted: requests to the pool `chat` are rewritten by this",
            "Accepted: requests to the pool `chat` are rewritten by this, save what rules before these have: x",
        ]
    );
}

#[test]
fn one_match_without_a_model_matches_everything() {
    let mut all = rewrite("r", 0, "chat", &[("alias", &[("a", 0)])]);
    all.1.data["spec"]["rules"][0]["matches"] =
        json!([{ "model": { "value": "alias" } }, { "model": null }]);
    assert_eq!(rules(&additions(vec![pool("chat", &[1]), all], &["chat"])), [" => a=1"]);
}

#[test]
fn what_cannot_be_read_is_left_out_and_takes_the_place_of_what_could() {
    let mut world = world([pool("chat", &[1])]);
    let broken = object("chat", 0, json!({ "selector": 5 }));
    assert!(world.put(Kind::Pool, broken.clone()), "the pool is gone");
    assert!(!world.put(Kind::Pool, broken));
    assert!(world.pools.is_empty());
}

#[test]
fn a_list_takes_away_only_what_is_of_its_kind_and_namespace() {
    let mut far = pool("far", &[1]);
    far.1.metadata.namespace = Some("web".to_owned());
    let mut world = world([
        pool("a", &[1]),
        pool("b", &[1]),
        far,
        objective(LLM_D, "o", "a", 1),
        objective(LEGACY, "o", "a", 1),
    ]);
    let b = pool("b", &[1]).1;
    assert!(world.replace(Kind::Pool, "models", vec![b.clone()]));
    assert!(!world.replace(Kind::Pool, "models", vec![b]), "the same again");
    let left: Vec<_> = world.pools.keys().map(Key::to_string).collect();
    assert_eq!(left, ["models/b", "web/far"]);
    assert!(world.replace(LEGACY, "models", Vec::new()));
    assert_eq!(world.objectives.len(), 1, "that of the other group stays");
}

fn everything() -> Vec<(Kind, DynamicObject)> {
    vec![
        pool("chat", &[8000, 8001]),
        pool("code", &[8000]),
        objective(LLM_D, "fast", "chat", 100),
        objective(LEGACY, "fast", "chat", 1),
        objective(LEGACY, "batch", "code", -10),
        objective(LLM_D, "lost", "gone", 5),
        rewrite("a", 5, "chat", &[("x", &[("late", 0)])]),
        rewrite("b", 1, "chat", &[("x", &[("early", 1), ("second", 2)])]),
        rewrite("c", 5, "code", &[("", &[("all", 0)])]),
        rewrite("d", 5, "gone", &[("y", &[("z", 0)])]),
    ]
}

proptest! {
    #[test]
    fn the_order_of_events_does_not_matter(
        events in Just(everything()).prop_shuffle(),
        repeated in 0_usize..10,
        removed in 0_usize..10,
    ) {
        let names = ["chat", "code", "gone"];
        let all = everything();
        let (gone_kind, gone) = all[removed].clone();
        let gone_key = Key::of(&gone).unwrap();
        // Everything in another order, one of it twice, one of it gone again at the end.
        let mut shuffled = world(events.clone());
        let (kind, again) = events[repeated].clone();
        prop_assert!(!shuffled.put(kind, again), "nothing new");
        prop_assert_eq!(resolve(&shuffled, &pools(&names)), resolve(&world(all.clone()), &pools(&names)));
        shuffled.remove(gone_kind, &gone_key);
        let rest = all.into_iter().enumerate().filter(|(at, _)| *at != removed).map(|(_, one)| one);
        prop_assert_eq!(resolve(&shuffled, &pools(&names)), resolve(&world(rest), &pools(&names)));
    }
}
