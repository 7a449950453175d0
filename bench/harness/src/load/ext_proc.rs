//! Asks a picker over `ext_proc` as a proxy would, closed loop, over one connection.
//!
//! The few messages that this needs are written by hand: the harness depends on nothing of the product.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;

use anyhow::{Context, anyhow, bail, ensure};
use bytes::{BufMut, Bytes, BytesMut};
use h2::client::SendRequest;
use tokio::net::TcpStream;
use tokio::sync::oneshot;

use crate::prompts::Requests;

/// Pieces in which Envoy hands over a body with the buffer limit of our examples.
const PIECE_BYTES: usize = 32 * 1024;
/// Pieces in which a picker gives it back.
const ANSWER_PIECE_BYTES: usize = 62_000;
const ANSWER: &[u8] = br#"{"object":"chat.completion","choices":[],"usage":{"prompt_tokens":9,"completion_tokens":1}}"#;

/// A running load.
pub struct Asking {
    counts: Arc<Counts>,
    stop: oneshot::Sender<()>,
    thread: JoinHandle<()>,
}

#[derive(Default)]
struct Counts {
    completed: AtomicU64,
    failed: AtomicU64,
}

impl Asking {
    /// Starts `at_once` loops of streams to the picker at `target`.
    pub fn start(target: SocketAddr, at_once: usize, requests: &Requests) -> anyhow::Result<Self> {
        let counts = Arc::new(Counts::default());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
        let (stop, stopped) = oneshot::channel();
        let client = runtime.block_on(connect(target)).context("cannot reach the picker")?;
        for number in 0..at_once {
            let (client, counts) = (client.clone(), Arc::clone(&counts));
            let mut requests = requests.for_connection(number as u64);
            runtime.spawn(async move {
                loop {
                    let body = body_of(requests.next());
                    let outcome = ask(client.clone(), body).await;
                    let count = if outcome.is_ok() { &counts.completed } else { &counts.failed };
                    count.fetch_add(1, Ordering::Relaxed);
                    if outcome.is_err() && client.clone().ready().await.is_err() {
                        return;
                    }
                }
            });
        }
        let thread = std::thread::Builder::new().name("ext_proc".into()).spawn(move || {
            let _ = runtime.block_on(stopped);
        })?;
        Ok(Self { counts, stop, thread })
    }

    pub fn completed(&self) -> u64 {
        self.counts.completed.load(Ordering::Relaxed)
    }

    /// Ends the load; the number of requests that failed.
    pub fn stop(self) -> anyhow::Result<u64> {
        drop(self.stop);
        self.thread.join().map_err(|_| anyhow!("the load generator broke"))?;
        Ok(self.counts.failed.load(Ordering::Relaxed))
    }
}

async fn connect(target: SocketAddr) -> anyhow::Result<SendRequest<Bytes>> {
    let socket = TcpStream::connect(target).await?;
    socket.set_nodelay(true)?;
    let mut builder = h2::client::Builder::new();
    builder.initial_window_size(64 * 1024).initial_connection_window_size(16 * 1024 * 1024);
    let (client, connection) = builder.handshake(socket).await?;
    tokio::spawn(async move {
        let _ = connection.await;
    });
    Ok(client)
}

/// What stands behind the head of an HTTP request.
fn body_of(request: &[u8]) -> Bytes {
    let head = memchr::memmem::find(request, b"\r\n\r\n").map_or(0, |at| at + 4);
    Bytes::copy_from_slice(&request[head..])
}

/// One request from its head to the end of its answer.
async fn ask(client: SendRequest<Bytes>, body: Bytes) -> anyhow::Result<()> {
    let mut client = client.ready().await?;
    let request =
        http::Request::post("http://picker/envoy.service.ext_proc.v3.ExternalProcessor/Process")
            .header("content-type", "application/grpc")
            .header("te", "trailers")
            .body(())?;
    let (response, mut send) = client.send_request(request, false)?;
    let length = body.len().to_string();
    let head = [
        (":method", "POST"),
        (":path", "/v1/chat/completions"),
        (":authority", "bench"),
        (":scheme", "http"),
        ("content-type", "application/json"),
        ("content-length", &length),
        ("user-agent", "wicketgate-bench"),
        ("x-request-id", "8e2c2f60-5a3f-4a4d-9f0c-000000000000"),
    ];
    send.send_data(framed(2, &headers(&head)), false)?;
    let mut left = body.clone();
    loop {
        let piece = left.split_to(left.len().min(PIECE_BYTES));
        send.send_data(framed(4, &http_body(&piece, left.is_empty())), false)?;
        if left.is_empty() {
            break;
        }
    }
    let mut answers = Answers { stream: response.await?.into_body(), buffer: BytesMut::new() };
    for _ in 0..1 + body.len().div_ceil(ANSWER_PIECE_BYTES) {
        answers.next().await?;
    }
    let head = [(":status", "200"), ("content-type", "application/json")];
    send.send_data(framed(3, &headers(&head)), false)?;
    answers.next().await?;
    send.send_data(framed(5, &http_body(ANSWER, true)), true)?;
    answers.next().await?;
    answers.end().await
}

