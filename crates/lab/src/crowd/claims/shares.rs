//! Fairness between the tenants of a band.

use types::Priority;

use super::{Claim, Trial, class, measured};
use crate::crowd::ceilings::Ceiling;
use crate::crowd::play::{Class, Played};
use crate::lengths::Lengths;
use crate::plan::PlanError;

const QUIET: u32 = 9;
const NOISE: f64 = 50.0;

/// At a fifth, a half and nine tenths of what an equal share of the fleet could do.
pub(super) fn light(trial: &Trial) -> Result<Claim, PlanError> {
    noisy_neighbour("noisy-neighbour-light", trial, 0.02)
}

pub(super) fn usual(trial: &Trial) -> Result<Claim, PlanError> {
    noisy_neighbour("noisy-neighbour", trial, 0.05)
}

pub(super) fn busy(trial: &Trial) -> Result<Claim, PlanError> {
    noisy_neighbour("noisy-neighbour-busy", trial, 0.09)
}

/// Ten tenants that take their share, and the same when the tenth takes fifty times as much.
///
/// * `share`: of the fleet, of each of them.
fn noisy_neighbour(name: &'static str, trial: &Trial, share: f64) -> Result<Claim, PlanError> {
    let quiet = class("quiet", Priority::STANDARD, share * f64::from(QUIET));
    let quiet = Class { flows: QUIET, ..quiet };
    let play = |trial: &Trial, noise: f64| {
        let mut classes = vec![quiet];
        if noise > 0.0 {
            classes.push(class("noisy", Priority::STANDARD, share * noise));
        }
        trial.crowd(classes).play(trial.seed)
    };
    let p99 = |played: &Played| played.ttft(0).at(0.99);
    let nine = play(trial, 0.0)?;
    let ten = play(trial, 1.0)?;
    let full = play(trial, (1.0 - share * f64::from(QUIET)) / share)?;
    let noisy = play(trial, NOISE)?;
    let unbounded = play(&Trial { ceiling: Ceiling::Waiting(2), ..*trial }, NOISE)?;
    let answered = noisy.of_class(0).filter(|(_, one)| one.finished.is_some()).count();
    let answered = answered as f64 / noisy.of_class(0).count().max(1) as f64;
    let all = |played: &Played| played.tokens_per_second(0) + played.tokens_per_second(1);
    let change = p99(&noisy) / p99(&ten) - 1.0;
    let lost = 1.0 - all(&noisy) / all(&unbounded);
    Ok(Claim {
        name,
        says: "ten tenants, one of them at 50 times its share: the others' P99 TTFT moves by less than 10 %",
        measured: vec![
            measured("quiet P50 TTFT, the tenth at its share", ten.ttft(0).at(0.5), "ms"),
            measured("quiet P50 TTFT, the tenth at 50 times it", noisy.ttft(0).at(0.5), "ms"),
            measured("quiet P99 TTFT, nine tenants", p99(&nine), "ms"),
            measured("quiet P99 TTFT, the tenth at its share", p99(&ten), "ms"),
            measured("quiet P99 TTFT, the tenth takes what is left", p99(&full), "ms"),
            measured("quiet P99 TTFT, the tenth at 50 times its share", p99(&noisy), "ms"),
            measured("change to the tenth at its share", change * 100.0, "%"),
            measured("change to nine tenants", (p99(&noisy) / p99(&nine) - 1.0) * 100.0, "%"),
            measured("change to what is left", (p99(&noisy) / p99(&full) - 1.0) * 100.0, "%"),
            measured("quiet answered", answered * 100.0, "%"),
            measured("tokens lost to 2 waiting, of all", lost * 100.0, "%"),
        ],
        is_met: change < 0.1 && answered > 0.999,
    })
}

/// Two tenants that each want all: one with prompts twenty times as long as the other's.
pub(super) fn token_shares(trial: &Trial) -> Result<Claim, PlanError> {
    let tenant = |flow, prompt| {
        let base = class(flow, Priority::STANDARD, 1.0);
        Class { prompt: Lengths::Fixed(prompt), answer: Lengths::Fixed(200), ..base }
    };
    let played = trial.crowd(vec![tenant("long", 6000), tenant("short", 300)]).play(trial.seed)?;
    let (long, short) = (played.tokens_per_second(0), played.tokens_per_second(1));
    let off = (long / ((long + short) / 2.0) - 1.0) * 100.0;
    Ok(Claim {
        name: "token-shares",
        says: "tenants with long and with short prompts get equal shares of tokens within 5 %",
        measured: vec![
            measured("long", long, "tokens/s"),
            measured("short", short, "tokens/s"),
            measured("long from an equal share", off, "%"),
        ],
        is_met: off.abs() < 5.0,
    })
}
