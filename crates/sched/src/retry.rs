//! Bounds retries, so that a failing pool is not buried under its own repetitions.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use types::Timestamp;

/// How many retries are allowed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RetryConfig {
    /// Retries under way at once, as a share of requests in flight. Default 0.2 (Envoy).
    pub share: f32,
    /// Retries a second that are allowed whatever the share. Default 3.
    pub floor_per_second: f32,
}

impl Default for RetryConfig {
    fn default() -> Self {
        Self { share: 0.2, floor_per_second: 3.0 }
    }
}

/// The budget of one pool or gateway.
#[derive(Debug)]
pub struct RetryBudget {
    config: RetryConfig,
    under_way: AtomicU32,
    floor: Mutex<Floor>,
}

#[derive(Clone, Copy, Debug)]
struct Floor {
    tokens: f64,
    updated: Timestamp,
}

/// Leave for one retry; counts as under way until dropped.
#[derive(Debug)]
#[must_use = "a retry counts only while its permit lives"]
pub struct RetryPermit {
    budget: Arc<RetryBudget>,
}

impl RetryBudget {
    pub fn new(config: RetryConfig) -> Self {
        let tokens = f64::from(config.floor_per_second);
        let floor = Floor { tokens, updated: Timestamp::ZERO };
        Self { config, under_way: AtomicU32::new(0), floor: Mutex::new(floor) }
    }

    /// Retries under way.
    pub fn under_way(&self) -> u32 {
        self.under_way.load(Ordering::Relaxed)
    }

    /// Asks for a retry. `None`: the budget is spent, answer with the failure.
    ///
    /// * `in_flight`: requests of the pool under way now, this one included.
    pub fn take(self: &Arc<Self>, in_flight: u32, now: Timestamp) -> Option<RetryPermit> {
        let allowed = (self.config.share * in_flight as f32) as u32;
        let within_share = self
            .under_way
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| (n < allowed).then_some(n + 1))
            .is_ok();
        if !within_share {
            if !self.take_floor(now) {
                return None;
            }
            self.under_way.fetch_add(1, Ordering::Relaxed);
        }
        Some(RetryPermit { budget: Arc::clone(self) })
    }

    fn take_floor(&self, now: Timestamp) -> bool {
        let per_second = f64::from(self.config.floor_per_second);
        let mut floor = self.floor.lock().unwrap_or_else(PoisonError::into_inner);
        let refill = now.since(floor.updated).as_secs_f64() * per_second;
        floor.tokens = (floor.tokens + refill).min(per_second);
        floor.updated = floor.updated.max(now);
        let has_token = floor.tokens >= 1.0;
        if has_token {
            floor.tokens -= 1.0;
        }
        has_token
    }
}

impl Drop for RetryPermit {
    fn drop(&mut self) {
        self.budget.under_way.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn budget() -> Arc<RetryBudget> {
        Arc::new(RetryBudget::new(RetryConfig::default()))
    }

    #[test]
    fn three_retries_a_second_pass_even_with_little_in_flight() {
        let budget = budget();
        let taken =
            |ms: u64| (0..10).filter_map(|_| budget.take(1, Timestamp::from_millis(ms))).count();
        assert_eq!([taken(0), taken(100), taken(1000), taken(1333 + 4)], [3, 0, 3, 1]);
    }

    #[test]
    fn a_fifth_of_the_requests_in_flight_may_be_retries_at_once() {
        let budget = budget();
        let permits: Vec<_> = (0..100).filter_map(|_| budget.take(100, Timestamp::ZERO)).collect();
        assert_eq!(permits.len(), 20 + 3);
        assert_eq!(budget.under_way(), 23);
    }

    #[test]
    fn an_ended_retry_makes_room_for_another() {
        let budget = budget();
        let permits: Vec<_> = (0..100).filter_map(|_| budget.take(100, Timestamp::ZERO)).collect();
        assert!(budget.take(100, Timestamp::ZERO).is_none());
        drop(permits);
        assert_eq!(budget.under_way(), 0);
        assert!(budget.take(100, Timestamp::ZERO).is_some());
    }
}
