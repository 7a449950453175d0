//! Rules that only watch, and rules that change.

use wicketgate_limits::{Cost, Limiter, Rule};

use crate::desk::{ANA, Desk, concurrent, per_minute, requests, seconds};

fn shadow(rule: Rule) -> Rule {
    Rule { shadow: true, ..rule }
}

#[test]
fn a_shadow_rule_refuses_nothing_and_tells_each_request_that_it_would_refuse() {
    let mut desk = Desk::new(vec![shadow(requests("r", per_minute(10)))]);
    assert!((0..25).all(|_| desk.passes(ANA, 0)));
    assert_eq!(desk.shadowed.len(), 15);
    desk.pass(seconds(6));
    assert!(desk.passes(ANA, 0));
    assert_eq!(desk.shadowed.len(), 15, "what it would refuse takes nothing");
}

#[test]
fn a_shadow_rule_is_not_in_the_headers() {
    let mut desk = Desk::new(vec![shadow(requests("r", per_minute(10)))]);
    let permit = desk.ask(ANA, Cost::default()).unwrap();
    assert!(!permit.is_limited());
    assert_eq!(permit.standing(desk.moment).requests, None);
}

#[test]
fn a_reload_keeps_what_was_taken_of_rules_that_mean_the_same() {
    let rules = vec![requests("kept", per_minute(5)), requests("changed", per_minute(100))];
    let mut desk = Desk::new(rules);
    assert_eq!(desk.run(ANA), 5);
    let open = desk.ask(ANA, Cost::default());
    assert!(open.is_err());
    let mut rules =
        vec![requests("changed", per_minute(50)), shadow(requests("kept", per_minute(5)))];
    desk.limiter = Limiter::new(rules.clone(), Some(&desk.limiter));
    assert!(desk.passes(ANA, 0));
    assert_eq!(desk.shadowed.len(), 1, "the bucket is still empty, but in shadow now");
    rules[1].shadow = false;
    desk.limiter = Limiter::new(rules, Some(&desk.limiter));
    assert_eq!(desk.ask(ANA, Cost::default()).unwrap_err().rule, 1);
}

#[test]
fn places_taken_before_a_reload_are_given_back_after_it() {
    let mut desk = Desk::new(vec![concurrent("c", 1)]);
    let open = desk.ask(ANA, Cost::default()).unwrap();
    desk.limiter = Limiter::new(vec![concurrent("c", 1)], Some(&desk.limiter));
    assert!(desk.ask(ANA, Cost::default()).is_err());
    drop(open);
    assert!(desk.ask(ANA, Cost::default()).is_ok());
}
