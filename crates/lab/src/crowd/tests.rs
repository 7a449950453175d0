//! The claims in short; `wicketgate bench flow` plays them at length.

use std::time::Duration;

use super::ceilings::{Ceiling, row};
use super::claims::{CLAIMS, Claim, Trial};

const DEFAULT: Ceiling = Ceiling::Reserve(200);
const WAITING: Ceiling = Ceiling::Waiting(2);

const SHORT: Duration = Duration::from_secs(20);
/// Where the first seconds, in which nothing is learned yet, would rule the result.
const SETTLED: Duration = Duration::from_secs(60);

fn claim(name: &str, ceiling: Ceiling, duration: Duration) -> Claim {
    let (_, run) = CLAIMS.into_iter().find(|(known, _)| *known == name).unwrap();
    run(&Trial { duration, ceiling, seed: 1 }).unwrap()
}

fn measured(claim: &Claim, what: &str) -> f64 {
    claim.measured.iter().find(|line| line.what == what).unwrap().value
}

#[test]
fn fifty_times_its_share_moves_the_others_little_with_headroom_and_many_times_without() {
    let [with, without] =
        [DEFAULT, WAITING].map(|ceiling| claim("noisy-neighbour", ceiling, SETTLED));
    let change = |claim: &Claim| measured(claim, "change to the tenth at its share");
    assert!(change(&with) < 60.0 && change(&without) > 400.0, "{with:?}, {without:?}");
    assert!(measured(&with, "quiet answered") > 99.9, "{with:?}");
    assert!(measured(&with, "tokens lost to 2 waiting, of all") < 12.0, "{with:?}");
}

#[test]
fn tenants_with_long_and_with_short_prompts_get_equal_tokens() {
    let claim = claim("token-shares", DEFAULT, SHORT);
    assert!(claim.is_met, "{claim:?}");
}

#[test]
fn critical_requests_hardly_notice_an_overload_and_sheddable_ones_are_shed() {
    let claim = claim("priorities", DEFAULT, SETTLED);
    assert!(claim.is_met, "{claim:?}");
}

#[test]
fn what_is_sent_makes_its_deadline_and_what_cannot_is_refused_at_once() {
    let claim = claim("deadlines", DEFAULT, SHORT);
    assert!(claim.is_met, "{claim:?}");
}

#[test]
fn nine_in_ten_who_come_when_told_after_a_burst_are_let_in_with_headroom_too() {
    let (_, run) = CLAIMS.into_iter().find(|(known, _)| *known == "retry-after-burst").unwrap();
    let claim = run(&Trial { duration: SHORT, ceiling: DEFAULT, seed: 2 }).unwrap();
    assert!(measured(&claim, "came when told") > 1000.0 && claim.is_met, "{claim:?}");
}

#[test]
fn bursts_do_not_overfill_an_engine() {
    let claim = claim("overshoot", DEFAULT, SHORT);
    assert!(claim.is_met, "{claim:?}");
}

#[test]
fn an_engine_kept_short_of_waiting_requests_loses_no_throughput() {
    let play = |ceiling| row("short-answers", ceiling, SETTLED, 1).unwrap();
    let (short, none) = (play(WAITING), play(Ceiling::None));
    assert!(short.output_tokens_per_second > 0.98 * none.output_tokens_per_second, "{short:?}");
    assert!(short.critical_ttft_p50_ms < 0.7 * none.critical_ttft_p50_ms, "{short:?}, {none:?}");
}

#[test]
fn equal_runs_give_equal_results() {
    let overshoot = || claim("overshoot", WAITING, SHORT);
    assert_eq!(overshoot(), overshoot());
}
