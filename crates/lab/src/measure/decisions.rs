//! How good single decisions were, on a sample of them.

use super::Run;

/// One decision in sixteen is looked into.
pub(crate) const SAMPLED: u32 = 16;

/// A decision that was looked into.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// Its place in [`Run::records`].
    pub request: u32,
    /// The clairvoyant's seconds to a first token where it went, and the least anywhere.
    pub chosen_seconds: f64,
    pub least_seconds: f64,
    /// What the policy expected, if it says.
    pub predicted_ms: Option<f32>,
}

impl Run {
    fn counted_samples(&self) -> impl Iterator<Item = &Sample> {
        let is_counted = |sample: &&Sample| {
            let record = self.records.get(sample.request as usize);
            record.is_some_and(|record| self.window.contains(&record.at))
        };
        self.samples.iter().filter(is_counted)
    }

    pub(super) fn decision_regret_ms(&self) -> Option<f64> {
        let regrets = self.counted_samples();
        mean(regrets.map(|sample| 1e3 * (sample.chosen_seconds - sample.least_seconds)))
    }

    pub(super) fn prediction_error(&self) -> Option<f64> {
        mean(self.relative_errors().map(f64::abs))
    }

    pub(super) fn prediction_bias(&self) -> Option<f64> {
        mean(self.relative_errors())
    }

    /// Of requests that were answered where they went first.
    fn relative_errors(&self) -> impl Iterator<Item = f64> {
        self.counted_samples().filter_map(|sample| {
            let record = self.records.get(sample.request as usize)?;
            let true_ms = record.ttft()?.as_secs_f64() * 1e3;
            let predicted_ms = f64::from(sample.predicted_ms?);
            (record.attempts == 1).then_some((predicted_ms - true_ms) / true_ms)
        })
    }
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (mut count, mut sum) = (0.0, 0.0);
    for value in values {
        count += 1.0;
        sum += value;
    }
    (count > 0.0).then(|| sum / count)
}