/// Messages of a stream, whose content nobody looks at.
struct Answers {
    stream: h2::RecvStream,
    buffer: BytesMut,
}

impl Answers {
    async fn next(&mut self) -> anyhow::Result<()> {
        loop {
            if let Some(&[compressed, a, b, c, d]) = self.buffer.first_chunk::<5>() {
                ensure!(compressed == 0, "a compressed message");
                let message = 5 + u32::from_be_bytes([a, b, c, d]) as usize;
                if self.buffer.len() >= message {
                    // An ImmediateResponse (field 7) is an error of ours.
                    ensure!(self.buffer.get(5) != Some(&0x3a), "the picker refused");
                    let _ = self.buffer.split_to(message);
                    return Ok(());
                }
            }
            let Some(data) = self.stream.data().await else { bail!("the stream ended early") };
            let data = data?;
            self.stream.flow_control().release_capacity(data.len())?;
            self.buffer.extend_from_slice(&data);
        }
    }

    async fn end(&mut self) -> anyhow::Result<()> {
        while let Some(data) = self.stream.data().await {
            ensure!(data?.is_empty(), "more than was owed");
        }
        let trailers = self.stream.trailers().await?;
        let status = trailers.as_ref().and_then(|trailers| trailers.get("grpc-status"));
        ensure!(status.is_some_and(|status| status == "0"), "ended with {status:?}");
        Ok(())
    }
}

/// A gRPC frame with a message whose only field is `field`, a message too.
fn framed(field: u8, inner: &[u8]) -> Bytes {
    let mut message = BytesMut::with_capacity(inner.len() + 11);
    length_delimited(&mut message, field, inner);
    let mut out = BytesMut::with_capacity(message.len() + 5);
    out.put_u8(0);
    out.put_u32(message.len() as u32);
    out.put(message);
    out.freeze()
}

/// `HttpHeaders` that are not the end.
fn headers(fields: &[(&str, &str)]) -> BytesMut {
    let mut map = BytesMut::new();
    for (name, value) in fields {
        let mut field = BytesMut::new();
        length_delimited(&mut field, 1, name.as_bytes());
        length_delimited(&mut field, 3, value.as_bytes());
        length_delimited(&mut map, 1, &field);
    }
    let mut out = BytesMut::new();
    length_delimited(&mut out, 1, &map);
    out
}

fn http_body(bytes: &[u8], is_last: bool) -> BytesMut {
    let mut out = BytesMut::with_capacity(bytes.len() + 8);
    length_delimited(&mut out, 1, bytes);
    if is_last {
        out.put_slice(&[2 << 3, 1]);
    }
    out
}

fn length_delimited(out: &mut BytesMut, field: u8, bytes: &[u8]) {
    out.put_u8(field << 3 | 2);
    let mut length = bytes.len();
    while length >= 0x80 {
        out.put_u8(length as u8 | 0x80);
        length >>= 7;
    }
    out.put_u8(length as u8);
    out.put_slice(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_written_as_protobuf_has_them() {
        assert_eq!(&http_body(b"ab", true)[..], b"\x0a\x02ab\x10\x01");
        assert_eq!(&headers(&[("a", "b")])[..], b"\x0a\x08\x0a\x06\x0a\x01a\x1a\x01b");
        assert_eq!(&framed(4, b"x")[..], b"\x00\x00\x00\x00\x03\x22\x01x");
        let mut long = BytesMut::new();
        length_delimited(&mut long, 1, &[0; 300]);
        assert_eq!(&long[..3], b"\x0a\xac\x02");
    }

    #[test]
    fn the_body_is_what_stands_behind_the_head() {
        assert_eq!(&body_of(b"POST / HTTP/1.1\r\na: b\r\n\r\n{}")[..], b"{}");
    }
}
