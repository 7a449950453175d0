//! What goes wrong in a run, and when: data of a scenario.

use std::ops::Range;
use std::time::Duration;

use types::Timestamp;

/// A fault of some endpoints for some time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fault {
    /// Names its row in the result.
    pub name: &'static str,
    pub kind: FaultKind,
    /// The first of the endpoints that have it.
    pub endpoint: usize,
    /// How many.
    pub count: usize,
    /// Since the warm-up ended.
    pub from: Duration,
    pub lasts: Duration,
}

/// What is wrong.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FaultKind {
    /// The server is gone: connections are reset, new ones refused. It returns with nothing cached.
    Dead,
    /// Every step takes so many times as long, and nothing says so.
    Slow { factor: f64 },
    /// The metrics page says that nothing waits or runs.
    FrozenAtZero,
    /// Every request is answered with 503, without `Retry-After`.
    Shedding,
    /// The metrics page does not come.
    NoPages,
    /// The metrics page takes so long, as an engine at its busiest may.
    SlowPages { by: Duration },
    /// A share of the requests is reset before an answer.
    Resets { share: f64 },
}

impl Fault {
    pub(crate) fn endpoints(&self) -> Range<usize> {
        self.endpoint..self.endpoint + self.count
    }

    /// * `window`: what is counted in the run.
    pub(crate) fn during(&self, window: &Range<Timestamp>) -> Range<Timestamp> {
        let from = window.start + self.from;
        from..from + self.lasts
    }
}

/// What is wrong with one endpoint now.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Condition {
    pub(crate) is_dead: bool,
    pub(crate) slowness: f64,
    pub(crate) is_frozen: bool,
    pub(crate) is_shedding: bool,
    pub(crate) has_no_pages: bool,
    pub(crate) page_delay: Duration,
    pub(crate) resets: f64,
}

impl Default for Condition {
    fn default() -> Self {
        Self {
            is_dead: false,
            slowness: 1.0,
            is_frozen: false,
            is_shedding: false,
            has_no_pages: false,
            page_delay: Duration::ZERO,
            resets: 0.0,
        }
    }
}

impl Condition {
    /// Begins or ends a fault. An endpoint has each kind once at most.
    pub(crate) fn set(&mut self, kind: FaultKind, is_on: bool) {
        match kind {
            FaultKind::Dead => self.is_dead = is_on,
            FaultKind::Slow { factor } => self.slowness = if is_on { factor } else { 1.0 },
            FaultKind::FrozenAtZero => self.is_frozen = is_on,
            FaultKind::Shedding => self.is_shedding = is_on,
            FaultKind::NoPages => self.has_no_pages = is_on,
            FaultKind::SlowPages { by } => {
                self.page_delay = if is_on { by } else { Duration::ZERO }
            }
            FaultKind::Resets { share } => self.resets = if is_on { share } else { 0.0 },
        }
    }
}
