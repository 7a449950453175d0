//! Rates, from counters that only grow.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use types::Timestamp;

use super::snapshot::{Counters, Snapshot};
use crate::scrape::{Histogram, quantile};

/// What rates and quantiles are worked out over.
pub(super) const WINDOW: Duration = Duration::from_secs(10);
/// Points of a sparkline.
const POINTS: usize = 30;

/// One pool's pace over the [`WINDOW`]. `None`: nothing to work it out from.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Pace {
    pub(super) requests: Option<f64>,
    pub(super) errors: Option<f64>,
    pub(super) rejected: Option<f64>,
    pub(super) input_tokens: Option<f64>,
    pub(super) output_tokens: Option<f64>,
    pub(super) ttft_p50: Option<f64>,
    pub(super) ttft_p95: Option<f64>,
    /// Cached share of the prompt tokens.
    pub(super) hits: Option<f64>,
}

/// The counters of the last looks.
#[derive(Debug, Default)]
pub(super) struct History {
    looks: VecDeque<(Timestamp, HashMap<String, Counters>)>,
    /// Requests per second between two looks, by pool, newest last.
    points: HashMap<String, VecDeque<f64>>,
}

impl History {
    pub(super) fn add(&mut self, snapshot: &Snapshot) {
        if let Some((at, before)) = self.looks.back() {
            let seconds = snapshot.at.since(*at).as_secs_f64().max(1e-3);
            for (pool, now) in &snapshot.counters {
                let earlier = before.get(pool).map_or(0.0, |before| before.requests);
                let points = self.points.entry(pool.clone()).or_default();
                points.push_back((now.requests - earlier).max(0.0) / seconds);
                while points.len() > POINTS {
                    points.pop_front();
                }
            }
            self.points.retain(|pool, _| snapshot.counters.contains_key(pool));
        }
        self.looks.push_back((snapshot.at, snapshot.counters.clone()));
        // One look before the window stays, so that the window is whole.
        while self.looks.len() > 2
            && self.looks.get(1).is_some_and(|(at, _)| snapshot.at.since(*at) >= WINDOW)
        {
            self.looks.pop_front();
        }
    }

    pub(super) fn forget(&mut self) {
        *self = Self::default();
    }

    /// Seconds that rates are worked out over now.
    pub(super) fn seconds(&self) -> Option<f64> {
        let (first, last) = (self.looks.front()?, self.looks.back()?);
        let seconds = last.0.since(first.0).as_secs_f64();
        (seconds > 0.0).then_some(seconds)
    }

    pub(super) fn pace(&self, pool: &str) -> Pace {
        self.pace_of(|counters| counters.get(pool).cloned())
    }

    /// All pools together.
    pub(super) fn total(&self) -> Pace {
        self.pace_of(|counters| Some(sum(counters.values())))
    }

    fn pace_of(&self, of: impl Fn(&HashMap<String, Counters>) -> Option<Counters>) -> Pace {
        let (Some(seconds), Some((_, first)), Some((_, last))) =
            (self.seconds(), self.looks.front(), self.looks.back())
        else {
            return Pace::default();
        };
        let Some(now) = of(last) else { return Pace::default() };
        let before = of(first).unwrap_or_default();
        let rate =
            |field: fn(&Counters) -> f64| Some((field(&now) - field(&before)).max(0.0) / seconds);
        let ttft = now.ttft.since(&before.ttft);
        let input = now.input_tokens - before.input_tokens;
        Pace {
            requests: rate(|counters| counters.requests),
            errors: rate(|counters| counters.errors),
            rejected: rate(|counters| counters.rejected),
            input_tokens: rate(|counters| counters.input_tokens),
            output_tokens: rate(|counters| counters.output_tokens),
            ttft_p50: quantile(&ttft, 0.5),
            ttft_p95: quantile(&ttft, 0.95),
            hits: (input > 0.0)
                .then(|| ((now.cached_tokens - before.cached_tokens) / input).clamp(0.0, 1.0)),
        }
    }

    /// Requests per second of a pool, look by look, as a line of blocks.
    pub(super) fn sparkline(&self, pool: &str) -> String {
        const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
        let Some(points) = self.points.get(pool) else { return String::new() };
        let most = points.iter().copied().fold(0.0, f64::max);
        let block = |point: &f64| match (most > 0.0).then(|| (point / most * 7.0).round() as usize)
        {
            Some(at) if *point > 0.0 => BLOCKS[at.min(7)],
            _ => ' ',
        };
        points.iter().map(block).collect()
    }
}

fn sum<'a>(all: impl Iterator<Item = &'a Counters>) -> Counters {
    let mut buckets = Vec::new();
    let mut sum = Counters::default();
    for counters in all {
        sum.requests += counters.requests;
        sum.errors += counters.errors;
        sum.rejected += counters.rejected;
        sum.input_tokens += counters.input_tokens;
        sum.cached_tokens += counters.cached_tokens;
        sum.output_tokens += counters.output_tokens;
        sum.in_flight += counters.in_flight;
        buckets.extend(counters.ttft.buckets());
    }
    sum.ttft = Histogram::new(buckets.into_iter());
    sum
}

#[cfg(test)]
mod tests {
    use super::super::fleet::testing::snapshot;
    use super::*;

    #[test]
    fn rates_are_what_came_within_the_window() {
        let mut history = History::default();
        history.add(&snapshot(0, 100.0));
        assert_eq!(history.pace("chat").requests, None, "one look has no rate");
        history.add(&snapshot(1, 110.0));
        assert_eq!(history.pace("chat").requests, Some(10.0));
        for second in 2..=30 {
            history.add(&snapshot(second, 110.0));
        }
        assert_eq!(history.pace("chat").requests, Some(0.0), "what was long ago does not count");
        assert_eq!(history.seconds(), Some(10.0));
        assert_eq!(history.pace("unknown"), Pace::default());
    }

    #[test]
    fn a_sparkline_has_a_mark_for_each_look_that_had_requests() {
        let mut history = History::default();
        for (second, requests) in [0.0, 8.0, 12.0, 12.0].into_iter().enumerate() {
            history.add(&snapshot(second as u64, requests));
        }
        assert_eq!(history.sparkline("chat"), "█▅ ");
    }
}
