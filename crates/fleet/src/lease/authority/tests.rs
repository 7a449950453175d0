use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

fn at(ms: u64) -> Timestamp {
    Timestamp::from_millis(ms)
}

fn ask(holder: u64, holders: u32, demand: f64) -> Ask<u8> {
    let want = Want { key: 0, demand, holds: Share::NONE };
    Ask { holder, holders, leased_for: LEASE, wants: vec![want] }
}

/// The share that a holder gets, as a part of one.
fn share(authority: &mut Authority<u8>, ask: &Ask<u8>, ms: u64) -> f64 {
    let answer = authority.ask(ask, at(ms));
    f64::from(answer.grants[0].share.parts()) / 65536.0
}

/// One that has learned what there was to learn.
fn authority(reserves: bool) -> Authority<u8> {
    Authority::new(reserves, 0, at(0))
}

#[test]
fn one_holder_gets_all_and_a_second_one_its_part_within_a_refresh() {
    let mut authority = authority(true);
    assert_eq!(share(&mut authority, &ask(1, 0, 0.5), 2000), 1.0);
    assert_eq!(share(&mut authority, &ask(2, 0, 3.0), 2100), 0.0, "the first has all of it");
    let holds = |part: f64| {
        let mut ask = ask(1, 2, 0.5);
        ask.wants[0].holds = Share::of((part * 1000.0) as u64, 1000);
        Ask { leased_for: LEASE - REFRESH, ..ask }
    };
    let first = share(&mut authority, &holds(1.0), 2700);
    assert!((first - 0.5).abs() < 0.01, "{first}");
    // The answer may be lost; then the first one still has all of it.
    assert_eq!(share(&mut authority, &ask(2, 2, 3.0), 2800), 0.0);
    assert_eq!(share(&mut authority, &holds(first), 3400), first);
    let second = share(&mut authority, &ask(2, 2, 3.0), 3500);
    assert!((second - 0.5).abs() < 0.01, "{second}");
}

#[test]
fn a_holder_that_dies_keeps_one_lease_and_then_its_safe_part_only() {
    let mut authority = authority(true);
    share(&mut authority, &ask(1, 0, 3.0), 2000);
    share(&mut authority, &ask(2, 0, 3.0), 2000);
    // The first one is silent from here.
    let mut last = 0.0;
    for ms in (3000..6000).step_by(1000) {
        last = share(&mut authority, &ask(2, 2, 3.0), ms);
    }
    assert!(
        (last - 0.5).abs() < 0.01,
        "{last}: the other half may be spent by whoever was cut off"
    );
    authority.leave(1);
    assert_eq!(share(&mut authority, &ask(2, 2, 3.0), 6000), 1.0);
}

#[test]
fn where_the_cut_off_spend_nothing_nothing_is_reserved() {
    let mut authority = authority(false);
    share(&mut authority, &ask(1, 0, 3.0), 2000);
    for ms in [2000, 3000] {
        share(&mut authority, &ask(2, 2, 3.0), ms);
    }
    assert_eq!(share(&mut authority, &ask(2, 2, 3.0), 4000), 1.0);
}

#[test]
fn a_new_authority_grants_what_is_held_until_all_former_leases_have_ended() {
    let mut authority = authority(true);
    let holds = |holder, part| {
        let want = Want { key: 0, demand: 3.0, holds: Share::of(part, 10) };
        Ask { holder, holders: 2, leased_for: LEASE, wants: vec![want] }
    };
    let one = share(&mut authority, &holds(1, 1), 500);
    assert!((one - 0.1).abs() < 0.001);
    let other = share(&mut authority, &holds(2, 4), 600);
    assert!((other - 0.4).abs() < 0.001);
    let later = share(&mut authority, &holds(1, 1), 2600);
    assert!((later - 0.5).abs() < 0.01, "{later}");
}

#[test]
fn limits_that_nobody_asks_for_are_forgotten() {
    let mut authority = authority(true);
    for key in 0..100 {
        let want = Want { key, demand: 1.0, holds: Share::NONE };
        let ask = Ask { holder: 1, holders: 1, leased_for: LEASE, wants: vec![want] };
        authority.ask(&ask, at(3000));
    }
    authority.sweep(at(4000));
    assert_eq!(authority.limits(), 100);
    authority.sweep(at(7001));
    assert_eq!(authority.limits(), 0);
}

#[derive(Clone, Debug)]
struct Round {
    /// Milliseconds since the last one.
    pause: u64,
    holder: u64,
    demand: f64,
    /// Neither authority nor holder knows whether the other one got the message.
    is_ask_lost: bool,
    is_answer_lost: bool,
}

fn round() -> impl Strategy<Value = Round> {
    let loss = || prop::bool::weighted(0.3);
    let demand = prop_oneof![Just(0.0), 0.01..4.0_f64, Just(f64::NAN)];
    (0..1500_u64, 0..5_u64, demand, loss(), loss()).prop_map(
        |(pause, holder, demand, is_ask_lost, is_answer_lost)| Round {
            pause,
            holder,
            demand,
            is_ask_lost,
            is_answer_lost,
        },
    )
}

proptest! {
    /// Whoever is cut off spends its safe part. Five holders that know of each other.
    #[test]
    fn what_may_be_spent_at_one_instant_never_exceeds_the_limit(
        rounds in prop::collection::vec(round(), 1..200),
    ) {
        let mut authority = Authority::new(true, 5, at(0));
        let mut now = 10_000;
        // Of each holder: its lease, and until when.
        let mut held: BTreeMap<u64, (u32, u64)> = BTreeMap::new();
        for round in rounds {
            now += round.pause;
            if !round.is_ask_lost {
                let until = held.get(&round.holder).map_or(0, |(_, until)| *until);
                let leased_for = Duration::from_millis(until.saturating_sub(now));
                let mut ask = Ask { leased_for, ..ask(round.holder, 5, round.demand) };
                let held_now = held.get(&round.holder).filter(|(_, until)| now < *until);
                ask.wants[0].holds =
                    held_now.map_or(Share::NONE, |(parts, _)| Share::of_parts(*parts));
                let answer = authority.ask(&ask, at(now));
                prop_assert_eq!(answer.holders, 5);
                if !round.is_answer_lost {
                    let until = now + answer.lasts.as_millis() as u64;
                    held.insert(round.holder, (answer.grants[0].share.parts(), until));
                }
            }
            let safe = 65536 / 5;
            let spent: u32 = (0..5)
                .map(|holder| match held.get(&holder) {
                    Some((share, until)) if now < *until => *share,
                    // As `Holder` does: others may still hold what it did not use.
                    Some((share, until)) if now < *until + 2000 => safe.min(*share),
                    _ => safe,
                })
                .sum();
            prop_assert!(spent <= 65536, "{spent} of 65536 are spent");
        }
    }
}
