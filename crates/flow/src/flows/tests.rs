use std::time::Duration;

use super::*;

const NOW: Timestamp = Timestamp::ZERO;

fn id(text: &str) -> Arc<str> {
    text.into()
}

fn push(flows: &mut Flows, flow: &str, number: u64, tokens: u64) {
    // Here an item's place is its number.
    flows.push(&id(flow), (number, number), (number as u32, true), Held::one(0, tokens), NOW);
}

/// Serves whose turn it is; gives its number.
fn serve(flows: &mut Flows, tokens: u64, now: Timestamp) -> u64 {
    let number = u64::from(flows.first(|_, _| Some(())).unwrap().0);
    let at = flows.active.first().unwrap().2;
    flows.serve(at, (number, number), Held::one(0, tokens), tokens, now);
    number
}

#[test]
fn equals_take_turns() {
    let mut flows = Flows::new(Fairness::DeficitRoundRobin);
    for number in 0..4 {
        push(&mut flows, "a", number, 10);
        push(&mut flows, "b", number + 10, 10);
    }
    let order: Vec<u64> = (0..8).map(|_| serve(&mut flows, 10, NOW)).collect();
    assert_eq!(order, [0, 10, 1, 11, 2, 12, 3, 13]);
    assert!(flows.is_forgotten());
}

#[test]
fn a_flow_that_comes_late_gets_no_credit_for_its_absence() {
    let mut flows = Flows::new(Fairness::DeficitRoundRobin);
    for number in 0..20 {
        push(&mut flows, "a", number, 10);
    }
    for _ in 0..10 {
        serve(&mut flows, 10, NOW);
    }
    for number in 100..110 {
        push(&mut flows, "b", number, 10);
    }
    let of_b = (0..10).filter(|_| serve(&mut flows, 10, NOW) >= 100).count();
    assert!((4..=6).contains(&of_b), "{of_b} of ten");
}

#[test]
fn least_attained_service_remembers_whom_it_served_and_forgets_in_minutes() {
    let mut flows = Flows::new(Fairness::LeastAttainedService);
    push(&mut flows, "a", 1, 1000);
    serve(&mut flows, 1000, NOW);
    assert_eq!(flows.idle.len(), 1);
    push(&mut flows, "a", 2, 1000);
    push(&mut flows, "b", 3, 1000);
    assert_eq!(serve(&mut flows, 1000, NOW), 3, "the one that was served waits");
    let later = NOW + Duration::from_secs(3600);
    serve(&mut flows, 10, later);
    flows.charge(&id("c"), 1.0, later);
    assert!(flows.get("b").is_none(), "an hour is many half-lives");
}

#[test]
fn a_clock_that_runs_for_days_keeps_its_order() {
    let mut flows = Flows::new(Fairness::LeastAttainedService);
    for hour in 0..100_u64 {
        let now = NOW + Duration::from_secs(3600 * hour);
        flows.charge(&id("a"), 500.0, now);
        flows.charge(&id("b"), 100.0, now);
        let rank = |name: &str| flows.get(name).map(|flow| flow.rank).unwrap();
        assert!(rank("a") > rank("b") && rank("a").is_finite(), "hour {hour}");
    }
}

#[test]
fn histories_are_bounded() {
    let mut flows = Flows::new(Fairness::LeastAttainedService);
    for number in 0..HISTORIES_MAX + 500 {
        flows.charge(&id(&number.to_string()), 10.0 + number as f64, NOW);
    }
    assert_eq!(flows.idle.len(), HISTORIES_MAX);
    assert!(flows.get("3").is_none(), "the least goes");
}
