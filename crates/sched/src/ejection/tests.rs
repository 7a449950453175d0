use std::sync::Arc;
use std::time::Duration;

use types::{EndpointId, EndpointMetrics, Slot, Timestamp};

use super::{Ejection, Health, Outcome};
use crate::EndpointState;

fn at(millis: u64) -> Timestamp {
    Timestamp::from_millis(millis)
}

fn fail(ejection: &Ejection, times: usize, millis: u64) {
    for _ in 0..times {
        ejection.record(Outcome::Failure, at(millis));
    }
}

/// The time until the endpoint is due for a trial again, in milliseconds from `millis`.
fn time_out(ejection: &Ejection, millis: u64) -> u64 {
    (0..).step_by(500).find(|wait| ejection.health(0, at(millis + wait)).usable()).unwrap()
}

#[test]
fn one_connect_failure_ejects_at_once() {
    let ejection = Ejection::default();
    ejection.record(Outcome::ConnectFailure, at(0));
    assert_eq!(ejection.health(0, at(0)), Health::Unreachable);
    assert_eq!(ejection.health(0, at(1999)), Health::Unreachable);
    assert_eq!(ejection.health(0, at(2000)), Health::Trial);
}

#[test]
fn repeated_connect_failures_double_the_time_out_up_to_its_limit() {
    let ejection = Ejection::default();
    let mut now = 0;
    let mut waits = Vec::new();
    for _ in 0..7 {
        ejection.record(Outcome::ConnectFailure, at(now));
        waits.push(time_out(&ejection, now));
        now += waits.last().unwrap();
    }
    assert_eq!(waits, [2000, 4000, 8000, 16_000, 30_000, 30_000, 30_000]);
}

#[test]
fn many_connect_failures_at_once_count_as_one() {
    let ejection = Ejection::default();
    for _ in 0..50 {
        ejection.record(Outcome::ConnectFailure, at(10));
    }
    assert_eq!(time_out(&ejection, 10), 2000);
}

#[test]
fn the_fifth_failure_in_a_row_ejects_and_no_earlier_one() {
    let ejection = Ejection::default();
    fail(&ejection, 4, 0);
    assert_eq!(ejection.health(0, at(0)), Health::Healthy);
    fail(&ejection, 1, 0);
    assert_eq!(ejection.health(0, at(0)), Health::Failing);
    assert_eq!(time_out(&ejection, 0), 30_000);
}

#[test]
fn a_success_between_failures_starts_the_count_anew() {
    let ejection = Ejection::default();
    fail(&ejection, 4, 0);
    ejection.record(Outcome::Success, at(0));
    fail(&ejection, 4, 0);
    assert_eq!(ejection.health(0, at(0)), Health::Healthy);
}

#[test]
fn client_errors_and_429_never_eject() {
    let ejection = Ejection::default();
    for _ in 0..1000 {
        ejection.record(Outcome::Neutral, at(0));
    }
    assert_eq!(ejection.health(0, at(0)), Health::Healthy);
}

#[test]
fn each_further_ejection_lasts_longer_up_to_its_limit() {
    let ejection = Ejection::default();
    fail(&ejection, 5, 0);
    let mut now = 30_000;
    let mut waits = Vec::new();
    for _ in 0..11 {
        // The trial fails: one failure is enough.
        fail(&ejection, 1, now);
        waits.push(time_out(&ejection, now) / 1000);
        now += waits.last().unwrap() * 1000;
    }
    assert_eq!(waits, [60, 90, 120, 150, 180, 210, 240, 270, 300, 300, 300]);
}

#[test]
fn a_returning_endpoint_gets_one_trial_at_a_time() {
    let state = Arc::new(EndpointState::new(EndpointId(1), Slot(1)));
    state.record_outcome(Outcome::ConnectFailure, at(0));
    let trial = state.reserve(10, at(2000));
    assert_eq!(state.observe(None, at(2000)).health, Health::Held);
    drop(trial);
    assert_eq!(state.observe(None, at(2000)).health, Health::Trial, "given back on drop");
}

#[test]
fn a_trial_that_ends_without_a_verdict_does_not_lock_the_endpoint_out() {
    let state = Arc::new(EndpointState::new(EndpointId(1), Slot(1)));
    state.record_outcome(Outcome::ConnectFailure, at(0));
    for _ in 0..10 {
        let trial = state.reserve(10, at(5000));
        state.record_outcome(Outcome::Neutral, at(5000));
        drop(trial);
        assert!(!state.observe(None, at(5000)).ejected);
    }
}

#[test]
fn after_a_good_trial_the_cap_on_in_flight_rises_until_it_is_gone() {
    let ejection = Ejection::default();
    ejection.record(Outcome::ConnectFailure, at(0));
    ejection.record(Outcome::Success, at(2000));
    let cap_at = |millis: u64| (0..4096).find(|n| !ejection.health(*n, at(2000 + millis)).usable());
    let caps = [0, 1000, 3000, 9000, 10_000].map(cap_at);
    assert_eq!(caps, [Some(1), Some(2), Some(8), Some(512), None]);
}

#[test]
fn failures_during_the_ramp_eject_again_for_longer() {
    let ejection = Ejection::default();
    fail(&ejection, 5, 0);
    ejection.record(Outcome::Success, at(30_000));
    fail(&ejection, 5, 31_000);
    assert_eq!(time_out(&ejection, 31_000), 60_000);
}

#[test]
fn a_success_after_the_ramp_forgets_earlier_ejections() {
    let ejection = Ejection::default();
    fail(&ejection, 5, 0);
    ejection.record(Outcome::Success, at(30_000));
    ejection.record(Outcome::Success, at(41_000));
    fail(&ejection, 5, 50_000);
    assert_eq!(time_out(&ejection, 50_000), 30_000);
}

#[test]
fn an_old_request_that_succeeds_while_the_endpoint_is_out_changes_nothing() {
    let ejection = Ejection::default();
    fail(&ejection, 5, 0);
    ejection.record(Outcome::Success, at(1000));
    assert_eq!(ejection.health(0, at(1000)), Health::Failing);
}

#[test]
fn a_good_scrape_brings_an_unreachable_endpoint_back_to_trial_early() {
    let state = Arc::new(EndpointState::new(EndpointId(1), Slot(1)));
    for millis in [0, 2000] {
        state.record_outcome(Outcome::ConnectFailure, at(millis));
    }
    assert!(state.observe(None, at(3000)).ejected);
    state.record_scrape(&EndpointMetrics::default(), at(3000), Duration::from_secs(1));
    assert_eq!(state.observe(None, at(3000)).health, Health::Trial);
}

#[test]
fn a_good_scrape_does_not_bring_back_an_endpoint_that_answers_with_failures() {
    let ejection = Ejection::default();
    fail(&ejection, 5, 0);
    ejection.record_scrape(at(100));
    assert_eq!(ejection.health(0, at(100)), Health::Failing);
}

#[test]
fn good_scrapes_stop_helping_an_endpoint_that_keeps_refusing_connections() {
    let ejection = Ejection::default();
    let mut now = 0;
    for _ in 0..4 {
        ejection.record(Outcome::ConnectFailure, at(now));
        now += 30_000;
    }
    now -= 30_000;
    ejection.record_scrape(at(now + 100));
    assert_eq!(ejection.health(0, at(now + 100)), Health::Unreachable);
}
