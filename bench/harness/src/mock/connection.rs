//! One HTTP/1.1 connection of the mock: keep-alive, one request after the other.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use memchr::memmem;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::answers;
use super::counters::{Counters, count};
use super::pacer::{self, Pacer};
use crate::clock;

#[derive(Clone)]
pub(super) struct Shared {
    pub(super) counters: Arc<Counters>,
    pub(super) pacer: Pacer,
}

/// Chunks of a stream whose request sets no limit.
const CHUNKS_DEFAULT: u32 = 16;

/// A request's head, as far as the mock cares.
struct Head {
    bytes: usize,
    body: Body,
    path: Path,
    continue_first: bool,
}

enum Body {
    Length(usize),
    Chunked,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Path {
    Completion,
    Metrics,
    Models,
    Tokens,
    Server,
    Unknown,
}

/// Answers until the client leaves or says something that is not HTTP.
pub(super) async fn serve(mut socket: TcpStream, port: usize, shared: Shared) {
    let mut buffer: Vec<u8> = Vec::with_capacity(64 * 1024);
    loop {
        let head = loop {
            match parse(&buffer) {
                Ok(Some(head)) => break head,
                Ok(None) if buffer.len() < 64 * 1024 => {}
                _ => return,
            }
            if !matches!(socket.read_buf(&mut buffer).await, Ok(1..)) {
                return;
            }
        };
        if head.continue_first && socket.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").await.is_err()
        {
            return;
        }
        let end = loop {
            if let Some(end) = body_end(&buffer, &head) {
                break end;
            }
            if let Body::Length(length) = head.body {
                buffer.reserve((head.bytes + length).saturating_sub(buffer.len()));
            }
            if !matches!(socket.read_buf(&mut buffer).await, Ok(1..)) {
                return;
            }
        };
        let counters = &shared.counters;
        let stream =
            (head.path == Path::Completion).then(|| asked_stream(&buffer[..end])).flatten();
        buffer.drain(..end);
        let bytes: &[u8] = match head.path {
            Path::Completion => {
                count(&counters.requests[port]);
                &answers::COMPLETION
            }
            Path::Metrics => {
                count(&counters.scrapes);
                &answers::METRICS_PAGE
            }
            other => {
                count(&counters.others);
                match other {
                    Path::Models => &answers::MODELS,
                    Path::Tokens => &answers::TOKENS,
                    Path::Server => &answers::SERVER,
                    _ => &answers::NOT_FOUND,
                }
            }
        };
        if let Some(chunks) = stream {
            match stream_on(socket, chunks, &shared, &mut buffer).await {
                Some(back) => socket = back,
                None => return,
            }
        } else if socket.write_all(bytes).await.is_err() {
            return;
        }
    }
}

/// Hands the socket to the pacer and waits until the stream or the client has ended.
async fn stream_on(
    socket: TcpStream,
    chunks: u32,
    shared: &Shared,
    buffer: &mut Vec<u8>,
) -> Option<TcpStream> {
    let counters = &shared.counters;
    count(&counters.streams_begun);
    let std_socket = socket.into_std().ok()?;
    let writing = std_socket.try_clone().ok()?;
    let mut socket = TcpStream::from_std(std_socket).ok()?;
    let gap_ns = counters.gap_ns.load(Ordering::Relaxed);
    let (stream, mut done, gone) = pacer::Stream::new(writing, chunks, gap_ns);
    shared.pacer.add(stream);
    let finished = loop {
        tokio::select! {
            result = &mut done => break result.is_ok(),
            read = socket.read_buf(buffer) => if !matches!(read, Ok(1..)) {
                gone.store(true, Ordering::Relaxed);
                break false;
            },
        }
    };
    counters.last_end_ns.fetch_max(clock::now_ns(), Ordering::Relaxed);
    count(&counters.streams_ended);
    finished.then_some(socket)
}

/// The head at the start of `buffer`; `None` while it is not complete.
fn parse(buffer: &[u8]) -> Result<Option<Head>, httparse::Error> {
    let mut headers = [httparse::EMPTY_HEADER; 64];
    let mut request = httparse::Request::new(&mut headers);
    let httparse::Status::Complete(bytes) = request.parse(buffer)? else { return Ok(None) };
    let mut head = Head {
        bytes,
        body: Body::Length(0),
        path: path_of(request.path.unwrap_or_default()),
        continue_first: false,
    };
    for header in request.headers.iter() {
        if header.name.eq_ignore_ascii_case("content-length") {
            let length = std::str::from_utf8(header.value).ok().and_then(|text| text.parse().ok());
            head.body = Body::Length(length.ok_or(httparse::Error::HeaderValue)?);
        } else if header.name.eq_ignore_ascii_case("transfer-encoding") {
            head.body = Body::Chunked;
        } else if header.name.eq_ignore_ascii_case("expect") {
            head.continue_first = true;
        }
    }
    Ok(Some(head))
}

fn path_of(path: &str) -> Path {
    match path.split('?').next().unwrap_or_default() {
        "/v1/chat/completions" | "/v1/completions" | "/generate" => Path::Completion,
        "/metrics" => Path::Metrics,
        "/v1/models" => Path::Models,
        "/tokenize" | "/v1/tokenize" | "/v1/chat/completions/render" => Path::Tokens,
        "/health" | "/health_generate" | "/get_server_info" | "/server_info"
        | "/get_model_info" | "/model_info" | "/version" | "/ping" => Path::Server,
        _ => Path::Unknown,
    }
}

/// Where the body ends in `buffer`; `None` while it is not complete.
///
/// A chunked body is taken to end at its last chunk's marker, which JSON text cannot contain.
fn body_end(buffer: &[u8], head: &Head) -> Option<usize> {
    match head.body {
        Body::Length(length) => {
            let end = head.bytes.checked_add(length)?;
            (buffer.len() >= end).then_some(end)
        }
        Body::Chunked => {
            let at = memmem::find(&buffer[head.bytes..], b"0\r\n\r\n")?;
            Some(head.bytes + at + 5)
        }
    }
}

/// How many chunks the request wants, when it wants a stream at all.
fn asked_stream(request: &[u8]) -> Option<u32> {
    let wants = memmem::find(request, b"\"stream\":true").is_some()
        || memmem::find(request, b"\"stream\": true").is_some();
    // Some routers rename the limit on the way.
    let limit = || {
        number_after(request, b"\"max_tokens\":")
            .or_else(|| number_after(request, b"\"max_completion_tokens\":"))
    };
    wants.then(|| limit().unwrap_or(CHUNKS_DEFAULT))
}

fn number_after(bytes: &[u8], name: &[u8]) -> Option<u32> {
    let at = memmem::find(bytes, name)? + name.len();
    let digits = bytes[at..].iter().skip_while(|byte| **byte == b' ');
    let digits = digits.take_while(|byte| byte.is_ascii_digit());
    Some(
        digits.fold(0u32, |sum, digit| {
            sum.saturating_mul(10).saturating_add(u32::from(digit - b'0'))
        }),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_request_is_told_from_a_plain_one() {
        assert_eq!(asked_stream(&crate::prompts::stream_request("h:1", 250)), Some(250));
        let mut plain = crate::prompts::Requests::new(crate::prompts::Kind::Shared, 500, "h:1", 1);
        assert_eq!(asked_stream(plain.next()), None);
        assert_eq!(asked_stream(br#"{"max_tokens": 12, "stream": true}"#), Some(12));
        assert_eq!(asked_stream(br#"{"max_completion_tokens":7,"stream":true}"#), Some(7));
        assert_eq!(asked_stream(br#"{"stream":true}"#), Some(CHUNKS_DEFAULT));
    }

    #[test]
    fn a_body_ends_where_its_framing_says() {
        let request = b"POST /v1/completions HTTP/1.1\r\ncontent-length: 2\r\n\r\n{}GET";
        let head = parse(request).unwrap().unwrap();
        assert_eq!(body_end(request, &head), Some(request.len() - 3));
        let request = b"POST /v1/completions HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\nGET";
        let head = parse(request).unwrap().unwrap();
        assert_eq!(body_end(request, &head), Some(request.len() - 3));
        assert!(parse(b"POST /v1").unwrap().is_none());
        assert!(parse(b"POST / HTTP/1.1\r\ncontent-length: x\r\n\r\n").is_err());
    }
}
