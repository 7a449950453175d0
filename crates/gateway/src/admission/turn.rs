//! A request's place in the queue of its pool, and the leave to go.

use std::sync::Arc;
use std::time::Duration;

use flow::{FlowKey, Ticket, Work};
use telemetry::clock;
use tokio::sync::oneshot;
use types::{Standing, Timestamp};

use super::Admission;
use crate::{Gateway, Refusal};

/// Waits until the request's turn comes or its time is over. Dropped, it leaves the queue.
#[derive(Debug)]
#[must_use = "dropping it gives the place in the queue up"]
pub struct Turn {
    pub(super) admission: Arc<Admission>,
    pub(super) ticket: Ticket,
    pub(crate) called: oneshot::Receiver<Called>,
    pub(super) is_over: bool,
}

/// What became of a request that waited.
#[derive(Debug)]
pub(crate) enum Called {
    Go(Grant),
    Out(Box<Refusal>),
}

impl Turn {
    /// Resolves when the request may go, or need not wait any longer.
    pub async fn come(mut self) -> Result<Grant, Refusal> {
        let called = (&mut self.called).await;
        self.is_over = true;
        match called {
            Ok(Called::Go(grant)) => Ok(grant),
            Ok(Called::Out(refusal)) => Err(*refusal),
            // Whoever takes a request from the queue tells it; nobody is left to.
            Err(_) => Err(super::refusals::gone(&self.admission.pool)),
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        if !self.is_over {
            self.admission.cancel(self.ticket);
        }
    }
}

/// Leave to go to an endpoint, counted against the pool's room until credit is booked there.
///
/// Dropped without that (the client left just now), the next in the queue gets it.
pub struct Grant {
    gateway: Arc<Gateway>,
    admission: Arc<Admission>,
    /// How long the request had waited.
    pub waited: Duration,
    /// When its first try was received.
    pub received: Timestamp,
    /// Which endpoints are open to it.
    pub(crate) standing: Standing,
    flow: FlowKey,
    tokens: u32,
    stage: Stage,
}

/// What became of the leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Open,
    /// An endpoint's own account has the request.
    Booked,
    /// Its client left, and whoever gave it sees to the next.
    Returned,
}

impl std::fmt::Debug for Grant {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Grant").field("waited", &self.waited).finish_non_exhaustive()
    }
}

impl Grant {
    pub(super) fn new(
        gateway: &Arc<Gateway>,
        admission: &Arc<Admission>,
        work: &Work,
        standing: Standing,
        waited: Duration,
    ) -> Self {
        admission.grant();
        let (gateway, admission) = (gateway.clone(), admission.clone());
        Self {
            gateway,
            admission,
            waited,
            received: work.received,
            standing,
            flow: work.flow.clone(),
            tokens: work.tokens,
            stage: Stage::Open,
        }
    }

    /// The endpoint's own account has the request now.
    pub(crate) fn booked(mut self) {
        self.stage = Stage::Booked;
    }

    /// Nobody was there to take it.
    pub(super) fn returned(mut self) {
        self.stage = Stage::Returned;
    }
}

impl Drop for Grant {
    fn drop(&mut self) {
        self.admission.grant_is_over();
        if self.stage == Stage::Booked {
            return;
        }
        let now = clock::now();
        self.admission.unsent(&self.flow, self.tokens, now);
        if self.stage == Stage::Open {
            self.admission.pump(&self.gateway, now);
        }
    }
}
