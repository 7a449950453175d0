//! Requests that are worth nothing after a time.

use std::time::Duration;

use types::Priority;

use super::{Claim, Trial, class, measured};
use crate::crowd::play::Class;
use crate::plan::PlanError;

const DEADLINE: Duration = Duration::from_secs(2);

/// A third more than the fleet can do, each with two seconds to its first token.
pub(super) fn deadlines(trial: &Trial) -> Result<Claim, PlanError> {
    let hasty = class("hasty", Priority::STANDARD, 1.3);
    let hasty = Class { deadline: Some(DEADLINE), flows: 3, ..hasty };
    let played = trial.crowd(vec![hasty]).play(trial.seed)?;
    let waits = played.run.waits.clone().unwrap_or_default();
    let (mut all, mut at_once, mut late, mut taken, mut made) = (0.0, 0.0, 0.0, 0.0, 0.0);
    for (at, record) in played.of_class(0) {
        let wait = &waits.by_request[at];
        all += 1.0;
        match (wait.let_in, wait.refused_first) {
            (Some(_), _) => {
                taken += 1.0;
                made += f64::from(u8::from(record.ttft().is_some_and(|ttft| ttft <= DEADLINE)));
            }
            (None, Some(refused)) if refused == record.at => at_once += 1.0,
            (None, _) => late += 1.0,
        }
    }
    let kept = made / f64::max(taken, 1.0);
    Ok(Claim {
        name: "deadlines",
        says: "what is sent makes its deadline (95 %), what cannot is refused at once",
        measured: vec![
            measured("sent", taken / all * 100.0, "%"),
            measured("of these in time", kept * 100.0, "%"),
            measured("refused at once", at_once / all * 100.0, "%"),
            measured("refused after a wait", late / all * 100.0, "%"),
        ],
        is_met: kept >= 0.95 && late < 0.05 * all,
    })
}
