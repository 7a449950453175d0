//! What the mock has seen, so that a cost per request is divided by requests that arrived.

use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Serialize};

/// Written by the connections and the pacer, read by the control thread; nothing orders on them.
pub(super) struct Counters {
    pub(super) requests: Vec<AtomicU64>,
    pub(super) scrapes: AtomicU64,
    pub(super) others: AtomicU64,
    pub(super) chunks: AtomicU64,
    pub(super) streams_begun: AtomicU64,
    pub(super) streams_ended: AtomicU64,
    pub(super) last_end_ns: AtomicU64,
    pub(super) stalled: AtomicU64,
    pub(super) gap_ns: AtomicU64,
}

/// A reading of the counters; all but `last_end_ns` only ever grow.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Stats {
    /// Completion requests, by port.
    pub requests: Vec<u64>,
    /// Requests for `/metrics`.
    pub scrapes: u64,
    /// Requests for anything else: models, health, a router's own questions.
    pub others: u64,
    /// Events of all streams that were written.
    pub chunks: u64,
    pub streams_begun: u64,
    /// Streams that finished or whose client left.
    pub streams_ended: u64,
    /// When the last of them ended, on [`crate::clock`].
    pub last_end_ns: u64,
    /// Streams given up because the peer did not read.
    pub stalled: u64,
}

impl Stats {
    pub fn requests_sum(&self) -> u64 {
        self.requests.iter().sum()
    }
}

impl Counters {
    pub(super) fn new(ports: usize) -> Self {
        Self {
            requests: (0..ports).map(|_| AtomicU64::new(0)).collect(),
            scrapes: AtomicU64::new(0),
            others: AtomicU64::new(0),
            chunks: AtomicU64::new(0),
            streams_begun: AtomicU64::new(0),
            streams_ended: AtomicU64::new(0),
            last_end_ns: AtomicU64::new(0),
            stalled: AtomicU64::new(0),
            gap_ns: AtomicU64::new(10_000_000),
        }
    }

    pub(super) fn read(&self) -> Stats {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Stats {
            requests: self.requests.iter().map(get).collect(),
            scrapes: get(&self.scrapes),
            others: get(&self.others),
            chunks: get(&self.chunks),
            streams_begun: get(&self.streams_begun),
            streams_ended: get(&self.streams_ended),
            last_end_ns: get(&self.last_end_ns),
            stalled: get(&self.stalled),
        }
    }
}

/// Counts one.
pub(super) fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}
