//! A model server that does as it is told, and remembers what it got.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinHandle;
use tokio::time::Instant;

/// What it does with a `POST`.
#[derive(Clone)]
pub(crate) enum Act {
    /// Gives the body back.
    Echo,
    /// A chat completion by the model that was asked for.
    Answer,
    Status(u16),
    /// Nothing, until the other side leaves.
    Silence,
    /// A stream of events, each sent when the test allows one more; ends after `count`.
    Events {
        count: usize,
        allowed: Arc<Semaphore>,
    },
}

/// A request as it came.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

#[derive(Default)]
struct Book {
    seen: Mutex<Vec<Seen>>,
    sent: Mutex<Vec<Instant>>,
    open: AtomicUsize,
}

/// A running endpoint; ends when dropped.
pub(crate) struct Upstream {
    pub(crate) address: SocketAddr,
    book: Arc<Book>,
    act: watch::Sender<Act>,
    task: JoinHandle<()>,
}

impl Upstream {
    /// * `waiting`: requests that its metrics tell to be queued.
    pub(crate) async fn start(host: &str, act: Act, waiting: u32) -> Self {
        let listener = TcpListener::bind((host, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let book: Arc<Book> = Arc::default();
        let (act, acts) = watch::channel(act);
        let kept = book.clone();
        let task = tokio::spawn(async move {
            let mut connections = tokio::task::JoinSet::new();
            while let Ok((io, _)) = listener.accept().await {
                let _ = io.set_nodelay(true);
                let (book, acts) = (kept.clone(), acts.clone());
                connections.spawn(async move {
                    let _ = converse(io, waiting, &acts, &book).await;
                });
            }
        });
        Self { address, book, act, task }
    }

    pub(crate) fn set(&self, act: Act) {
        self.act.send_replace(act);
    }

    /// Every `POST` so far.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.book.seen.lock().unwrap().clone()
    }

    /// When each event was sent.
    pub(crate) fn sent(&self) -> Vec<Instant> {
        self.book.sent.lock().unwrap().clone()
    }

    /// Answers under way.
    pub(crate) fn open(&self) -> usize {
        self.book.open.load(Ordering::Relaxed)
    }
}

impl Drop for Upstream {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Counts an answer as long as it lives.
struct Open<'a>(&'a AtomicUsize);

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

async fn converse(
    mut io: TcpStream,
    waiting: u32,
    acts: &watch::Receiver<Act>,
    book: &Book,
) -> std::io::Result<()> {
    let mut buffer = Vec::new();
    loop {
        let Some(seen) = read(&mut io, &mut buffer).await? else { return Ok(()) };
        if seen.head.starts_with("GET /metrics") {
            let page = format!(
                "# TYPE vllm:num_requests_waiting gauge\nvllm:num_requests_waiting {waiting}\n\
                 # TYPE vllm:num_requests_running gauge\nvllm:num_requests_running 1\n\
                 # TYPE vllm:kv_cache_usage_perc gauge\nvllm:kv_cache_usage_perc 0.1\n"
            );
            io.write_all(&answer(200, "text/plain", page.as_bytes())).await?;
            continue;
        }
        if seen.head.starts_with("GET ") {
            let models = br#"{"object":"list","data":[{"id":"llama","object":"model"},{"id":"sql","object":"model","parent":"llama"}]}"#;
            io.write_all(&answer(200, "application/json", models)).await?;
            continue;
        }
        book.open.fetch_add(1, Ordering::Relaxed);
        let open = Open(&book.open);
        let body = seen.body.clone();
        book.seen.lock().unwrap().push(seen);
        let act = acts.borrow().clone();
        match act {
            Act::Echo => io.write_all(&answer(200, "application/octet-stream", &body)).await?,
            Act::Silence => {
                let mut byte = [0; 1];
                let _left = io.read(&mut byte).await?;
                return Ok(());
            }
            Act::Status(status) => {
                io.write_all(&answer(status, "application/json", b"{\"error\":{}}")).await?;
            }
            Act::Answer => {
                let asked: serde_json::Value = serde_json::from_slice(&body).unwrap();
                let said = serde_json::json!({ "object": "chat.completion", "model": asked["model"],
                    "choices": [{ "index": 0, "message": { "role": "assistant", "content": "hello" } }],
                    "usage": { "prompt_tokens": 3, "completion_tokens": 1, "total_tokens": 4 } });
                let said = said.to_string();
                io.write_all(&answer(200, "application/json", said.as_bytes())).await?;
            }
            Act::Events { count, allowed } => events(&mut io, count, &allowed, book).await?,
        }
        drop(open);
    }
}

async fn events(
    io: &mut TcpStream,
    count: usize,
    allowed: &Semaphore,
    book: &Book,
) -> std::io::Result<()> {
    let head =
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
    io.write_all(head.as_bytes()).await?;
    for number in 0..count {
        let mut byte = [0; 1];
        tokio::select! {
            permit = allowed.acquire() => permit.unwrap().forget(),
            // The other side left, or spoke out of turn.
            read = io.read(&mut byte) => return Err(read.err().unwrap_or_else(|| std::io::ErrorKind::BrokenPipe.into())),
        }
        let event = format!(
            "data: {{\"model\":\"llama\",\"choices\":[{{\"delta\":{{\"content\":\"token {number} \"}}}}]}}\n\n"
        );
        book.sent.lock().unwrap().push(Instant::now());
        io.write_all(format!("{:x}\r\n{event}\r\n", event.len()).as_bytes()).await?;
    }
    io.write_all(b"e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n").await
}

fn answer(status: u16, kind: &str, body: &[u8]) -> Vec<u8> {
    let head = format!(
        "HTTP/1.1 {status} Scripted\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

/// One request with its body, which Envoy states the length of or sends in chunks.
async fn read(io: &mut TcpStream, buffer: &mut Vec<u8>) -> std::io::Result<Option<Seen>> {
    let at = loop {
        match buffer.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
            Some(at) => break at + 4,
            None if io.read_buf(buffer).await? == 0 => return Ok(None),
            None => {}
        }
    };
    let head: Vec<u8> = buffer.drain(..at).collect();
    let head = String::from_utf8_lossy(&head).to_ascii_lowercase().replacen("get ", "GET ", 1);
    let mut body = Vec::new();
    if head.contains("transfer-encoding: chunked") {
        loop {
            let line = take_line(io, buffer).await?;
            let size = usize::from_str_radix(line.trim(), 16).unwrap_or(0);
            body.extend(take(io, buffer, size).await?);
            take_line(io, buffer).await?;
            if size == 0 {
                break;
            }
        }
    } else if let Some(length) = head.lines().find_map(|line| line.strip_prefix("content-length: "))
    {
        body = take(io, buffer, length.trim().parse().unwrap_or(0)).await?;
    }
    Ok(Some(Seen { head, body }))
}

async fn take(io: &mut TcpStream, buffer: &mut Vec<u8>, size: usize) -> std::io::Result<Vec<u8>> {
    while buffer.len() < size {
        if io.read_buf(buffer).await? == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
    }
    Ok(buffer.drain(..size).collect())
}

async fn take_line(io: &mut TcpStream, buffer: &mut Vec<u8>) -> std::io::Result<String> {
    loop {
        if let Some(at) = buffer.windows(2).position(|bytes| bytes == b"\r\n") {
            let line: Vec<u8> = buffer.drain(..at + 2).collect();
            return Ok(String::from_utf8_lossy(&line).into_owned());
        }
        if io.read_buf(buffer).await? == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
    }
}
