//! What the product does when endpoints fail, and when their pages lie, are late or do not come.

use std::time::Duration;

use sched::EjectionConfig;
use types::Timestamp;

use crate::arrivals::Arrivals;
use crate::fault::{Fault, FaultKind};
use crate::lengths::Lengths;
use crate::measure::{Fate, Record, Run};
use crate::plan::Settings;
use crate::policy::Policy;
use crate::simulation::{Scene, Simulation};
use crate::workload::{Sharing, Workload};

use super::engine;

const SHORT: Workload = Workload::new(
    Arrivals::Poisson,
    Sharing::Separate { prompt: Lengths::Fixed(400), answer: Lengths::Fixed(60) },
);
const SECONDS: u64 = 40;

fn fault(kind: FaultKind, endpoint: usize, count: usize, from: u64, lasts: u64) -> Fault {
    let (from, lasts) = (Duration::from_secs(from), Duration::from_secs(lasts));
    Fault { name: "it", kind, endpoint, count, from, lasts }
}

/// So many H100 under so many short requests a second, with these faults.
fn play(policy: Policy, endpoints: usize, rate: f64, faults: &[Fault]) -> Run {
    let specs = vec![engine("llama-3.1-8b/h100"); endpoints];
    let settings =
        Settings { warm_up: Duration::ZERO, ..Settings::new(Duration::from_secs(SECONDS)) };
    let requests = SHORT.requests(1, rate, settings.duration);
    let scene = Scene {
        specs: &specs,
        requests: &requests,
        faults,
        gateways: 1,
        settings: &settings,
        seed: 1,
        guests: None,
        is_stepwise: false,
    };
    Simulation::new(&scene, policy).run()
}

/// Requests that came in these seconds.
fn came(run: &Run, from: f64, to: f64) -> impl Iterator<Item = &Record> {
    let second = |seconds: f64| Timestamp::from_duration(Duration::from_secs_f64(seconds));
    let during = second(from)..second(to);
    run.records.iter().filter(move |record| during.contains(&record.at))
}

fn share_of(run: &Run, endpoint: usize, from: f64, to: f64) -> f64 {
    let sent = came(run, from, to).filter(|record| record.endpoint == Some(endpoint)).count();
    sent as f64 / came(run, from, to).count().max(1) as f64
}

fn failed(run: &Run) -> usize {
    run.records.iter().filter(|record| record.fate != Fate::Answered).count()
}

#[test]
fn a_death_costs_at_most_the_answers_that_had_begun_and_the_others_are_sent_elsewhere() {
    let run = play(Policy::Wicketgate, 4, 60.0, &[fault(FaultKind::Dead, 0, 1, 10, 10)]);
    let cut = run.records.iter().filter(|record| record.fate == Fate::Cut).count();
    assert!(run.in_flight_at_deaths > 0);
    assert!(failed(&run) == cut && cut <= run.in_flight_at_deaths, "{cut} cut");
    assert!(run.records.iter().any(|record| record.attempts > 1 && record.finished.is_some()));
    assert_eq!(share_of(&run, 0, 10.5, 19.9), 0.0, "nobody stays with the dead");
}

#[test]
fn an_endpoint_that_returns_gets_its_share_again_but_no_flood() {
    let run = play(Policy::Wicketgate, 4, 60.0, &[fault(FaultKind::Dead, 0, 1, 5, 10)]);
    let (first, later) = (share_of(&run, 0, 15.0, 25.0), share_of(&run, 0, 30.0, 40.0));
    assert!(first < 0.35, "{first} of the requests in the first ten seconds");
    assert!((0.15..0.35).contains(&later), "{later} later");
}

#[test]
fn an_endpoint_that_sheds_is_out_after_five_answers_in_a_row_and_costs_no_request() {
    let run = play(Policy::Wicketgate, 4, 60.0, &[fault(FaultKind::Shedding, 2, 1, 10, 10)]);
    assert_eq!(failed(&run), 0);
    let tried = run.records.iter().filter(|record| record.attempts > 1).count();
    let limit = EjectionConfig::default().failures as usize;
    // Those on their way when the fifth came back.
    assert!((limit..limit + 4).contains(&tried), "{tried} were answered with 503");
    assert_eq!(share_of(&run, 2, 11.0, 19.9), 0.0);
}

