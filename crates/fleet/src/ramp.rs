//! How much of a returning member may be used.

use std::time::Duration;

use types::Timestamp;

/// Where every ramp begins.
const FIRST: f32 = 0.1;
/// Above this share of failures, with this many requests, a ramp goes back.
const FAILED_MAX: f32 = 0.05;
const ENOUGH: f32 = 20.0;
const HOLD: Duration = Duration::from_secs(5);
const HOLD_MAX: Duration = Duration::from_secs(300);

/// A cap on what a returning member has in flight: a tenth at first, growing evenly; halved where failures show.
///
/// It bounds admission, not a weight: a weight does nothing where only one member can take the requests.
#[derive(Clone, Debug, PartialEq)]
pub struct Ramp {
    share: f32,
    /// Growth for each second.
    growth: f32,
    updated: Timestamp,
    hold: Duration,
    hold_until: Timestamp,
}

impl Ramp {
    /// * `duration`: in which a whole would grow from nothing.
    pub fn start(duration: Duration, now: Timestamp) -> Self {
        let growth = 1.0 / duration.as_secs_f32().max(1e-3);
        Self { share: FIRST, growth, updated: now, hold: HOLD, hold_until: now }
    }

    /// The share that may be used; 1: the ramp has ended.
    pub fn share(&self, now: Timestamp) -> f32 {
        let from = self.updated.max(self.hold_until);
        (self.share + now.since(from).as_secs_f32() * self.growth).min(1.0)
    }

    pub fn is_over(&self, now: Timestamp) -> bool {
        self.share(now) >= 1.0
    }

    /// Until when it stays where it is.
    pub fn held_until(&self) -> Timestamp {
        self.hold_until
    }

    /// Halves the share if more than a twentieth failed, and holds it for twice as long as the last time.
    ///
    /// * `requests`, `failed`: lately.
    pub fn judge(&mut self, requests: f32, failed: f32, now: Timestamp) -> bool {
        if requests < ENOUGH || failed <= requests * FAILED_MAX || now < self.hold_until {
            return false;
        }
        self.share = (self.share(now) / 2.0).max(FIRST / 4.0);
        self.updated = now;
        self.hold_until = now + self.hold;
        self.hold = (self.hold * 2).min(HOLD_MAX);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn second(n: u64) -> Timestamp {
        Timestamp::from_millis(n * 1000)
    }

    #[test]
    fn a_member_is_whole_again_after_the_ramp_and_never_doubles_within_five_seconds() {
        let ramp = Ramp::start(Duration::from_secs(60), second(0));
        assert_eq!(ramp.share(second(0)), FIRST);
        for n in 0..60 {
            assert!(ramp.share(second(n + 5)) <= 2.0 * ramp.share(second(n)), "at {n}");
        }
        assert!(!ramp.is_over(second(53)) && ramp.is_over(second(54)));
    }

    #[test]
    fn failures_halve_the_share_and_hold_it_longer_each_time() {
        let mut ramp = Ramp::start(Duration::from_secs(60), second(0));
        assert!(!ramp.judge(19.0, 19.0, second(30)), "too few to judge");
        assert!(!ramp.judge(100.0, 5.0, second(30)));
        assert!(ramp.judge(100.0, 6.0, second(30)));
        let halved = ramp.share(second(30));
        assert!((halved - 0.3).abs() < 0.01, "{halved}");
        assert!(!ramp.judge(100.0, 50.0, second(34)), "once in a hold");
        assert_eq!(ramp.share(second(35)), halved);
        assert!(ramp.judge(100.0, 50.0, second(36)));
        assert_eq!(ramp.held_until(), second(46));
    }
}
