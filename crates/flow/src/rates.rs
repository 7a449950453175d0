//! How much arrives, and how much a pool gets through while work waits for it.

use std::time::Duration;

use types::Timestamp;

/// Time constant of forgetting, seconds.
const MEMORY: f64 = 20.0;
/// Of time in which work waited; from so much on the rate is taken for measured.
const MEASURED: f64 = 5.0;
/// Part of a request's work that counts when it ends, the rest when it is dispatched. What is in flight is
/// half done on average: a pool that fills is not as fast as it takes requests, nor one that empties as slow.
const DONE: f64 = 0.5;
/// What completions outside such times weigh, seconds.
const PRIOR: f64 = 1.0;

/// An exponentially fading sum, as a rate.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Fading {
    begun: Option<Timestamp>,
    updated: Timestamp,
    weight: f64,
}

impl Fading {
    pub(crate) fn add(&mut self, amount: f64, now: Timestamp) {
        self.weight = self.weight_at(now) + amount;
        self.updated = self.updated.max(now);
        self.begun.get_or_insert(now);
    }

    /// 0 before anything was added.
    pub(crate) fn per_second(&self, now: Timestamp) -> f64 {
        let Some(begun) = self.begun else { return 0.0 };
        // Seen for less than the memory, a sum must not look like a low rate.
        let seen = now.since(begun).as_secs_f64().max(1.0);
        self.weight_at(now) / (MEMORY * (1.0 - (-seen / MEMORY).exp()))
    }

    /// 1 just after something was added, fading to 0; 0 before.
    fn freshness(&self, now: Timestamp) -> f64 {
        let since = now.since(self.updated).as_secs_f64();
        self.begun.map_or(0.0, |_| (-since / MEMORY).exp())
    }

    fn weight_at(&self, now: Timestamp) -> f64 {
        self.weight * (-now.since(self.updated).as_secs_f64() / MEMORY).exp()
    }
}

/// Tokens per second that a pool takes while work waits.
///
/// Only such time counts: at other times a pool takes what comes, which says nothing of what it
/// could. Before there was any, completions stand in; they are too low rather than too high.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Capacity {
    /// Done while work waited, fading with such time only.
    tokens: f64,
    seconds: f64,
    completed: Fading,
    at: Timestamp,
}

impl Capacity {
    /// Lets time go by.
    ///
    /// * `is_busy`: work waited since the last call, and the pool had endpoints.
    pub(crate) fn advance(&mut self, is_busy: bool, now: Timestamp) {
        let seconds = now.since(self.at).as_secs_f64();
        self.at = self.at.max(now);
        if is_busy && seconds > 0.0 {
            let left = (-seconds / MEMORY).exp();
            self.tokens *= left;
            self.seconds = self.seconds * left + MEMORY * (1.0 - left);
        }
    }

    /// While work waited.
    pub(crate) fn dispatched(&mut self, tokens: u64) {
        self.tokens += tokens as f64 * (1.0 - DONE);
    }

    /// * `is_busy`: work waits.
    pub(crate) fn completed(&mut self, tokens: u64, is_busy: bool, now: Timestamp) {
        if is_busy {
            self.tokens += tokens as f64 * DONE;
        }
        self.completed.add(tokens as f64, now);
    }

    /// `None`: nothing is known yet.
    pub(crate) fn per_second(&self, now: Timestamp) -> Option<f64> {
        let prior = self.completed.per_second(now);
        // Long ago it says nothing, and must not look like a pool that does nothing.
        let weight = PRIOR * self.completed.freshness(now);
        let (tokens, seconds) = (self.tokens + prior * weight, self.seconds + weight);
        let known = seconds > 1e-6 && tokens > 0.0;
        known.then(|| tokens / seconds)
    }

    /// Enough to refuse work by.
    pub(crate) fn is_measured(&self) -> bool {
        self.seconds >= MEASURED
    }
}

/// A quotient as a duration, a day at most.
pub(crate) fn seconds(value: f64) -> Duration {
    const DAY: f64 = 86_400.0;
    Duration::from_secs_f64(if value.is_nan() { DAY } else { value.clamp(0.0, DAY) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_time_does_not_lower_the_capacity() {
        let mut capacity = Capacity::default();
        for second in 1..=10 {
            capacity.advance(true, Timestamp::from_millis(second * 1000));
            capacity.dispatched(500);
            capacity.completed(500, true, Timestamp::from_millis(second * 1000));
        }
        let before = capacity.per_second(Timestamp::from_millis(10_000)).unwrap();
        let later = Timestamp::from_millis(3_600_000);
        capacity.advance(false, later);
        let after = capacity.per_second(later).unwrap();
        assert!((after / before - 1.0).abs() < 0.05, "{before}, {after}");
        assert!((450.0..650.0).contains(&before), "{before}");
    }

    #[test]
    fn a_pool_that_takes_nothing_any_more_is_known_to_be_slow() {
        let mut capacity = Capacity::default();
        for second in 1..=20 {
            capacity.advance(true, Timestamp::from_millis(second * 1000));
            capacity.dispatched(500);
            capacity.completed(500, true, Timestamp::from_millis(second * 1000));
        }
        capacity.advance(true, Timestamp::from_millis(80_000));
        assert!(capacity.per_second(Timestamp::from_millis(80_000)).unwrap() < 50.0);
    }

    #[test]
    fn a_batch_that_fills_does_not_pass_for_capacity_nor_one_that_empties_for_the_lack_of_it() {
        let at = Timestamp::from_millis;
        let mut capacity = Capacity::default();
        // 100 tokens a second, each request ten seconds long; at first nothing ends, and two go for each.
        for second in 1..=60 {
            capacity.advance(true, at(second * 1000));
            capacity.dispatched(if second <= 10 { 200 } else { 100 });
            if second > 10 {
                capacity.completed(100, true, at(second * 1000));
            }
            let now = capacity.per_second(at(second * 1000)).unwrap();
            assert!((85.0..115.0).contains(&now) || second < 3, "second {second}: {now}");
        }
        for second in 61..=65 {
            capacity.advance(true, at(second * 1000));
            capacity.completed(100, true, at(second * 1000));
        }
        let stalled = capacity.per_second(at(65_000)).unwrap();
        assert!(stalled > 80.0, "{stalled}");
    }

    #[test]
    fn time_that_runs_backwards_does_no_harm() {
        let mut capacity = Capacity::default();
        capacity.advance(true, Timestamp::from_millis(5000));
        capacity.completed(100, true, Timestamp::from_millis(5000));
        capacity.advance(true, Timestamp::from_millis(10));
        capacity.completed(100, true, Timestamp::ZERO);
        assert!(capacity.per_second(Timestamp::ZERO).unwrap().is_finite());
    }
}
