//! Values by row, column and round; medians and paired ratios.

use std::collections::BTreeMap;

use crate::metric::{AtMost, Metric};
use crate::subject::NGINX;

/// Everything that was measured.
#[derive(Default)]
pub struct Results {
    values: BTreeMap<(&'static str, &'static str), Vec<f64>>,
}

impl Results {
    /// Adds the value of the next round.
    pub fn add(&mut self, metric: &Metric, subject: &'static str, value: f64) {
        self.values.entry((metric.key, subject)).or_default().push(value);
    }

    /// Adds to the one value that all rounds share.
    pub fn add_to_sum(&mut self, metric: &Metric, subject: &'static str, value: f64) {
        let values = self.values.entry((metric.key, subject)).or_default();
        match values.first_mut() {
            Some(sum) => *sum += value,
            None => values.push(value),
        }
    }

    /// The values in the order of their rounds.
    pub fn rounds(&self, metric: &Metric, subject: &'static str) -> &[f64] {
        self.values.get(&(metric.key, subject)).map_or(&[], Vec::as_slice)
    }

    pub fn median(&self, metric: &Metric, subject: &'static str) -> Option<f64> {
        median(self.rounds(metric, subject).to_vec())
    }

    /// Median over the rounds of the subject's value divided by nginx's in the same round.
    pub fn times_nginx(&self, metric: &Metric, subject: &'static str) -> Option<f64> {
        let nginx = self.rounds(metric, NGINX);
        let pairs = self.rounds(metric, subject).iter().zip(nginx);
        median(pairs.filter(|(_, nginx)| **nginx > 0.0).map(|(own, nginx)| own / nginx).collect())
    }

    /// The value that a limit is about, and whether it holds.
    pub fn judge(
        &self,
        metric: &Metric,
        subject: &'static str,
        at_most: AtMost,
    ) -> Option<(f64, bool)> {
        let (seen, limit) = match at_most {
            AtMost::TimesNginx(limit) => (self.times_nginx(metric, subject)?, limit),
            AtMost::Value(limit) => (self.median(metric, subject)?, limit),
        };
        Some((seen, seen <= limit))
    }
}

/// The middle value; the mean of the middle two of an even number.
fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    let upper = *values.get(middle)?;
    Some(if values.len() % 2 == 1 { upper } else { (values[middle - 1] + upper) / 2.0 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metric::CPU_SMALL;

    #[test]
    fn the_ratio_is_the_median_of_rounds_not_of_medians() {
        let mut results = Results::default();
        for (nginx, own) in [(10.0, 30.0), (20.0, 40.0), (40.0, 44.0)] {
            results.add(&CPU_SMALL, NGINX, nginx);
            results.add(&CPU_SMALL, "wicketgate", own);
        }
        assert_eq!(results.times_nginx(&CPU_SMALL, "wicketgate"), Some(2.0));
        assert_eq!(results.median(&CPU_SMALL, "wicketgate"), Some(40.0));
        let judge = |limit| results.judge(&CPU_SMALL, "wicketgate", limit);
        assert_eq!(judge(AtMost::TimesNginx(2.0)), Some((2.0, true)));
        assert_eq!(judge(AtMost::Value(39.0)), Some((40.0, false)));
    }

    #[test]
    fn the_median_of_an_even_number_lies_between_the_middle_two() {
        assert_eq!(median(vec![4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(median(vec![]), None);
    }
}
