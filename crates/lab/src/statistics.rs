//! What may be said of one policy against another over the same seeds.
//!
//! A percentile is taken in each seed first; what is compared are the seeds' ratios, as logarithms.
//! Intervals are percentile bootstraps over seeds; tests are Student's, paired. "No significant
//! difference" is not parity: parity is a claim of its own, with a test of its own.

mod student;
#[cfg(test)]
mod tests;

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use crate::change::Change;
use student::above;

const RESAMPLES: usize = 10_000;
/// Fewest seeds of which an interval or a test is made.
const SEEDS_MIN: usize = 3;
/// Of each of two one-sided tests, so that the 95 % interval lies inside the margin.
const PARITY_P_MAX: f64 = 0.025;
/// Of one-sided tests, after the correction for their number.
pub const NEVER_WORSE_P_MAX: f64 = 0.05;
/// Changes below are called equal, and P95 times inside it on parity.
pub const EQUAL: f64 = 0.05;
/// Changes above it in every seed are called clear.
pub const CLEAR: f64 = 0.20;
/// The margin of parity in tokens per second.
pub const THROUGHPUT_MARGIN: f64 = 0.02;

/// Which way a measure is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// Times.
    Lower,
    /// Goodput, throughput.
    Higher,
}

/// What a change is called. Nothing, where none of these is true.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    /// Shown by test to lie inside the margin, either way.
    Parity,
    /// Less than [`EQUAL`] apart on average; a finding, not a proof.
    Equal,
    /// More than [`CLEAR`] apart in every seed, always the same way.
    Clear,
}

impl Word {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Parity => "parity",
            Self::Equal => "equal",
            Self::Clear => "clear",
        }
    }
}

/// One measure of two policies, paired by seed.
#[derive(Clone, Debug, PartialEq)]
pub struct Paired {
    /// Logarithms of ours over theirs, at least one, finite.
    logs: Vec<f64>,
}

impl Paired {
    /// `None` if a value is not positive or there is no pair.
    pub fn of(ours: &[f64], theirs: &[f64]) -> Option<Self> {
        logs_of(ours, theirs).map(|logs| Self { logs })
    }

    pub fn change(&self) -> Change {
        Change::of_logs(&self.logs)
    }

    /// * `margin`: of parity, as a share: 0.05 is ±5 %.
    pub fn word(&self, margin: f64) -> Option<Word> {
        let clear = |log: &f64| log.exp_m1().abs() > CLEAR;
        let (up, down) = (|log: &f64| *log > 0.0, |log: &f64| *log < 0.0);
        if self.is_parity(margin) {
            Some(Word::Parity)
        } else if self.mean().exp_m1().abs() < EQUAL {
            Some(Word::Equal)
        } else if self.logs.iter().all(clear)
            && (self.logs.iter().all(up) || self.logs.iter().all(down))
        {
            Some(Word::Clear)
        } else {
            None
        }
    }

    /// Two one-sided tests: both "at most `1 - margin`" and "at least `1 + margin`" are refuted at
    /// 2.5 %, hence the 95 % interval lies between. False with fewer than three seeds.
    pub fn is_parity(&self, margin: f64) -> bool {
        let too_high = self.p_below((1.0 + margin).ln());
        let too_low = self.p_above((1.0 - margin).ln());
        let refuted = |p: Option<f64>| p.is_some_and(|p| p < PARITY_P_MAX);
        refuted(too_high) && refuted(too_low)
    }

    /// How likely seeds like these were if ours were truly worse by `margin` (a share of theirs):
    /// the p-value of "not worse". `None` with fewer than three seeds.
    pub fn p_not_worse(&self, better: Better, margin: f64) -> Option<f64> {
        match better {
            Better::Lower => self.p_below((1.0 + margin).ln()),
            Better::Higher => self.p_above((1.0 - margin).ln()),
        }
    }

    /// The p-value of "the mean logarithm lies below `bound`".
    fn p_below(&self, bound: f64) -> Option<f64> {
        self.t(bound).map(|t| above(-t, self.freedom()))
    }

    /// The p-value of "the mean logarithm lies above `bound`".
    fn p_above(&self, bound: f64) -> Option<f64> {
        self.t(bound).map(|t| above(t, self.freedom()))
    }

    /// Distance of the mean from `bound` in standard errors; infinite if all seeds agree.
    fn t(&self, bound: f64) -> Option<f64> {
        if self.logs.len() < SEEDS_MIN {
            return None;
        }
        let mean = self.mean();
        let squares: f64 = self.logs.iter().map(|log| (log - mean).powi(2)).sum();
        let error = (squares / self.freedom() / self.logs.len() as f64).sqrt();
        let distance = mean - bound;
        // Below this, seeds differ by rounding alone.
        if error > 1e-12 { Some(distance / error) } else { Some(distance.signum() * f64::INFINITY) }
    }

    fn mean(&self) -> f64 {
        self.logs.iter().sum::<f64>() / self.logs.len() as f64
    }

    fn freedom(&self) -> f64 {
        (self.logs.len() - 1) as f64
    }
}

/// p-values corrected for their number after Holm: whoever takes those below 5 % is wrong in one of
/// them at most once in twenty reports. Same order as `p`.
pub fn holm(p: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|a, b| p[*a].total_cmp(&p[*b]));
    let mut corrected = vec![1.0; p.len()];
    let mut largest = 0.0_f64;
    for (rank, at) in order.into_iter().enumerate() {
        largest = largest.max(p[at] * (p.len() - rank) as f64).min(1.0);
        corrected[at] = largest;
    }
    corrected
}

/// The 95 % interval of the mean, by percentile bootstrap with a fixed seed. `None` with fewer than
/// three values.
pub fn bootstrap_mean(values: &[f64]) -> Option<(f64, f64)> {
    let count = values.len();
    if count < SEEDS_MIN {
        return None;
    }
    let mut rng = Pcg64Mcg::seed_from_u64(0);
    let mut draw = || (0..count).map(|_| values[rng.random_range(0..count)]).sum::<f64>();
    let mut sums: Vec<f64> = (0..RESAMPLES).map(|_| draw()).collect();
    sums.sort_unstable_by(f64::total_cmp);
    let at = |share: f64| {
        let place = (share * (RESAMPLES - 1) as f64).round() as usize;
        sums[place] / count as f64
    };
    Some((at(0.025), at(0.975)))
}

/// Logarithms of the ratios; `None` if one is not finite or there is none.
pub(crate) fn logs_of(ours: &[f64], theirs: &[f64]) -> Option<Vec<f64>> {
    let pairs = ours.iter().zip(theirs);
    let logs: Vec<f64> = pairs.map(|(ours, theirs)| (ours / theirs).ln()).collect();
    (!logs.is_empty() && logs.iter().all(|log| log.is_finite())).then_some(logs)
}
