use std::collections::BTreeMap;

use proptest::prelude::{Just, Strategy, any, prop_oneof, proptest};
use proptest::{collection, sample};

use super::*;

fn labels(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

fn target(pool: &str, app: &str) -> Target {
    let selector =
        LabelSelector { match_labels: labels(&[("app", app)]), match_expressions: Vec::new() };
    Target { pool: PoolName::new(pool), selector, ports: vec![8000] }
}

fn pod(name: &str, app: &str, last: u8) -> PodView {
    PodView {
        name: name.into(),
        uid: format!("{name}-{last}").into(),
        labels: labels(&[("app", app), ("zone", "a")]),
        ip: Some(IpAddr::from([10, 1, 0, last])),
        is_ready: true,
        is_ending: false,
        active_ports: None,
    }
}

fn fleet(targets: Vec<Target>) -> Fleet {
    let mut fleet = Fleet::default();
    fleet.set_targets(targets);
    fleet
}

fn urls(fleet: &Fleet, pool: &str) -> Vec<String> {
    fleet.found()[&PoolName::new(pool)].iter().map(|one| one.endpoint.url.to_string()).collect()
}

#[test]
fn a_pod_joins_the_pools_whose_selector_it_matches() {
    let mut fleet = fleet(vec![target("chat", "llama"), target("code", "qwen")]);
    assert!(fleet.apply(pod("a", "llama", 1)));
    assert_eq!(urls(&fleet, "chat"), ["http://10.1.0.1:8000"]);
    assert!(urls(&fleet, "code").is_empty());
}

#[test]
fn a_selector_without_labels_is_asked_about_every_pod() {
    let everything = Target { selector: LabelSelector::default(), ..target("all", "") };
    let mut fleet = fleet(vec![everything]);
    assert!(fleet.apply(pod("a", "llama", 1)));
    assert_eq!(urls(&fleet, "all").len(), 1);
}

#[test]
fn a_pod_that_ends_leaves_before_it_is_gone() {
    let mut fleet = fleet(vec![target("chat", "llama")]);
    fleet.apply(pod("a", "llama", 1));
    assert!(fleet.apply(PodView { is_ending: true, ..pod("a", "llama", 1) }));
    assert!(urls(&fleet, "chat").is_empty());
    assert!(!fleet.remove("a"), "nobody notices that it is gone");
}

#[test]
fn a_pod_that_is_labelled_otherwise_changes_its_pool() {
    let mut fleet = fleet(vec![target("chat", "llama"), target("code", "qwen")]);
    fleet.apply(pod("a", "llama", 1));
    assert!(fleet.apply(pod("a", "qwen", 1)));
    assert!(urls(&fleet, "chat").is_empty());
    assert_eq!(urls(&fleet, "code").len(), 1);
}

#[test]
fn changes_that_no_endpoint_shows_are_no_news() {
    let mut fleet = fleet(vec![target("chat", "llama")]);
    assert!(fleet.apply(pod("a", "llama", 1)));
    assert!(!fleet.apply(pod("a", "llama", 1)));
    assert!(!fleet.apply(pod("b", "other", 2)), "a pod of nobody");
    assert!(!fleet.apply(PodView { is_ready: false, ..pod("c", "llama", 3) }), "not ready yet");
}

#[test]
fn another_pod_of_the_same_name_and_address_is_told_apart() {
    let mut fleet = fleet(vec![target("chat", "llama")]);
    fleet.apply(pod("a", "llama", 1));
    assert!(fleet.apply(PodView { uid: "other".into(), ..pod("a", "llama", 1) }));
}

#[test]
fn each_port_is_an_endpoint_unless_the_pod_says_otherwise() {
    let ranks = Target { ports: vec![8000, 8001], ..target("chat", "llama") };
    let mut fleet = fleet(vec![ranks]);
    fleet.apply(pod("a", "llama", 1));
    fleet.apply(PodView { active_ports: Some(vec![8001]), ..pod("b", "llama", 2) });
    let expected = ["http://10.1.0.1:8000", "http://10.1.0.1:8001", "http://10.1.0.2:8001"];
    assert_eq!(urls(&fleet, "chat"), expected);
}

#[test]
fn an_address_of_version_six_stands_in_brackets() {
    let mut fleet = fleet(vec![target("chat", "llama")]);
    fleet.apply(PodView { ip: Some("fd00::1".parse().unwrap()), ..pod("a", "llama", 1) });
    assert_eq!(urls(&fleet, "chat"), ["http://[fd00::1]:8000"]);
}

#[test]
fn a_pool_that_comes_later_finds_the_pods_that_are_there() {
    let mut fleet = fleet(vec![target("chat", "llama")]);
    fleet.apply(pod("a", "qwen", 1));
    assert!(fleet.set_targets(vec![target("chat", "llama"), target("code", "qwen")]));
    assert_eq!(urls(&fleet, "code").len(), 1);
    assert!(!fleet.set_targets(vec![target("chat", "llama"), target("code", "qwen")]));
}

#[derive(Clone, Debug)]
enum Change {
    Apply(PodView),
    Remove(String),
    Targets(usize),
    Replace(Vec<PodView>),
}

fn some_pod() -> impl Strategy<Value = PodView> {
    let name = sample::select(vec!["a", "b", "c"]);
    let app = sample::select(vec!["llama", "qwen", "other"]);
    (name, app, 1_u8..4, any::<bool>(), any::<bool>()).prop_map(
        |(name, app, last, is_ready, is_ending)| PodView {
            is_ready,
            is_ending,
            ..pod(name, app, last)
        },
    )
}

fn some_change() -> impl Strategy<Value = Change> {
    prop_oneof![
        some_pod().prop_map(Change::Apply),
        sample::select(vec!["a", "b", "c"]).prop_map(|name| Change::Remove(name.to_owned())),
        (0_usize..4).prop_map(Change::Targets),
        collection::vec(some_pod(), 0..3).prop_map(Change::Replace),
        Just(Change::Replace(Vec::new())),
    ]
}

/// The first `count` of three pools.
fn some_targets(count: usize) -> Vec<Target> {
    let everything = Target { selector: LabelSelector::default(), ..target("all", "") };
    [target("chat", "llama"), target("code", "qwen"), everything].into_iter().take(count).collect()
}

proptest! {
    /// Whatever happened before, the lists are those that the pods and targets of now make.
    #[test]
    fn the_order_of_events_does_not_matter(changes in collection::vec(some_change(), 0..24)) {
        let mut lived = Fleet::default();
        let mut pods: BTreeMap<String, PodView> = BTreeMap::new();
        let mut targets = 0;
        for change in changes {
            let before = lived.found();
            let is_news = match change {
                Change::Apply(pod) => {
                    pods.insert(pod.name.to_string(), pod.clone());
                    lived.apply(pod)
                }
                Change::Remove(name) => {
                    pods.remove(&name);
                    lived.remove(&name)
                }
                Change::Targets(count) => {
                    targets = count;
                    lived.set_targets(some_targets(count))
                }
                Change::Replace(all) => {
                    pods = all.iter().map(|pod| (pod.name.to_string(), pod.clone())).collect();
                    lived.replace(all)
                }
            };
            assert!(is_news || before == lived.found(), "a change that nobody was told of");
            let mut fresh = fleet(some_targets(targets));
            fresh.replace(pods.values().cloned());
            assert_eq!(lived.found(), fresh.found());
        }
    }
}
