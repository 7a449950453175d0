//! What can never happen, whatever comes.

use std::time::Duration;

use proptest::prelude::*;
use wicketgate_limits::{Amount, Cost, Permit, Spent};

use crate::desk::{ANA, Desk, number, per_second, requests, tokens};

/// No window of the uses (instant in ns, count) holds more than rate × window + burst, and what was given back
/// in it (taken, given back, count) of reservations from before it.
fn assert_bounded(uses: &[(u64, u64)], given: &[(u64, u64, u64)], per_second: u64, burst: u64) {
    for first in 0..uses.len() {
        let mut used = 0_u128;
        for last in first..uses.len() {
            used += u128::from(uses[last].1);
            let (from, to) = (uses[first].0, uses[last].0);
            let earlier =
                given.iter().filter(|(taken, back, _)| *taken < from && (from..=to).contains(back));
            let given: u64 = earlier.map(|(.., count)| count).sum();
            let window = u128::from(to - from);
            let most = u128::from(per_second) * window + u128::from(burst + given) * 1_000_000_000;
            let bound = (used * 1_000_000_000, most);
            assert!(bound.0 <= bound.1, "{used} in {window} ns: {:?}", &uses[first..=last]);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn no_window_holds_more_requests_than_its_rate_and_one_burst(
        rate in 1_u64..40, burst in 1_u64..12, pauses in prop::collection::vec(0_u64..400_000_000, 1..120)
    ) {
        let mut desk = Desk::new(vec![requests("r", per_second(rate, burst))]);
        let mut uses = Vec::new();
        for pause in pauses {
            desk.pass(Duration::from_nanos(pause));
            if desk.passes(ANA, 0) {
                uses.push((desk.moment.now.0, 1));
            }
        }
        assert_bounded(&uses, &[], rate, burst);
    }

    /// Requests reserve more than they use and end in any order, long after they began.
    #[test]
    fn no_window_holds_more_used_tokens_than_its_rate_one_burst_and_what_came_back(
        steps in prop::collection::vec((0_u64..2_000_000_000, 1_u64..300, 0_u64..100, any::<prop::sample::Index>()), 1..120)
    ) {
        const RATE: u64 = 100;
        const BURST: u64 = 300;
        let mut desk = Desk::new(vec![tokens("t", per_second(RATE, BURST))]);
        let mut open: Vec<(Permit, Cost, u64)> = Vec::new();
        let (mut uses, mut given) = (Vec::new(), Vec::new());
        for (pause, reserve, share, which) in steps {
            desk.pass(Duration::from_nanos(pause));
            let used = Cost::new(reserve * share / 100, 0);
            if let Ok(permit) = desk.ask(ANA, Cost::new(reserve, 0)) {
                uses.push((desk.moment.now.0, used.input_tokens));
                open.push((permit, used, desk.moment.now.0));
            }
            if open.len() > 3 || (share > 50 && !open.is_empty()) {
                let (permit, used, taken) = open.swap_remove(which.index(open.len()));
                given.push((taken, desk.moment.now.0, permit.cost().total() - used.total()));
                desk.settle(permit, used);
            }
        }
        assert_bounded(&uses, &given, RATE, BURST);
    }

    #[test]
    fn the_sum_of_reservations_returns_to_zero_and_a_second_settlement_changes_nothing(
        costs in prop::collection::vec((1_u64..500, 0_u64..500), 1..40)
    ) {
        let mut desk = Desk::new(vec![tokens("t", per_second(100, 1_000_000))]);
        let mut open = Vec::new();
        for (input, output) in costs {
            open.push(desk.ask(ANA, Cost::new(input, output)).unwrap());
        }
        let nothing = Spent { counts: false, tokens: Some(Cost::default()) };
        for mut permit in open.drain(..).rev() {
            for _ in 0..3 {
                permit.settle(nothing, desk.moment, |_| {});
            }
        }
        let bucket = &desk.limiter.fullest(0, 1, desk.moment)[0];
        prop_assert_eq!((bucket.meters[0].remaining, bucket.in_flight), (1_000_000, 0));
    }

    /// Exact to the nanosecond, where nobody else comes.
    #[test]
    fn whoever_waits_as_told_passes_and_not_a_nanosecond_earlier(
        amount in 1_u64..100_000, burst in 1_u64..1000, cost in 1_u64..2000, pause in 0_u64..10_000_000
    ) {
        let amount = Amount { per_minute: Some(number(amount)), burst: Some(number(burst)), ..Amount::default() };
        let mut desk = Desk::new(vec![tokens("t", amount)]);
        prop_assert!(desk.passes(ANA, cost));
        desk.pass(Duration::from_nanos(pause));
        if let Err(refused) = desk.ask(ANA, Cost::new(cost, 0)) {
            prop_assert!(!refused.wait.is_zero());
            desk.pass(refused.wait - Duration::from_nanos(1));
            prop_assert!(!desk.passes(ANA, cost));
            desk.pass(Duration::from_nanos(1));
            prop_assert!(desk.passes(ANA, cost));
        }
    }
}

/// Three times the offered load, settled 1 to 20 s later (the toy simulation of the reference).
#[test]
fn under_three_times_the_load_a_minute_holds_the_limit_and_hardly_less() {
    const PER_SECOND: u64 = 1000;
    let mut desk = Desk::new(vec![tokens("t", per_second(PER_SECOND, 3000))]);
    let (mut open, mut uses) = (Vec::new(), Vec::new());
    let mut random = 7_u64;
    for step in 0..30_000_u64 {
        desk.pass(Duration::from_millis(10));
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let used = 5 + (random >> 33) % 50;
        if let Ok(permit) = desk.ask(ANA, Cost::new(60, 0)) {
            open.push((step + 100 + (random >> 40) % 1900, permit, used));
            uses.push((step, used));
        }
        for at in (0..open.len()).rev() {
            if open[at].0 <= step {
                let (_, permit, used) = open.swap_remove(at);
                desk.settle(permit, Cost::new(used, 0));
            }
        }
    }
    let minute = |from: u64| -> u64 {
        uses.iter()
            .filter(|(step, _)| (from..from + 6000).contains(step))
            .map(|(_, used)| used)
            .sum()
    };
    let shares: Vec<f64> =
        (6000..24_000).step_by(500).map(|from| minute(from) as f64 / 60_000.0).collect();
    let (least, most) = shares
        .iter()
        .fold((f64::MAX, 0.0_f64), |(least, most), share| (least.min(*share), most.max(*share)));
    println!("used in a minute: {least:.3} to {most:.3} of the limit");
    assert!(most <= 1.08, "{most}");
    assert!(least >= 0.97, "{least}");
}
