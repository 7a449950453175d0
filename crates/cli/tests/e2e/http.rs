//! A client that sees every byte, also of answers that are no proper HTTP.

use std::net::SocketAddr;

use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::gateway::PATIENCE;

/// How a connection stands after an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// Still open.
    Open,
    Fin,
    Reset,
}

/// An answer as far as it came.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// Lower-case names, in order.
    pub(crate) headers: Vec<(String, String)>,
    /// Without chunk framing.
    pub(crate) body: Vec<u8>,
    /// The body ended as its framing says.
    pub(crate) complete: bool,
    pub(crate) end: End,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// `error.code` of an error in OpenAI's form.
    pub(crate) fn code(&self) -> String {
        self.json()["error"]["code"].as_str().unwrap_or("no code").to_owned()
    }

    /// The `data` of each event.
    pub(crate) fn events(&self) -> Vec<String> {
        self.text()
            .split("\n\n")
            .filter_map(|event| {
                let data: Vec<&str> = event
                    .lines()
                    .filter_map(|line| line.strip_prefix("data:"))
                    .map(str::trim)
                    .collect();
                (!data.is_empty()).then(|| data.join("\n"))
            })
            .collect()
    }
}

/// A request with `Content-Length` (for `POST`) and JSON as its type unless `headers` say otherwise.
pub(crate) fn request(method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Vec<u8> {
    let has = |name: &str| headers.iter().any(|(known, _)| known.eq_ignore_ascii_case(name));
    let mut out = format!("{method} {path} HTTP/1.1\r\n");
    if !has("host") {
        out.push_str("Host: gateway.test\r\n");
    }
    for (name, value) in headers {
        out.push_str(&format!("{name}: {value}\r\n"));
    }
    if method == "POST" {
        if !has("content-type") {
            out.push_str("Content-Type: application/json\r\n");
        }
        if !has("transfer-encoding") && !has("content-length") {
            out.push_str(&format!("Content-Length: {}\r\n", body.len()));
        }
    }
    out.push_str("\r\n");
    [out.as_bytes(), body].concat()
}

/// One connection to the gateway.
pub(crate) struct Client<S = TcpStream> {
    pub(crate) io: S,
    buffer: Vec<u8>,
    end: End,
}

impl Client {
    pub(crate) async fn connect(to: SocketAddr) -> Self {
        let io = TcpStream::connect(to).await.unwrap();
        io.set_nodelay(true).unwrap();
        Self::new(io)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Client<S> {
    pub(crate) fn new(io: S) -> Self {
        Self::resumed(io, &[])
    }

    /// With bytes that were read already.
    pub(crate) fn resumed(io: S, read: &[u8]) -> Self {
        Self { io, buffer: read.to_vec(), end: End::Open }
    }

    pub(crate) async fn send(&mut self, bytes: &[u8]) {
        self.io.write_all(bytes).await.unwrap();
        self.io.flush().await.unwrap();
    }

    /// Sends what the other side still takes: it may have answered and closed before the end.
    pub(crate) async fn send_some(&mut self, bytes: &[u8]) {
        let _ = self.io.write_all(bytes).await;
        let _ = self.io.flush().await;
    }

    /// Reads on; `false` at the connection's end.
    async fn more(&mut self) -> bool {
        if self.end != End::Open {
            return false;
        }
        let read = timeout(PATIENCE, self.io.read_buf(&mut self.buffer)).await;
        match read.unwrap_or_else(|_| {
            panic!("nothing came after {:?}", String::from_utf8_lossy(&self.buffer))
        }) {
            Ok(0) => self.end = End::Fin,
            Ok(_) => {}
            Err(_) => self.end = End::Reset,
        }
        self.end == End::Open
    }

    /// Reads until `needle` has come; all bytes so far, heads and chunk sizes included.
    pub(crate) async fn until(&mut self, needle: &str) -> String {
        self.until_count(needle, 1).await
    }

    /// Reads until `needle` has come `count` times.
    pub(crate) async fn until_count(&mut self, needle: &str, count: usize) -> String {
        loop {
            let text = String::from_utf8_lossy(&self.buffer).into_owned();
            if text.matches(needle).count() >= count {
                return text;
            }
            assert!(self.more().await, "`{needle}` never came {count} times: {text}");
        }
    }

    /// Reads the next answer to its end (interim ones are passed over).
    pub(crate) async fn answer(&mut self) -> Answer {
        self.answer_to("POST").await
    }

    /// The next answer, to a request with `method`.
    pub(crate) async fn answer_to(&mut self, method: &str) -> Answer {
        loop {
            let head_end = loop {
                match self.buffer.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
                    Some(at) => break at + 4,
                    None => assert!(
                        self.more().await,
                        "no answer: {:?}",
                        String::from_utf8_lossy(&self.buffer)
                    ),
                }
            };
            let head = String::from_utf8(self.buffer.drain(..head_end).collect()).unwrap();
            let mut lines = head.split("\r\n");
            let status: u16 = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
            if status < 200 {
                continue;
            }
            let headers = lines
                .filter_map(|line| line.split_once(": "))
                .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
                .collect();
            let mut answer =
                Answer { status, headers, body: Vec::new(), complete: false, end: End::Open };
            let has_no_body = method == "HEAD" || status == 304;
            answer.complete = has_no_body || self.body(&mut answer).await;
            if answer.header("connection") == Some("close") {
                while answer.complete && self.more().await {}
            }
            answer.end = self.end;
            return answer;
        }
    }

    async fn body(&mut self, answer: &mut Answer) -> bool {
        if answer.header("transfer-encoding") == Some("chunked") {
            return self.chunks(answer).await;
        }
        let length = answer.header("content-length").map(|length| length.parse::<usize>().unwrap());
        while length.is_none_or(|length| self.buffer.len() < length) {
            if !self.more().await {
                answer.body = std::mem::take(&mut self.buffer);
                return length.is_none() && answer.status != 204 && self.end == End::Fin;
            }
        }
        answer.body = self.buffer.drain(..length.unwrap_or(0)).collect();
        true
    }

    async fn chunks(&mut self, answer: &mut Answer) -> bool {
        loop {
            let line_end = loop {
                match self.buffer.windows(2).position(|bytes| bytes == b"\r\n") {
                    Some(at) => break at,
                    None if self.more().await => {}
                    None => return false,
                }
            };
            let size = std::str::from_utf8(&self.buffer[..line_end]).unwrap();
            let size = usize::from_str_radix(size, 16).unwrap();
            let whole = line_end + 2 + size + 2;
            while self.buffer.len() < whole {
                if !self.more().await {
                    let from = (line_end + 2).min(self.buffer.len());
                    answer.body.extend(self.buffer.drain(..).skip(from));
                    return false;
                }
            }
            answer.body.extend(self.buffer.drain(..whole).skip(line_end + 2).take(size));
            if size == 0 {
                return true;
            }
        }
    }

    /// Whether the other side closes without a further byte.
    pub(crate) async fn closes(&mut self) -> bool {
        self.buffer.is_empty() && !self.more().await
    }
}

/// One request on a connection of its own.
pub(crate) async fn ask(
    to: SocketAddr,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> Answer {
    let mut client = Client::connect(to).await;
    client.send_some(&request(method, path, headers, body)).await;
    client.answer_to(method).await
}

/// `POST` of JSON.
pub(crate) async fn post(to: SocketAddr, path: &str, body: &Value) -> Answer {
    ask(to, "POST", path, &[], body.to_string().as_bytes()).await
}

pub(crate) const CHAT: &str = "/v1/chat/completions";

/// `POST` of a chat.
pub(crate) async fn chat(to: SocketAddr, body: &Value) -> Answer {
    post(to, CHAT, body).await
}
