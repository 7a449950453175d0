//! Histograms of Prometheus, and the quantiles that they can tell.

/// Cumulative counts by upper bound, ascending; the last bound is infinite.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Histogram(Vec<(f64, f64)>);

impl Histogram {
    /// Counts of equal bounds are added up.
    pub(crate) fn new(buckets: impl Iterator<Item = (f64, f64)>) -> Self {
        let mut all: Vec<(f64, f64)> = Vec::new();
        for (bound, count) in buckets {
            match all.iter_mut().find(|(known, _)| *known == bound) {
                Some((_, sum)) => *sum += count,
                None => all.push((bound, count)),
            }
        }
        all.sort_by(|(one, _), (other, _)| one.total_cmp(other));
        Self(all)
    }

    /// Upper bounds and cumulative counts.
    pub(crate) fn buckets(&self) -> impl Iterator<Item = (f64, f64)> {
        self.0.iter().copied()
    }

    pub(crate) fn count(&self) -> f64 {
        self.0.last().map_or(0.0, |(_, count)| *count)
    }

    /// What came since `earlier`.
    pub(crate) fn since(&self, earlier: &Self) -> Self {
        let before = |bound: f64| {
            earlier.0.iter().find(|(known, _)| *known == bound).map_or(0.0, |(_, count)| *count)
        };
        Self(
            self.0
                .iter()
                .map(|(bound, count)| (*bound, (count - before(*bound)).max(0.0)))
                .collect(),
        )
    }
}

/// The value below which a share of `rank` (0 to 1) lies, by straight lines within buckets as
/// Prometheus does it; the last finite bound for what is beyond. `None`: nothing was observed.
pub(crate) fn quantile(histogram: &Histogram, rank: f64) -> Option<f64> {
    let total = histogram.count();
    if total <= 0.0 {
        return None;
    }
    let wanted = rank.clamp(0.0, 1.0) * total;
    let mut below = (0.0_f64, 0.0_f64);
    for (bound, count) in &histogram.0 {
        if *count >= wanted && *count > 0.0 {
            if bound.is_infinite() {
                return Some(below.0);
            }
            let within = count - below.1;
            let share = if within > 0.0 { (wanted - below.1) / within } else { 1.0 };
            return Some(below.0 + (bound - below.0) * share);
        }
        below = (*bound, *count);
    }
    Some(below.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn histogram(buckets: &[(f64, f64)]) -> Histogram {
        Histogram::new(buckets.iter().copied())
    }

    #[test]
    fn a_quantile_lies_within_its_bucket() {
        let seen = histogram(&[(0.1, 10.0), (0.2, 30.0), (f64::INFINITY, 40.0)]);
        assert_eq!(quantile(&seen, 0.25), Some(0.1));
        assert!((quantile(&seen, 0.5).unwrap() - 0.15).abs() < 1e-9);
        assert_eq!(quantile(&seen, 0.99), Some(0.2), "no more is known of what is beyond");
        assert_eq!(quantile(&histogram(&[(0.1, 0.0), (f64::INFINITY, 0.0)]), 0.5), None);
        assert_eq!(quantile(&Histogram::default(), 0.5), None);
    }

    #[test]
    fn what_came_since_then_is_the_difference_and_never_negative() {
        let before = histogram(&[(0.1, 10.0), (f64::INFINITY, 40.0)]);
        let after = histogram(&[(0.1, 12.0), (f64::INFINITY, 45.0)]);
        assert_eq!(after.since(&before), histogram(&[(0.1, 2.0), (f64::INFINITY, 5.0)]));
        assert_eq!(before.since(&after).count(), 0.0, "counters that begin anew");
    }
}
