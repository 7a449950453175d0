//! Times that end, pools without endpoints, and who makes room.

#![allow(clippy::unwrap_used)]

mod common;

use std::time::Duration;

use common::{ms, offer, payloads, queue, requests, standard, work};
use types::Priority;
use wicketgate_flow::{Bound, Ended, Expiry, Limits, Ordering, Queue, Reason, Scope, Victim};

fn expired(queue: &mut Queue<u64>, now_ms: u64) -> Vec<(u64, Expiry)> {
    let mut out = Vec::new();
    queue.expired(ms(now_ms), &mut out);
    out.iter().map(|gone: &Ended<u64, Expiry>| (gone.payload, gone.why)).collect()
}

#[test]
fn a_ttl_ends_to_the_millisecond_and_before_dispatch() {
    let mut queue = queue(|_| {});
    offer(&mut queue, standard("a", 10, ms(0)), 1).unwrap();
    assert_eq!(queue.next_expiry(), Some(ms(60_000)));
    assert!(expired(&mut queue, 59_999).is_empty());
    assert!(queue.next(0.0, ms(60_000)).is_none());
    assert!(queue.next_expiry().unwrap() <= ms(60_000), "it has still to be fetched");
    assert_eq!(expired(&mut queue, 60_000), [(1, Expiry::Ttl)]);
    assert_eq!(queue.next_expiry(), None);
}

#[test]
fn one_that_is_overdue_can_still_leave() {
    let mut queue = queue(|_| {});
    let ticket = offer(&mut queue, standard("a", 10, ms(0)), 1).unwrap();
    assert!(queue.next(0.0, ms(70_000)).is_none());
    assert_eq!(queue.cancel(ticket), Some(1));
    assert!(expired(&mut queue, 70_000).is_empty());
}

#[test]
fn what_cannot_make_its_deadline_any_more_is_not_sent() {
    let mut queue = queue(|_| {});
    let mut asked = standard("a", 10, ms(0));
    asked.deadline = Some(ms(1000));
    asked.service = Duration::from_millis(300);
    offer(&mut queue, asked.clone(), 1).unwrap();
    offer(&mut queue, asked, 2).unwrap();
    assert_eq!(queue.next(0.0, ms(700)).unwrap().payload, 1, "it can just make it");
    assert!(queue.next(0.0, ms(701)).is_none());
    assert_eq!(expired(&mut queue, 701), [(2, Expiry::Deadline)]);
}

#[test]
fn while_there_is_no_endpoint_a_budget_of_its_own_runs_and_the_ttl_stands_still() {
    let mut queue = queue(|config| {
        config.band.ttl = Duration::from_secs(10);
        config.no_endpoint.ttl = Duration::from_secs(100);
        config.no_endpoint.requests_max = 2;
    });
    offer(&mut queue, standard("a", 10, ms(0)), 1).unwrap();
    queue.has_endpoints(false, ms(6_000));
    offer(&mut queue, standard("a", 10, ms(6_000)), 2).unwrap();
    let refused = offer(&mut queue, standard("a", 10, ms(6_000)), 3).unwrap_err();
    assert_eq!(refused.reason, Reason::NoEndpoint);
    assert!(queue.next(0.0, ms(20_000)).is_none() && expired(&mut queue, 20_000).is_empty());
    queue.has_endpoints(true, ms(56_000));
    assert_eq!(queue.next_expiry(), Some(ms(60_000)), "four of ten seconds were left");
    assert_eq!(expired(&mut queue, 60_000), [(1, Expiry::Ttl)]);
    assert_eq!(queue.next(0.0, ms(65_999)).unwrap().payload, 2);
}

#[test]
fn nobody_waits_for_an_endpoint_longer_than_the_budget() {
    let mut queue = queue(|config| config.no_endpoint.ttl = Duration::from_secs(5));
    queue.has_endpoints(false, ms(0));
    offer(&mut queue, work("a", Priority::SHEDDABLE, 10, ms(0)), 1).unwrap();
    assert_eq!(expired(&mut queue, 5_000), [(1, Expiry::NoEndpoint)]);
}

