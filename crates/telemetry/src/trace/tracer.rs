//! From requests to whoever exports: decided here, handed over without waiting.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};

use super::{Sampling, TraceRecord};
use crate::metrics::labels::TraceEnd;
use crate::metrics::{By, Counter};

/// Requests that wait to be exported; 8 MiB or so.
pub const QUEUE_RECORDS_MAX: usize = 4096;

/// What comes out of the queue; `None`: the end, nothing more is waited for.
pub type Queued = Option<Box<TraceRecord>>;

/// What requests hand their traces to.
#[derive(Debug)]
pub struct Tracer {
    pub sampling: Sampling,
    queue: SyncSender<Queued>,
    ends: Arc<By<TraceEnd, Counter>>,
}

impl Tracer {
    /// A tracer, and the end at which its records come out. What finds no room there is dropped and
    /// counted in `ends` ([`crate::GatewayMetrics::traces`]).
    pub fn new(
        sampling: Sampling,
        queue_records_max: usize,
        ends: Arc<By<TraceEnd, Counter>>,
    ) -> (Self, Receiver<Queued>) {
        let (queue, records) = sync_channel(queue_records_max.max(1));
        (Self { sampling, queue, ends }, records)
    }

    /// Another end of the queue, for whoever tells the exporter that the process ends.
    pub fn queue(&self) -> SyncSender<Queued> {
        self.queue.clone()
    }

    /// Never waits.
    pub fn hand_over(&self, record: Box<TraceRecord>) {
        match self.queue.try_send(Some(record)) {
            Ok(()) => {}
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => {
                self.ends.of(TraceEnd::Dropped).inc();
            }
        }
    }
}
