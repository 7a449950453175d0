//! The end of a process, in steps that lose nothing.

use std::sync::Arc;
use std::time::Duration;

use gateway::Gateway;
use proxy::Phase;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;

/// The signals to stop, caught from the moment this exists.
pub(crate) struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    pub(crate) fn catch() -> std::io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    /// Waits for either.
    pub(crate) async fn first(mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

/// Waits for the signal to stop, then goes through the phases. A second signal ends at once.
///
/// SIGTERM comes from an orchestrator, which needs time to stop sending traffic here, so new
/// connections are taken for the drain delay. SIGINT comes from a person, who does not want to wait.
pub(crate) async fn on_signal(
    signals: Signals,
    gateway: Arc<Gateway>,
    phase: watch::Sender<Phase>,
) {
    let Signals { mut terminate, mut interrupt } = signals;
    let delay = tokio::select! {
        _ = terminate.recv() => gateway.spec().timeouts.drain_delay,
        _ = interrupt.recv() => Duration::ZERO,
    };
    let drain = gateway.spec().timeouts.drain;
    tracing::info!(?delay, ?drain, "draining; a second signal ends at once");
    gateway.start_draining();
    phase.send_replace(Phase::Draining);
    let steps = async {
        tokio::time::sleep(delay).await;
        phase.send_replace(Phase::Closed);
        tokio::time::sleep(drain).await;
    };
    tokio::select! {
        () = steps => {}
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    phase.send_replace(Phase::Over);
}
