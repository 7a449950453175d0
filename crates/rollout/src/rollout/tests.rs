use std::time::Duration;

use types::Timestamp;

use super::*;
use crate::Phase;

const ALL: fn(usize) -> bool = |_| true;
const GUARD: Guard = Guard {
    error_rate: 0.05,
    ttft_ratio: 1.5,
    ttft_slack: Duration::from_millis(50),
    window: Duration::from_secs(60),
    requests_min: 20,
};

fn at(millis: u64) -> Timestamp {
    Timestamp::from_millis(1_000_000 + millis)
}

fn split(weights: &[(&str, u32)], guard: Option<Guard>) -> Rollout {
    let targets = weights
        .iter()
        .map(|(name, weight)| Target { name: (*name).into(), weight: *weight, is_stable: false })
        .collect();
    Rollout::new(Plan { targets, guard }, 1)
}

fn canary(guard: Guard) -> Rollout {
    split(&[("v1", 90), ("v2", 10)], Some(guard))
}

fn sample(failed: bool, ttft_ms: u64) -> Sample {
    Sample { failed: Some(failed), ttft: Some(Duration::from_millis(ttft_ms)) }
}

/// Ends a request on each side every 100 ms; when the canary is taken back, if it is.
fn run(
    rollout: &Rollout,
    from_ms: u64,
    seconds: u64,
    canary: impl Fn(u64) -> Sample,
) -> Option<u64> {
    (0..seconds * 10).find_map(|n| {
        let now = from_ms + n * 100;
        let taken = [(0, sample(false, 100)), (1, canary(n))]
            .map(|(target, sample)| rollout.record(target, sample, at(now)));
        taken.into_iter().flatten().next().map(|target| {
            assert_eq!(target, 1);
            now
        })
    })
}

fn shares(rollout: &Rollout) -> Vec<f64> {
    rollout.status(at(0)).targets.iter().map(|target| target.share).collect()
}

#[test]
fn a_canary_that_fails_loses_its_traffic_at_once_and_says_why() {
    let rollout = canary(GUARD);
    let taken = run(&rollout, 0, 60, |n| sample(n % 4 == 0, 100)).expect("it is taken back");
    assert!(taken < 30_000, "{taken}");
    assert_eq!(shares(&rollout), [1.0, 0.0]);
    for _ in 0..100 {
        assert_eq!(rollout.choose(None, ALL), Some(0));
    }
    assert!((0..100).all(|key| rollout.choose(Some(key), ALL) == Some(0)));
    let status = rollout.status(at(taken));
    assert_eq!(status.phase, Phase::RolledBack);
    let back = status.targets[1].rolled_back.clone().unwrap();
    assert_eq!((back.at, back.reason.kind()), (at(taken), "error_rate"));
    assert!(back.reason.to_string().contains("against 0.0 % on the stable side"));
}

#[test]
fn a_canary_that_is_slow_is_taken_back_and_one_that_is_not_stays() {
    let slow = canary(GUARD);
    assert!(run(&slow, 0, 60, |_| sample(false, 400)).is_some());
    let fine = canary(GUARD);
    assert_eq!(run(&fine, 0, 300, |n| sample(n % 50 == 0, 120)), None);
}

#[test]
fn one_bad_moment_is_no_breach() {
    let rollout = canary(GUARD);
    // Two failures in the first twenty, then none: seen, but gone before it was seen three times.
    assert_eq!(run(&rollout, 0, 120, |n| sample(n < 2, 100)), None);
}

#[test]
fn without_a_guard_nobody_is_taken_back() {
    let rollout = split(&[("v1", 90), ("v2", 10)], None);
    assert_eq!(run(&rollout, 0, 60, |_| sample(true, 9000)), None);
}

#[test]
fn what_a_client_did_wrong_says_nothing_of_a_target() {
    let rollout = canary(GUARD);
    assert_eq!(run(&rollout, 0, 60, |_| Sample::default()), None);
    assert_eq!(rollout.status(at(0)).targets[1].requests, 0);
}

#[test]
fn a_roll_back_lasts_until_somebody_resumes_and_then_begins_afresh() {
    let rollout = canary(GUARD);
    let taken = run(&rollout, 0, 60, |_| sample(true, 100)).unwrap();
    // The canary's stragglers do not bring it back, nor does time.
    assert_eq!(run(&rollout, taken, 120, |_| sample(false, 100)), None);
    assert_eq!(rollout.set(&[("v2", 50)]), Err(Refused::Held("rolled back")));
    assert_eq!(rollout.step(None, None), Err(Refused::Held("rolled back")));
    rollout.resume(None, None).unwrap();
    assert_eq!(shares(&rollout), [0.9, 0.1]);
    assert_eq!(rollout.status(at(taken)).phase, Phase::Active);
    assert_eq!(run(&rollout, taken + 200_000, 60, |_| sample(false, 100)), None);
    assert_eq!(rollout.resume(None, None), Err(Refused::Running));
}

