//! Numbers and how they are put together.

use std::time::Duration;

/// Percentiles of one round, in microseconds.
#[derive(Clone, Copy, Debug, Default)]
pub struct Spread {
    pub p50: f64,
    pub p99: f64,
    pub p999: f64,
}

impl Spread {
    pub fn of(mut times: Vec<Duration>) -> Self {
        times.sort_unstable();
        let at = |share: f64| {
            let rank = ((times.len() as f64 * share).ceil() as usize).max(1) - 1;
            times.get(rank).map_or(f64::NAN, |time| time.as_nanos() as f64 / 1000.0)
        };
        Self { p50: at(0.5), p99: at(0.99), p999: at(0.999) }
    }

    /// Medians over rounds, each percentile for itself.
    pub fn median(rounds: &[Self]) -> Self {
        let of = |pick: fn(&Self) -> f64| median(rounds.iter().map(pick).collect());
        Self { p50: of(|it| it.p50), p99: of(|it| it.p99), p999: of(|it| it.p999) }
    }
}

impl std::fmt::Display for Spread {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:>8.2} {:>8.2} {:>8.2}", self.p50, self.p99, self.p999)
    }
}

pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Spread, median};

    #[test]
    fn percentiles_are_of_the_sorted_times() {
        let spread = Spread::of((1..=1000).rev().map(Duration::from_micros).collect());
        assert_eq!((spread.p50, spread.p99, spread.p999), (500.0, 990.0, 999.0));
        assert!(Spread::of(Vec::new()).p50.is_nan());
    }

    #[test]
    fn a_median_ignores_one_wild_round() {
        assert_eq!(median(vec![1.0, 900.0, 2.0]), 2.0);
    }
}
