//! One policy against another over the same seeds.

use crate::statistics::{bootstrap_mean, logs_of};

/// A relative change, -0.5 for half, with its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Change {
    pub mean: f64,
    /// `None` with fewer than three pairs.
    pub interval: Option<(f64, f64)>,
}

impl Change {
    /// The change from `theirs` to `ours`, seed by seed: the mean logarithm of the ratio, with a
    /// percentile bootstrap over seeds. `None` if a value is not positive or there is no pair.
    pub fn of(ours: &[f64], theirs: &[f64]) -> Option<Self> {
        logs_of(ours, theirs).map(|logs| Self::of_logs(&logs))
    }

    /// * `logs`: logarithms of ours over theirs, at least one.
    pub(crate) fn of_logs(logs: &[f64]) -> Self {
        let mean = logs.iter().sum::<f64>() / logs.len() as f64;
        let interval = bootstrap_mean(logs).map(|(low, high)| (low.exp_m1(), high.exp_m1()));
        Self { mean: mean.exp_m1(), interval }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_taken_seed_by_seed() {
        let change = Change::of(&[50.0, 5.0, 500.0], &[100.0, 10.0, 1000.0]).unwrap();
        assert!((change.mean + 0.5).abs() < 1e-9, "{change:?}");
        let (low, high) = change.interval.unwrap();
        assert!((low + 0.5).abs() < 1e-9 && (high + 0.5).abs() < 1e-9, "{change:?}");
    }

    #[test]
    fn the_interval_holds_the_mean_and_needs_three_seeds() {
        let change = Change::of(&[80.0, 90.0, 110.0, 95.0], &[100.0; 4]).unwrap();
        let (low, high) = change.interval.unwrap();
        assert!(low < change.mean && change.mean < high && low < 0.0 && high > -0.05, "{change:?}");
        assert_eq!(Change::of(&[80.0, 90.0], &[100.0; 2]).unwrap().interval, None);
        assert_eq!(Change::of(&[0.0], &[1.0]), None);
    }
}
