//! Where a rival is better, and what may be claimed where none is.

#[cfg(test)]
mod tests;

use lab::statistics::{EQUAL, NEVER_WORSE_P_MAX, holm};
use lab::{Change, Policy};

use super::measured::{Cell, GOODPUT, Measure, P95};

/// A rival that is better than ours by more than 5 % on average.
pub(super) struct Loss {
    pub(super) load: f64,
    pub(super) measure: &'static Measure,
    pub(super) rival: Policy,
    pub(super) ours: f64,
    pub(super) theirs: f64,
    /// From theirs to ours.
    pub(super) change: Change,
    /// Shares of requests that failed: ours and theirs. Times are only of those that got an answer.
    pub(super) failed: (f64, f64),
}

/// What counts: P95 of the time to the first token, and goodput.
const MEASURES: [&Measure; 2] = [&P95, &GOODPUT];

/// Every loss of a cell, the greatest first.
pub(super) fn losses(cell: &Cell) -> Vec<Loss> {
    let Some(ours) = cell.ours() else { return Vec::new() };
    let mut all = Vec::new();
    for measure in MEASURES {
        for rival in cell.rivals() {
            let Some(change) = cell.change(ours, rival, measure) else { continue };
            if measure.harm(change.mean) > EQUAL {
                all.push(Loss {
                    load: cell.load,
                    measure,
                    rival: cell.policies[rival],
                    ours: cell.mean(ours, measure),
                    theirs: cell.mean(rival, measure),
                    change,
                    failed: (cell.failed_share(ours), cell.failed_share(rival)),
                });
            }
        }
    }
    let harm = |loss: &Loss| loss.measure.harm(loss.change.mean);
    all.sort_by(|a, b| harm(b).total_cmp(&harm(a)));
    all
}

/// Every comparison with a rival, counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tally {
    /// Cells times rivals times measures.
    pub(super) comparisons: usize,
    /// Shown not to be worse by 5 %, corrected for the number of comparisons.
    pub(super) not_worse: usize,
    /// Worse by more than 5 % on average.
    pub(super) worse: usize,
}

impl Tally {
    pub(super) fn of<'a>(cells: impl Iterator<Item = &'a Cell>) -> Self {
        let mut tally = Self::default();
        let mut tests = Vec::new();
        for cell in cells {
            let Some(ours) = cell.ours() else { continue };
            tally.worse += losses(cell).len();
            for measure in MEASURES {
                for rival in cell.rivals() {
                    tally.comparisons += 1;
                    let paired = cell.paired(ours, rival, measure);
                    let p = paired.and_then(|paired| paired.p_not_worse(measure.better, EQUAL));
                    // What cannot be tested is not shown.
                    tests.push(p.unwrap_or(1.0));
                }
            }
        }
        tally.not_worse = holm(&tests).iter().filter(|p| **p < NEVER_WORSE_P_MAX).count();
        tally
    }

    /// Whether "never worse" may be said.
    pub(super) fn is_never_worse(&self) -> bool {
        self.comparisons > 0 && self.not_worse == self.comparisons
    }
}
