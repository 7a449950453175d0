//! What holds whatever happens.

#![allow(clippy::unwrap_used)]

mod common;

use std::collections::HashMap;

use common::{ms, payloads, queue, requests, standard, work};
use proptest::collection::vec;
use proptest::prelude::*;
use types::{Priority, Ratio};
use wicketgate_flow::{BandConfig, Fairness, OnSaturation, Ordering};

const CRITICAL: Priority = Priority::CRITICAL;
const STANDARD: Priority = Priority::STANDARD;

fn put(queue: &mut wicketgate_flow::Queue<u64>, work: wicketgate_flow::Work, payload: u64) {
    let (now, mut evicted) = (work.received, Vec::new());
    queue.offer(work, payload, 1.0, now, &mut evicted).unwrap();
    assert!(evicted.is_empty());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Work-conserving: below every ceiling nothing stays behind.
    #[test]
    fn a_pool_with_room_leaves_nobody_waiting(
        all in vec((0..6_u8, prop_oneof![Just(100), Just(0), Just(-5)], any::<u32>()), 1..80),
        fairness in prop_oneof![Just(Fairness::DeficitRoundRobin), Just(Fairness::LeastAttainedService), Just(Fairness::GlobalOrder)],
        ordering in prop_oneof![Just(Ordering::Fcfs), Just(Ordering::Deadline), Just(Ordering::TtftTarget)],
    ) {
        let mut queue = queue(|config| {
            for band in [&mut config.band, &mut config.negative_band] {
                band.fairness = fairness;
                band.ordering = ordering;
                band.on_saturation = OnSaturation::Queue;
                band.reserved_share = Ratio::new(0.2).unwrap();
            }
        });
        for (number, (flow, priority, tokens)) in all.iter().enumerate() {
            let now = ms(number as u64);
            put(&mut queue, work(&flow.to_string(), Priority(*priority), *tokens, now), number as u64);
        }
        let mut gone = payloads(&mut queue, ms(100));
        gone.sort_unstable();
        prop_assert_eq!(gone, (0..all.len() as u64).collect::<Vec<_>>());
    }

    #[test]
    fn inside_a_flow_the_first_received_is_the_first_out(
        all in vec((0..3_u8, 0..1000_u64, 1..5000_u32), 1..60),
    ) {
        let mut queue = queue(|_| {});
        for (number, (flow, age, tokens)) in all.iter().enumerate() {
            let mut asked = standard(&flow.to_string(), *tokens, ms(5000));
            asked.received = ms(5000 - age);
            let mut evicted = Vec::new();
            queue.offer(asked, number as u64, 1.0, ms(5000), &mut evicted).unwrap();
        }
        let mut last: HashMap<u8, (u64, u64)> = HashMap::new();
        for number in payloads(&mut queue, ms(5000)) {
            let (flow, age, _) = all[number as usize];
            let key = (5000 - age, number);
            if let Some(before) = last.insert(flow, key) {
                prop_assert!(before < key, "{before:?} before {key:?}");
            }
        }
    }

    /// As long as both have work, two flows differ by no more than the largest request.
    #[test]
    fn flows_get_equal_tokens_but_for_one_request(
        a in vec(1..4000_u32, 40), b in vec(1..4000_u32, 40), c in vec(1..50_u32, 40),
    ) {
        let mut queue = queue(|_| {});
        let mut cost = HashMap::new();
        for (flow, all) in [a, b, c].iter().enumerate() {
            for (at, tokens) in all.iter().enumerate() {
                let number = (flow * 100 + at) as u64;
                cost.insert(number, u64::from(*tokens));
                put(&mut queue, standard(&flow.to_string(), *tokens, ms(0)), number);
            }
        }
        let max = cost.values().copied().max().unwrap();
        let (mut served, mut left) = ([0_u64; 3], [40; 3]);
        while left.iter().all(|left| *left > 0) {
            let number = queue.next(0.0, ms(1)).unwrap().payload;
            let flow = (number / 100) as usize;
            served[flow] += cost[&number];
            left[flow] -= 1;
            let (low, high) = (served.iter().min().unwrap(), served.iter().max().unwrap());
            prop_assert!(high - low <= max, "{served:?}, largest {max}");
        }
    }

    /// No starvation: a reserved share is kept to within one request, however much waits above.
    #[test]
    fn a_reserved_share_is_kept_under_endless_work_above(
        above in vec(1..3000_u32, 200), below in vec(1..3000_u32, 200), share in 0.02..0.6_f64,
    ) {
        let mut queue = queue(|config| {
            let reserved_share = Ratio::new(share).unwrap();
            config.bands.insert(STANDARD, BandConfig { reserved_share, ..BandConfig::default() });
        });
        for (at, tokens) in above.iter().enumerate() {
            put(&mut queue, work("a", CRITICAL, *tokens, ms(0)), at as u64);
        }
        for (at, tokens) in below.iter().enumerate() {
            put(&mut queue, work("b", STANDARD, *tokens, ms(0)), 1000 + at as u64);
        }
        let (mut all, mut own) = (0.0, 0.0);
        for _ in 0..150 {
            let gone = queue.next(0.0, ms(1)).unwrap();
            let cost = f64::from(gone.work.tokens);
            all += cost;
            own += if gone.payload >= 1000 { cost } else { 0.0 };
            prop_assert!(own >= share * all - 3000.0, "{own} of {all}, share {share}");
            prop_assert!(own <= share * all + 3000.0, "{own} of {all}, share {share}");
        }
    }

    #[test]
    fn whoever_leaves_at_any_moment_is_given_back_once(
        all in vec((0..4_u8, 1..500_u32), 1..40), leaving in vec(any::<prop::sample::Index>(), 0..20),
    ) {
        let mut queue = queue(|_| {});
        let mut tickets = Vec::new();
        for (number, (flow, tokens)) in all.iter().enumerate() {
            let (asked, mut evicted) = (standard(&flow.to_string(), *tokens, ms(0)), Vec::new());
            tickets.push(queue.offer(asked, number as u64, 1.0, ms(0), &mut evicted).unwrap());
        }
        let mut out = Vec::new();
        for index in leaving {
            out.extend(queue.next(0.0, ms(1)).map(|gone| gone.payload));
            out.extend(queue.cancel(tickets[index.index(tickets.len())]));
        }
        out.extend(payloads(&mut queue, ms(1)));
        out.sort_unstable();
        prop_assert_eq!(out, (0..all.len() as u64).collect::<Vec<_>>());
        prop_assert_eq!(queue.stats().iter().map(|band| band.tokens + band.bytes).sum::<u64>(), 0);
    }
}

