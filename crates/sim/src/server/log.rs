//! What a server received and how it ended, for tests that must see the other side.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::Serialize;
use sha2::{Digest, Sha256};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::wire::Request;

/// Requests that are remembered.
const KEPT: usize = 1000;

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Still being answered.
    Open,
    /// The whole answer was written.
    Done,
    /// The peer left first.
    Cancelled,
    /// The server ended it, by a fault or its own death.
    Cut,
}

/// One received request.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LoggedRequest {
    /// Counts from 1 in order of arrival.
    pub number: u64,
    /// Revision of the last change; see [`LogPage`].
    pub revision: u64,
    pub method: String,
    /// Path and query as sent.
    pub path: String,
    /// In order and as spelt.
    pub headers: Vec<(String, String)>,
    pub body_bytes: usize,
    /// Hexadecimal.
    pub body_sha256: String,
    pub outcome: Outcome,
    /// 0 while nothing was answered.
    pub status: u16,
    /// Token events written.
    pub chunks_sent: u32,
    /// Real milliseconds from the request's last byte to its end. `None` while open.
    pub ended_after_ms: Option<f64>,
}

/// A part of the log.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LogPage {
    /// Ask with `after` set to it for what changes from here on.
    pub revision: u64,
    pub requests: Vec<LoggedRequest>,
}

#[derive(Debug)]
pub(crate) struct RequestLog {
    entries: Arc<Mutex<VecDeque<LoggedRequest>>>,
    revision: Arc<watch::Sender<u64>>,
}

impl Default for RequestLog {
    fn default() -> Self {
        Self { entries: Arc::default(), revision: Arc::new(watch::Sender::new(0)) }
    }
}

/// Writes the end of one request; a dropped one was cut.
pub(super) struct Entry {
    entries: Arc<Mutex<VecDeque<LoggedRequest>>>,
    revision: Arc<watch::Sender<u64>>,
    number: u64,
    begun: Instant,
    pub(super) status: u16,
    pub(super) chunks_sent: u32,
    outcome: Outcome,
}

impl RequestLog {
    pub(super) fn begin(&self, request: &Request) -> Entry {
        let begun = Instant::now();
        let digest = Sha256::digest(&request.body);
        let body_sha256 = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let number = entries.back().map_or(0, |last| last.number) + 1;
        if entries.len() >= KEPT {
            entries.pop_front();
        }
        entries.push_back(LoggedRequest {
            number,
            revision: next(&self.revision),
            method: request.method.clone(),
            path: request.target.clone(),
            headers: request.headers.clone(),
            body_bytes: request.body.len(),
            body_sha256,
            outcome: Outcome::Open,
            status: 0,
            chunks_sent: 0,
            ended_after_ms: None,
        });
        drop(entries);
        self.revision.send_modify(|_| {});
        Entry {
            entries: self.entries.clone(),
            revision: self.revision.clone(),
            number,
            begun,
            status: 0,
            chunks_sent: 0,
            outcome: Outcome::Cut,
        }
    }

    /// Entries changed after revision `after`; waits up to `wait` for the first.
    pub(crate) async fn changed(&self, after: u64, wait: Duration) -> LogPage {
        let mut revision = self.revision.subscribe();
        let newer = revision.wait_for(|revision| *revision > after);
        // A timeout answers with an empty page.
        let _ = tokio::time::timeout(wait, newer).await;
        let entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let requests = entries.iter().filter(|entry| entry.revision > after).cloned().collect();
        LogPage { revision: *self.revision.borrow(), requests }
    }
}

impl Entry {
    /// The request ended so. Takes effect when the entry is dropped.
    pub(super) fn ends(&mut self, outcome: Outcome) {
        self.outcome = outcome;
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let first = entries.front().map_or(0, |entry| entry.number);
        let at = self.number.checked_sub(first).and_then(|at| usize::try_from(at).ok());
        if let Some(entry) = at.and_then(|at| entries.get_mut(at)) {
            entry.revision = next(&self.revision);
            entry.outcome = self.outcome;
            entry.status = self.status;
            entry.chunks_sent = self.chunks_sent;
            entry.ended_after_ms = Some(self.begun.elapsed().as_secs_f64() * 1e3);
        }
        drop(entries);
        self.revision.send_modify(|_| {});
    }
}

/// Counts a change. Readers are woken later, when the entry is complete; both happen under the
/// lock of the entries, so none sees a revision whose change it cannot see.
fn next(revision: &watch::Sender<u64>) -> u64 {
    let mut now = 0;
    revision.send_if_modified(|revision| {
        *revision += 1;
        now = *revision;
        false
    });
    now
}
