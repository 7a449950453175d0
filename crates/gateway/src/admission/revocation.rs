//! Calling a request back from its endpoint, for one that is more important.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use flow::{DispatchId, Work};
use tokio::sync::Notify;
use types::{Priority, Timestamp};

use super::{Admission, refusals};
use crate::Refusal;

/// How a request that an endpoint has learns that it is called back.
#[derive(Debug, Default)]
pub struct Revocation {
    is_revoked: AtomicBool,
    revoked: Notify,
}

impl Revocation {
    fn revoke(&self) {
        self.is_revoked.store(true, Ordering::Release);
        self.revoked.notify_one();
    }

    /// Resolves when the request is called back. One may wait.
    pub async fn revoked(&self) {
        while !self.is_revoked.load(Ordering::Acquire) {
            self.revoked.notified().await;
        }
    }
}

impl Admission {
    /// Notes a request that goes to an endpoint now; `None` where nothing is ever called back.
    pub(crate) fn sent(&self, priority: Priority) -> Option<(DispatchId, Arc<Revocation>)> {
        let mut state = self.lock();
        if !state.settings.revoke {
            return None;
        }
        let revocation = Arc::new(Revocation::default());
        let id = state.dispatched.insert(priority, revocation.clone());
        Some((id, revocation))
    }

    /// The request has its first byte, or its end.
    pub(crate) fn answered(&self, id: DispatchId) {
        self.lock().dispatched.remove(id);
    }

    /// Something of this priority waits: calls back the newest request of the lowest band below it.
    pub(super) fn revoke_for(&self, priority: Priority) {
        if priority < Priority::CRITICAL || self.waiting.load(Ordering::Relaxed) == 0 {
            return;
        }
        let mut victims = Vec::new();
        let mut state = self.lock();
        if state.settings.revoke {
            state.dispatched.victims(priority, 1, &mut victims);
        }
        drop(state);
        victims.iter().for_each(|victim| victim.revoke());
    }

    /// What the client of a request is told that was called back.
    pub(crate) fn revoked(&self, work: &Work, now: Timestamp) -> Refusal {
        let retry_after = self.lock().queue.retry_after(work, now);
        refusals::revoked(&self.pool, retry_after)
    }
}
