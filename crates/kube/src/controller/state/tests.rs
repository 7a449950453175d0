use proptest::prelude::{Just, Strategy, proptest};
use serde_json::json;

use super::*;

const NOW: &str = "2026-01-01T00:00:00Z";

fn object(value: Value) -> DynamicObject {
    serde_json::from_value(value).unwrap()
}

fn gateway(group: ApiGroup, name: &str, generation: i64, app: &str) -> DynamicObject {
    let mut spec = json!({
        "schedulers": [{ "name": "chat", "modelName": "llama", "modelSelector": { "matchLabels": { "app": app } } }],
    });
    if group == ApiGroup::Aws {
        spec["tls"] = json!({});
        spec["bbr"] = json!({ "enabled": true });
    }
    object(json!({
        "apiVersion": group.api_version(),
        "kind": config::KIND,
        "metadata": {
            "name": name, "namespace": "serving", "uid": format!("uid-{name}"), "generation": generation,
            "resourceVersion": generation.to_string(),
        },
        "spec": spec,
    }))
}

fn deployment(name: &str, available: u64) -> DynamicObject {
    object(json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {
            "name": format!("{name}-gateway"), "namespace": "serving", "generation": 1, "resourceVersion": "7",
            "ownerReferences": [{
                "apiVersion": ApiGroup::Wicketgate.api_version(), "kind": config::KIND, "name": name,
                "uid": format!("uid-{name}"), "controller": true,
            }],
        },
        "spec": { "replicas": 2 },
        "status": {
            "observedGeneration": 1, "replicas": 2, "updatedReplicas": 2, "availableReplicas": available,
        },
    }))
}

fn pod(name: &str, app: &str, is_ready: bool) -> Pod {
    let ready = if is_ready { "True" } else { "False" };
    serde_json::from_value(json!({
        "metadata": { "name": name, "namespace": "serving", "uid": name, "labels": { "app": app } },
        "status": { "podIP": "10.1.0.1", "conditions": [{ "type": "Ready", "status": ready }] },
    }))
    .unwrap()
}

fn images() -> Images {
    Images { image: "wicketgate:test".into(), pull_policy: "IfNotPresent".into() }
}

fn sources() -> Vec<Source> {
    let groups = [ApiGroup::Wicketgate, ApiGroup::Aws].map(Source::Gateways);
    let owned = Kind::ALL.map(Source::Owned);
    groups.into_iter().chain(owned).chain([Source::Pods]).collect()
}

/// A state that knows that there is nothing.
fn state() -> State {
    let mut state = State::new(images(), sources());
    for group in [ApiGroup::Wicketgate, ApiGroup::Aws] {
        state.take(News::Gateway(group, Event::Init));
        state.take(News::Gateway(group, Event::InitDone));
    }
    for kind in Kind::ALL {
        state.take(News::Owned(kind, Event::Init));
        state.take(News::Owned(kind, Event::InitDone));
    }
    state.take(News::Pod(Event::Init));
    state.take(News::Pod(Event::InitDone));
    assert!(state.is_complete());
    state
}

fn key(group: ApiGroup, name: &str) -> Key {
    Key { group, namespace: "serving".into(), name: name.into() }
}

fn ours(name: &str) -> Key {
    key(ApiGroup::Wicketgate, name)
}

/// What each object goes through; its own order is kept, that among objects is not.
fn stories() -> Vec<Vec<fn() -> News>> {
    use ApiGroup::{Aws, Wicketgate};
    vec![
        vec![
            || News::Gateway(Wicketgate, Event::Apply(gateway(Wicketgate, "a", 1, "qwen"))),
            || News::Gateway(Wicketgate, Event::Apply(gateway(Wicketgate, "a", 2, "llama"))),
        ],
        vec![
            || News::Gateway(Wicketgate, Event::Apply(gateway(Wicketgate, "gone", 1, "llama"))),
            || News::Gateway(Wicketgate, Event::Delete(gateway(Wicketgate, "gone", 1, "llama"))),
        ],
        vec![|| News::Gateway(Aws, Event::Apply(gateway(Aws, "a", 1, "llama")))],
        vec![|| News::Gateway(Aws, Event::Apply(gateway(Aws, "b", 1, "qwen")))],
        vec![|| News::Owned(Kind::Deployment, Event::Apply(deployment("a", 0))), || {
            News::Owned(Kind::Deployment, Event::Apply(deployment("a", 2)))
        }],
        vec![|| News::Pod(Event::Apply(pod("one", "qwen", true))), || {
            News::Pod(Event::Apply(pod("one", "llama", true)))
        }],
        vec![|| News::Pod(Event::Apply(pod("two", "llama", false))), || {
            News::Pod(Event::Apply(pod("two", "qwen", true)))
        }],
        vec![|| News::Pod(Event::Apply(pod("three", "llama", true))), || {
            News::Pod(Event::Delete(pod("three", "llama", true)))
        }],
    ]
}

