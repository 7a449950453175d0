use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use super::*;
use crate::testing::{at, body, document, exchange_at, exchange_in, gateway, in_flight, served};
use crate::{Ending, Exchange, Gateway, Verdict};

const POOLS: &str = "  schedulers:
  - { name: one, modelName: v1, loraAdapters: [v1-ft], endpoints: [{ url: 'http://10.0.0.1:8000' }] }
  - { name: two, modelName: v2, endpoints: [{ url: 'http://10.0.0.2:8000' }] }
";

/// Two pools of models `v1` (with the adapter `v1-ft`) and `v2`, and these rewrites.
fn with(rewrites: &str) -> Arc<Gateway> {
    gateway(&spec(rewrites))
}

fn spec(rewrites: &str) -> String {
    format!("{POOLS}  modelRewrites:\n{rewrites}")
}

fn split(of: &str, more: &str) -> String {
    format!(
        "  - {{ name: split, rules: [{{ matches: [{{ model: {{ value: {of} }} }}], {more} targets: \
         [{{ modelRewrite: v1, weight: 90 }}, {{ modelRewrite: v2, weight: 10 }}] }}] }}\n"
    )
}

fn placed(gateway: &Arc<Gateway>, model: &str) -> Exchange {
    let mut exchange = exchange_at(gateway, at(0));
    exchange.place(&body(model), None, at(0)).unwrap();
    exchange
}

/// Pool and name that a request for `model` goes to.
fn goes(gateway: &Arc<Gateway>, model: &str) -> (String, String) {
    let exchange = placed(gateway, model);
    let target = exchange.target().unwrap();
    let name = exchange.wire_model().unwrap_or(model);
    (target.pool.name.as_str().to_owned(), name.to_owned())
}

fn names(pair: (&str, &str)) -> (String, String) {
    (pair.0.to_owned(), pair.1.to_owned())
}

#[test]
fn ten_thousand_requests_at_ninety_to_ten_are_within_one_percent() {
    let gateway = with(&split("chat", ""));
    let canary = (0..10_000).filter(|_| goes(&gateway, "chat").0 == "two").count();
    assert!(canary.abs_diff(1000) <= 10, "{canary}");
    let page = gateway.metrics.encode();
    let line = format!(
        "wicketgate_rewrite_decisions_total{{rewrite=\"split\",model=\"chat\",target=\"v2\"}} {canary}\n"
    );
    assert!(page.contains(&line), "{page}");
}

#[test]
fn exact_goes_before_all_then_the_document_then_the_list() {
    let rewrites = "  - { name: all, rules: [{ targets: [{ modelRewrite: v1 }] }] }
  - name: some
    rules:
    - { matches: [{ model: { value: a } }], targets: [{ modelRewrite: v2 }] }
    - { matches: [{ model: { value: a } }, { model: { value: b } }], targets: [{ modelRewrite: v1-ft }] }
  - { name: late, rules: [{ matches: [{ model: { value: b } }], targets: [{ modelRewrite: v2 }] }] }
";
    let gateway = with(rewrites);
    assert_eq!(goes(&gateway, "a"), names(("two", "v2")));
    assert_eq!(goes(&gateway, "b"), names(("one", "v1-ft")));
    for any in ["v2", "unknown"] {
        assert_eq!(goes(&gateway, any), names(("one", "v1")));
    }
}

#[test]
fn a_rewrite_of_one_pool_leaves_the_others_requests_alone() {
    let rewrites = "  - { name: one-only, poolRef: { name: one }, rules: [{ targets: [{ modelRewrite: v1-ft }] },
      { matches: [{ model: { value: v2 } }, { model: { value: alias } }], targets: [{ modelRewrite: v1 }] }] }
";
    let gateway = with(rewrites);
    assert_eq!(goes(&gateway, "v1"), names(("one", "v1-ft")));
    assert_eq!(goes(&gateway, "v2"), names(("two", "v2")));
    assert_eq!(goes(&gateway, "alias"), names(("one", "v1")), "nobody's name is everybody's");
    let mut unknown = exchange_at(&gateway, at(0));
    assert_eq!(unknown.place(&body("unknown"), None, at(0)).unwrap_err().status, 404);
}

#[test]
fn rewrites_do_not_chain() {
    let rewrites = "  - { name: swap, rules: [{ matches: [{ model: { value: v1 } }], targets: [{ modelRewrite: v2 }] },
      { matches: [{ model: { value: v2 } }], targets: [{ modelRewrite: v1 }] }] }
";
    let gateway = with(rewrites);
    assert_eq!(goes(&gateway, "v1"), names(("two", "v2")));
    assert_eq!(goes(&gateway, "v2"), names(("one", "v1")));
}

