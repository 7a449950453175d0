//! What waits between requests and the one thread that writes it down.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::{Sample, State};
use crate::metrics::Counter;

/// How long the writer lets events gather after the first, for a wake-up for each would cost the
/// requests more than the lines do.
const GATHER: Duration = Duration::from_millis(20);

#[derive(Debug)]
pub(super) enum Event {
    Request(Box<Sample>),
    State(State),
}

impl Event {
    /// Bytes in memory, about.
    fn weight(&self) -> usize {
        match self {
            Self::Request(sample) => 512 + 8 * sample.block_hashes.len(),
            Self::State(state) => {
                let endpoints: usize = state.pools.iter().map(|pool| pool.endpoints.len()).sum();
                512 + 256 * endpoints
            }
        }
    }
}

/// What waits between requests and writer.
#[derive(Debug)]
pub(super) struct Queue {
    bytes_max: usize,
    waiting: Mutex<Waiting>,
    /// To the writer: something to do.
    wake: Condvar,
    /// From the writer: it has ended.
    ended: Condvar,
    dropped: Arc<Counter>,
}

#[derive(Debug, Default)]
struct Waiting {
    events: Vec<Event>,
    bytes: usize,
    is_closing: bool,
    has_ended: bool,
}

impl Queue {
    pub(super) fn new(bytes_max: usize, dropped: Arc<Counter>) -> Self {
        Self {
            bytes_max,
            waiting: Mutex::default(),
            wake: Condvar::new(),
            ended: Condvar::new(),
            dropped,
        }
    }

    pub(super) fn push(&self, event: Event) {
        let weight = event.weight();
        let mut waiting = self.lock();
        if waiting.bytes + weight > self.bytes_max || waiting.has_ended {
            drop(waiting);
            self.dropped.inc();
            return;
        }
        waiting.bytes += weight;
        waiting.events.push(event);
        let is_first = waiting.events.len() == 1;
        drop(waiting);
        if is_first {
            self.wake.notify_one();
        }
    }

    pub(super) fn close(&self, wait: Duration) {
        let mut waiting = self.lock();
        waiting.is_closing = true;
        self.wake.notify_one();
        drop(self.ended.wait_timeout_while(waiting, wait, |waiting| !waiting.has_ended));
    }

    /// The writer's life: until [`Self::close`].
    pub(super) fn drain(&self, mut write: impl FnMut(&mut Vec<Event>)) {
        let mut batch = Vec::new();
        loop {
            let idle = |waiting: &mut Waiting| waiting.events.is_empty() && !waiting.is_closing;
            let waiting =
                self.wake.wait_while(self.lock(), idle).unwrap_or_else(PoisonError::into_inner);
            let gathering = |waiting: &mut Waiting| !waiting.is_closing;
            let mut waiting = match self.wake.wait_timeout_while(waiting, GATHER, gathering) {
                Ok((waiting, _)) => waiting,
                Err(poisoned) => poisoned.into_inner().0,
            };
            std::mem::swap(&mut waiting.events, &mut batch);
            waiting.bytes = 0;
            if waiting.is_closing && batch.is_empty() {
                waiting.has_ended = true;
                self.ended.notify_all();
                return;
            }
            drop(waiting);
            write(&mut batch);
            batch.clear();
        }
    }

    /// A panic while holding it cannot leave half an event.
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::Request;

    fn sample(blocks: usize) -> Event {
        Event::Request(Box::new(Sample {
            request: Request::default(),
            block_hashes: vec![1; blocks],
            adapter: None,
        }))
    }

    #[test]
    fn what_finds_no_room_is_dropped_and_counted_without_waiting() {
        let dropped = Arc::new(Counter::default());
        let queue = Queue::new(2048, dropped.clone());
        for _ in 0..5 {
            queue.push(sample(64));
        }
        assert_eq!(dropped.get(), 3);
        assert_eq!(queue.lock().events.len(), 2);
    }

    #[test]
    fn the_writer_gets_what_was_queued_before_the_end() {
        let queue = Queue::new(1 << 20, Arc::default());
        queue.push(sample(1));
        queue.push(sample(2));
        let mut seen = 0;
        queue.lock().is_closing = true;
        queue.drain(|events| {
            seen += events.len();
            events.clear();
        });
        assert_eq!(seen, 2);
        queue.push(sample(1));
        assert_eq!(queue.dropped.get(), 1, "nobody would write it any more");
    }
}