/// Tells the stories in the order in which their numbers come.
fn told(order: &[usize]) -> State {
    let mut state = state();
    let mut at = vec![0; stories().len()];
    for story in order {
        let event = stories()[*story][at[*story]];
        at[*story] += 1;
        for (key, _) in state.take(event()) {
            // Whatever is looked at in between must not stick.
            state.plan_status(&key, NOW);
        }
    }
    state
}

fn end(state: &mut State) -> Vec<(Key, Vec<Write>, Option<StatusPlan>)> {
    let mut keys: Vec<Key> = state.gateways.keys().cloned().collect();
    keys.sort();
    keys.into_iter()
        .map(|key| {
            let (objects, status) = (state.plan_objects(&key), state.plan_status(&key, NOW));
            (key, objects, status)
        })
        .collect()
}

fn orders() -> impl Strategy<Value = Vec<usize>> {
    let all: Vec<usize> =
        stories().iter().enumerate().flat_map(|(at, story)| vec![at; story.len()]).collect();
    Just(all).prop_shuffle()
}

proptest! {
    #[test]
    fn the_order_of_news_does_not_matter(order in orders()) {
        let mut sorted = order.clone();
        sorted.sort_unstable();
        assert_eq!(end(&mut told(&order)), end(&mut told(&sorted)));
    }
}

#[test]
fn the_end_of_these_stories_is_as_it_should_be() {
    let mut order: Vec<usize> =
        stories().iter().enumerate().flat_map(|(at, story)| vec![at; story.len()]).collect();
    order.sort_unstable();
    let end = end(&mut told(&order));
    let names: Vec<_> = end.iter().map(|(key, writes, _)| (&*key.name, writes.len())).collect();
    // AWS's `a` has to make room for ours; what is in the cluster already was not written by this process.
    assert_eq!(names, [("a", 6), ("a", 0), ("b", 6)]);
    let status = &end[0].2.as_ref().unwrap().status;
    assert_eq!((&status["readyEndpoints"], &status["observedGeneration"]), (&json!(1), &json!(2)));
}

/// What the server would answer.
fn answer(state: &mut State, key: &Key, version: &str) {
    let applied = state.plan_objects(key).into_iter().map(|write| {
        let mut object = object(write.object);
        object.metadata.resource_version = Some(version.to_owned());
        Applied { kind: write.kind, fingerprint: write.fingerprint, object }
    });
    let applied = applied.collect();
    state.note_applied(key, applied, None);
}

#[test]
fn what_was_written_is_not_written_again_and_what_somebody_changed_is() {
    let mut state = state();
    let group = ApiGroup::Wicketgate;
    state.take(News::Gateway(group, Event::Apply(gateway(group, "a", 1, "llama"))));
    let key = ours("a");
    assert_eq!(state.plan_objects(&key).len(), 6);
    let role = state.plan_objects(&key)[1].object.clone();
    answer(&mut state, &key, "10");
    assert!(state.plan_objects(&key).is_empty());
    let seen = |version: &str| {
        let mut role = object(role.clone());
        role.metadata.resource_version = Some(version.to_owned());
        News::Owned(Kind::Role, Event::Apply(role))
    };
    assert_eq!(state.take(seen("10")), [(key.clone(), Extent::Status)], "the echo of our own");
    assert!(state.plan_objects(&key).is_empty());
    assert_eq!(state.take(seen("11")), [(key.clone(), Extent::Whole)]);
    let again: Vec<_> = state.plan_objects(&key).iter().map(|write| write.kind).collect();
    assert_eq!(again, [Kind::Role]);
    answer(&mut state, &key, "12");
    let mut gone = object(role);
    gone.metadata.resource_version = Some("13".to_owned());
    state.take(News::Owned(Kind::Role, Event::Delete(gone)));
    let again: Vec<_> = state.plan_objects(&key).iter().map(|write| write.kind).collect();
    assert_eq!(again, [Kind::Role]);
}