#[test]
fn the_endpoint_gets_its_name_and_the_client_its_own_back() {
    let gateway = with(
        "  - { name: r, rules: [{ matches: [{ model: { value: chat } }], targets: [{ modelRewrite: v1-ft }] }] }\n",
    );
    let exchange = placed(&gateway, "chat");
    let sent = exchange.body_for_endpoint(&body("chat")).unwrap();
    assert_eq!(&sent[..], &body("v1-ft")[..]);
    assert!(exchange.target().unwrap().adapter.is_some());
    let mut rename = exchange.rename().unwrap();
    let answer = rename.push(&Bytes::from_static(b"{\"model\":\"v1-ft\"}"));
    assert_eq!(&answer[..], b"{\"model\":\"chat\"}");
}

#[test]
fn a_target_that_is_the_clients_own_name_changes_no_byte() {
    let gateway = with(
        "  - { name: r, rules: [{ matches: [{ model: { value: v1 } }], targets: [{ modelRewrite: v1 }] }] }\n",
    );
    let exchange = placed(&gateway, "v1");
    assert!(exchange.body_for_endpoint(&body("v1")).is_none() && exchange.rename().is_none());
}

#[test]
fn a_model_that_the_proxy_forces_has_no_rule() {
    let gateway = with(&split("v1", ""));
    for _ in 0..50 {
        let mut exchange = exchange_at(&gateway, at(0));
        exchange.keep_model();
        exchange.place(&body("v1"), None, at(0)).unwrap();
        assert_eq!(exchange.target().unwrap().pool.name.as_str(), "one");
    }
}

#[test]
fn the_share_of_a_target_that_nobody_serves_goes_to_the_others() {
    let rewrites = "  - { name: r, rules: [{ matches: [{ model: { value: a } }], targets: [{ modelRewrite: v1 }, { modelRewrite: later }] },
      { matches: [{ model: { value: b } }], targets: [{ modelRewrite: later }] }] }
";
    let gateway = with(rewrites);
    assert!((0..50).all(|_| goes(&gateway, "a").1 == "v1"));
    let refusal = exchange_at(&gateway, at(0)).place(&body("b"), None, at(0)).unwrap_err();
    assert_eq!((refusal.status, refusal.code), (503, "no_endpoints"));
    assert!(refusal.retry_after.is_some());
    // An endpoint tells that it has it now.
    let address = gateway.members()[0].endpoint.address.clone();
    gateway.note_served(&address, vec![served("v1", None), served("later", Some("v1"))]);
    assert_eq!(goes(&gateway, "b"), names(("one", "later")));
    let later = (0..100).filter(|_| goes(&gateway, "a").1 == "later").count();
    assert!(later.abs_diff(50) <= 4, "{later}");
}

#[test]
fn names_of_rules_are_listed_once_and_suggested() {
    let gateway =
        with(&format!("{}{}", split("chat", ""), split("v1", "").replace("split", "two")));
    let catalog = gateway.catalog();
    let listed: Vec<_> = catalog.cards.keys().map(ModelName::as_str).collect();
    assert_eq!(listed, ["chat", "v1", "v1-ft", "v2"]);
    assert_eq!(catalog.base_of("chat").unwrap().as_str(), "v1");
    assert_eq!(catalog.near("chatt"), ["chat"]);
    assert!(catalog.has_aliases());
}

#[test]
fn a_session_keeps_its_target_and_others_are_split_exactly() {
    let gateway = with(&split("chat", "sticky: session,"));
    let target = |session: Option<u64>| {
        let mut exchange = exchange_in(&gateway, session);
        exchange.place(&body("chat"), None, at(0)).unwrap();
        exchange.target().unwrap().pool.name.as_str().to_owned()
    };
    let mut canary = 0;
    for session in 0..500 {
        let first = target(Some(session));
        assert!((0..3).all(|_| target(Some(session)) == first));
        canary += usize::from(first == "two");
    }
    assert!(canary.abs_diff(50) < 30, "{canary}");
    let without = (0..500).filter(|_| target(None) == "two").count();
    assert!(without.abs_diff(50) <= 4, "{without}");
}

#[test]
fn a_user_is_the_bodys_else_whoever_is_authenticated() {
    let gateway = with(&split("chat", "sticky: user,"));
    let rule = gateway.catalog().rewrites.rules[0].clone();
    let anybody = Caller::anonymous();
    let somebody = Caller { credential: Some("key-1".into()), ..(*anybody).clone() };
    let key = |user: Option<&'static [u8]>, caller: &Caller| {
        rule.key(Keys { session: Some(1), user, caller })
    };
    assert_eq!(key(None, &anybody), None);
    assert!(key(Some(b"u1"), &anybody).is_some() && key(None, &somebody).is_some());
    assert_ne!(key(Some(b"u1"), &anybody), key(Some(b"u2"), &anybody));
    assert_eq!(key(Some(b"u1"), &somebody), key(Some(b"u1"), &somebody));
}

