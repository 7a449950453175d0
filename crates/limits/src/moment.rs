//! The instant of a question, in both kinds of time.

use std::time::Duration;

use types::Timestamp;

const DAY: u64 = 86_400;

/// Now: for rates a clock that does not jump, for daily budgets the calendar.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moment {
    pub now: Timestamp,
    /// Time since 1970, UTC.
    pub unix: Duration,
}

impl Moment {
    /// Days since 1970.
    pub(crate) fn day(self) -> u32 {
        u32::try_from(self.unix.as_secs() / DAY).unwrap_or(u32::MAX)
    }

    /// Time until the next midnight, UTC.
    pub(crate) fn day_left(self) -> Duration {
        Duration::from_secs((u64::from(self.day()) + 1) * DAY).saturating_sub(self.unix)
    }
}
