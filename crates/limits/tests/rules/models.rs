//! Requests whose clients ask for another name than they get.

use types::{ModelName, Priority, TenantName};
use wicketgate_limits::{Cost, Factor, Match, Override, Permit, Rule, Subject};

use crate::desk::{Desk, per_minute};

/// The first rule's buckets once a client asked for `asked` and got `served`.
fn buckets(desk: &Desk, asked: Option<&str>, served: &str) -> Vec<(Option<ModelName>, u64)> {
    let tenant = TenantName::new("ana");
    let (asked, served) = (asked.map(ModelName::new), ModelName::new(served));
    let head = Subject {
        tenant: &tenant,
        key: None,
        model: None,
        asked_model: None,
        route: "/v1/completions",
        priority: Priority::STANDARD,
    };
    let subject = Subject { model: Some(&served), asked_model: asked.as_ref(), ..head };
    let mut permit = Permit::default();
    let cost = Cost::default();
    desk.limiter.arrive(&mut permit, &head, desk.moment, |_| {}).unwrap();
    desk.limiter.reserve(&mut permit, &subject, cost, desk.moment, |_| {}).unwrap();
    let views = desk.limiter.fullest(0, 9, desk.moment);
    views.into_iter().map(|view| (view.name.model, view.meters[0].limit)).collect()
}

fn rule(models: &[&str], is_per_model: bool) -> Rule {
    let mut rule = Rule { requests: per_minute(10), ..Rule::new("r") };
    rule.per.model = is_per_model;
    rule.matches = named(models);
    rule
}

fn named(models: &[&str]) -> Match {
    Match { models: models.iter().map(|name| (*name).into()).collect(), ..Match::default() }
}

#[test]
fn a_rule_is_for_the_name_that_clients_ask_for_and_for_the_one_that_they_get() {
    for (models, fits) in [(&["chat"][..], 1), (&["llama-v2"], 1), (&["llama-v1"], 0)] {
        let desk = Desk::new(vec![rule(models, false)]);
        assert_eq!(buckets(&desk, Some("chat"), "llama-v2").len(), fits, "{models:?}");
    }
}

#[test]
fn both_names_in_one_rule_count_a_request_once() {
    let desk = Desk::new(vec![rule(&["chat", "llama-v2"], false)]);
    buckets(&desk, Some("chat"), "llama-v2");
    let views = desk.limiter.fullest(0, 9, desk.moment);
    assert_eq!((views.len(), views[0].meters[0].remaining), (1, 9));
}

#[test]
fn a_bucket_for_each_model_bears_the_name_that_clients_ask_for() {
    let desk = Desk::new(vec![rule(&[], true)]);
    let named = |name: &str| (Some(ModelName::new(name)), 10);
    assert_eq!(buckets(&desk, Some("chat"), "llama-v1"), [named("chat")]);
    assert_eq!(buckets(&desk, Some("chat"), "llama-v2"), [named("chat")], "a split shares it");
    let desk = Desk::new(vec![rule(&["llama-v2"], true)]);
    assert_eq!(buckets(&desk, Some("chat"), "llama-v2"), [named("llama-v2")], "the rule names it");
}

#[test]
fn an_override_is_for_the_name_that_the_bucket_bears() {
    let mut rule = rule(&[], true);
    let factor = Factor::new(3.0).unwrap();
    rule.overrides = vec![Override { matches: named(&["chat"]), factor }];
    let desk = Desk::new(vec![rule]);
    assert_eq!(buckets(&desk, Some("chat"), "llama-v1"), [(Some(ModelName::new("chat")), 30)]);
}
