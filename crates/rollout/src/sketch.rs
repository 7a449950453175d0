//! Times in buckets that widen with the time, so that quantiles cost a fixed amount of memory.

use std::time::Duration;

/// The lowest bucket ends here.
const LEAST_MS: f64 = 1.0;
/// Each bucket is this much wider than the one below: quantiles are off by half of it at most.
const GROWTH: f64 = 1.08;
/// Up to 1 ms · 1.08¹⁷⁹, a little more than 16 minutes; what is longer is in the last.
const BUCKETS: usize = 180;

/// How often which time was seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sketch {
    counts: Box<[u32]>,
}

impl Default for Sketch {
    fn default() -> Self {
        Self { counts: vec![0; BUCKETS].into() }
    }
}

impl Sketch {
    pub fn add(&mut self, time: Duration) {
        let millis = time.as_secs_f64() * 1000.0;
        let above = (millis / LEAST_MS).ln() / GROWTH.ln();
        // A conversion to integers saturates: below the first bucket is in it.
        let bucket = (above.ceil().max(0.0) as usize).min(BUCKETS - 1);
        self.counts[bucket] = self.counts[bucket].saturating_add(1);
    }

    pub fn merge(&mut self, other: &Self) {
        for (own, more) in self.counts.iter_mut().zip(&other.counts) {
            *own = own.saturating_add(*more);
        }
    }

    pub fn clear(&mut self) {
        self.counts.fill(0);
    }

    pub fn count(&self) -> u64 {
        self.counts.iter().map(|count| u64::from(*count)).sum()
    }

    /// The time that this share of all (0 to 1) does not exceed; `None` while there is none.
    pub fn quantile(&self, share: f64) -> Option<Duration> {
        let count = self.count();
        self.ranked((share * count as f64).ceil() as u64)
    }

    /// A time that the true quantile exceeds with a certainty of 95 %, by the order statistic.
    pub fn quantile_at_least(&self, share: f64) -> Option<Duration> {
        let count = self.count() as f64;
        let spread = 1.645 * (count * share * (1.0 - share)).sqrt();
        self.ranked((count * share - spread).floor().max(1.0) as u64)
    }

    /// The time with this rank, 1 being the shortest.
    fn ranked(&self, rank: u64) -> Option<Duration> {
        let mut seen = 0;
        let bucket = self.counts.iter().position(|count| {
            seen += u64::from(*count);
            seen >= rank.max(1)
        })?;
        // The middle of the bucket, as ratios go.
        let millis = LEAST_MS * GROWTH.powf(bucket as f64 - 0.5);
        Some(Duration::from_secs_f64(millis / 1000.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_off_by_less_than_a_twentieth() {
        let mut sketch = Sketch::default();
        for millis in 1..=1000 {
            sketch.add(Duration::from_millis(millis));
        }
        for (share, wanted) in [(0.5, 500.0), (0.95, 950.0), (0.99, 990.0), (1.0, 1000.0)] {
            let got = sketch.quantile(share).unwrap().as_secs_f64() * 1000.0;
            assert!((got / wanted - 1.0).abs() < 0.05, "{got} for {wanted}");
        }
    }

    #[test]
    fn what_is_certain_lies_below_the_quantile_and_comes_nearer_with_more() {
        let certain = |of: u64| {
            let mut sketch = Sketch::default();
            for n in 0..of {
                sketch.add(Duration::from_millis(1 + n * 1000 / of));
            }
            sketch.quantile_at_least(0.95).unwrap()
        };
        assert!(certain(20) < certain(1000) && certain(1000) < Duration::from_millis(990));
    }

    #[test]
    fn the_extremes_have_a_place() {
        let mut sketch = Sketch::default();
        assert_eq!((sketch.quantile(0.5), sketch.quantile_at_least(0.5)), (None, None));
        sketch.add(Duration::ZERO);
        sketch.add(Duration::MAX);
        assert_eq!(sketch.count(), 2);
        assert!(sketch.quantile(1.0).unwrap() > Duration::from_secs(900));
    }
}
