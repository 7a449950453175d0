//! What is remembered, and for how long.

use types::{Priority, TenantName};
use wicketgate_limits::{Permit, Rule, Subject};

use crate::desk::{ANA, Desk, per_day, per_minute, requests, seconds, tokens};

fn visit(desk: &Desk, tenants: std::ops::Range<u32>) {
    for number in tenants {
        let tenant = TenantName::new(&format!("tenant-{number}"));
        let subject = Subject {
            tenant: &tenant,
            key: None,
            model: None,
            asked_model: None,
            route: "/v1/completions",
            priority: Priority::STANDARD,
        };
        let _ = desk.limiter.arrive(&mut Permit::default(), &subject, desk.moment, |_| {});
    }
}

#[test]
fn buckets_at_rest_are_forgotten_and_those_in_use_are_not() {
    let mut desk = Desk::new(vec![requests("r", per_minute(10)), requests("d", per_day(10))]);
    let open = desk.ask(ANA, Default::default()).unwrap();
    visit(&desk, 0..2000);
    assert_eq!(desk.limiter.buckets(0), 2001);
    desk.pass(seconds(299));
    desk.limiter.sweep(desk.moment);
    assert_eq!(desk.limiter.buckets(0), 2001);
    desk.pass(seconds(1));
    desk.limiter.sweep(desk.moment);
    assert_eq!(desk.limiter.buckets(0), 1, "ana's request is still open");
    assert_eq!(desk.limiter.buckets(1), 2001, "a day's use is remembered for the day");
    drop(open);
    desk.pass(seconds(86_400));
    desk.limiter.sweep(desk.moment);
    assert_eq!((desk.limiter.buckets(0), desk.limiter.buckets(1)), (0, 0));
}

#[test]
fn a_days_use_outlives_the_bucket_that_it_was_counted_in() {
    let mut desk = Desk::new(vec![Rule { requests: per_minute(600), ..tokens("d", per_day(100)) }]);
    assert!(desk.passes(ANA, 60));
    for rest in [400, 86_400 - 43_200 - 401] {
        desk.pass(seconds(rest));
        desk.limiter.sweep(desk.moment);
        let view = desk.limiter.fullest(0, 1, desk.moment).remove(0);
        let budget = view.meters.iter().find(|meter| meter.limit == 100).unwrap();
        assert_eq!((view.name.tenant, budget.remaining), (Some(TenantName::new("ana")), 40));
    }
    assert!(!desk.passes(ANA, 41), "still the same day");
    assert!(desk.passes(ANA, 40));
    desk.pass(seconds(400));
    desk.limiter.sweep(desk.moment);
    assert_eq!(desk.limiter.buckets(0), 0, "midnight is past");
    assert!(desk.passes(ANA, 100));
}

#[test]
fn a_wall_clock_that_was_ahead_does_not_keep_a_days_use_for_long() {
    let mut desk = Desk::new(vec![requests("d", per_day(1))]);
    let today = desk.moment.unix;
    desk.moment.unix += seconds(1000 * 86_400);
    assert!(desk.passes(ANA, 0));
    desk.pass(seconds(400));
    desk.moment.unix = today;
    for (days, passes) in [(0, false), (1, true)] {
        desk.limiter.sweep(desk.moment);
        desk.pass(seconds(days * 86_400));
        desk.limiter.sweep(desk.moment);
        assert_eq!(desk.passes(ANA, 0), passes, "{days}");
    }
}

#[test]
fn tenants_that_come_and_go_do_not_add_up() {
    let mut desk = Desk::new(vec![requests("r", per_minute(10))]);
    for round in 0..40 {
        visit(&desk, round * 1000..(round + 1) * 1000);
        desk.pass(seconds(400));
    }
    let buckets = desk.limiter.buckets(0);
    assert!(buckets <= 8000, "{buckets} of 40,000");
}

#[test]
fn the_fullest_buckets_come_first() {
    let mut desk = Desk::new(vec![requests("r", per_minute(10))]);
    visit(&desk, 0..500);
    visit(&desk, 7..9);
    desk.pass(seconds(1));
    visit(&desk, 8..9);
    let names: Vec<_> = desk
        .limiter
        .fullest(0, 2, desk.moment)
        .into_iter()
        .map(|view| view.name.tenant.unwrap())
        .collect();
    assert_eq!(names, [TenantName::new("tenant-8"), TenantName::new("tenant-7")]);
}
