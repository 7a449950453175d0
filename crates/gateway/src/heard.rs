//! When something was last heard of an endpoint.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use types::Timestamp;

const NEVER: u64 = u64::MAX;

/// The instant of the last news of one kind. Relaxed: it stands alone, and only metrics read it.
#[derive(Debug)]
pub(crate) struct Heard(AtomicU64);

impl Default for Heard {
    fn default() -> Self {
        Self(AtomicU64::new(NEVER))
    }
}

impl Heard {
    pub(crate) fn note(&self, now: Timestamp) {
        self.0.store(now.as_nanos().min(NEVER - 1), Ordering::Relaxed);
    }

    /// `None` before the first news.
    pub(crate) fn age(&self, now: Timestamp) -> Option<Duration> {
        let at = self.0.load(Ordering::Relaxed);
        (at != NEVER).then(|| now.since(Timestamp(at)))
    }
}
