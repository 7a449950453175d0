//! One JSON line per request, without a word of what was asked or answered.
//!
//! A request formats its line into a buffer of its thread and appends it to a queue that is bounded
//! in bytes; one thread writes what has gathered. When the reader is too slow the line is dropped
//! and counted: a blocked pipe must never block a request.

mod entry;
mod queue;
mod schema;
#[cfg(test)]
mod tests;

use std::cell::RefCell;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

pub use entry::{ClosedBy, Entry};
pub use schema::{FIELDS, FieldDoc, markdown};

use crate::metrics::Counter;
use queue::Queue;

/// Where lines go.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Target {
    Off,
    #[default]
    Stdout,
    Stderr,
    /// Appended to; made if missing. See [`AccessLog::reopen`].
    File(PathBuf),
}

/// Lines that wait for the writer, in bytes; about 2,000 of them.
const QUEUE_BYTES_MAX: usize = 1 << 20;

/// Longest wait for the last lines when the log is dropped while its reader is stuck.
const CLOSE_WAIT: Duration = Duration::from_secs(1);

/// The access log. Dropping it writes what is queued.
#[derive(Debug)]
pub struct AccessLog {
    queue: Option<Arc<Queue>>,
}

impl AccessLog {
    /// Opens `target` and starts the writer thread. Lines that cannot be written are counted in
    /// `dropped` ([`crate::GatewayMetrics::access_log_dropped_lines`]).
    ///
    /// # Errors
    /// When the file cannot be opened or the thread not started.
    pub fn open(target: Target, dropped: Arc<Counter>) -> io::Result<Self> {
        match target {
            Target::Off => Ok(Self { queue: None }),
            Target::Stdout => Self::start(|| Ok(io::stdout()), dropped),
            Target::Stderr => Self::start(|| Ok(io::stderr()), dropped),
            Target::File(path) => Self::start(move || append_to(&path), dropped),
        }
    }

    /// `sink` is called once now and once after each [`Self::reopen`].
    fn start<W: Write + Send + 'static>(
        mut sink: impl FnMut() -> io::Result<W> + Send + 'static,
        dropped: Arc<Counter>,
    ) -> io::Result<Self> {
        let first = sink()?;
        let queue = Arc::new(Queue::new(QUEUE_BYTES_MAX, dropped));
        let writer = Arc::clone(&queue);
        std::thread::Builder::new()
            .name("access-log".into())
            .spawn(move || writer.write_to(first, sink))?;
        Ok(Self { queue: Some(queue) })
    }

    /// Formats and queues one line. Never waits for the reader.
    pub fn record(&self, entry: &Entry<'_>) {
        thread_local! {
            static LINE: RefCell<Vec<u8>> = RefCell::new(Vec::with_capacity(1024));
        }
        let Some(queue) = &self.queue else { return };
        LINE.with_borrow_mut(|line| {
            line.clear();
            entry.format(line);
            queue.push(line);
        });
    }

    /// Opens the file again before the next write, after a log rotation moved it away.
    pub fn reopen(&self) {
        if let Some(queue) = &self.queue {
            queue.reopen();
        }
    }
}

impl Drop for AccessLog {
    fn drop(&mut self) {
        if let Some(queue) = &self.queue {
            queue.close(CLOSE_WAIT);
        }
    }
}

fn append_to(path: &std::path::Path) -> io::Result<File> {
    OpenOptions::new().append(true).create(true).open(path)
}
