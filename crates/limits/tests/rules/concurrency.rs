//! Requests at once.

use wicketgate_limits::{Cost, Kind};

use crate::desk::{ANA, Desk, concurrent, per_minute, requests, seconds};

#[test]
fn a_place_is_free_again_when_its_request_has_ended_or_its_permit_is_dropped() {
    let mut desk = Desk::new(vec![concurrent("c", 2)]);
    let first = desk.ask(ANA, Cost::default()).unwrap();
    let second = desk.ask(ANA, Cost::default()).unwrap();
    assert_eq!(desk.ask(ANA, Cost::default()).unwrap_err().kind, Kind::Concurrent);
    drop(first);
    let third = desk.ask(ANA, Cost::default()).unwrap();
    assert!(desk.ask(ANA, Cost::default()).is_err());
    desk.settle(second, Cost::default());
    desk.settle(third, Cost::default());
    assert_eq!(desk.limiter.fullest(0, 1, desk.moment)[0].in_flight, 0);
}

#[test]
fn a_request_that_another_rule_refuses_takes_no_place() {
    let mut desk = Desk::new(vec![concurrent("c", 5), requests("r", per_minute(1))]);
    let _open = desk.ask(ANA, Cost::default()).unwrap();
    (0..100).for_each(|_| assert!(desk.ask(ANA, Cost::default()).is_err()));
    assert_eq!(desk.limiter.fullest(0, 1, desk.moment)[0].in_flight, 1);
}

#[test]
fn whoever_finds_no_place_is_told_when_one_usually_becomes_free() {
    let mut desk = Desk::new(vec![concurrent("c", 4)]);
    let mut open: Vec<_> = (0..4).map(|_| desk.ask(ANA, Cost::default()).unwrap()).collect();
    assert_eq!(desk.ask(ANA, Cost::default()).unwrap_err().wait, seconds(1), "nothing known yet");
    desk.pass(seconds(20));
    desk.settle(open.pop().unwrap(), Cost::default());
    open.push(desk.ask(ANA, Cost::default()).unwrap());
    assert_eq!(desk.ask(ANA, Cost::default()).unwrap_err().wait, seconds(5));
}

#[test]
fn many_threads_never_hold_more_places_than_there_are() {
    use std::sync::atomic::{AtomicI64, Ordering::SeqCst};
    let desk = Desk::new(vec![concurrent("c", 3)]);
    let (limiter, moment) = (&desk.limiter, desk.moment);
    let (now, most, passed) = (AtomicI64::new(0), AtomicI64::new(0), AtomicI64::new(0));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let tenant = "ana".into();
                let subject = wicketgate_limits::Subject {
                    tenant: &tenant,
                    key: None,
                    model: None,
                    asked_model: None,
                    route: "/v1/completions",
                    priority: types::Priority::STANDARD,
                };
                for _ in 0..5000 {
                    let mut permit = wicketgate_limits::Permit::default();
                    if limiter.arrive(&mut permit, &subject, moment, |_| {}).is_ok() {
                        most.fetch_max(now.fetch_add(1, SeqCst) + 1, SeqCst);
                        passed.fetch_add(1, SeqCst);
                        now.fetch_sub(1, SeqCst);
                    }
                }
            });
        }
    });
    assert!(most.into_inner() <= 3);
    assert!(passed.into_inner() > 100);
    assert_eq!(limiter.fullest(0, 1, moment)[0].in_flight, 0);
}
