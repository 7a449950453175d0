//! Parts of a limit, for gateways that share one.

use types::Timestamp;
use wicketgate_limits::{Allowance, BucketName, Cost, Share};

use crate::desk::{ANA, Desk, concurrent, per_minute, requests, seconds, tokens};

fn ana() -> BucketName {
    BucketName { tenant: Some("ana".into()), ..BucketName::default() }
}

#[test]
fn a_bucket_spends_its_part_while_it_lasts_and_another_afterwards() {
    let mut desk = Desk::new(vec![requests("r", per_minute(60))]);
    assert!(desk.passes(ANA, 0));
    desk.pass(seconds(60));
    let until = desk.moment.now + seconds(20);
    let part = Allowance { share: Share::of(1, 2), until, after: Share::of(1, 4) };
    assert!(desk.limiter.grant("r", &ana(), part, desk.moment));
    assert_eq!(desk.run(ANA), 30);
    desk.pass(seconds(10));
    assert_eq!(desk.run(ANA), 5, "half the rate");
    // 10 s at half a request a second are five; they can still be used when the part ends. Then 40 s at a quarter.
    desk.pass(seconds(50));
    assert_eq!(desk.run(ANA), 15);
    desk.pass(seconds(8));
    assert_eq!(desk.run(ANA), 2);
}

#[test]
fn what_was_used_up_does_not_come_back_with_a_larger_part() {
    let mut desk = Desk::new(vec![requests("r", per_minute(60))]);
    let part = |part| Allowance {
        share: Share::of(part, 4),
        until: Timestamp(u64::MAX),
        after: Share::NONE,
    };
    desk.limiter.set_allowance(part(1));
    assert_eq!(desk.run(ANA), 15);
    assert!(desk.limiter.shift("r", &ana(), part(4), desk.moment));
    assert_eq!(desk.run(ANA), 0);
    desk.pass(seconds(3));
    assert_eq!(desk.run(ANA), 3, "the whole rate");
    // Nor is a bucket in debt for having had more.
    assert!(desk.limiter.shift("r", &ana(), part(1), desk.moment));
    desk.pass(seconds(4));
    assert_eq!(desk.run(ANA), 1);
}

#[test]
fn a_part_that_ends_gives_nothing_at_once() {
    let mut desk = Desk::new(vec![requests("r", per_minute(60))]);
    let until = desk.moment.now + seconds(2);
    desk.limiter.set_allowance(Allowance { share: Share::of(1, 4), until, after: Share::ALL });
    assert_eq!(desk.run(ANA), 15);
    desk.pass(seconds(4));
    assert_eq!(desk.run(ANA), 2, "two seconds at a quarter, two at the whole rate");
}

#[test]
fn a_bucket_that_nobody_granted_anything_spends_what_is_so_by_default() {
    let mut desk = Desk::new(vec![requests("r", per_minute(60)), concurrent("c", 7)]);
    let half = Allowance { share: Share::of(1, 2), until: Timestamp(u64::MAX), after: Share::NONE };
    desk.limiter.set_allowance(half);
    assert_eq!(desk.run(ANA), 30);
    desk.pass(seconds(60));
    let open: Vec<_> = (0..10).filter_map(|_| desk.ask(ANA, Cost::default()).ok()).collect();
    assert_eq!(open.len(), 4, "half of seven places, rounded up");
}

#[test]
fn a_bucket_without_a_part_refuses() {
    let mut desk = Desk::new(vec![tokens("t", per_minute(60))]);
    assert!(desk.passes(ANA, 1));
    let none = Allowance { share: Share::NONE, until: Timestamp::ZERO, after: Share::NONE };
    assert!(desk.limiter.grant("t", &ana(), none, desk.moment));
    desk.pass(seconds(600));
    assert!(!desk.passes(ANA, 1));
    assert!(!desk.limiter.grant("t", &BucketName::default(), none, desk.moment));
}

#[test]
fn what_was_asked_for_is_told_once() {
    let mut desk = Desk::new(vec![tokens("t", per_minute(100))]);
    assert!(desk.passes(ANA, 80));
    assert!(!desk.passes(ANA, 80));
    let mut told = Vec::new();
    desk.limiter.demands(|demand| {
        told.push((demand.rule.to_owned(), demand.bucket.clone(), demand.requests, demand.tokens));
    });
    assert_eq!(told, [("t".to_owned(), ana(), 2, 160)]);
    desk.limiter.demands(|_| panic!("nothing was asked for since"));
}
