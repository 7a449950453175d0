//! How fast a pool gets through its work, for an honest `Retry-After`.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use types::Timestamp;

/// Completions per second, as an exponentially fading count.
#[derive(Debug, Default)]
pub struct DrainRate {
    state: Mutex<Option<State>>,
}

#[derive(Clone, Copy, Debug)]
struct State {
    begun: Timestamp,
    updated: Timestamp,
    /// Completions, each weighing e^(−age / [`MEMORY`]).
    weight: f64,
}

/// Time constant of forgetting, in seconds.
const MEMORY: f64 = 10.0;
const RETRY_AFTER_MIN: f64 = 1.0;
const RETRY_AFTER_MAX: f64 = 60.0;
/// Answer before any completion was seen.
const RETRY_AFTER_UNKNOWN: Duration = Duration::from_secs(5);

impl DrainRate {
    /// Counts a request that ended and so made room.
    pub fn completed(&self, now: Timestamp) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let at = state.get_or_insert(State { begun: now, updated: now, weight: 0.0 });
        at.weight = at.weight_at(now) + 1.0;
        at.updated = at.updated.max(now);
    }

    /// Completions per second; `None` before the first.
    pub fn per_second(&self, now: Timestamp) -> Option<f64> {
        let state = *self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let state = state?;
        // Seen for less than the memory, a count must not look like a low rate.
        let seen = now.since(state.begun).as_secs_f64().max(1.0);
        Some(state.weight_at(now) / (MEMORY * (1.0 - (-seen / MEMORY).exp())))
    }

    /// Time until `excess` requests have drained, 1 s to 60 s.
    pub fn retry_after(&self, excess: u32, now: Timestamp) -> Duration {
        match self.per_second(now) {
            None => RETRY_AFTER_UNKNOWN,
            Some(rate) => {
                let seconds = f64::from(excess) / rate.max(f64::MIN_POSITIVE);
                Duration::from_secs_f64(seconds.clamp(RETRY_AFTER_MIN, RETRY_AFTER_MAX))
            }
        }
    }
}

impl State {
    fn weight_at(&self, now: Timestamp) -> f64 {
        self.weight * (-now.since(self.updated).as_secs_f64() / MEMORY).exp()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(per_second: u64, seconds: u64) -> (DrainRate, Timestamp) {
        let drain = DrainRate::default();
        for n in 0..per_second * seconds {
            drain.completed(Timestamp::from_millis(n * 1000 / per_second));
        }
        (drain, Timestamp::from_millis(seconds * 1000))
    }

    #[test]
    fn a_steady_rate_is_found_within_ten_per_cent_after_a_second_and_after_a_minute() {
        for seconds in [1, 5, 60] {
            let (drain, now) = after(20, seconds);
            let rate = drain.per_second(now).unwrap();
            assert!((18.0..22.0).contains(&rate), "{rate} after {seconds} s");
        }
    }

    #[test]
    fn retry_after_is_the_excess_over_the_rate() {
        let (drain, now) = after(20, 60);
        let wait = drain.retry_after(200, now).as_secs_f64();
        assert!((9.0..11.0).contains(&wait), "{wait}");
    }

    #[test]
    fn retry_after_stays_between_one_second_and_one_minute() {
        let (drain, now) = after(20, 60);
        assert_eq!(drain.retry_after(0, now), Duration::from_secs(1));
        assert_eq!(drain.retry_after(u32::MAX, now), Duration::from_secs(60));
        let much_later = now + Duration::from_secs(1_000_000);
        assert_eq!(drain.retry_after(1, much_later), Duration::from_secs(60));
    }

    #[test]
    fn before_any_completion_the_answer_is_a_short_wait() {
        assert_eq!(DrainRate::default().retry_after(1000, Timestamp::ZERO), RETRY_AFTER_UNKNOWN);
    }

    #[test]
    fn time_that_runs_backwards_does_no_harm() {
        let drain = DrainRate::default();
        drain.completed(Timestamp::from_millis(5000));
        drain.completed(Timestamp::from_millis(1000));
        assert!(drain.per_second(Timestamp::ZERO).unwrap().is_finite());
    }
}