#[test]
fn sheddable_work_is_refused_at_once_when_the_pool_is_saturated_or_others_wait() {
    let mut queue = queue(|_| {});
    let sheddable = work("a", Priority::SHEDDABLE, 10, ms(0));
    let refused = offer(&mut queue, sheddable.clone(), 1).unwrap_err();
    assert_eq!(refused.reason, Reason::Saturated);
    assert!(refused.retry_after >= Some(Duration::from_secs(1)));
    assert!(queue.pass(&sheddable, 0.9, ms(0)).is_some(), "it goes while there is room");
    offer(&mut queue, standard("a", 10, ms(0)), 2).unwrap();
    assert!(queue.pass(&sheddable, 0.9, ms(0)).is_none(), "not past who waits");
    let mut evicted = Vec::new();
    assert!(queue.offer(sheddable, 3, 0.9, ms(0), &mut evicted).is_err());
}

#[test]
fn a_full_pool_makes_room_for_a_higher_band_at_the_cost_of_the_longest_flow_of_the_lowest() {
    let mut queue = queue(|config| config.limits = requests(4));
    for number in 1..=2 {
        offer(&mut queue, work("long", Priority(5), 10, ms(number)), number).unwrap();
    }
    offer(&mut queue, work("short", Priority(5), 10, ms(3)), 3).unwrap();
    offer(&mut queue, work("other", Priority(9), 10, ms(4)), 4).unwrap();
    let mut evicted = Vec::new();
    let critical = work("c", Priority::CRITICAL, 10, ms(5));
    queue.offer(critical, 5, 1.0, ms(5), &mut evicted).unwrap();
    let gone: Vec<_> = evicted.iter().map(|gone| (gone.payload, gone.why)).collect();
    assert_eq!(gone, [(2, Victim::OfPriority)]);
    assert!(evicted[0].retry_after.is_some());
    // The lowest of all has nobody to take from.
    let refused = offer(&mut queue, work("c", Priority(1), 10, ms(6)), 6).unwrap_err();
    assert_eq!(refused.reason, Reason::Full { scope: Scope::Pool, bound: Bound::Requests });
}

#[test]
fn one_flow_cannot_keep_the_others_out_of_a_full_band() {
    let mut queue = queue(|config| config.band.limits = requests(10));
    for number in 0..10 {
        offer(&mut queue, standard("noisy", 10, ms(number)), number).unwrap();
    }
    let noisy = offer(&mut queue, standard("noisy", 10, ms(10)), 10).unwrap_err();
    assert_eq!(noisy.reason, Reason::Full { scope: Scope::Band, bound: Bound::Requests });
    for number in 20..25 {
        let mut evicted = Vec::new();
        let quiet = standard("quiet", 10, ms(11));
        queue.offer(quiet, number, 1.0, ms(11), &mut evicted).unwrap();
        assert_eq!(evicted[0].why, Victim::OfFairness);
    }
    let mut evicted = Vec::new();
    assert!(queue.offer(standard("quiet", 10, ms(12)), 30, 1.0, ms(12), &mut evicted).is_err());
    assert!(evicted.is_empty(), "both have the same now");
}

#[test]
fn a_flow_keeps_within_its_own_bounds() {
    let mut queue = queue(|config| {
        config.band.flow_limits = Limits { tokens_max: Some(25), ..Limits::default() };
    });
    offer(&mut queue, standard("a", 20, ms(0)), 1).unwrap();
    let refused = offer(&mut queue, standard("a", 10, ms(0)), 2).unwrap_err();
    assert_eq!(refused.reason, Reason::Full { scope: Scope::Flow, bound: Bound::Tokens });
    offer(&mut queue, standard("b", 1000, ms(0)), 3).expect("an estimate counts as the bound");
}

