//! Closed loop: each connection sends its next request when it has the answer.
//!
//! One thread, like `wrk -t1`: it shows the most requests a gateway can do, and the CPU that each
//! costs when it is busy. Its latencies would mean nothing, so it has none.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::thread::JoinHandle;

use anyhow::anyhow;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::http::Answer;
use crate::prompts::Requests;

/// A running load; stop it or wait for its end.
pub struct Closed {
    shared: Arc<Shared>,
    thread: JoinHandle<std::io::Result<()>>,
}

struct Shared {
    stop: AtomicBool,
    /// Requests that may still begin.
    budget: AtomicI64,
    failed: AtomicU64,
    completed: AtomicU64,
}

/// What became of the requests.
#[derive(Debug, PartialEq, Eq)]
pub struct Outcome {
    pub completed: u64,
    /// Not 200, or no answer.
    pub failed: u64,
}

impl Closed {
    /// Starts `connections` connections, spread over `targets`, that send at most `budget` requests.
    pub fn start(
        targets: &[SocketAddr],
        connections: usize,
        requests: Requests,
        budget: i64,
    ) -> std::io::Result<Self> {
        let shared = Arc::new(Shared {
            stop: AtomicBool::new(false),
            budget: AtomicI64::new(budget),
            failed: AtomicU64::new(0),
            completed: AtomicU64::new(0),
        });
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
        let targets = targets.to_vec();
        let load = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("closed".into()).spawn(move || {
            runtime.block_on(async {
                let tasks: Vec<_> = (0..connections)
                    .map(|connection| {
                        let requests = requests.for_connection(connection as u64);
                        let target = targets[connection % targets.len()];
                        tokio::spawn(converse(target, requests, Arc::clone(&load)))
                    })
                    .collect();
                for task in tasks {
                    task.await.map_err(std::io::Error::other)?;
                }
                Ok(())
            })
        })?;
        Ok(Self { shared, thread })
    }

    /// Ends the load after the requests under way.
    pub fn stop(self) -> anyhow::Result<Outcome> {
        self.shared.stop.store(true, Ordering::Relaxed);
        self.wait()
    }

    /// Waits until the budget is used up.
    pub fn wait(self) -> anyhow::Result<Outcome> {
        self.thread.join().map_err(|_| anyhow!("the load generator broke"))??;
        Ok(Outcome {
            completed: self.shared.completed.load(Ordering::Relaxed),
            failed: self.shared.failed.load(Ordering::Relaxed),
        })
    }
}

/// Sends requests until told to stop; connects again after a failure.
async fn converse(target: SocketAddr, mut requests: Requests, shared: Arc<Shared>) {
    let mut buffer = vec![0; 64 * 1024];
    let mut socket = None;
    while !shared.stop.load(Ordering::Relaxed) && shared.budget.fetch_sub(1, Ordering::Relaxed) > 0
    {
        match one(&mut socket, target, requests.next(), &mut buffer).await {
            Ok(200) => {
                shared.completed.fetch_add(1, Ordering::Relaxed);
            }
            Ok(_) => {
                shared.failed.fetch_add(1, Ordering::Relaxed);
            }
            Err(_) => {
                socket = None;
                shared.failed.fetch_add(1, Ordering::Relaxed);
                // A gateway that refuses at once must not turn this loop into a busy one.
                tokio::task::yield_now().await;
            }
        }
    }
}

async fn one(
    socket: &mut Option<TcpStream>,
    target: SocketAddr,
    request: &[u8],
    buffer: &mut [u8],
) -> std::io::Result<u16> {
    let stream = match socket {
        Some(stream) => stream,
        None => {
            let stream = TcpStream::connect(target).await?;
            stream.set_nodelay(true)?;
            socket.insert(stream)
        }
    };
    stream.write_all(request).await?;
    let mut answer = Answer::default();
    loop {
        let read = stream.read(buffer).await?;
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
