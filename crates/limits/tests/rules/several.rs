//! Several rules, tenants and keys at once.

use wicketgate_limits::{Cost, Factor, Kind, Match, Override, Permit, Rule};

use crate::desk::{ANA, Desk, Who, per_minute, per_second, requests, seconds, tokens};

const ANA_TWO: Who = Who("ana", "ana-2", "llama");
const BEN: Who = Who("ben", "ben-1", "llama");
const CAT: Who = Who("cat", "cat-1", "llama");

#[test]
fn three_tenants_do_not_touch_each_others_buckets() {
    let mut desk = Desk::new(vec![requests("r", per_minute(10))]);
    assert_eq!(desk.run(ANA), 10);
    assert_eq!(desk.run(BEN), 10);
    desk.pass(seconds(6));
    assert_eq!(desk.run(CAT), 10);
    assert_eq!((desk.run(ANA), desk.run(BEN)), (1, 1));
}

/// appstrate#456: eight agents of one organisation, each within its cap, together over it.
#[test]
fn keys_within_their_limits_are_held_by_that_of_their_tenant() {
    let mut by_key = Rule { requests: per_minute(6), ..Rule::new("key") };
    by_key.per.key = true;
    let mut desk = Desk::new(vec![requests("tenant", per_minute(10)), by_key]);
    assert_eq!(desk.run(ANA), 6);
    assert_eq!(desk.run(ANA_TWO), 4);
    let refused = desk.ask(ANA_TWO, Cost::default()).unwrap_err();
    assert_eq!(refused.rule, 0, "the tenant's rule is named");
}

#[test]
fn the_rule_with_the_longest_wait_is_named_and_none_is_charged() {
    let mut desk = Desk::new(vec![
        requests("fast", per_second(1, 1)),
        tokens("slow", per_minute(60)),
        requests("wide", per_minute(100)),
    ]);
    assert!(desk.passes(ANA, 60));
    for _ in 0..50 {
        let refused = desk.ask(ANA, Cost::new(30, 0)).unwrap_err();
        assert_eq!((refused.rule, refused.kind), (1, Kind::Tokens), "asked by the head alone");
    }
    desk.pass(seconds(30));
    assert!(desk.passes(ANA, 30));
    desk.pass(seconds(1));
    assert_eq!(desk.ask(ANA, Cost::new(30, 0)).unwrap_err().rule, 1);
    let wide = &desk.limiter.fullest(2, 1, desk.moment)[0].meters[0];
    assert_eq!(wide.remaining, 100, "the refused are not counted");
}

#[test]
fn a_tenant_with_an_override_has_ten_times_as_much() {
    let matches = Match { tenants: ["ben".into()].into(), ..Match::default() };
    let tenfold = Override { matches, factor: Factor::new(10.0).unwrap() };
    let rule = Rule { overrides: vec![tenfold], ..requests("r", per_minute(5)) };
    let mut desk = Desk::new(vec![rule]);
    assert_eq!((desk.run(ANA), desk.run(BEN)), (5, 50));
}

#[test]
fn a_rule_counts_only_what_it_matches() {
    let mut rule = requests("r", per_minute(5));
    rule.matches.models = ["big".into()].into();
    let mut keys = requests("k", per_minute(3));
    keys.matches.keys = ["ben-1".into()].into();
    let mut desk = Desk::new(vec![rule, keys]);
    assert!((0..100).all(|_| desk.passes(ANA, 0)));
    assert_eq!(desk.run(Who("ana", "ana-1", "big")), 5);
    assert_eq!(desk.run(BEN), 3);
}

#[test]
fn buckets_by_model_are_asked_once_the_model_is_known() {
    let mut rule = requests("r", per_minute(5));
    rule.per.model = true;
    let mut desk = Desk::new(vec![rule]);
    assert_eq!(desk.run(ANA), 5);
    assert_eq!(desk.run(Who("ana", "ana-1", "qwen")), 5);
    assert_eq!(desk.limiter.buckets(0), 2);
}

#[test]
fn the_tightest_rules_are_told() {
    let mut desk = Desk::new(vec![
        requests("a", per_minute(100)),
        requests("b", per_minute(10)),
        tokens("t", per_minute(600)),
    ]);
    let permit: Permit = desk.ask(ANA, Cost::new(60, 0)).unwrap();
    let standing = permit.standing(desk.moment);
    let (requests, tokens) = (standing.requests.unwrap(), standing.tokens.unwrap());
    assert_eq!((requests.limit, requests.remaining, requests.reset), (10, 9, seconds(6)));
    assert_eq!((tokens.limit, tokens.remaining, tokens.reset), (600, 540, seconds(6)));
}
