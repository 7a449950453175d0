//! The clock: the only place that reads the time.
//!
//! Decisions take a [`Timestamp`] as an argument; whoever does I/O reads it here and hands it down.
//! Wall time is for people (logs, certificate expiry), never for measuring: it jumps.

use std::sync::OnceLock;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use types::Timestamp;

static ORIGIN: OnceLock<Instant> = OnceLock::new();

/// Time since the first call in this process, monotonic. The first call returns zero.
#[expect(clippy::disallowed_methods, reason = "this is the clock")]
pub fn now() -> Timestamp {
    let now = Instant::now();
    Timestamp::from_duration(now.saturating_duration_since(*ORIGIN.get_or_init(|| now)))
}

/// Wall time, for logs and for comparing with dates.
#[expect(clippy::disallowed_methods, reason = "this is the clock")]
pub fn wall() -> SystemTime {
    SystemTime::now()
}

/// Seconds since 1970, as metrics and certificates count; zero before it.
pub fn unix_seconds(time: SystemTime) -> f64 {
    time.duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64())
}

/// Appends `time` as RFC 3339 in UTC with milliseconds: `2026-09-18T07:05:03.042Z`. A time before
/// 1970 is written as 1970, one after 9999 as the last millisecond of 9999.
pub fn push_rfc3339(time: SystemTime, out: &mut Vec<u8>) {
    const LAST_MILLISECOND_OF_9999: u128 = 253_402_300_799_999;
    let millis = time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis());
    let millis = u64::try_from(millis.min(LAST_MILLISECOND_OF_9999)).unwrap_or_default();
    let (seconds, milli) = (millis / 1000, millis % 1000);
    let (year, month, day) = civil_from_days(seconds / 86_400);
    let of_day = seconds % 86_400;
    let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);

    // Digits by hand: `write!` with widths costs a quarter of a whole access-log line.
    let mut text = *b"0000-00-00T00:00:00.000Z";
    for (at, width, value) in [
        (0, 4, year),
        (5, 2, month),
        (8, 2, day),
        (11, 2, hour),
        (14, 2, minute),
        (17, 2, second),
        (20, 3, milli),
    ] {
        let mut rest = value;
        for digit in text[at..at + width].iter_mut().rev() {
            *digit = b'0' + u8::try_from(rest % 10).unwrap_or_default();
            rest /= 10;
        }
    }
    out.extend_from_slice(&text);
}

/// [`push_rfc3339`] into a new string.
pub fn rfc3339(time: SystemTime) -> String {
    let mut text = Vec::with_capacity(24);
    push_rfc3339(time, &mut text);
    String::from_utf8(text).unwrap_or_default()
}

/// Year, month and day of the `days`-th day after 1970-01-01 (proleptic Gregorian calendar; the
/// algorithm is Howard Hinnant's `civil_from_days`, restricted to days after the epoch).
fn civil_from_days(days: u64) -> (u64, u64, u64) {
    let z = days + 719_468;
    let era = z / 146_097;
    let day_of_era = z % 146_097;
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn time_never_goes_back() {
        let first = now();
        assert!(now() >= first);
    }

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (millis, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (1_709_164_800_000, "2024-02-29T00:00:00.000Z"),
            (1_789_715_103_042, "2026-09-18T07:05:03.042Z"),
            (4_107_542_399_999, "2100-02-28T23:59:59.999Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
        ] {
            assert_eq!(rfc3339(UNIX_EPOCH + Duration::from_millis(millis)), text);
        }
    }

    #[test]
    fn a_time_outside_the_printable_years_is_written_at_their_edge() {
        let before = UNIX_EPOCH - Duration::from_secs(1);
        assert_eq!(rfc3339(before), "1970-01-01T00:00:00.000Z");
        let after = UNIX_EPOCH + Duration::from_secs(400_000_000_000);
        assert_eq!(rfc3339(after), "9999-12-31T23:59:59.999Z");
    }
}
