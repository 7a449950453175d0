//! A day's budget: a count that begins anew at midnight UTC.

use crate::moment::Moment;

/// What was used of a day's budget.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Used {
    day: u32,
    count: u64,
}

impl Used {
    pub(crate) fn of(day: u32, count: u64) -> Self {
        Self { day, count }
    }

    pub(crate) fn day(self) -> u32 {
        self.day
    }

    pub(crate) fn count(self) -> u64 {
        self.count
    }

    pub(crate) fn touch(&mut self, moment: Moment) {
        let day = moment.day();
        if day > self.day {
            self.count = 0;
        }
        // A wall clock that was ahead and is put right keeps the count, and the next midnight ends it.
        self.day = day;
    }

    /// Whether `count` more can be used. More than the whole budget passes only at its beginning.
    pub(crate) fn check(&self, budget: u64, count: u64) -> bool {
        count == 0 || self.count.saturating_add(count) <= budget || (self.count == 0 && budget > 0)
    }

    pub(crate) fn take(&mut self, count: u64) {
        self.count = self.count.saturating_add(count);
    }

    /// * `taken`: the moment of the reservation; one of an earlier day has nothing to give back.
    pub(crate) fn give_back(&mut self, count: u64, taken: Moment) {
        if taken.day() == self.day {
            self.count = self.count.saturating_sub(count);
        }
    }

    pub(crate) fn remaining(&self, budget: u64) -> u64 {
        budget.saturating_sub(self.count)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use types::Timestamp;

    use super::*;

    fn at(hours: u64) -> Moment {
        Moment { now: Timestamp::ZERO, unix: Duration::from_secs(hours * 3600) }
    }

    #[test]
    fn a_budget_begins_anew_at_midnight_and_not_before() {
        let mut used = Used::default();
        used.touch(at(25));
        used.take(10);
        used.touch(at(47));
        assert!(!used.check(10, 1));
        assert_eq!(at(47).day_left(), Duration::from_secs(3600));
        used.touch(at(48));
        assert!(used.check(10, 10));
    }

    #[test]
    fn what_was_reserved_yesterday_gives_nothing_back_today() {
        let mut used = Used::default();
        used.touch(at(23));
        used.take(10);
        used.touch(at(24));
        used.take(3);
        used.give_back(5, at(23));
        assert_eq!(used.remaining(10), 7);
    }

    #[test]
    fn a_wall_clock_that_was_ahead_does_not_lock_a_budget_for_long() {
        let mut used = Used::default();
        used.touch(at(24 * 1000));
        used.take(10);
        used.touch(at(24));
        assert!(!used.check(10, 1), "going back frees nothing");
        used.touch(at(48));
        assert!(used.check(10, 1));
    }
}