#[test]
fn a_canary_with_all_traffic_gives_it_back_to_the_stable_target() {
    let rollout = canary(GUARD);
    rollout.set(&[("v1", 0), ("v2", 1)]).unwrap();
    assert_eq!(shares(&rollout), [0.0, 1.0]);
    for n in 0..200 {
        rollout.record(1, sample(true, 100), at(n * 200));
    }
    assert_eq!(shares(&rollout), [1.0, 0.0]);
}

#[test]
fn of_several_canaries_only_the_bad_one_is_taken_back() {
    let rollout = split(&[("v1", 80), ("v2", 10), ("v3", 10)], Some(GUARD));
    let back = (0..600).find_map(|n| {
        let fails = [false, false, n % 2 == 0].into_iter().enumerate();
        let mut taken = fails
            .map(|(at_target, failed)| rollout.record(at_target, sample(failed, 100), at(n * 100)));
        taken.find_map(|taken| taken)
    });
    assert_eq!(back, Some(2));
    assert_eq!(shares(&rollout), [80.0 / 90.0, 10.0 / 90.0, 0.0]);
}

#[test]
fn steps_climb_to_all_and_say_when_there_is_no_more() {
    let rollout = split(&[("v1", 100), ("v2", 0)], None);
    for wanted in [0.01, 0.05, 0.1, 0.25, 0.5, 1.0] {
        assert_eq!(rollout.step(None, None), Ok(wanted));
        assert!((shares(&rollout)[1] - wanted).abs() < 1e-6);
    }
    assert_eq!(rollout.step(None, None), Err(Refused::Top("v2".to_owned())));
    assert_eq!(rollout.step(Some("v2"), Some(0.3)), Ok(0.3));
    assert!(rollout.status(at(0)).is_overridden);
    rollout.set(&[("v1", 100), ("v2", 0)]).unwrap();
    assert!(!rollout.status(at(0)).is_overridden);
}

#[test]
fn a_pause_holds_the_weights_but_not_the_guard() {
    let rollout = canary(GUARD);
    rollout.pause().unwrap();
    assert_eq!(rollout.step(None, None), Err(Refused::Held("paused")));
    assert_eq!(shares(&rollout), [0.9, 0.1]);
    assert!(run(&rollout, 0, 60, |_| sample(true, 100)).is_some());
    rollout.resume(None, Some(0.01)).unwrap();
    assert_eq!(shares(&rollout), [0.99, 0.01]);
    assert_eq!(rollout.status(at(0)).phase, Phase::Active);
}

#[test]
fn an_operator_can_take_back_what_is_not_stable() {
    let rollout = split(&[("v1", 80), ("v2", 10), ("v3", 10)], None);
    let refused = rollout.roll_back(Some("v1"), "no", at(0));
    assert_eq!(refused, Err(Refused::Stable("v1".to_owned())));
    rollout.roll_back(Some("v2"), "answers are wrong", at(5)).unwrap();
    let back = rollout.status(at(9)).targets[1].rolled_back.clone().unwrap();
    assert_eq!((back.reason.to_string().as_str(), back.at), ("answers are wrong", at(5)));
    assert!(rollout.status(at(9)).targets[2].rolled_back.is_none());
    rollout.roll_back(None, "all of it", at(6)).unwrap();
    assert_eq!(shares(&rollout), [1.0, 0.0, 0.0]);
}

#[test]
fn what_cannot_be_done_is_refused_with_what_can() {
    let rollout = split(&[("v1", 80), ("v2", 10), ("v3", 10)], None);
    let unknown = rollout.set(&[("v9", 1)]).unwrap_err();
    assert_eq!(unknown.to_string(), "there is no target `v9`; targets: v1, v2, v3");
    assert_eq!(rollout.step(None, None), Err(Refused::Which("v2, v3".to_owned())));
    let zero = [("v1", 0), ("v2", 0), ("v3", 0)];
    assert_eq!(rollout.set(&zero), Err(Refused::Weights));
    assert_eq!(rollout.set(&[("v1", WEIGHT_MAX + 1)]), Err(Refused::Weights));
    let single = split(&[("v1", 1)], None);
    assert_eq!(single.step(None, None), Err(Refused::Single));
    assert_eq!(single.roll_back(None, "", at(0)), Err(Refused::Single));
}

#[test]
fn the_marked_target_is_stable_whatever_its_weight() {
    let targets = [("v1", 10, true), ("v2", 90, false)].map(|(name, weight, is_stable)| Target {
        name: name.into(),
        weight,
        is_stable,
    });
    let rollout = Rollout::new(Plan { targets: targets.into(), guard: None }, 0);
    let stable: Vec<_> = rollout.status(at(0)).targets.iter().map(|t| t.is_stable).collect();
    assert_eq!(stable, [true, false]);
}
