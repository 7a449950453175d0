//! The thread between the tracer's queue and the collector.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::time::Duration;

use telemetry::clock;
use telemetry::metrics::labels::TraceEnd;
use telemetry::metrics::{By, Counter};
use telemetry::trace::{QUEUE_RECORDS_MAX, Queued, TraceRecord, Tracer};
use types::Timestamp;

use crate::settings::Settings;
use crate::spans::spans_of;
use crate::tasks::Tasks;
use crate::transport::{SendError, Transport};
use crate::wire::{ExportRequest, Resource, ResourceSpans, Scope, ScopeSpans};

/// Requests in one batch; some six spans each.
const BATCH_MAX: usize = 256;
/// How long a batch gathers after its first request.
const GATHER: Duration = Duration::from_secs(1);
/// Pauses before a batch is tried again.
const PAUSES: [Duration; 2] = [Duration::from_millis(500), Duration::from_secs(2)];
/// Between two lines of the log about a collector that does not answer.
const COMPLAIN_EVERY: Duration = Duration::from_secs(60);
const SCHEMA: &str = "https://opentelemetry.io/schemas/1.37.0";

/// Exports until it is dropped; then what is queued is still sent, within [`Exporter::CLOSE_WAIT`].
#[derive(Debug)]
pub struct Exporter {
    closing: Arc<AtomicBool>,
    queue: SyncSender<Queued>,
    ended: Receiver<()>,
}

impl Exporter {
    /// Longest wait for the last batch when the process ends.
    pub const CLOSE_WAIT: Duration = Duration::from_secs(2);

    /// Starts the thread. The tracer goes to the gateway.
    ///
    /// * `ends`: counts what becomes of traces ([`telemetry::GatewayMetrics::traces`]).
    ///
    /// # Errors
    /// When the authorities' file cannot be read or the thread not started.
    pub fn start(
        settings: Settings,
        ends: Arc<By<TraceEnd, Counter>>,
    ) -> io::Result<(Self, Tracer)> {
        let (tracer, records) =
            Tracer::new(settings.sampling.clone(), QUEUE_RECORDS_MAX, Arc::clone(&ends));
        let transport = Transport::new(&settings)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let closing = Arc::new(AtomicBool::new(false));
        let (end, ended) = mpsc::channel();
        let mut work =
            Work { settings, transport, ends, closing: Arc::clone(&closing), complained: None };
        std::thread::Builder::new().name("traces".into()).spawn(move || {
            work.run(&records, &runtime);
            drop(end);
        })?;
        Ok((Self { closing, queue: tracer.queue(), ended }, tracer))
    }
}

impl Drop for Exporter {
    fn drop(&mut self) {
        self.closing.store(true, Ordering::Relaxed);
        // Full: the thread is awake, and looks at the flag after each batch.
        let _ = self.queue.try_send(None);
        // Ends when the thread does, by losing its other end.
        let _ = self.ended.recv_timeout(Self::CLOSE_WAIT);
    }
}

struct Work {
    settings: Settings,
    transport: Transport,
    ends: Arc<By<TraceEnd, Counter>>,
    closing: Arc<AtomicBool>,
    complained: Option<Timestamp>,
}

impl Work {
    fn run(&mut self, records: &Receiver<Queued>, runtime: &tokio::runtime::Runtime) {
        loop {
            let (batch, is_last) = gather(records, &self.closing);
            if !batch.is_empty() {
                runtime.block_on(self.export(&batch));
            }
            if is_last {
                return;
            }
        }
    }

    async fn export(&mut self, batch: &[Box<TraceRecord>]) {
        let spans = batch.iter().flat_map(|record| spans_of(record)).collect();
        let scope =
            Scope { name: "wicketgate".to_owned(), version: env!("CARGO_PKG_VERSION").to_owned() };
        let request = ExportRequest {
            resource_spans: vec![ResourceSpans {
                resource: Some(Resource { attributes: self.settings.resource.clone() }),
                scope_spans: vec![ScopeSpans { scope: Some(scope), spans }],
                schema_url: SCHEMA.to_owned(),
            }],
        };
        let tasks = Tasks::default();
        let sent = tokio::time::timeout(self.settings.timeout, self.send(&request, &tasks)).await;
        tasks.end().await;
        let error = match sent {
            Ok(Ok(())) => {
                self.ends.of(TraceEnd::Exported).add(batch.len() as u64);
                return;
            }
            Ok(Err(error)) => error.to_string(),
            Err(_) => format!("no answer within {:?}", self.settings.timeout),
        };
        self.ends.of(TraceEnd::Failed).add(batch.len() as u64);
        self.complain(&error);
    }

    async fn send(&self, request: &ExportRequest, tasks: &Tasks) -> Result<(), SendError> {
        let mut pauses = PAUSES.iter();
        loop {
            let error = match self.transport.send(request, tasks).await {
                Ok(()) => return Ok(()),
                Err(error) => error,
            };
            match pauses.next() {
                Some(pause) if error.may_pass() && !self.closing.load(Ordering::Relaxed) => {
                    tasks.end().await;
                    tokio::time::sleep(*pause).await;
                }
                _ => return Err(error),
            }
        }
    }

    fn complain(&mut self, error: &str) {
        let now = clock::now();
        if self.complained.is_none_or(|last| now.since(last) >= COMPLAIN_EVERY) {
            self.complained = Some(now);
            let endpoint = self.transport.shown();
            tracing::warn!(endpoint, error, "traces are lost: the collector does not take them");
        }
    }
}

/// The next batch, and whether it is the last. Waits for its first request as long as it takes.
#[expect(clippy::vec_box, reason = "they come boxed out of the queue")]
fn gather(records: &Receiver<Queued>, closing: &AtomicBool) -> (Vec<Box<TraceRecord>>, bool) {
    let mut batch = Vec::new();
    match records.recv() {
        Ok(Some(record)) => batch.push(record),
        Ok(None) | Err(_) => return (batch, true),
    }
    let until = clock::now() + GATHER;
    while batch.len() < BATCH_MAX {
        let is_closing = closing.load(Ordering::Relaxed);
        let left = if is_closing { Duration::ZERO } else { until.since(clock::now()) };
        match records.recv_timeout(left) {
            Ok(Some(record)) => batch.push(record),
            Ok(None) | Err(RecvTimeoutError::Disconnected) => return (batch, true),
            Err(RecvTimeoutError::Timeout) => return (batch, is_closing),
        }
    }
    (batch, false)
}
