//! Sends the chunks of all streams at their exact times, from one thread.
//!
//! A runtime's timer ticks in milliseconds, which would send the chunks of a hundred streams in
//! clumps; clumps are cheaper to pass on than single chunks, and servers do not make them.

use std::cmp::Ordering as Order;
use std::collections::BinaryHeap;
use std::io::Write;
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::Duration;

use tokio::sync::oneshot;

use super::answers::{Event, STREAM_END, STREAM_HEAD};
use super::counters::{Counters, count};
use crate::clock;

/// Fraction of a gap by which each stream is shifted against the one before (golden ratio): any
/// number of streams ends up spread evenly.
const PHASE: f64 = 0.618_033_988_749_895;

#[derive(Clone)]
pub(super) struct Pacer(Sender<Stream>);

impl Pacer {
    pub(super) fn add(&self, stream: Stream) {
        // The thread ends only with the process; a lost stream would show as a failed one.
        let _ = self.0.send(stream);
    }
}

/// A stream under way; `socket` does not block.
pub(super) struct Stream {
    socket: TcpStream,
    chunks_left: u32,
    gap_ns: u64,
    deadline_ns: u64,
    done: oneshot::Sender<()>,
    gone: Arc<AtomicBool>,
}

impl Stream {
    /// The stream, a signal for its regular end, and the flag that gives it up.
    pub(super) fn new(
        socket: TcpStream,
        chunks: u32,
        gap_ns: u64,
    ) -> (Self, oneshot::Receiver<()>, Arc<AtomicBool>) {
        let (done, end) = oneshot::channel();
        let gone = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&gone);
        (Self { socket, chunks_left: chunks, gap_ns, deadline_ns: 0, done, gone }, end, flag)
    }
}

/// Earliest deadline first.
struct Due(Stream);

impl Ord for Due {
    fn cmp(&self, other: &Self) -> Order {
        other.0.deadline_ns.cmp(&self.0.deadline_ns)
    }
}

impl PartialOrd for Due {
    fn partial_cmp(&self, other: &Self) -> Option<Order> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Due {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Order::Equal
    }
}

impl Eq for Due {}

pub(super) fn start(counters: Arc<Counters>) -> std::io::Result<Pacer> {
    let (sender, receiver) = mpsc::channel();
    std::thread::Builder::new().name("pacer".into()).spawn(move || run(&receiver, &counters))?;
    Ok(Pacer(sender))
}

fn run(arrivals: &Receiver<Stream>, counters: &Counters) {
    clock::wake_exactly();
    let mut due = BinaryHeap::new();
    let mut event = Event::new();
    let mut phase = 0.0f64;
    loop {
        let arrived = match due.peek() {
            None => arrivals.recv().map_err(|_| RecvTimeoutError::Disconnected),
            Some(Due(next)) => {
                let wait = next.deadline_ns.saturating_sub(clock::now_ns());
                arrivals.recv_timeout(Duration::from_nanos(wait))
            }
        };
        match arrived {
            Ok(mut stream) => {
                phase = (phase + PHASE).fract();
                let now = clock::now_ns();
                stream.deadline_ns = now + (stream.gap_ns as f64 * phase) as u64;
                let mut first = STREAM_HEAD.to_vec();
                first.extend_from_slice(event.at(now));
                if write(&mut stream, &first, counters) {
                    due.push(Due(stream));
                }
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
        while due.peek().is_some_and(|Due(next)| next.deadline_ns <= clock::now_ns()) {
            let Some(Due(mut stream)) = due.pop() else { break };
            if stream.gone.load(Ordering::Relaxed) {
                continue;
            }
            if stream.chunks_left <= 1 {
                if (&stream.socket).write_all(STREAM_END).is_ok() {
                    let _ = stream.done.send(());
                }
            } else if write(&mut stream, event.at(clock::now_ns()), counters) {
                // From the deadline, not from now: lateness must not add up.
                stream.deadline_ns += stream.gap_ns;
                due.push(Due(stream));
            }
        }
    }
}

/// Whether the stream goes on. A peer that does not read is given up: half an event is no event.
fn write(stream: &mut Stream, bytes: &[u8], counters: &Counters) -> bool {
    match (&stream.socket).write(bytes) {
        Ok(written) if written == bytes.len() => {
            stream.chunks_left = stream.chunks_left.saturating_sub(1);
            count(&counters.chunks);
            true
        }
        _ => {
            if !stream.gone.load(Ordering::Relaxed) {
                count(&counters.stalled);
            }
            let _ = stream.socket.shutdown(std::net::Shutdown::Both);
            false
        }
    }
}
