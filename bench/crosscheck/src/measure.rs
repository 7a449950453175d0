//! What a run was like, computed alike for the laboratory's runs and for those over HTTP.

use std::time::Duration;

use lab::{Fate, Record, Slo};
use serde::Serialize;

/// One request that counts. Times are modelled, from the instant at which it was due.
#[derive(Clone, Copy, Debug, Default)]
pub struct Seen {
    pub first: Option<Duration>,
    /// `None`: not to its end until the run was cut off.
    pub finished: Option<Duration>,
    /// The last token that was seen, at the end or before the cut-off.
    pub last: Option<Duration>,
    /// Tokens until then.
    pub tokens: u32,
    /// From due to cut-off: what is known of a first token that did not come.
    pub watched: Duration,
    pub prompt_tokens: u32,
    /// `None`: no usage came.
    pub cached_tokens: Option<u32>,
    /// Refused, broken off, or with an answer of the wrong length.
    pub failed: bool,
}

/// One run. Times in milliseconds.
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    pub requests: usize,
    pub ttft_p50_ms: f64,
    pub ttft_p95_ms: f64,
    pub ttft_p99_ms: f64,
    /// `None`: not known (the laboratory does not tell for shortened groups).
    pub itl_p99_ms: Option<f64>,
    /// Share of the requests offered that kept the scenario's limits; an answer that was cut off is
    /// judged by its pace until then.
    pub goodput: f64,
    /// Cached over prompt tokens, of the answers that told both. `None`: none did.
    pub prefix_hit_ratio: Option<f64>,
    pub failed: usize,
    /// Not finished when the run was cut off; without a first token they count in the percentiles
    /// with the time until then, which is less than it would have been.
    pub unfinished: usize,
}

impl Seen {
    /// The laboratory's record as a client would have seen it that leaves at `cut_off`; its pace is
    /// that of the whole answer.
    pub fn of_record(record: &Record, cut_off: Duration) -> Self {
        let watched = cut_off.saturating_sub(record.at.as_duration());
        let until = |time: Option<Duration>| time.filter(|time| *time <= watched);
        Self {
            first: until(record.ttft()),
            finished: until(record.e2e()),
            last: record.e2e(),
            tokens: record.output_tokens,
            watched,
            prompt_tokens: record.prompt_tokens,
            cached_tokens: until(record.e2e()).map(|_| record.cached_tokens),
            failed: matches!(record.fate, Fate::Refused | Fate::Failed | Fate::Cut),
        }
    }

    fn is_good(&self, slo: &Slo) -> bool {
        let (Some(first), Some(last), false) = (self.first, self.last, self.failed) else {
            return false;
        };
        let others = self.tokens.saturating_sub(1).max(1);
        first <= slo.ttft && last.saturating_sub(first) / others <= slo.tpot
    }
}

impl Summary {
    /// * `itl_p99_ms`: from elsewhere, since gaps belong to no request here.
    pub fn of(seen: &[Seen], slo: &Slo, itl_p99_ms: Option<f64>) -> Self {
        let waits = seen.iter().filter(|one| !one.failed);
        let mut waits: Vec<f64> =
            waits.map(|one| one.first.unwrap_or(one.watched).as_secs_f64() * 1e3).collect();
        waits.sort_unstable_by(f64::total_cmp);
        let told = seen.iter().filter_map(|one| Some((one.cached_tokens?, one.prompt_tokens)));
        let (cached, prompt) = told.fold((0_u64, 0_u64), |(cached, prompt), (hit, of)| {
            (cached + u64::from(hit), prompt + u64::from(of))
        });
        let good = seen.iter().filter(|one| one.is_good(slo)).count();
        Self {
            requests: seen.len(),
            ttft_p50_ms: quantile(&waits, 0.50),
            ttft_p95_ms: quantile(&waits, 0.95),
            ttft_p99_ms: quantile(&waits, 0.99),
            itl_p99_ms,
            goodput: good as f64 / seen.len().max(1) as f64,
            prefix_hit_ratio: (prompt > 0).then(|| cached as f64 / prompt as f64),
            failed: seen.iter().filter(|one| one.failed).count(),
            unfinished: seen.iter().filter(|one| !one.failed && one.finished.is_none()).count(),
        }
    }
}

/// Nearest rank; 0 without a sample.
pub fn quantile(sorted: &[f64], share: f64) -> f64 {
    let rank = (share * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.saturating_sub(1)).copied().unwrap_or(0.0)
}

/// The middle one, the lower of two; 0 without a sample.
pub fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_unstable_by(f64::total_cmp);
    quantile(&values, 0.5)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SLO: Slo = Slo { ttft: Duration::from_millis(500), tpot: Duration::from_millis(50) };

    fn answered(first_ms: u64) -> Seen {
        Seen {
            first: Some(Duration::from_millis(first_ms)),
            finished: Some(Duration::from_millis(first_ms + 400)),
            last: Some(Duration::from_millis(first_ms + 400)),
            tokens: 11,
            watched: Duration::from_secs(9),
            prompt_tokens: 100,
            cached_tokens: Some(50),
            failed: false,
        }
    }

    #[test]
    fn a_first_token_that_never_came_counts_with_the_time_it_was_waited_for() {
        let never =
            Seen { first: None, finished: None, last: None, cached_tokens: None, ..answered(0) };
        let summary = Summary::of(&[answered(100), never], &SLO, None);
        assert_eq!((summary.ttft_p50_ms, summary.ttft_p95_ms), (100.0, 9000.0));
        assert_eq!((summary.goodput, summary.unfinished, summary.failed), (0.5, 1, 0));
        assert_eq!(summary.prefix_hit_ratio, Some(0.5));
    }

    #[test]
    fn a_failed_request_is_a_miss_and_has_no_time() {
        let failed = Seen { failed: true, ..answered(1) };
        let summary = Summary::of(&[answered(100), failed], &SLO, None);
        assert_eq!((summary.ttft_p50_ms, summary.goodput, summary.failed), (100.0, 0.5, 1));
    }

    #[test]
    fn late_first_tokens_and_slow_answers_are_not_good() {
        let slow = Seen { last: Some(Duration::from_secs(3)), ..answered(100) };
        assert_eq!(Summary::of(&[answered(501), slow], &SLO, None).goodput, 0.0);
    }

    #[test]
    fn an_answer_that_is_cut_off_is_judged_by_its_pace_until_then() {
        let open = Seen { finished: None, ..answered(100) };
        let slow = Seen { tokens: 5, ..open };
        let summary = Summary::of(&[open, slow], &SLO, None);
        assert_eq!((summary.goodput, summary.unfinished), (0.5, 2));
    }

    #[test]
    fn the_median_is_the_middle_one() {
        assert_eq!(median([3.0, 1.0, 2.0].into_iter()), 2.0);
    }
}