#[test]
fn higher_bands_go_first_whoever_came_first() {
    let mut queue = queue(|config| config.negative_band.on_saturation = OnSaturation::Queue);
    for (number, priority) in [-10, 0, 100, 0, 100].into_iter().enumerate() {
        put(&mut queue, work("a", Priority(priority), 10, ms(number as u64)), number as u64);
    }
    assert_eq!(payloads(&mut queue, ms(10)), [2, 4, 1, 3, 0]);
}

#[test]
fn a_band_at_its_ceiling_holds_up_those_below_it() {
    let mut queue = queue(|config| {
        let ceiling = Ratio::new(0.5).unwrap();
        config.bands.insert(CRITICAL, BandConfig { ceiling, ..BandConfig::default() });
    });
    put(&mut queue, standard("a", 10, ms(0)), 1);
    put(&mut queue, work("a", CRITICAL, 10, ms(0)), 2);
    assert!(queue.next(0.6, ms(1)).is_none());
    assert_eq!(queue.next(0.4, ms(1)).unwrap().payload, 2);
    assert_eq!(queue.next(0.6, ms(1)).unwrap().payload, 1);
}

#[test]
fn what_is_no_number_or_runs_backwards_does_no_harm() {
    let mut queue = queue(|_| {});
    for (number, tokens) in [0, u32::MAX, 1].into_iter().enumerate() {
        put(&mut queue, standard("a", tokens, ms(50_000 - number as u64 * 20_000)), number as u64);
    }
    let asked = standard("a", 1, ms(0));
    assert!(queue.pass(&asked, f32::NAN, ms(0)).is_none());
    assert!(queue.next(f32::NAN, ms(10)).is_none());
    queue.charge(&asked.flow, u32::MAX, 0, ms(3));
    queue.drained(&asked.flow, u32::MAX, ms(2));
    assert!(queue.forecast(&asked.flow, u32::MAX, ms(1)).wait.is_some());
    assert_eq!(payloads(&mut queue, ms(0)), [2, 1, 0]);
}

#[test]
fn a_request_of_absurd_size_does_not_block_its_flow_for_long() {
    let mut queue = queue(|_| {});
    put(&mut queue, standard("a", u32::MAX, ms(0)), 1);
    put(&mut queue, standard("a", 10, ms(0)), 2);
    put(&mut queue, standard("b", 1 << 24, ms(0)), 3);
    put(&mut queue, standard("b", 1 << 24, ms(0)), 4);
    assert_eq!(payloads(&mut queue, ms(1)), [1, 3, 2, 4]);
}

#[test]
fn a_correction_of_what_was_used_is_paid_back_in_turns() {
    let mut queue = queue(|_| {});
    for number in 0..6 {
        put(&mut queue, standard("a", 100, ms(0)), number);
        put(&mut queue, standard("b", 100, ms(0)), 10 + number);
    }
    assert_eq!(queue.next(0.0, ms(1)).unwrap().payload, 0);
    queue.charge(&standard("a", 0, ms(0)).flow, 100, 300, ms(2));
    let order: Vec<u64> = payloads(&mut queue, ms(3)).into_iter().take(5).collect();
    assert_eq!(order, [10, 11, 12, 1, 13], "b catches up with what a really used");
}

#[test]
fn a_reload_loses_nobody_and_changes_the_order() {
    let mut queue = queue(|config| config.band.fairness = Fairness::GlobalOrder);
    for number in 0..4 {
        put(&mut queue, standard("a", 10, ms(number)), number);
    }
    put(&mut queue, standard("b", 10, ms(9)), 9);
    let mut config = queue.config().clone();
    config.band.limits = requests(2);
    config.band.fairness = Fairness::DeficitRoundRobin;
    queue.set_config(config);
    assert_eq!(queue.len(), 5);
    let mut evicted = Vec::new();
    let refused = queue.offer(standard("a", 10, ms(10)), 10, 1.0, ms(10), &mut evicted);
    assert!(refused.is_err());
    let order = payloads(&mut queue, ms(11));
    assert_eq!(&order[..2], [0, 9], "flows take turns now");
    assert_eq!(order.len(), 5);
}
