//! Copies of requests: how many there may be, and how they did.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rollout::{Sequence, Window};
use telemetry::metrics::MirrorMetrics;
use telemetry::metrics::labels::MirrorOutcome;
use types::{ModelName, Timestamp};

use crate::Gateway;
use crate::catalog::Target;

/// How far back copies are looked at.
const WINDOW: Duration = Duration::from_secs(300);

/// A rule's mirror, with what its model stands for now.
#[derive(Clone, Debug)]
pub(crate) struct Mirroring {
    pub(super) name: ModelName,
    pub(super) found: Option<Target>,
    /// 0 to 1.
    pub(super) share: f64,
    pub(super) concurrency_max: u32,
    pub(super) metrics: Arc<MirrorMetrics>,
    pub(super) tally: Arc<Tally>,
}

/// What outlives catalogs.
#[derive(Debug)]
pub(crate) struct Tally {
    sequence: Sequence,
    under_way: AtomicU32,
    window: Mutex<Window>,
}

/// Leave to send one copy, and its account; gives back when dropped.
pub(crate) struct CopyPermit {
    pub(crate) name: ModelName,
    pub(crate) target: Target,
    metrics: Arc<MirrorMetrics>,
    tally: Arc<Tally>,
    bytes: Arc<AtomicU64>,
    held: u64,
}

impl Tally {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            sequence: Sequence::new(seed),
            under_way: AtomicU32::new(0),
            window: Mutex::new(Window::new(WINDOW)),
        }
    }

    pub(super) fn under_way(&self) -> u32 {
        self.under_way.load(Relaxed)
    }

    pub(super) fn window(&self) -> MutexGuard<'_, Window> {
        self.window.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Mirroring {
    /// Leave for the next request's copy, if it is one to be copied and there is room.
    ///
    /// Copies are the first to give way: there are none while bodies and copies fill more than half
    /// of the memory for bodies, or copies alone an eighth.
    ///
    /// * `body_bytes`: of the request; held twice, as it came and with the other name.
    /// * `budget`: bytes of bodies that may be held in all.
    pub(crate) fn permit(
        &self,
        gateway: &Gateway,
        body_bytes: usize,
        budget: u64,
    ) -> Option<CopyPermit> {
        if !self.tally.sequence.takes(self.share) {
            return None;
        }
        let Some(target) = self.found.clone() else {
            self.metrics.of(MirrorOutcome::NoRoom).inc();
            return None;
        };
        if self.tally.under_way.fetch_add(1, Relaxed) >= self.concurrency_max {
            self.tally.under_way.fetch_sub(1, Relaxed);
            self.metrics.of(MirrorOutcome::Busy).inc();
            return None;
        }
        let bytes = gateway.copy_bytes.clone();
        let held = 2 * body_bytes as u64;
        let copies = bytes.fetch_add(held, Relaxed) + held;
        let permit = CopyPermit {
            name: self.name.clone(),
            target,
            metrics: self.metrics.clone(),
            tally: self.tally.clone(),
            bytes,
            held,
        };
        if copies > budget / 8 || copies + gateway.body_bytes() > budget / 2 {
            permit.count(MirrorOutcome::Bytes);
            return None;
        }
        Some(permit)
    }
}

impl CopyPermit {
    pub(crate) fn count(&self, outcome: MirrorOutcome) {
        self.metrics.of(outcome).inc();
    }

    /// Notes how the copy ended.
    ///
    /// * `failed`: `None` where it says nothing of the model.
    pub(crate) fn record(&self, failed: Option<bool>, ttft: Option<Duration>, now: Timestamp) {
        let mut window = self.tally.window();
        if let Some(failed) = failed {
            window.ended(failed, now);
        }
        if let Some(ttft) = ttft {
            window.first_token(ttft, now);
        }
    }
}

impl Drop for CopyPermit {
    fn drop(&mut self) {
        self.tally.under_way.fetch_sub(1, Relaxed);
        self.bytes.fetch_sub(self.held, Relaxed);
    }
}
