//! Bands against each other, and how far a burst overfills an engine.

use std::time::Duration;

use types::Priority;

use super::{Claim, Trial, class, measured};
use crate::arrivals::Arrivals;
use crate::crowd::ceilings::Ceiling;
use crate::crowd::play::{Class, Played};
use crate::plan::PlanError;

/// Requests that an engine runs at once (`max_num_seqs` of the simulated ones).
const BATCH: u32 = 256;

/// All bands together at 1.6 times what the fleet can do.
pub(super) fn priorities(trial: &Trial) -> Result<Claim, PlanError> {
    let critical = class("critical", Priority::CRITICAL, 0.2);
    let standard = class("standard", Priority::STANDARD, 0.6);
    let sheddable = class("sheddable", Priority::SHEDDABLE, 0.8);
    let alone = trial.crowd(vec![critical]).play(trial.seed)?.ttft(0);
    let played = trial.crowd(vec![critical, standard, sheddable]).play(trial.seed)?;
    let crowded = played.ttft(0);
    let refused = [0, 1, 2].map(|class| refused(&played, class) * 100.0);
    Ok(Claim {
        name: "priorities",
        says: "Sheddable is shed first, and Critical hardly notices: all of it is answered, P99 TTFT within a second",
        measured: vec![
            measured("Critical P50 TTFT alone", alone.at(0.5), "ms"),
            measured("Critical P50 TTFT in overload", crowded.at(0.5), "ms"),
            measured("Critical P99 TTFT alone", alone.at(0.99), "ms"),
            measured("Critical P99 TTFT in overload", crowded.at(0.99), "ms"),
            measured("Standard P50 TTFT in overload", played.ttft(1).at(0.5), "ms"),
            measured("Critical refused", refused[0], "%"),
            measured("Standard refused", refused[1], "%"),
            measured("Sheddable refused", refused[2], "%"),
        ],
        is_met: refused[0] == 0.0
            && refused[1] < 0.1
            && refused[2] > 20.0
            && crowded.at(0.99) < 1000.0,
    })
}

fn refused(played: &Played, class: usize) -> f64 {
    let (mut all, mut refused) = (0.0, 0.0);
    for (_, record) in played.of_class(class) {
        all += 1.0;
        refused += f64::from(u8::from(record.finished.is_none()));
    }
    refused / f64::max(all, 1.0)
}

/// Bursts of four times what the fleet can do.
pub(super) fn overshoot(trial: &Trial) -> Result<Claim, PlanError> {
    let (length, period) = (Duration::from_secs(10), Duration::from_secs(60));
    let arrivals = Arrivals::Bursts { peak: 4.0, length, period, cv: 1.0 };
    let bursts = Class { arrivals, ..class("bursts", Priority::STANDARD, 1.0) };
    let played = trial.crowd(vec![bursts]).play(trial.seed)?;
    let waits = played.run.waits.unwrap_or_default();
    let (usual, most) = (waits.engine_queue(0.99), waits.engine_queue(1.0));
    let may_wait = match trial.ceiling {
        Ceiling::Waiting(requests) => requests,
        Ceiling::Reserve(_) => 2,
        Ceiling::InFlight(_) | Ceiling::None => 0,
    };
    let beyond = most.saturating_sub(may_wait);
    Ok(Claim {
        name: "overshoot",
        says: "bursts overfill no engine by more than one batch",
        measured: vec![
            measured(
                "waiting in an engine, P50 of steps",
                f64::from(waits.engine_queue(0.5)),
                "requests",
            ),
            measured("waiting in an engine, P99 of steps", f64::from(usual), "requests"),
            measured("waiting in an engine, most", f64::from(most), "requests"),
            measured(
                "beyond the ceiling, of a batch",
                f64::from(beyond) / f64::from(BATCH) * 100.0,
                "%",
            ),
        ],
        is_met: beyond <= BATCH,
    })
}
