//! Open loop: requests at times fixed before the run, latency from the *scheduled* time.
//!
//! A generator that waits for an answer before it sends the next request hides a stall behind the
//! requests it did not send (coordinated omission). Here a request that could not leave in time
//! counts its wait. Plain threads with blocking sockets, because a thread that sleeps to its
//! deadline and then blocks in `read` adds the least of its own to what it measures.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::anyhow;

use super::http::Answer;
use super::{Times, new_times, record};
use crate::clock;
use crate::prompts::Requests;

/// An answer that takes longer is a failed request.
const ANSWER_MAX: Duration = Duration::from_secs(20);
/// A request sent later than this makes the generator late.
const LATE_NS: u64 = 5_000_000;

/// A running load.
pub struct Open {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<Outcome>>,
}

struct Shared {
    next: AtomicU64,
    begin_ns: u64,
    interval_ns: u64,
    measured: AtomicBool,
    stop: AtomicBool,
}

/// What was seen while measuring was on.
pub struct Outcome {
    /// Scheduled time to last byte of the answer.
    pub latency: Times,
    pub failed: u64,
    /// Requests that left more than 5 ms behind their time.
    pub late: u64,
}

impl Open {
    /// Starts `per_second` requests over at most `connections` connections, spread over `targets`.
    pub fn start(
        targets: &[SocketAddr],
        connections: usize,
        per_second: u64,
        requests: &Requests,
    ) -> std::io::Result<Self> {
        let shared = Arc::new(Shared {
            next: AtomicU64::new(0),
            begin_ns: clock::now_ns() + 50_000_000,
            interval_ns: 1_000_000_000 / per_second,
            measured: AtomicBool::new(false),
            stop: AtomicBool::new(false),
        });
        let threads = (0..connections)
            .map(|connection| {
                let shared = Arc::clone(&shared);
                let requests = requests.for_connection(connection as u64);
                let target = targets[connection % targets.len()];
                let name = format!("open {connection}");
                std::thread::Builder::new()
                    .name(name)
                    .spawn(move || send(target, requests, &shared))
            })
            .collect::<Result<_, _>>()?;
        Ok(Self { shared, threads })
    }

    /// From now on, requests count.
    pub fn measure(&self) {
        self.shared.measured.store(true, Ordering::Relaxed);
    }

    /// Requests stop counting, and the load ends.
    pub fn stop(self) -> anyhow::Result<Outcome> {
        self.shared.measured.store(false, Ordering::Relaxed);
        self.shared.stop.store(true, Ordering::Relaxed);
        let mut sum = Outcome { latency: new_times(), failed: 0, late: 0 };
        for thread in self.threads {
            let outcome = thread.join().map_err(|_| anyhow!("the load generator broke"))?;
            sum.latency += outcome.latency;
            sum.failed += outcome.failed;
            sum.late += outcome.late;
        }
        Ok(sum)
    }
}

fn send(target: SocketAddr, mut requests: Requests, shared: &Shared) -> Outcome {
    clock::wake_exactly();
    let mut outcome = Outcome { latency: new_times(), failed: 0, late: 0 };
    let mut buffer = vec![0; 64 * 1024];
    let mut socket = None;
    while !shared.stop.load(Ordering::Relaxed) {
        // Made before its time comes: making it must not delay it.
        let request = requests.next();
        let turn = shared.next.fetch_add(1, Ordering::Relaxed);
        let scheduled_ns = shared.begin_ns + turn * shared.interval_ns;
        clock::sleep_until(scheduled_ns);
        let counts = shared.measured.load(Ordering::Relaxed);
        let sent_ns = clock::now_ns();
        let result = one(&mut socket, target, request, &mut buffer);
        let done_ns = clock::now_ns();
        if !matches!(result, Ok(200)) {
            outcome.failed += 1;
            socket = None;
        }
        if counts {
            record(&mut outcome.latency, done_ns.saturating_sub(scheduled_ns));
            outcome.late += u64::from(sent_ns.saturating_sub(scheduled_ns) > LATE_NS);
        }
    }
    outcome
}

/// Sends one request on the kept connection, or on a new one; the status of the answer.
pub fn one(
    socket: &mut Option<TcpStream>,
    target: SocketAddr,
    request: &[u8],
    buffer: &mut [u8],
) -> std::io::Result<u16> {
    let stream = match socket {
        Some(stream) => stream,
        None => {
            let stream = TcpStream::connect(target)?;
            stream.set_nodelay(true)?;
            stream.set_read_timeout(Some(ANSWER_MAX))?;
            socket.insert(stream)
        }
    };
    stream.write_all(request)?;
    let mut answer = Answer::default();
    loop {
        let read = stream.read(buffer)?;
        let piece = buffer.get(..read).filter(|piece| !piece.is_empty());
        let piece = piece.ok_or(std::io::ErrorKind::UnexpectedEof)?;
        if answer.feed(piece).map_err(|_| std::io::ErrorKind::InvalidData)? {
            if answer.closes() {
                *socket = None;
            }
            return Ok(answer.status());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prompts::Kind;

    /// Answers on one connection; holds the 20th answer back for a while.
    fn server_with_one_stall(stall: Duration) -> SocketAddr {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            let (mut socket, _) = listener.accept().unwrap();
            let mut buffer = [0; 64 * 1024];
            let mut answered = 0;
            while socket.read(&mut buffer).is_ok_and(|read| read > 0) {
                answered += 1;
                if answered == 20 {
                    std::thread::sleep(stall);
                }
                let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
                if socket.write_all(answer).is_err() {
                    return;
                }
            }
        });
        address
    }

    #[test]
    fn a_stall_shows_in_every_request_that_had_to_wait_for_it() {
        let stall = Duration::from_millis(300);
        let target = server_with_one_stall(stall);
        let requests = Requests::new(Kind::Shared, 500, "h:1", 1);
        let load = Open::start(&[target], 1, 500, &requests).unwrap();
        load.measure();
        while load.shared.next.load(Ordering::Relaxed) < 250 {
            std::thread::yield_now();
        }
        let outcome = load.stop().unwrap();
        assert_eq!(outcome.failed, 0);
        // 150 requests were due within the stall; a closed loop would have seen a single slow one.
        let slow = outcome.latency.count_between(20_000_000, 60_000_000_000);
        assert!(slow > 100, "{slow} slow of {}", outcome.latency.len());
        assert!(outcome.late > 100);
    }
}
