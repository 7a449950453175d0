//! What a play measured.

use std::time::Duration;

use serde::Serialize;

use super::scenario::{BEGINS, Scenario};

/// Time to the first token that requests are entitled to.
pub(crate) const TARGET_MS: f32 = 2000.0;
/// Before it nothing is counted.
const WARM: Duration = Duration::from_secs(20);

/// One request of a client.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    /// Seconds.
    pub(crate) at: f32,
    /// `None`: failed or refused.
    pub(crate) ttft_ms: Option<f32>,
    pub(crate) is_cut: bool,
}

/// Books of a play.
#[derive(Debug, Default)]
pub(crate) struct Books {
    pub(crate) samples: Vec<Sample>,
    pub(crate) attempts: u64,
    /// Times that routers took a request up, for each of which two attempts are allowed.
    pub(crate) taken: u64,
    /// Sent to a cluster that had been dead for twelve seconds.
    pub(crate) to_dead: u64,
    /// The longest that one was dead and still got a request, seconds.
    pub(crate) to_dead_after: f64,
    pub(crate) cut: u64,
    pub(crate) spent: f64,
    pub(crate) soonest: f64,
    /// Requests by cluster, in windows of thirty seconds.
    pub(crate) sent: Vec<Vec<u32>>,
    pub(crate) limit_most: f64,
}

/// The numbers of one play. Times in milliseconds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Outcome {
    pub requests: usize,
    pub ttft_p50_ms: f64,
    pub ttft_p99_ms: f64,
    pub before_p99_ms: f64,
    pub during_p99_ms: f64,
    pub after_p99_ms: f64,
    /// Of all requests: not answered, for whatever reason.
    pub failed: f64,
    pub failed_during: f64,
    /// Answered within the target, of all.
    pub goodput: f64,
    /// Answers that broke off after their first token.
    pub cut: u64,
    /// Requests that went to a cluster that had been dead for twelve seconds.
    pub to_dead: u64,
    /// How long a dead cluster got requests at most, seconds.
    pub to_dead_seconds: f64,
    /// Of routers, for each time that one took a request up.
    pub attempts: f64,
    /// From the end of the trigger until five seconds are as good as before.
    pub recovery_seconds: f64,
    /// Of all requests, what goes elsewhere than thirty seconds before, at the end.
    pub oscillation: f64,
    /// Spent, over what the soonest members would have cost.
    pub price: f64,
    /// The most that passed of a limit in sixty seconds; 0: there was none.
    pub limit_most: f64,
}

impl Books {
    pub(crate) fn outcome(&self, scenario: &Scenario) -> Outcome {
        let secs = |time: Duration| time.as_secs_f32();
        let (begin, end) = (secs(BEGINS), secs(scenario.ends()));
        let warm = self.samples.iter().filter(|sample| sample.at >= secs(WARM));
        let counted: Vec<Sample> = warm.copied().collect();
        let part = |from: f32, to: f32| -> Vec<Sample> {
            counted.iter().copied().filter(|sample| (from..to).contains(&sample.at)).collect()
        };
        let (before, during) = (part(0.0, begin), part(begin, end));
        let after = part(end + 60.0, f32::MAX);
        let good = counted.iter().filter(|s| s.ttft_ms.is_some_and(|ms| ms <= TARGET_MS)).count();
        let before_p99 = quantile(&before, 0.99);
        Outcome {
            requests: counted.len(),
            ttft_p50_ms: quantile(&counted, 0.5),
            ttft_p99_ms: quantile(&counted, 0.99),
            before_p99_ms: before_p99,
            during_p99_ms: quantile(&during, 0.99),
            after_p99_ms: quantile(&after, 0.99),
            failed: rounded(failed(&counted)),
            failed_during: rounded(failed(&during)),
            goodput: rounded(good as f64 / counted.len().max(1) as f64),
            cut: self.cut,
            to_dead: self.to_dead,
            to_dead_seconds: rounded(self.to_dead_after),
            attempts: rounded(self.attempts as f64 / self.taken.max(1) as f64),
            recovery_seconds: rounded(recovery(&counted, end, before_p99)),
            oscillation: rounded(self.oscillation()),
            price: rounded(self.spent / self.soonest.max(1e-12)),
            limit_most: rounded(self.limit_most),
        }
    }

    /// Half of the sum of what each cluster's share changed by, between the last two whole windows.
    fn oscillation(&self) -> f64 {
        let [.., one, other, _] = self.sent.as_slice() else { return 0.0 };
        let sum = |window: &[u32]| f64::from(window.iter().sum::<u32>().max(1));
        let shares = one.iter().zip(other);
        let moved = shares.map(|(one_, other_)| {
            (f64::from(*one_) / sum(one) - f64::from(*other_) / sum(other)).abs()
        });
        moved.sum::<f64>() / 2.0
    }
}

fn failed(samples: &[Sample]) -> f64 {
    let failed = samples.iter().filter(|sample| sample.ttft_ms.is_none()).count();
    failed as f64 / samples.len().max(1) as f64
}

/// Nearest rank, of those that were answered.
fn quantile(samples: &[Sample], share: f64) -> f64 {
    let mut all: Vec<f32> = samples.iter().filter_map(|sample| sample.ttft_ms).collect();
    all.sort_unstable_by(f32::total_cmp);
    let rank = (share * all.len() as f64).ceil() as usize;
    all.get(rank.saturating_sub(1)).map_or(0.0, |ms| f64::from((ms * 10.0).round()) / 10.0)
}

/// Until P99 is within half more than before and no more than one in a hundred fails.
fn recovery(samples: &[Sample], end: f32, before_p99: f64) -> f64 {
    const BIN: f32 = 5.0;
    let mut from = end;
    while from < end + 115.0 {
        let bin: Vec<Sample> =
            samples.iter().copied().filter(|s| (from..from + BIN).contains(&s.at)).collect();
        if quantile(&bin, 0.99) <= before_p99 * 1.5 && failed(&bin) <= 0.01 {
            return f64::from(from - end);
        }
        from += BIN;
    }
    f64::from(from - end)
}

fn rounded(value: f64) -> f64 {
    (value * 1e5).round() / 1e5
}
