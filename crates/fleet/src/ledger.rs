//! What this router has at a member: its own requests, counted at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use types::Timestamp;

/// Longest that a member's refusal keeps others away: the next heartbeats tell more.
const REFUSING_MAX: Duration = Duration::from_secs(5);
/// What a learned slowness has faded to a third after.
const FORGOTTEN: f32 = 30.0;
/// How much one answer teaches, and the bounds of what is learned.
const LEARNED: f32 = 0.1;
const SLOWNESS: std::ops::RangeInclusive<f32> = 0.5..=16.0;

/// The books of one member for one model. Relaxed: each number stands for itself.
#[derive(Debug, Default)]
pub struct Slot {
    in_flight: AtomicU32,
    sent: AtomicU64,
    refusing_until: AtomicU64,
    /// Bits of an `f32`: ln of seen over expected time.
    slowness_ln: AtomicU32,
    slowness_at: AtomicU64,
}

/// A request at a member, until dropped.
#[derive(Debug)]
#[must_use = "it counts only until dropped"]
pub struct Booking(Arc<Slot>);

impl Slot {
    /// Counts a request; it is counted no more when the booking is dropped.
    pub fn book(self: &Arc<Self>) -> Booking {
        self.in_flight.fetch_add(1, Ordering::Relaxed);
        self.sent.fetch_add(1, Ordering::Relaxed);
        Booking(self.clone())
    }

    /// This router's requests there.
    pub fn in_flight(&self) -> u32 {
        self.in_flight.load(Ordering::Relaxed)
    }

    /// All that this router has ever sent there.
    pub fn sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }

    pub fn is_refusing(&self, now: Timestamp) -> bool {
        self.refusing_until.load(Ordering::Relaxed) > now.as_nanos()
    }

    pub(crate) fn refuse_for(&self, retry_after: Option<Duration>, now: Timestamp) {
        let wait = retry_after.unwrap_or(Duration::from_secs(1)).min(REFUSING_MAX);
        self.refusing_until.fetch_max((now + wait).as_nanos(), Ordering::Relaxed);
    }

    /// Times take so many times what reports let expect. Fades, so that a member that was slow is tried again.
    pub fn slowness(&self, now: Timestamp) -> f32 {
        self.slowness_ln(now).exp()
    }

    fn slowness_ln(&self, now: Timestamp) -> f32 {
        let at = Timestamp(self.slowness_at.load(Ordering::Relaxed));
        let ln = f32::from_bits(self.slowness_ln.load(Ordering::Relaxed));
        if ln == 0.0 { 0.0 } else { ln * (-now.since(at).as_secs_f32() / FORGOTTEN).exp() }
    }

    /// * `expected`: by reports, without what was learned before; both without the way there and back.
    pub(crate) fn learn(&self, expected: Duration, seen: Duration, now: Timestamp) {
        // A few milliseconds are noise of the network.
        let floor = |time: Duration| time.as_secs_f32().max(0.02);
        let ratio = (floor(seen) / floor(expected)).clamp(*SLOWNESS.start(), *SLOWNESS.end());
        let before = self.slowness_ln(now);
        let after = before + LEARNED * (ratio.ln() - before);
        self.slowness_ln.store(after.to_bits(), Ordering::Relaxed);
        self.slowness_at.store(now.as_nanos(), Ordering::Relaxed);
    }
}

impl Drop for Booking {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_booking_gives_back_when_dropped() {
        let slot = Arc::new(Slot::default());
        let (one, other) = (slot.book(), slot.book());
        assert_eq!((slot.in_flight(), slot.sent()), (2, 2));
        drop((one, other));
        assert_eq!((slot.in_flight(), slot.sent()), (0, 2));
    }

    #[test]
    fn slowness_is_learned_and_fades() {
        let slot = Slot::default();
        let second = |n: u64| Timestamp::from_millis(n * 1000);
        for n in 0..100 {
            slot.learn(Duration::from_millis(100), Duration::from_millis(500), second(n));
        }
        assert!((3.0..5.1).contains(&slot.slowness(second(100))), "{}", slot.slowness(second(100)));
        assert!(slot.slowness(second(300)) < 1.01);
    }

    #[test]
    fn a_refusal_keeps_away_for_five_seconds_at_most() {
        let slot = Slot::default();
        slot.refuse_for(Some(Duration::from_secs(3600)), Timestamp::ZERO);
        assert!(slot.is_refusing(Timestamp::from_millis(4999)));
        assert!(!slot.is_refusing(Timestamp::from_millis(5000)));
    }
}
