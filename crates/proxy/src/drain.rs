//! The order to stop: no new requests, then an end for what still runs.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::sync::watch;

/// How far the shutdown is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    #[default]
    Serving,
    /// Requests are still taken, but connections close after their answer, idle ones at once.
    Draining,
    /// No new connections are accepted.
    Closed,
    /// The drain time is over: streams end with an error.
    Over,
}

/// Sees the order.
pub(crate) struct Drain {
    phase: watch::Receiver<Phase>,
    changed: Option<Pin<Box<dyn Future<Output = watch::Receiver<Phase>>>>>,
}

impl Clone for Drain {
    fn clone(&self) -> Self {
        Self { phase: self.phase.clone(), changed: None }
    }
}

impl Drain {
    pub(crate) fn new(phase: watch::Receiver<Phase>) -> Self {
        Self { phase, changed: None }
    }

    pub(crate) fn is_on(&self) -> bool {
        *self.phase.borrow() >= Phase::Draining
    }

    /// Ready once draining has begun.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.poll_at_least(Phase::Draining, cx)
    }

    /// Ready once no new connections are accepted.
    pub(crate) fn poll_closed(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.poll_at_least(Phase::Closed, cx)
    }

    /// Ready once the drain time is over.
    pub(crate) fn poll_deadline(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.poll_at_least(Phase::Over, cx)
    }

    fn poll_at_least(&mut self, least: Phase, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            if *self.phase.borrow() >= least {
                return Poll::Ready(());
            }
            let changed = self.changed.get_or_insert_with(|| {
                let mut phase = self.phase.clone();
                Box::pin(async move {
                    if phase.changed().await.is_err() {
                        // Whoever could give the order is gone; it will not come.
                        std::future::pending::<()>().await;
                    }
                    phase
                })
            });
            match changed.as_mut().poll(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(phase) => {
                    self.phase = phase;
                    self.changed = None;
                }
            }
        }
    }
}
