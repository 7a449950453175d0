//! Lines between the requests and the one thread that writes them.

use std::io::{self, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::metrics::Counter;

/// How long the writer lets lines gather after the first: a wake-up for each line would cost the
/// requests more than the lines do.
const GATHER: Duration = Duration::from_millis(20);

#[derive(Debug)]
pub(super) struct Queue {
    bytes_max: usize,
    state: Mutex<State>,
    /// To the writer: something to do.
    wake: Condvar,
    /// From the writer: it has ended.
    ended: Condvar,
    dropped: Arc<Counter>,
}

#[derive(Debug, Default)]
struct State {
    lines: Vec<u8>,
    reopen: bool,
    closing: bool,
    ended: bool,
}

impl Queue {
    pub(super) fn new(bytes_max: usize, dropped: Arc<Counter>) -> Self {
        Self {
            bytes_max,
            state: Mutex::default(),
            wake: Condvar::new(),
            ended: Condvar::new(),
            dropped,
        }
    }

    /// Appends a line, or drops and counts it if there is no room.
    pub(super) fn push(&self, line: &[u8]) {
        let mut state = self.lock();
        let before = state.lines.len();
        let after = before + line.len();
        if after > self.bytes_max || state.ended {
            drop(state);
            self.dropped.inc();
            return;
        }
        state.lines.extend_from_slice(line);
        drop(state);
        let half = self.bytes_max / 2;
        if before == 0 || (before < half && after >= half) {
            self.wake.notify_one();
        }
    }

    pub(super) fn reopen(&self) {
        self.lock().reopen = true;
        self.wake.notify_one();
    }

    /// Asks the writer to write what is queued and end; waits for that, but not longer than `wait`.
    pub(super) fn close(&self, wait: Duration) {
        let mut state = self.lock();
        state.closing = true;
        self.wake.notify_one();
        let ended = self.ended.wait_timeout_while(state, wait, |state| !state.ended);
        drop(ended);
    }

    /// The writer's life: until [`Self::close`].
    pub(super) fn write_to<W: Write>(&self, first: W, mut open: impl FnMut() -> io::Result<W>) {
        let mut sink = first;
        let mut batch = Vec::new();
        loop {
            let mut state = self.lock();
            state = self.wait_while(state, |state| {
                state.lines.is_empty() && !state.reopen && !state.closing
            });
            let gathering =
                |state: &mut State| state.lines.len() < self.bytes_max / 2 && !state.closing;
            state = match self.wake.wait_timeout_while(state, GATHER, gathering) {
                Ok((state, _)) => state,
                Err(poisoned) => poisoned.into_inner().0,
            };
            std::mem::swap(&mut state.lines, &mut batch);
            let reopen = std::mem::take(&mut state.reopen);
            let closing = state.closing;
            drop(state);

            if reopen && let Ok(new) = open() {
                // On failure the old file stays: a moved log is better than none.
                sink = new;
            }
            if sink.write_all(&batch).and_then(|()| sink.flush()).is_err() {
                let lines = memchr_count(&batch);
                self.dropped.add(lines);
            }
            batch.clear();
            if closing {
                let mut state = self.lock();
                if state.lines.is_empty() {
                    state.ended = true;
                    self.ended.notify_all();
                    return;
                }
            }
        }
    }

    fn wait_while<'a>(
        &self,
        state: MutexGuard<'a, State>,
        condition: impl FnMut(&mut State) -> bool,
    ) -> MutexGuard<'a, State> {
        self.wake.wait_while(state, condition).unwrap_or_else(PoisonError::into_inner)
    }

    /// A panic while holding it cannot leave half a line: lines are appended whole.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Each line has exactly one line end.
fn memchr_count(lines: &[u8]) -> u64 {
    lines.iter().map(|byte| u64::from(*byte == b'\n')).sum()
}
