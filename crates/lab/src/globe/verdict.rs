//! What must hold in every play of our policy.

use serde::Serialize;

use super::measure::{Outcome, TARGET_MS};
use super::scenario::{Deed, Scenario};

/// One invariant and whether it held.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Verdict {
    pub what: &'static str,
    pub value: f64,
    /// At most.
    pub bound: f64,
    pub holds: bool,
}

/// Judges a play.
pub fn judge(scenario: &Scenario, outcome: &Outcome) -> Vec<Verdict> {
    let at_most =
        |what, value: f64, bound: f64| Verdict { what, value, bound, holds: value <= bound };
    let mut verdicts = vec![
        at_most("requests to a member that was dead for 12 s", outcome.to_dead as f64, 0.0),
        at_most("attempts for each request", outcome.attempts, 1.2),
        at_most("recovery, s", outcome.recovery_seconds, 60.0),
        at_most("share that moves within 30 s at steady load", outcome.oscillation, 0.10),
    ];
    // Where the clusters that are left can do what is asked for.
    let has_room = !matches!(scenario.deed, Deed::Crowd(_) | Deed::Retries(_));
    if has_room {
        verdicts.push(at_most("failed while it lasts", outcome.failed_during, 0.01));
    }
    if matches!(scenario.deed, Deed::Prices(_)) {
        let target = f64::from(TARGET_MS);
        verdicts.push(at_most(
            "P99 of TTFT while prices decide, ms",
            outcome.during_p99_ms,
            target,
        ));
        verdicts.push(at_most("spent over what the soonest would cost", outcome.price, 1.0));
    }
    if outcome.limit_most > 0.0 {
        verdicts.push(at_most("the limit in any minute", outcome.limit_most, 1.10));
    }
    verdicts
}
