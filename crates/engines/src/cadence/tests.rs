use proptest::prelude::*;

use super::*;

const QUICK: Duration = Duration::from_millis(2);
const GOOD: Outcome = Outcome::Good { changed: false };

fn millis(value: u64) -> Duration {
    Duration::from_millis(value)
}

fn cadence() -> Cadence {
    Cadence::new(Config::default(), EndpointId(7))
}

/// Scrapes `count` times, each ending `took` after it was due; the time after the last.
fn scrape(
    cadence: &mut Cadence,
    count: u32,
    outcome: Outcome,
    in_flight: u32,
    took: Duration,
) -> Timestamp {
    let mut due = cadence.next;
    for _ in 0..count {
        due = cadence.after_scrape(due + took, outcome, in_flight, took);
    }
    due
}

fn assert_near(seen: Duration, wanted: Duration) {
    let bounds = wanted.mul_f64(0.79)..=wanted.mul_f64(1.21);
    assert!(bounds.contains(&seen), "{seen:?} is not about {wanted:?}");
}

#[test]
fn a_busy_endpoint_is_asked_at_the_busy_interval() {
    for outcome in [GOOD, Outcome::Good { changed: true }] {
        let in_flight = u32::from(outcome == GOOD);
        let mut cadence = cadence();
        let start = scrape(&mut cadence, 1, outcome, in_flight, QUICK);
        let end = scrape(&mut cadence, 100, outcome, in_flight, QUICK);
        assert_near(end.since(start) / 100, millis(102));
        assert_near(cadence.observed_interval(), millis(102));
    }
}

#[test]
fn an_idle_endpoint_slows_down_step_by_step_to_the_idle_interval() {
    let mut cadence = cadence();
    for expected in [200, 400, 800, 1600, 2000, 2000] {
        let before = cadence.next + QUICK;
        let next = scrape(&mut cadence, 1, GOOD, 0, QUICK);
        assert_near(next.since(before), millis(expected));
    }
}

#[test]
fn a_request_wakes_an_idle_endpoint_within_a_busy_interval() {
    let mut cadence = cadence();
    let due = scrape(&mut cadence, 20, GOOD, 0, QUICK);
    let now = Timestamp(due.as_nanos() - 1_500_000_000);
    let woken = cadence.woken(now);
    assert_near(woken.since(now), millis(100));
    assert_eq!(cadence.woken(now + millis(50)), woken, "a second request must not push it back");
}

#[test]
fn waking_never_postpones_a_scrape() {
    let mut cadence = cadence();
    let due = scrape(&mut cadence, 20, GOOD, 0, QUICK);
    let now = Timestamp(due.as_nanos() - 1_000_000);
    assert_eq!(cadence.woken(now), due);
}

#[test]
fn waking_spares_a_failing_or_slow_endpoint() {
    let mut failing = cadence();
    let due = scrape(&mut failing, 6, Outcome::Failed, 0, QUICK);
    assert_eq!(failing.woken(Timestamp(due.as_nanos() - 3_000_000_000)), due);

    let mut slow = cadence();
    let due = scrape(&mut slow, 20, GOOD, 0, millis(200));
    let ended = slow.not_before.since(Timestamp::ZERO) - millis(1800);
    let woken = slow.woken(Timestamp::from_duration(ended));
    assert!(woken <= due && woken.since(Timestamp::from_duration(ended)) >= millis(1800));
}

#[test]
fn a_failing_endpoint_backs_off_to_a_bound_and_returns_at_once_when_good() {
    let mut cadence = cadence();
    for expected in [200, 400, 800, 1600, 3200, 5000, 5000] {
        let before = cadence.next + QUICK;
        let next = scrape(&mut cadence, 1, Outcome::Failed, 9, QUICK);
        assert_near(next.since(before), millis(expected));
    }
    let before = cadence.next + QUICK;
    assert_near(scrape(&mut cadence, 1, GOOD, 0, QUICK).since(before), millis(100));
}

#[test]
fn a_slow_page_is_read_a_tenth_of_the_time_at_most() {
    let took = millis(300);
    for outcome in [GOOD, Outcome::Failed] {
        let mut cadence = cadence();
        let start = scrape(&mut cadence, 1, outcome, 5, took);
        let end = scrape(&mut cadence, 50, outcome, 5, took);
        assert!(end.since(start) >= took * 10 * 50, "{:?}", end.since(start));
    }
}

#[test]
fn the_stale_limit_follows_what_slow_pages_allow() {
    let mut cadence = cadence();
    scrape(&mut cadence, 30, GOOD, 5, millis(250));
    assert_near(cadence.observed_interval(), millis(2600));
    assert!(cadence.stale_after() >= 3 * millis(2500), "{:?}", cadence.stale_after());
}