#[test]
fn a_status_that_says_it_already_is_not_written() {
    let mut state = state();
    let group = ApiGroup::Wicketgate;
    let mut resource = gateway(group, "a", 1, "llama");
    state.take(News::Gateway(group, Event::Apply(resource.clone())));
    let plan = state.plan_status(&ours("a"), NOW).unwrap();
    resource.data["status"] = plan.status;
    // Somebody else's part of it.
    resource.data["status"]["tls"] = json!({ "acmArn": "arn" });
    resource.metadata.resource_version = Some("5".to_owned());
    state.note_status(&ours("a"), &resource);
    assert_eq!(state.plan_status(&ours("a"), "2026-01-02T00:00:00Z"), None);
    state.take(News::Pod(Event::Apply(pod("other", "mistral", true))));
    assert_eq!(state.plan_status(&ours("a"), NOW), None, "a pod of nobody's");
    assert_eq!(
        state.take(News::Pod(Event::Apply(pod("one", "llama", true)))),
        [(ours("a"), Extent::Status)]
    );
    assert!(state.plan_status(&ours("a"), NOW).is_some());
    // An echo of a write before ours must not make us write again.
    let mut early = gateway(group, "a", 1, "llama");
    early.metadata.resource_version = Some("4".to_owned());
    state.take(News::Pod(Event::Delete(pod("one", "llama", true))));
    state.take(News::Gateway(group, Event::Apply(early)));
    assert_eq!(state.plan_status(&ours("a"), NOW), None);
}

#[test]
fn a_broken_change_leaves_the_objects_alone_and_is_told() {
    let mut state = state();
    let group = ApiGroup::Wicketgate;
    state.take(News::Gateway(group, Event::Apply(gateway(group, "a", 1, "llama"))));
    answer(&mut state, &ours("a"), "10");
    let mut broken = gateway(group, "a", 2, "llama");
    broken.data["spec"]["schedulers"][0]["loraAdapters"] = json!(["llama"]);
    state.take(News::Gateway(group, Event::Apply(broken)));
    assert!(state.plan_objects(&ours("a")).is_empty());
    let status = state.plan_status(&ours("a"), NOW).unwrap().status;
    assert_eq!(status["conditions"][0]["reason"], "InvalidLoraAdapters");
}

#[test]
fn a_new_resource_of_an_old_name_gets_objects_of_its_own() {
    let mut state = state();
    let group = ApiGroup::Wicketgate;
    state.take(News::Gateway(group, Event::Apply(gateway(group, "a", 1, "llama"))));
    answer(&mut state, &ours("a"), "10");
    let mut second = gateway(group, "a", 1, "llama");
    second.metadata.uid = Some("another".to_owned());
    state.take(News::Gateway(group, Event::Apply(second)));
    let writes = state.plan_objects(&ours("a"));
    assert_eq!(writes.len(), 6);
    assert!(writes.iter().all(|write| !write.is_known), "those of the first may still be there");
}

#[test]
fn nothing_is_concluded_from_half_of_what_there_is() {
    let mut state = State::new(images(), sources());
    for group in [ApiGroup::Wicketgate, ApiGroup::Aws] {
        state.take(News::Gateway(group, Event::InitDone));
    }
    assert!(!state.is_complete());
}

#[test]
fn what_a_later_list_no_longer_has_is_gone() {
    let mut state = state();
    let group = ApiGroup::Wicketgate;
    state.take(News::Gateway(group, Event::Apply(gateway(group, "a", 1, "llama"))));
    state.plan_status(&ours("a"), NOW);
    state.take(News::Pod(Event::Apply(pod("one", "llama", true))));
    state.take(News::Pod(Event::Init));
    assert_eq!(state.take(News::Pod(Event::InitDone)), [(ours("a"), Extent::Status)]);
    state.take(News::Gateway(group, Event::Init));
    state.take(News::Gateway(group, Event::InitDone));
    assert_eq!(state.sizes(), (0, 0));
}
