//! Many open streams, each event's way timed from the stamp that the mock put into it.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use anyhow::anyhow;
use memchr::memmem;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::oneshot;

use super::{Times, new_times, record};
use crate::clock;
use crate::mock::{STAMP_DIGITS, STAMP_MARK};

/// How an answer begins that is a stream; anything else is a refusal.
const GOOD: &[u8] = b"HTTP/1.1 200";

/// Running streams; dropping their load leaves them all at once, as clients do.
pub struct Streams {
    shared: Arc<Shared>,
    leave: oneshot::Sender<()>,
    thread: JoinHandle<()>,
}

struct Shared {
    measured: AtomicBool,
    /// Streams whose first event has come.
    opened: AtomicU64,
    failed: AtomicU64,
    delays: Mutex<Times>,
}

/// What the clients saw.
pub struct Outcome {
    /// Mock's write to client's read, of the events that came while measuring was on.
    pub delays: Times,
    /// Streams that were refused or ended by themselves.
    pub failed: u64,
    /// When the clients left.
    pub left_ns: u64,
}

impl Streams {
    /// Opens `streams` streams of `request`, spread over `targets`.
    pub fn start(
        targets: &[SocketAddr],
        streams: usize,
        request: Vec<u8>,
    ) -> std::io::Result<Self> {
        let shared = Arc::new(Shared {
            measured: AtomicBool::new(false),
            opened: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            delays: Mutex::new(new_times()),
        });
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
        let (leave, left) = oneshot::channel();
        let targets = targets.to_vec();
        let load = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("streams".into()).spawn(move || {
            let request: Arc<[u8]> = request.into();
            for stream in 0..streams {
                let target = targets[stream % targets.len()];
                let (shared, request) = (Arc::clone(&load), Arc::clone(&request));
                runtime.spawn(async move {
                    let _ = read(target, &request, &shared).await;
                    shared.failed.fetch_add(1, Ordering::Relaxed);
                });
            }
            let _ = runtime.block_on(left);
            // Dropping the runtime closes every socket.
        })?;
        Ok(Self { shared, leave, thread })
    }

    /// Streams whose first event has come.
    pub fn opened(&self) -> u64 {
        self.shared.opened.load(Ordering::Relaxed)
    }

    pub fn failed(&self) -> u64 {
        self.shared.failed.load(Ordering::Relaxed)
    }

    /// From now on, or no longer, events count.
    pub fn measure(&self, on: bool) {
        self.shared.measured.store(on, Ordering::Relaxed);
    }

    /// All clients leave at once.
    pub fn leave(self) -> anyhow::Result<Outcome> {
        let left_ns = clock::now_ns();
        let failed = self.failed();
        drop(self.leave);
        self.thread.join().map_err(|_| anyhow!("the load generator broke"))?;
        let delays = self.shared.delays.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Ok(Outcome { delays, failed, left_ns })
    }
}

/// Reads a stream until it ends; it should not.
async fn read(target: SocketAddr, request: &[u8], shared: &Shared) -> std::io::Result<()> {
    let mut socket = TcpStream::connect(target).await?;
    socket.set_nodelay(true)?;
    socket.write_all(request).await?;
    let mut buffer = Vec::with_capacity(8 * 1024);
    let mut first = true;
    loop {
        if socket.read_buf(&mut buffer).await? == 0 {
            return Ok(());
        }
        let now_ns = clock::now_ns();
        if first && buffer.len() >= GOOD.len() && !buffer.starts_with(GOOD) {
            return Ok(());
        }
        let measured = shared.measured.load(Ordering::Relaxed);
        while let Some((stamp_ns, end)) = next_stamp(&buffer) {
            buffer.drain(..end);
            if std::mem::take(&mut first) {
                shared.opened.fetch_add(1, Ordering::Relaxed);
            }
            if measured {
                let mut delays = shared.delays.lock().unwrap_or_else(PoisonError::into_inner);
                record(&mut delays, now_ns.saturating_sub(stamp_ns));
            }
        }
        // An answer without stamps, an error say, must not fill the memory.
        if buffer.len() > 64 * 1024 {
            return Ok(());
        }
    }
}

/// The first send time in `bytes`, and where it ends.
fn next_stamp(bytes: &[u8]) -> Option<(u64, usize)> {
    let mut from = 0;
    loop {
        let begin = from + memmem::find(&bytes[from..], STAMP_MARK)? + STAMP_MARK.len();
        let digits = bytes.get(begin..begin + STAMP_DIGITS)?;
        if digits.iter().all(u8::is_ascii_digit) {
            let number = digits.iter().fold(0u64, |sum, digit| {
                sum.wrapping_mul(10).wrapping_add(u64::from(digit - b'0'))
            });
            return Some((number, begin + STAMP_DIGITS));
        }
        from = begin;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_stream_fails_although_its_connection_stays_open() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let target = listener.local_addr().unwrap();
        let load = Streams::start(&[target], 1, b"POST / HTTP/1.1\r\n\r\n".to_vec()).unwrap();
        let (mut socket, _) = listener.accept().unwrap();
        let answer = b"HTTP/1.1 429 Too Many Requests\r\ncontent-length: 0\r\n\r\n";
        std::io::Write::write_all(&mut socket, answer).unwrap();
        while load.failed() == 0 {
            std::thread::yield_now();
        }
        assert_eq!(load.leave().unwrap().failed, 1);
    }

    #[test]
    fn stamps_are_found_among_other_text_and_only_when_complete() {
        let text = br#"{"Token":"T00000000000000000042"} {"T00000000000000000043"#;
        let (stamp, end) = next_stamp(text).unwrap();
        assert_eq!(stamp, 42);
        let (stamp, end) =
            next_stamp(&text[end..]).map(|(stamp, more)| (stamp, end + more)).unwrap();
        assert_eq!(stamp, 43);
        assert_eq!(next_stamp(&text[end..]), None);
        assert_eq!(next_stamp(br#""T0000000000000"#), None);
    }
}
