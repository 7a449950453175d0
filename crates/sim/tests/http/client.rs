//! A client that sees every byte, also of answers that are no proper HTTP.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use wicketgate_sim::{Fleet, LoggedRequest, Outcome, ServerHandle, ServerSpec};

/// Longest that a test waits for anything.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// How a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Fin,
    Reset,
}

/// An answer as far as it came.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// Lower-case names.
    pub(crate) headers: Vec<(String, String)>,
    /// Heads of 1xx answers before it.
    pub(crate) informational: Vec<u16>,
    /// Without chunk framing.
    pub(crate) body: Vec<u8>,
    pub(crate) trailers: String,
    /// The body ended as its framing says.
    pub(crate) complete: bool,
    pub(crate) end: End,
}

/// A fast server: a tenth of a second is modelled in five milliseconds.
pub(crate) fn fast() -> ServerSpec {
    ServerSpec { time_scale: 0.05, ..ServerSpec::default() }
}

pub(crate) async fn start(spec: ServerSpec) -> Fleet {
    Fleet::start(vec![spec]).await.unwrap()
}

/// A chat request whose answer has exactly `tokens` tokens.
pub(crate) fn chat(content: &str, tokens: u32, stream: bool) -> Value {
    json!({
        "model": "llama-3.1-8b", "messages": [{"role": "user", "content": content}],
        "max_tokens": tokens, "ignore_eos": true, "stream": stream,
        "stream_options": if stream { json!({"include_usage": true}) } else { Value::Null },
    })
}

pub(crate) const CHAT: &str = "/v1/chat/completions";

fn request_bytes(method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Vec<u8> {
    let mut out = format!("{method} {path} HTTP/1.1\r\nHost: sim\r\n");
    for (name, value) in headers {
        out += &format!("{name}: {value}\r\n");
    }
    out += &format!("Content-Length: {}\r\n\r\n", body.len());
    [out.as_bytes(), body].concat()
}

/// Sends a request and reads until the connection ends.
pub(crate) async fn call(
    address: SocketAddr,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> Answer {
    let headers = [&[("Connection", "close")], headers].concat();
    let mut live = Live::open(address, &request_bytes(method, path, &headers, body)).await;
    live.finish().await.unwrap_or(Answer {
        status: 0,
        headers: vec![],
        informational: vec![],
        body: vec![],
        trailers: String::new(),
        complete: false,
        end: live.end.unwrap(),
    })
}

pub(crate) async fn post(address: SocketAddr, path: &str, body: &Value) -> Answer {
    call(address, "POST", path, &[], body.to_string().as_bytes()).await
}

pub(crate) async fn get(address: SocketAddr, path: &str) -> Answer {
    call(address, "GET", path, &[], b"").await
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(other, _)| other == name).map(|(_, value)| value.as_str())
    }

    /// The data of each event; `[DONE]` is a string.
    pub(crate) fn events(&self) -> Vec<Value> {
        self.text()
            .split("\n\n")
            .flat_map(|event| event.lines().filter_map(|line| line.strip_prefix("data:")))
            .map(|data| serde_json::from_str(data).unwrap_or_else(|_| data.trim().into()))
            .collect()
    }

    /// The names of the events.
    pub(crate) fn event_names(&self) -> Vec<String> {
        self.text()
            .lines()
            .filter_map(|line| line.strip_prefix("event: "))
            .map(str::to_owned)
            .collect()
    }
}

/// A connection that is still open.
pub(crate) struct Live {
    stream: TcpStream,
    pub(crate) received: Vec<u8>,
    pub(crate) end: Option<End>,
}

impl Live {
    pub(crate) async fn open(address: SocketAddr, bytes: &[u8]) -> Self {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(bytes).await.unwrap();
        Self { stream, received: Vec::new(), end: None }
    }

    pub(crate) async fn post(address: SocketAddr, path: &str, body: &Value) -> Self {
        Self::open(address, &request_bytes("POST", path, &[], body.to_string().as_bytes())).await
    }

    pub(crate) async fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).await.unwrap();
    }

    /// Reads once more; false at the end.
    async fn read(&mut self) -> bool {
        let mut piece = [0; 16 * 1024];
        let read = tokio::time::timeout(PATIENCE, self.stream.read(&mut piece));
        match read.await.expect("nothing comes") {
            Ok(0) => self.end = Some(End::Fin),
            Ok(count) => self.received.extend(&piece[..count]),
            Err(error) if error.kind() == ErrorKind::ConnectionReset => {
                self.end = Some(End::Reset);
            }
            Err(error) => panic!("{error}"),
        }
        self.end.is_none()
    }

    /// Reads until `text` has come `times` times.
    pub(crate) async fn until(&mut self, text: &str, times: usize) {
        while String::from_utf8_lossy(&self.received).matches(text).count() < times {
            assert!(self.read().await, "ended: {}", String::from_utf8_lossy(&self.received));
        }
    }

    /// Reads to the connection's end; `None` if no head came.
    pub(crate) async fn finish(&mut self) -> Option<Answer> {
        while self.read().await {}
        parse(&self.received, self.end?)
    }
}

fn parse(mut bytes: &[u8], end: End) -> Option<Answer> {
    let mut informational = Vec::new();
    loop {
        let mut headers = [httparse::EMPTY_HEADER; 64];
        let mut head = httparse::Response::new(&mut headers);
        let httparse::Status::Complete(length) = head.parse(bytes).ok()? else { return None };
        bytes = &bytes[length..];
        let status = head.code?;
        if status < 200 {
            informational.push(status);
            continue;
        }
        let headers: Vec<(String, String)> = head
            .headers
            .iter()
            .map(|header| {
                let value = String::from_utf8_lossy(header.value).into_owned();
                (header.name.to_lowercase(), value)
            })
            .collect();
        let value = |name: &str| {
            headers.iter().find(|(other, _)| other == name).map(|(_, value)| value.clone())
        };
        let mut trailers = String::new();
        let (body, complete) = if value("transfer-encoding").as_deref() == Some("chunked") {
            unchunk(bytes, &mut trailers)
        } else if let Some(length) = value("content-length") {
            (bytes.to_vec(), bytes.len() == length.parse::<usize>().unwrap())
        } else {
            (bytes.to_vec(), end == End::Fin)
        };
        return Some(Answer { status, headers, informational, body, trailers, complete, end });
    }
}

fn unchunk(mut bytes: &[u8], trailers: &mut String) -> (Vec<u8>, bool) {
    let mut body = Vec::new();
    loop {
        let Some(line) = bytes.windows(2).position(|pair| pair == b"\r\n") else {
            return (body, false);
        };
        let size = usize::from_str_radix(std::str::from_utf8(&bytes[..line]).unwrap(), 16).unwrap();
        bytes = &bytes[line + 2..];
        if size == 0 {
            *trailers = String::from_utf8_lossy(bytes).into_owned();
            return (body, trailers.ends_with("\r\n"));
        }
        if bytes.len() < size + 2 {
            body.extend(&bytes[..bytes.len().min(size)]);
            return (body, false);
        }
        body.extend(&bytes[..size]);
        bytes = &bytes[size + 2..];
    }
}

/// The last logged request, once it has ended.
pub(crate) async fn last_ended(server: &ServerHandle) -> LoggedRequest {
    let mut after = 0;
    loop {
        let page = server.requests(after, PATIENCE).await;
        assert!(page.revision > after, "no request ended");
        if let Some(last) = page.requests.last()
            && last.outcome != Outcome::Open
        {
            return last.clone();
        }
        after = page.revision;
    }
}
