//! An endpoint that answers with exactly the bytes that a test wants.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// What it does with a request of a client.
#[derive(Clone, Debug)]
pub(crate) enum Act {
    /// Writes these pieces, each [`GAP`] after the one before, and closes.
    Write(Vec<Vec<u8>>),
    /// Writes and then waits for the other side to close.
    WriteAndHold(Vec<u8>),
}

/// A running endpoint; ends when dropped.
pub(crate) struct Scripted {
    pub(crate) address: SocketAddr,
    requests: Arc<Mutex<Vec<Vec<u8>>>>,
    task: JoinHandle<()>,
}

/// Long enough that two writes arrive as two reads.
const GAP: Duration = Duration::from_millis(15);

/// A model list with `llama-3.1-8b`.
const MODELS: &str = r#"{"object":"list","data":[{"id":"llama-3.1-8b","object":"model"}]}"#;

impl Scripted {
    /// Serves `metrics` (or 404 there), and does `act` with every `POST`.
    pub(crate) async fn start(metrics: Option<&'static str>, act: Act) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let requests: Arc<Mutex<Vec<Vec<u8>>>> = Arc::default();
        let seen = requests.clone();
        let task = tokio::spawn(async move {
            let mut connections = tokio::task::JoinSet::new();
            while let Ok((io, _)) = listener.accept().await {
                connections.spawn(converse(io, metrics, act.clone(), seen.clone()));
            }
        });
        Self { address, requests, task }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Every `POST` so far, head and body.
    pub(crate) fn requests(&self) -> Vec<Vec<u8>> {
        self.requests.lock().unwrap().clone()
    }
}

impl Drop for Scripted {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn converse(
    mut io: TcpStream,
    metrics: Option<&str>,
    act: Act,
    seen: Arc<Mutex<Vec<Vec<u8>>>>,
) {
    let mut buffer = Vec::new();
    loop {
        let Some(request) = read(&mut io, &mut buffer).await else { return };
        let answer = if request.starts_with(b"GET /v1/models ") {
            ok("application/json", MODELS)
        } else if request.starts_with(b"GET ") {
            match metrics {
                Some(page) => ok("text/plain", page),
                None => "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n".to_owned(),
            }
        } else {
            seen.lock().unwrap().push(request);
            match act {
                Act::Write(pieces) => {
                    for piece in pieces {
                        let _ = io.write_all(&piece).await;
                        tokio::time::sleep(GAP).await;
                    }
                }
                Act::WriteAndHold(bytes) => {
                    let _ = io.write_all(&bytes).await;
                    let _ = io.read(&mut [0; 1]).await;
                }
            }
            return;
        };
        if io.write_all(answer.as_bytes()).await.is_err() {
            return;
        }
    }
}

fn ok(kind: &str, body: &str) -> String {
    format!(
        "HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// One request with its body; the gateway always states its length.
async fn read(io: &mut TcpStream, buffer: &mut Vec<u8>) -> Option<Vec<u8>> {
    loop {
        if let Some(at) = buffer.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&buffer[..at]).to_ascii_lowercase();
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            let whole = at + 4 + length.and_then(|length| length.trim().parse().ok()).unwrap_or(0);
            if buffer.len() >= whole {
                return Some(buffer.drain(..whole).collect());
            }
        }
        if io.read_buf(buffer).await.ok()? == 0 {
            return None;
        }
    }
}
