//! Whether a refused client that comes back when told to is let in.

use std::time::Duration;

use types::Priority;

use super::{Claim, Trial, class, measured};
use crate::arrivals::Arrivals;
use crate::crowd::guests::Patience;
use crate::crowd::play::{Class, Crowd};
use crate::plan::PlanError;

const SAYS: &str = "of the clients that come back when told to, nine in ten are let in";

pub(super) fn after_a_burst(trial: &Trial) -> Result<Claim, PlanError> {
    // For 30 s of each three minutes three and a half times what the fleet can do.
    let (length, period) = (Duration::from_secs(30), Duration::from_secs(180));
    let arrivals = Arrivals::Bursts { peak: 5.0, length, period, cv: 1.0 };
    let crowd = trial.crowd(obedient(0.7).map(|class| Class { arrivals, ..class }).into());
    judge("retry-after-burst", trial, crowd)
}

pub(super) fn at_load_1_3(trial: &Trial) -> Result<Claim, PlanError> {
    judge("retry-after-1.3", trial, trial.crowd(obedient(1.3).into()))
}

pub(super) fn at_load_2(trial: &Trial) -> Result<Claim, PlanError> {
    judge("retry-after-2.0", trial, trial.crowd(obedient(2.0).into()))
}

/// Three tenants, two of whom come back when told to and one that hurries.
fn obedient(load: f64) -> [Class; 3] {
    let tenant = |flow, patience| Class { patience, ..class(flow, Priority::STANDARD, load / 3.0) };
    [
        tenant("a", Patience::Obeys),
        tenant("b", Patience::Obeys),
        tenant("hurried", Patience::Hurries),
    ]
}

fn judge(name: &'static str, trial: &Trial, mut crowd: Crowd) -> Result<Claim, PlanError> {
    // Long enough that those who were told to come back can do so; a queue that is soon full.
    crowd.duration = crowd.duration.max(Duration::from_secs(300));
    crowd.config.band.limits.requests_max = Some(300);
    let played = crowd.play(trial.seed)?;
    let (returns, kept) = played.returns();
    let kept = kept as f64 / returns.max(1) as f64;
    let waited = |class: usize| {
        let waits = played.of_class(class).filter_map(|(_, one)| one.ttft());
        let (sum, count) = waits.fold((0.0, 0.0), |(s, n), ttft| (s + ttft.as_secs_f64(), n + 1.0));
        sum / f64::max(count, 1.0)
    };
    let served = |class: usize| played.tokens_per_second(class);
    Ok(Claim {
        name,
        says: SAYS,
        measured: vec![
            measured("came when told", returns as f64, ""),
            measured("let in", kept * 100.0, "%"),
            measured("answer tokens", played.output_tokens_per_second(), "tokens/s"),
            measured("mean TTFT from first try, obedient", (waited(0) + waited(1)) / 2.0, "s"),
            measured("mean TTFT from first try, hurried", waited(2), "s"),
            measured(
                "served, hurried to obedient",
                served(2) / ((served(0) + served(1)) / 2.0),
                "",
            ),
        ],
        is_met: returns > 0 && kept >= 0.9,
    })
}
