//! Tokens: reserved, corrected, owed.

use wicketgate_limits::{Cost, Kind, Permit, Rule, Spent, Weight};

use crate::desk::{ANA, Desk, by_tenant, per_day, per_minute, requests, seconds, tokens};

/// litellm#10555: the limit was checked after the answer, so a burst passed.
#[test]
fn a_burst_is_refused_by_what_it_reserves_before_anyone_has_answered() {
    let mut desk = Desk::new(vec![tokens("t", per_minute(1000))]);
    let open: Vec<Permit> =
        (0..50).filter_map(|_| desk.ask(ANA, Cost::new(50, 200)).ok()).collect();
    assert_eq!(open.len(), 4);
}

#[test]
fn what_was_reserved_too_much_is_there_again_when_the_request_has_ended() {
    let mut desk = Desk::new(vec![tokens("t", per_minute(1000))]);
    let permit = desk.ask(ANA, Cost::new(100, 900)).unwrap();
    assert!(!desk.passes(ANA, 1));
    desk.settle(permit, Cost::new(100, 10));
    assert!(desk.passes(ANA, 890));
    assert!(!desk.passes(ANA, 1));
}

#[test]
fn what_was_used_beyond_the_reservation_is_a_debt_and_nothing_passes_until_it_is_repaid() {
    let mut desk = Desk::new(vec![tokens("t", per_minute(600))]);
    let permit = desk.ask(ANA, Cost::new(100, 100)).unwrap();
    desk.settle(permit, Cost::new(100, 1700));
    let refused = desk.ask(ANA, Cost::new(1, 0)).unwrap_err();
    // 1200 beyond the burst and the 200 that a request usually is, at 10 a second.
    assert_eq!(refused.wait, seconds(140));
    desk.pass(seconds(120));
    assert!(!desk.passes(ANA, 1));
    desk.pass(seconds(1));
    assert!(desk.passes(ANA, 1));
}

#[test]
fn a_request_beyond_the_burst_passes_alone_and_is_paid_back() {
    let mut desk = Desk::new(vec![tokens("t", per_minute(600))]);
    assert!(desk.passes(ANA, 3000), "an untouched bucket lends");
    assert!(!desk.passes(ANA, 1));
    desk.pass(seconds(239));
    assert!(!desk.passes(ANA, 600));
    desk.pass(seconds(61));
    assert!(desk.passes(ANA, 600));
}

#[test]
fn a_dropped_permit_keeps_its_reservation_as_used() {
    let mut desk = Desk::new(vec![tokens("t", per_minute(1000))]);
    drop(desk.ask(ANA, Cost::new(500, 500)).unwrap());
    assert!(!desk.passes(ANA, 1));
}

#[test]
fn what_drained_while_nobody_came_is_not_given_back() {
    let mut desk = Desk::new(vec![tokens("t", per_minute(600))]);
    let late = desk.ask(ANA, Cost::new(600, 0)).unwrap();
    desk.pass(seconds(61));
    assert!(desk.passes(ANA, 600));
    desk.settle(late, Cost::new(1, 0));
    assert!(!desk.passes(ANA, 1), "a minute held two bursts");
}

#[test]
fn a_request_that_no_endpoint_saw_costs_nothing() {
    let both = Rule { requests: per_minute(1), ..tokens("t", per_minute(1000)) };
    let mut desk = Desk::new(vec![both]);
    for _ in 0..20 {
        let mut permit = desk.ask(ANA, Cost::new(500, 500)).unwrap();
        let spent = Spent { counts: false, tokens: Some(Cost::default()) };
        permit.settle(spent, desk.moment, |_| {});
    }
}

#[test]
fn output_weighs_what_the_rule_says() {
    let mut rule = tokens("t", per_minute(1000));
    rule.output_weight = Weight::new(4.0).unwrap();
    let mut desk = Desk::new(vec![rule]);
    let permit = desk.ask(ANA, Cost::new(200, 200)).unwrap();
    assert!(desk.ask(ANA, Cost::new(0, 1)).is_err());
    desk.settle(permit, Cost::new(200, 150));
    assert!(desk.ask(ANA, Cost::new(0, 50)).is_ok());
}

#[test]
fn input_and_output_are_counted_apart() {
    let rule =
        Rule { input_tokens: per_minute(1000), output_tokens: per_minute(100), ..by_tenant("t") };
    let mut desk = Desk::new(vec![rule]);
    assert!(desk.ask(ANA, Cost::new(10, 50)).is_ok());
    assert_eq!(desk.ask(ANA, Cost::new(10, 51)).unwrap_err().kind, Kind::OutputTokens);
    assert_eq!(desk.ask(ANA, Cost::new(991, 0)).unwrap_err().kind, Kind::InputTokens);
    assert!(desk.ask(ANA, Cost::new(990, 50)).is_ok());
}

#[test]
fn a_days_budget_ends_at_midnight_and_says_so() {
    let mut desk = Desk::new(vec![tokens("t", per_day(1000))]);
    assert!(desk.passes(ANA, 1000));
    let refused = desk.ask(ANA, Cost::new(1, 0)).unwrap_err();
    assert!(refused.is_budget);
    assert_eq!(refused.wait, seconds(12 * 3600));
    desk.pass(refused.wait);
    assert!(desk.passes(ANA, 1000));
}

#[test]
fn hostile_numbers_are_harmless() {
    let mut desk =
        Desk::new(vec![tokens("t", per_minute(u64::MAX)), requests("r", per_day(u64::MAX))]);
    for _ in 0..1000 {
        let permit = desk.ask(ANA, Cost::new(u64::MAX, u64::MAX)).unwrap();
        desk.settle(permit, Cost::new(u64::MAX, u64::MAX));
    }
    let mut tiny = Desk::new(vec![tokens("t", per_minute(1))]);
    assert!(tiny.passes(ANA, u64::MAX));
    let wait = tiny.ask(ANA, Cost::new(1, 0)).unwrap_err().wait;
    assert!(wait <= seconds(60 << 24), "a made-up number locks the bucket for {wait:?}");
    tiny.moment.now = types::Timestamp::ZERO;
    assert!(!tiny.passes(ANA, 1), "a clock that goes back is harmless");
}
