//! The streams of one connection: how many are open, and which wait for their client.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use tokio::time::Instant;

/// All streams of one connection.
#[derive(Clone, Debug, Default)]
pub(super) struct Streams(Rc<RefCell<Table>>);

#[derive(Debug, Default)]
struct Table {
    next: u64,
    open: usize,
    /// Streams that handed over payload and were not asked for more: their clients' windows are
    /// full. By number, since when.
    blocked: HashMap<u64, Instant>,
}

impl Streams {
    pub(super) fn open(&self) -> OpenStream {
        let mut table = self.0.borrow_mut();
        table.open += 1;
        table.next += 1;
        OpenStream { number: table.next, streams: self.clone() }
    }

    pub(super) fn are_open(&self) -> bool {
        self.0.borrow().open > 0
    }

    /// Since when the longest waiting stream waits for its client.
    pub(super) fn blocked_since(&self) -> Option<Instant> {
        self.0.borrow().blocked.values().min().copied()
    }
}

/// One stream; open until dropped.
#[derive(Debug)]
pub(super) struct OpenStream {
    number: u64,
    streams: Streams,
}

impl OpenStream {
    /// Payload was handed over; it is asked for more once the client has room.
    pub(super) fn handed_over(&self) {
        self.streams.0.borrow_mut().blocked.insert(self.number, Instant::now());
    }

    /// It was asked for more.
    pub(super) fn asked(&self) {
        self.streams.0.borrow_mut().blocked.remove(&self.number);
    }
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        let mut table = self.streams.0.borrow_mut();
        table.open -= 1;
        table.blocked.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_stream_is_blocked_from_its_payload_until_it_is_asked_for_more_or_ends() {
        let streams = Streams::default();
        let (first, second) = (streams.open(), streams.open());
        assert_eq!(streams.blocked_since(), None);
        first.handed_over();
        let since = Instant::now();
        tokio::time::advance(std::time::Duration::from_secs(1)).await;
        second.handed_over();
        assert_eq!(streams.blocked_since(), Some(since));
        first.asked();
        assert!(streams.blocked_since() > Some(since));
        drop(second);
        assert_eq!(streams.blocked_since(), None);
        drop(first);
        assert!(!streams.are_open());
    }
}