#[test]
fn a_reset_now_and_then_costs_a_second_attempt_and_no_request() {
    let resets = fault(FaultKind::Resets { share: 0.05 }, 0, 4, 0, SECONDS);
    for policy in [Policy::Wicketgate, Policy::PowerOfTwo] {
        let run = play(policy, 4, 60.0, &[resets]);
        let retried = run.records.iter().filter(|record| record.attempts > 1).count();
        let share = retried as f64 / run.records.len() as f64;
        assert!((0.03..0.07).contains(&share), "{}: {share}", policy.name());
        // Who is reset twice has failed: a twentieth of a twentieth.
        assert!(failed(&run) as f64 <= 0.006 * run.records.len() as f64, "{}", failed(&run));
    }
}

#[test]
fn an_endpoint_that_became_slow_gets_less() {
    let run =
        play(Policy::Wicketgate, 4, 60.0, &[fault(FaultKind::Slow { factor: 5.0 }, 1, 1, 10, 30)]);
    let (before, after) = (share_of(&run, 1, 3.0, 10.0), share_of(&run, 1, 20.0, 40.0));
    assert!(after < 0.6 * before, "{before} before, {after} after");
}

/// STALE-1: an endpoint whose page stops coming while it said that nothing waits there.
#[test]
fn an_endpoint_without_pages_fades_is_left_out_and_comes_back() {
    let run = play(Policy::Wicketgate, 4, 60.0, &[fault(FaultKind::NoPages, 3, 1, 5, 20)]);
    assert_eq!(failed(&run), 0);
    // Past five seconds its last page is not believed any more.
    assert!(share_of(&run, 3, 5.0, 9.0) < 0.35);
    assert_eq!(share_of(&run, 3, 11.0, 24.9), 0.0, "stale among fresh ones");
    let back = share_of(&run, 3, 31.0, 40.0);
    assert!((0.15..0.35).contains(&back), "{back} after its return");
}

/// STALE-2: all pages stop coming at once.
#[test]
fn without_any_page_requests_are_spread_by_our_own_account_and_none_is_refused() {
    let run = play(Policy::Wicketgate, 4, 60.0, &[fault(FaultKind::NoPages, 0, 4, 5, 30)]);
    assert_eq!(failed(&run), 0);
    for endpoint in 0..4 {
        let share = share_of(&run, endpoint, 12.0, 34.0);
        assert!((0.15..0.35).contains(&share), "endpoint {endpoint}: {share}");
    }
}

/// STALE-3: pages that take a quarter of a second each.
#[test]
fn slow_pages_make_no_endpoint_stale() {
    let slow = FaultKind::SlowPages { by: Duration::from_millis(250) };
    let run = play(Policy::Wicketgate, 4, 60.0, &[fault(slow, 0, 2, 0, SECONDS)]);
    assert_eq!(failed(&run), 0);
    for endpoint in 0..4 {
        let share = share_of(&run, endpoint, 5.0, 40.0);
        assert!((0.15..0.35).contains(&share), "endpoint {endpoint}: {share}");
    }
}

/// STALE-4: one endpoint, and its page does not come.
#[test]
fn the_only_endpoint_gets_its_requests_however_stale_it_is() {
    let run = play(Policy::Wicketgate, 1, 10.0, &[fault(FaultKind::NoPages, 0, 1, 2, 38)]);
    assert_eq!(failed(&run), 0);
    assert!(run.records.iter().all(|record| record.endpoint == Some(0)));
}

#[test]
fn an_endpoint_that_always_says_zero_does_not_draw_the_load() {
    let run = play(Policy::Wicketgate, 4, 60.0, &[fault(FaultKind::FrozenAtZero, 1, 1, 5, 35)]);
    assert_eq!(failed(&run), 0);
    let share = share_of(&run, 1, 6.0, 40.0);
    assert!(share < 0.4, "{share} of the requests");
}
