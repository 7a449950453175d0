//! Asks over HTTP/1.1 and notes when each token of the answer arrives.
//!
//! One connection for each request, so that none waits for another.

use std::net::SocketAddr;

use openai::SseReader;
use telemetry::clock;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use types::Timestamp;

use super::chunked::Chunked;

const HEAD_BYTES_MAX: usize = 32 << 10;

/// Why a request failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failure {
    #[error("the connection failed")]
    Connection(#[from] std::io::Error),
    #[error("the answer is no HTTP")]
    Malformed,
    #[error("status {0}")]
    Status(u16),
    #[error("the stream ended too early")]
    CutShort,
    #[error("the stream holds an error")]
    ErrorEvent,
}

/// What is seen of an answer while it comes in.
pub(super) trait Watcher {
    /// `count` more tokens are there.
    fn tokens(&mut self, count: u64, now: Timestamp);
}

/// Sends a chat request and reads its event stream to the end.
///
/// # Errors
/// Whatever keeps the answer from being whole.
pub(super) async fn ask(
    gateway: SocketAddr,
    body: &str,
    watcher: &mut impl Watcher,
) -> Result<(), Failure> {
    let mut stream = TcpStream::connect(gateway).await?;
    stream.set_nodelay(true)?;
    let request = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: {gateway}\r\ncontent-type: application/json\r\n\
         content-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).await?;

    let mut buffer = Vec::with_capacity(16 << 10);
    let head = read_head(&mut stream, &mut buffer).await?;
    if head.status != 200 {
        return Err(Failure::Status(head.status));
    }
    let mut framing = head.chunked.then(Chunked::default);
    let mut events = SseReader::new();
    buffer.drain(..head.bytes);
    loop {
        let now = clock::now();
        let before = events.content_events();
        match &mut framing {
            Some(chunked) => {
                chunked
                    .push(&buffer, |piece| events.push(piece))
                    .map_err(|_| Failure::Malformed)?;
            }
            None => events.push(&buffer),
        }
        let count = events.content_events() - before;
        if count > 0 {
            watcher.tokens(count, now);
        }
        if events.error() {
            return Err(Failure::ErrorEvent);
        }
        if framing.as_ref().is_some_and(Chunked::is_over) {
            break;
        }
        buffer.clear();
        if stream.read_buf(&mut buffer).await? == 0 {
            break;
        }
    }
    let whole = events.done() && framing.as_ref().is_none_or(Chunked::is_over);
    if whole { Ok(()) } else { Err(Failure::CutShort) }
}

struct Head {
    status: u16,
    chunked: bool,
    /// Its length, blank line included.
    bytes: usize,
}

/// Reads until the head is whole; what follows it stays in `buffer` behind it.
async fn read_head(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> Result<Head, Failure> {
    loop {
        if let Some(at) = buffer.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
            return parse_head(&buffer[..at], at + 4).ok_or(Failure::Malformed);
        }
        if buffer.len() > HEAD_BYTES_MAX {
            return Err(Failure::Malformed);
        }
        if stream.read_buf(buffer).await? == 0 {
            return Err(Failure::CutShort);
        }
    }
}

fn parse_head(text: &[u8], bytes: usize) -> Option<Head> {
    let text = std::str::from_utf8(text).ok()?;
    let mut lines = text.split("\r\n");
    let status = lines.next()?.strip_prefix("HTTP/1.1 ")?.get(..3)?.parse().ok()?;
    let mut head = Head { status, chunked: false, bytes };
    for line in lines {
        let (name, value) = line.split_once(':')?;
        if name.eq_ignore_ascii_case("transfer-encoding") {
            head.chunked = value.trim().eq_ignore_ascii_case("chunked");
        }
    }
    Some(head)
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;

    struct Seen(u64);

    impl Watcher for Seen {
        fn tokens(&mut self, count: u64, _: Timestamp) {
            self.0 += count;
        }
    }

    /// What the client makes of a server that answers `answer`.
    async fn outcome(answer: String) -> (Result<(), Failure>, u64) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let serving = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = Vec::new();
            while !request.ends_with(b"{}") {
                stream.read_buf(&mut request).await.unwrap();
            }
            stream.write_all(answer.as_bytes()).await.unwrap();
        });
        let mut seen = Seen(0);
        let result = ask(address, "{}", &mut seen).await;
        serving.await.unwrap();
        (result, seen.0)
    }

    const TOKEN: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"bam \"}}]}\n\n";
    const ROLE: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n";

    fn chunked(events: &[&str], end: &str) -> String {
        let mut answer = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".to_owned();
        for event in events {
            answer += &format!("{:x}\r\n{event}\r\n", event.len());
        }
        answer + end
    }

    #[tokio::test]
    async fn tokens_are_counted_and_the_role_is_none() {
        let answer = chunked(&[ROLE, TOKEN, TOKEN, "data: [DONE]\n\n"], "0\r\n\r\n");
        let (result, tokens) = outcome(answer).await;
        result.unwrap();
        assert_eq!(tokens, 2);
    }

    #[tokio::test]
    async fn an_answer_that_is_not_whole_is_a_failure() {
        let cut = chunked(&[TOKEN], "");
        assert!(matches!(outcome(cut).await.0, Err(Failure::CutShort)));
        let not_done = chunked(&[TOKEN], "0\r\n\r\n");
        assert!(matches!(outcome(not_done).await.0, Err(Failure::CutShort)));
        let error = chunked(&[TOKEN, "data: {\"error\":{\"message\":\"no\"}}\n\n"], "0\r\n\r\n");
        assert!(matches!(outcome(error).await.0, Err(Failure::ErrorEvent)));
        let refused = "HTTP/1.1 429 Too Many Requests\r\ncontent-length: 0\r\n\r\n".to_owned();
        assert!(matches!(outcome(refused).await.0, Err(Failure::Status(429))));
        assert!(matches!(outcome("SSH-2.0\r\n\r\n".to_owned()).await.0, Err(Failure::Malformed)));
    }
}
