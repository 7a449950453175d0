//! Gaps between tokens: too many to keep each.

use std::time::Duration;

/// Counts of gaps between tokens, in buckets that are half a per cent wide.
#[derive(Clone, Debug, Default)]
pub(crate) struct Gaps {
    counts: Vec<u64>,
    /// The gap added last, and its bucket.
    last: Option<(Duration, usize)>,
}

impl PartialEq for Gaps {
    fn eq(&self, other: &Self) -> bool {
        self.counts == other.counts
    }
}

const GAP_GROWTH: f64 = 1.005;
/// The shortest gap that is told from 0, milliseconds.
const GAP_MIN_MS: f64 = 0.01;

impl Gaps {
    pub(crate) fn add(&mut self, gap: Duration, times: u64) {
        // All decodes of a step have the same gap.
        let bucket = match self.last {
            Some((last, bucket)) if last == gap => bucket,
            _ => {
                let ms = (gap.as_secs_f64() * 1e3).max(GAP_MIN_MS);
                ((ms / GAP_MIN_MS).ln() / GAP_GROWTH.ln()) as usize
            }
        };
        self.last = Some((gap, bucket));
        if bucket >= self.counts.len() {
            self.counts.resize(bucket + 1, 0);
        }
        self.counts[bucket] += times;
    }

    pub(super) fn add_all(&mut self, others: &Gaps) {
        if self.counts.len() < others.counts.len() {
            self.counts.resize(others.counts.len(), 0);
        }
        for (count, other) in self.counts.iter_mut().zip(&others.counts) {
            *count += other;
        }
    }

    pub(super) fn quantile_ms(&self, share: f64) -> f64 {
        let wanted = share * self.counts.iter().sum::<u64>() as f64;
        let mut seen = 0;
        for (bucket, count) in self.counts.iter().enumerate() {
            seen += count;
            if *count > 0 && seen as f64 >= wanted {
                return GAP_MIN_MS * GAP_GROWTH.powf(bucket as f64 + 0.5);
            }
        }
        0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_is_found_again_within_half_a_per_cent() {
        for ms in [0.5, 8.0, 33.4, 900.0] {
            let mut gaps = Gaps::default();
            gaps.add(Duration::from_secs_f64(ms * 1e-3), 1);
            assert!((gaps.quantile_ms(0.99) / ms - 1.0).abs() < 0.005, "{ms}");
        }
    }
}
