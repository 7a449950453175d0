//! Histograms with fixed bounds.

/// Counts by upper bound.
#[derive(Clone, Debug)]
pub(crate) struct Histogram {
    bounds: Vec<f64>,
    /// One more than bounds: the last is above them all.
    counts: Vec<u64>,
    sum: f64,
}

impl Histogram {
    /// `bounds`: ascending.
    pub(crate) fn new(bounds: &[f64]) -> Self {
        Self { bounds: bounds.to_vec(), counts: vec![0; bounds.len() + 1], sum: 0.0 }
    }

    /// 1, 2, 5, 10, … up to `most`, as vLLM's histograms of token counts.
    pub(crate) fn one_two_five(most: u32) -> Self {
        let decades = (0..10).map(|exponent| 10_u64.pow(exponent));
        let bounds: Vec<f64> = decades
            .flat_map(|decade| [decade, 2 * decade, 5 * decade])
            .take_while(|bound| *bound <= u64::from(most))
            .map(|bound| bound as f64)
            .collect();
        Self::new(&bounds)
    }

    pub(crate) fn record(&mut self, value: f64) {
        let at = self.bounds.partition_point(|bound| *bound < value);
        self.counts[at] += 1;
        self.sum += value;
    }

    /// Cumulative counts by bound; the last bound is infinite.
    pub(crate) fn cumulative(&self) -> impl Iterator<Item = (f64, u64)> {
        let bounds = self.bounds.iter().copied().chain([f64::INFINITY]);
        bounds.zip(self.counts.iter().scan(0, |total, count| {
            *total += count;
            Some(*total)
        }))
    }

    pub(crate) fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    pub(crate) fn sum(&self) -> f64 {
        self.sum
    }

    /// Upper bound of the bucket that holds the share `share` of all values; 0 without values.
    pub(crate) fn quantile(&self, share: f64) -> f64 {
        let rank = (share * self.count() as f64).ceil();
        let found = self.cumulative().find(|(_, count)| *count as f64 >= rank && *count > 0);
        found.map_or(0.0, |(bound, _)| bound)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_on_a_bound_counts_below_it() {
        let mut histogram = Histogram::new(&[1.0, 2.0]);
        for value in [1.0, 1.5, 9.0] {
            histogram.record(value);
        }
        let counts: Vec<u64> = histogram.cumulative().map(|(_, count)| count).collect();
        assert_eq!(counts, [1, 2, 3]);
        assert_eq!((histogram.count(), histogram.sum()), (3, 11.5));
    }
}
