//! Both clocks at once: tokens expire by the wall's, intervals are measured by the monotonic one.

use types::Timestamp;

/// An instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    pub at: Timestamp,
    /// Seconds since 1970.
    pub unix_seconds: u64,
}