const GUARDED: &str = "rollback: { minRequests: 20, window: 10s, errorRate: 0.1 }, sticky: none,";

/// Answers requests with 500 on the canary and 200 on the stable side, until time is over.
fn fail_canary(gateway: &Arc<Gateway>) {
    for n in 0..1500_u64 {
        let now = at(0) + Duration::from_millis(n * 10);
        let mut exchange = exchange_at(gateway, now);
        exchange.place(&body("chat"), None, now).unwrap();
        exchange.attempt(now).unwrap();
        let is_canary = exchange.target().unwrap().pool.name.as_str() == "two";
        let verdict = exchange.answered(if is_canary { 500 } else { 200 }, None, now);
        assert_eq!(verdict, Verdict::Forward);
        exchange.finish(Ending::Complete, now);
    }
}

fn state(gateway: &Gateway) -> RolloutView {
    gateway.rollouts(Some("split"), at(100)).remove(0)
}

#[test]
fn a_canary_that_fails_is_taken_back_with_the_reason_in_status_and_metrics() {
    let gateway = with(&split("chat", GUARDED));
    fail_canary(&gateway);
    let view = state(&gateway);
    assert_eq!(view.state, "rolled-back");
    assert_eq!((view.targets[0].share, view.targets[1].share), (1.0, 0.0));
    let back = view.targets[1].rolled_back.clone().unwrap();
    assert_eq!(back.reason, "error rate 100.0 % against 0.0 % on the stable side");
    assert!(view.targets[1].errors < 40, "{}", view.targets[1].errors);
    assert!((0..100).all(|_| goes(&gateway, "chat").0 == "one"));
    let page = gateway.metrics.encode();
    for line in [
        "rewrite_rolled_back{rewrite=\"split\",rule=\"0\",target=\"v2\"} 1",
        "rewrite_share_ratio{rewrite=\"split\",rule=\"0\",target=\"v1\"} 1.0",
        "rewrite_rollbacks_total{rewrite=\"split\",rule=\"0\",target=\"v2\",reason=\"error_rate\"} 1",
    ] {
        assert!(page.contains(line), "`{line}` is not in:\n{page}");
    }
}

#[test]
fn a_reload_keeps_a_rollback_unless_it_changes_that_rule() {
    let gateway = with(&split("chat", GUARDED));
    fail_canary(&gateway);
    let other = "  - { name: other, rules: [{ matches: [{ model: { value: x } }], targets: [{ modelRewrite: v1 }] }] }\n";
    gateway.apply(&document(&spec(&format!("{}{other}", split("chat", GUARDED)))));
    assert_eq!(state(&gateway).state, "rolled-back");
    gateway.apply(&document(&spec(&split("chat", GUARDED).replace("weight: 10", "weight: 5"))));
    assert_eq!(state(&gateway).state, "active");
    assert_eq!(state(&gateway).targets[1].configured_weight, 5);
}

#[test]
fn clients_own_errors_and_full_pools_take_nothing_back() {
    let gateway = with(&split("chat", GUARDED));
    for n in 0..2000_u64 {
        let now = at(0) + Duration::from_millis(n * 5);
        let mut exchange = exchange_at(&gateway, now);
        exchange.place(&body("chat"), None, now).unwrap();
        exchange.attempt(now).unwrap();
        exchange.answered(if n % 2 == 0 { 400 } else { 429 }, Some(Duration::ZERO), now);
        exchange.finish(Ending::Complete, now);
    }
    assert_eq!(state(&gateway).state, "active");
}

#[test]
fn what_an_operator_does_is_in_force_at_once() {
    let gateway = with(&split("chat", ""));
    let act = |action: &RolloutAction| gateway.act_on_rollout("split", None, action, at(0));
    let view = act(&RolloutAction::Step { to: Some(0.5), target: None }).unwrap();
    assert!(view.overridden && view.targets[1].share == 0.5);
    let canary = (0..100).filter(|_| goes(&gateway, "chat").0 == "two").count();
    assert!(canary.abs_diff(50) <= 4, "{canary}");
    let reason = "bad\nanswers".to_owned();
    let view = act(&RolloutAction::Rollback { reason, target: None }).unwrap();
    assert_eq!(view.targets[1].rolled_back.as_ref().unwrap().reason, "badanswers");
    let view = act(&RolloutAction::Resume { to: None, target: None }).unwrap();
    assert_eq!((view.state.as_str(), view.targets[1].share), ("active", 0.5));
    let wrong = RolloutAction::Step { to: Some(1.5), target: None };
    assert!(matches!(act(&wrong), Err(ActionRefused::Share)));
    let unknown = gateway.act_on_rollout("splat", None, &RolloutAction::Pause, at(0));
    assert_eq!(unknown.unwrap_err().to_string(), "there is no rewrite `splat`; rewrites: split");
}