#[test]
fn a_busy_endpoint_is_not_stale_for_one_slow_answer() {
    let mut cadence = cadence();
    scrape(&mut cadence, 30, GOOD, 5, QUICK);
    assert_eq!(cadence.stale_after(), Config::default().timeout);
}

#[test]
fn an_endpoint_that_goes_idle_is_not_stale_between_its_rarer_scrapes() {
    let mut cadence = cadence();
    scrape(&mut cadence, 50, GOOD, 5, QUICK);
    for _ in 0..10 {
        let before = cadence.next;
        let next = scrape(&mut cadence, 1, GOOD, 0, QUICK);
        assert!(cadence.stale_after() >= next.since(before) + QUICK, "{:?}", cadence.stale_after());
    }
}

#[test]
fn failures_do_not_stretch_the_stale_limit() {
    let mut cadence = cadence();
    scrape(&mut cadence, 30, GOOD, 5, QUICK);
    let before = cadence.stale_after();
    scrape(&mut cadence, 10, Outcome::Failed, 5, millis(1000));
    assert_eq!(cadence.stale_after(), before);
    scrape(&mut cadence, 1, GOOD, 5, QUICK);
    assert!(cadence.stale_after() <= before * 2, "{:?}", cadence.stale_after());
}

/// Scrapes of `count` endpoints that are all added at zero, in `seconds`; each takes `QUICK`.
fn fleet(count: u32, in_flight: u32, seconds: u64) -> Vec<Timestamp> {
    let mut scrapes = Vec::new();
    for id in 0..count {
        let mut cadence = Cadence::new(Config::default(), EndpointId(id));
        let mut due = cadence.first(Timestamp::ZERO);
        while due < Timestamp::from_millis(seconds * 1000) {
            scrapes.push(due);
            due = cadence.after_scrape(due + QUICK, GOOD, in_flight, QUICK);
        }
    }
    scrapes.sort_unstable();
    scrapes
}

#[test]
fn a_hundred_idle_endpoints_are_scraped_fifty_times_a_second_and_never_together() {
    let scrapes = fleet(100, 0, 120);
    let settled = scrapes.iter().filter(|due| **due > Timestamp::from_millis(20_000)).count();
    assert!((4_800..=5_200).contains(&settled), "{settled} in 100 s");
    let most_in_100_ms = scrapes.windows(21).filter(|run| run[20].since(run[0]) < millis(100));
    let crowded = most_in_100_ms.filter(|run| run[0] > Timestamp::from_millis(20_000)).count();
    assert_eq!(crowded, 0, "more than 20 of 100 endpoints within 100 ms");
}

#[test]
fn busy_endpoints_that_start_together_do_not_tick_together() {
    let scrapes = fleet(100, 1, 10);
    assert!((9_200..=10_200).contains(&scrapes.len()), "{}", scrapes.len());
    let crowded = scrapes.windows(31).filter(|run| run[30].since(run[0]) < millis(10)).count();
    assert_eq!(crowded, 0, "more than 30 of 100 endpoints within 10 ms");
}

proptest! {
    #[test]
    fn the_next_scrape_lies_ahead_and_within_bounds(
        id in any::<u32>(),
        start in 0_u64..u64::MAX / 4,
        steps in proptest::collection::vec((0_u8..4, 0_u32..3, 0_u64..5_000, 0_u64..3_000), 1..60),
    ) {
        let config = Config::default();
        let mut cadence = Cadence::new(config, EndpointId(id));
        let mut now = Timestamp(start);
        cadence.first(now);
        for (kind, in_flight, took, later) in steps {
            now = now + millis(later);
            let next = match kind {
                0 => cadence.after_scrape(now, Outcome::Failed, in_flight, millis(took)),
                1 => cadence.woken(now),
                _ => cadence.after_scrape(now, Outcome::Good { changed: kind == 3 }, in_flight, millis(took)),
            };
            prop_assert!(next.since(now) <= config.timeout * 11);
            if kind != 1 {
                prop_assert!(next.since(now) >= config.busy.mul_f64(0.79));
            }
            prop_assert!(cadence.stale_after() >= config.timeout);
            prop_assert!(cadence.stale_after() <= config.timeout * 100);
        }
    }

    #[test]
    fn no_setting_makes_it_panic(busy in any::<u64>(), idle in any::<u64>(), took in any::<u64>()) {
        let [busy, idle, took] = [busy, idle, took].map(Duration::from_secs);
        let config = Config { busy, idle, timeout: Duration::MAX };
        let mut cadence = Cadence::new(config, EndpointId(0));
        cadence.first(Timestamp(u64::MAX));
        for outcome in [GOOD, GOOD, Outcome::Failed, Outcome::Failed, GOOD] {
            cadence.after_scrape(Timestamp(u64::MAX), outcome, 0, took);
            cadence.woken(Timestamp::ZERO);
            cadence.stale_after();
        }
    }
}