#[test]
fn a_body_that_alone_is_too_large_is_told_never_to_come_back() {
    let mut queue = queue(|config| config.band.limits.bytes_max = Some(99));
    let refused = offer(&mut queue, standard("a", 10, ms(0)), 1).unwrap_err();
    assert_eq!(refused.reason, Reason::TooLarge { scope: Scope::Band, bound: Bound::Bytes });
    assert_eq!(refused.retry_after, None);
    assert!(
        queue.pass(&standard("a", 10, ms(0)), 0.0, ms(0)).is_some(),
        "it need not wait while there is room"
    );
}

#[test]
fn the_order_inside_a_flow_can_follow_deadlines_or_wanted_times() {
    for (ordering, expected) in [(Ordering::Deadline, [2, 1, 3]), (Ordering::TtftTarget, [3, 1, 2])]
    {
        let mut queue = queue(|config| config.band.ordering = ordering);
        let wishes = [(30_000, 500), (20_000, 900), (40_000, 100)];
        for (number, (deadline, ttft)) in wishes.into_iter().enumerate() {
            let mut asked = standard("a", 10, ms(0));
            asked.deadline = Some(ms(deadline));
            asked.ttft = Some(Duration::from_millis(ttft));
            offer(&mut queue, asked, number as u64 + 1).unwrap();
        }
        assert_eq!(payloads(&mut queue, ms(1)), expected, "{ordering:?}");
    }
}

#[test]
fn ten_thousand_priorities_and_flows_leave_nothing_behind() {
    let mut queue = queue(|_| {});
    for number in 0..10_000_u32 {
        let asked = work(&number.to_string(), Priority(number as i32), 10, ms(u64::from(number)));
        assert!(queue.pass(&asked, 0.0, asked.received).is_some());
    }
    assert!(queue.stats().len() <= 64);
}

/// A queue of 300 requests of 1,000 tokens that drains at ten a second; gives the instant.
fn draining() -> (Queue<u64>, u64) {
    let mut queue = queue(|config| config.band.limits = requests(300));
    for number in 0..300 {
        offer(&mut queue, standard("a", 1000, ms(0)), number).unwrap();
    }
    for tenth in 1..=300 {
        let now = ms(tenth * 100);
        let gone = queue.next(0.9, now).unwrap();
        queue.drained(&gone.work.flow, gone.work.tokens, now);
        offer(&mut queue, standard("a", 1000, now), 1000 + tenth).unwrap();
    }
    (queue, 30_000)
}

#[test]
fn what_is_told_is_the_time_in_which_that_ahead_drains() {
    let (mut queue, now) = draining();
    let mut told = Vec::new();
    for number in 0..100 {
        let mut asked = standard("a", 1000, ms(now));
        asked.fingerprint = Some(number);
        told.push(offer(&mut queue, asked, number).unwrap_err().retry_after.unwrap().as_secs());
    }
    // 300 are ahead of the first, 399 of the last; each comes two seconds before its turn.
    assert!((27..=32).contains(&told[0]), "{told:?}");
    assert!((36..=43).contains(&told[99]), "{told:?}");
    let most_alike = told.iter().map(|one| told.iter().filter(|other| *other == one).count()).max();
    assert!(most_alike <= Some(20), "{told:?}");
    let flow = standard("b", 1000, ms(now)).flow;
    let other = queue.forecast(&flow, 1000, ms(now));
    assert!(
        other.wait.unwrap() < Duration::from_millis(300),
        "another flow's turn comes soon: {other:?}"
    );
}

#[test]
fn who_asks_again_too_early_is_told_the_same_instant() {
    let (mut queue, now) = draining();
    let mut asked = standard("a", 1000, ms(now));
    asked.fingerprint = Some(7);
    let first = offer(&mut queue, asked.clone(), 1).unwrap_err().retry_after.unwrap();
    for later in [1, 5, 20] {
        asked.received = ms(now + later * 1000);
        let again = offer(&mut queue, asked.clone(), 1).unwrap_err().retry_after.unwrap();
        assert_eq!(again + Duration::from_secs(later), first);
    }
    asked.received = ms(now) + first;
    let mut evicted = Vec::new();
    queue.next(0.9, asked.received);
    let came = asked.received;
    queue.offer(asked, 1, 1.0, came, &mut evicted).expect("now is its time");
}