#[test]
fn of_several_rules_one_must_be_named() {
    let two = "  - { name: r, rules: [{ matches: [{ model: { value: a } }], targets: [{ modelRewrite: v1 }, { modelRewrite: v2 }] },
      { targets: [{ modelRewrite: v1 }, { modelRewrite: v2 }] }] }\n";
    let gateway = with(two);
    let act = |rule| gateway.act_on_rollout("r", rule, &RolloutAction::Pause, at(0));
    assert!(act(None).unwrap_err().to_string().contains("has 2 rules: say which with --rule"));
    assert!(act(Some(2)).unwrap_err().to_string().contains("they are 0 to 1"));
    assert_eq!(act(Some(1)).unwrap().state, "paused");
}

fn mirrored(more: &str) -> Arc<Gateway> {
    with(&format!(
        "  - {{ name: m, rules: [{{ mirror: {{ modelRewrite: v2{more} }}, targets: [{{ modelRewrite: v1 }}] }}] }}\n"
    ))
}

#[test]
fn a_copy_goes_to_its_pool_and_counts_nowhere_but_as_a_copy() {
    let gateway = mirrored("");
    let original = placed(&gateway, "v1");
    let before = gateway.metrics.encode();
    let mut copy = original.copy(&body("v1"), None).unwrap();
    let sent = copy.place_copy(&body("v1"), None, at(0)).unwrap().unwrap();
    assert_eq!(&sent[..], &body("v2")[..]);
    copy.attempt(at(0)).unwrap();
    assert_eq!(in_flight(&gateway), 1, "its endpoint has work, and we know");
    assert!(copy.copy(&body("v1"), None).is_none(), "copies are not copied");
    copy.answered(200, None, at(0));
    copy.watch(Some("application/json"));
    copy.payload(b"{}", at(0));
    copy.finish(Ending::Complete, at(0));
    assert_eq!(in_flight(&gateway), 0);
    let changed: Vec<_> = gateway
        .metrics
        .encode()
        .lines()
        .filter(|line| !before.contains(line))
        .map(|line| line.split(['{', ' ']).next().unwrap().to_owned())
        .collect();
    let only = ["wicketgate_rewrite_mirrored_total", "wicketgate_endpoint_picks_total"];
    assert!(changed.iter().all(|name| only.contains(&name.as_str())), "{changed:?}");
    let view = gateway.rollouts(None, at(0)).remove(0).mirror.unwrap();
    assert_eq!((view.answered, view.under_way), (1, 0));
}

#[test]
fn copies_are_bounded_in_number_and_bytes_and_give_back_when_dropped() {
    let gateway = mirrored(", concurrencyMax: 2");
    let original = placed(&gateway, "v1");
    let copies: Vec<_> = (0..3).filter_map(|_| original.copy(&body("v1"), None)).collect();
    assert_eq!(copies.len(), 2);
    drop(copies);
    assert!(original.copy(&body("v1"), None).is_some());
    let large = vec![b'x'; 40 << 20];
    assert!(original.copy(&large, None).is_none());
    assert!(original.copy(&body("v1"), None).is_some(), "what was refused holds nothing");
    let held = gateway.hold_body(300 << 20, None).unwrap();
    assert!(original.copy(&body("v1"), None).is_none(), "clients go first");
    drop(held);
    let view = gateway.rollouts(None, at(0)).remove(0).mirror.unwrap();
    assert_eq!((view.left_out, view.under_way), (3, 0));
}

#[test]
fn a_share_of_requests_is_copied() {
    let gateway = mirrored(", share: 0.2");
    let original = placed(&gateway, "v1");
    let copies = (0..1000).filter(|_| original.copy(&body("v1"), None).is_some()).count();
    assert!(copies.abs_diff(200) <= 4, "{copies}");
}

#[test]
fn an_explanation_names_the_target_and_deals_nothing_out() {
    let gateway = with(&split("chat", ""));
    let explain = || {
        let route = openai::Route::ChatCompletions;
        gateway.explain(route, &body("chat"), &Default::default(), at(0)).unwrap().rewrite.unwrap()
    };
    for _ in 0..30 {
        let told = explain();
        assert_eq!(explain().target, told.target);
        assert_eq!(told.shares, [("v1".to_owned(), 0.9), ("v2".to_owned(), 0.1)]);
        assert_eq!(goes(&gateway, "chat").1, told.target);
    }
}
