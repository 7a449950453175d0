//! Ends the wait of those whose time is over, when it is over.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use telemetry::clock;
use tokio::sync::Notify;
use types::Timestamp;

use crate::Gateway;

/// When the next wait ends, over all pools.
#[derive(Debug)]
pub(crate) struct FlowClock {
    /// Nanoseconds; [`NEVER`] while nobody waits.
    next: AtomicU64,
    sooner: Notify,
}

const NEVER: u64 = u64::MAX;

impl Default for FlowClock {
    fn default() -> Self {
        Self { next: AtomicU64::new(NEVER), sooner: Notify::new() }
    }
}

impl FlowClock {
    /// A wait ends then.
    pub(crate) fn expect(&self, at: Option<Timestamp>) {
        let at = at.map_or(NEVER, Timestamp::as_nanos);
        if at < self.next.fetch_min(at, Ordering::AcqRel) {
            self.sooner.notify_one();
        }
    }
}

/// Runs until dropped.
pub(crate) async fn keep(gateway: Arc<Gateway>) {
    let clock = &gateway.flow_clock;
    loop {
        let next = clock.next.load(Ordering::Acquire);
        if next == NEVER {
            clock.sooner.notified().await;
            continue;
        }
        let wait = Timestamp(next).since(clock::now());
        if !wait.is_zero() {
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                () = clock.sooner.notified() => {}
            }
            continue;
        }
        clock.next.store(NEVER, Ordering::Release);
        let now = clock::now();
        for admission in gateway.admissions() {
            clock.expect(admission.expire(now));
        }
    }
}
