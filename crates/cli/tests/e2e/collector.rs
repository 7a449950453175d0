//! A collector of traces, as far as the gateway can tell: OTLP over HTTP/1.1 or gRPC.

use std::net::SocketAddr;

use otlp::wire::{AnyValue, ExportRequest, Span, SpanKind, Value};
use prost::Message;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::gateway::PATIENCE;

/// Keeps every span that it is sent; ends when dropped.
pub(crate) struct Collector {
    pub(crate) address: SocketAddr,
    spans: watch::Receiver<Vec<Span>>,
    task: JoinHandle<()>,
}

impl Collector {
    pub(crate) async fn http() -> Self {
        Self::start(false).await
    }

    pub(crate) async fn grpc() -> Self {
        Self::start(true).await
    }

    async fn start(is_grpc: bool) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (keep, spans) = watch::channel(Vec::new());
        let task = tokio::spawn(async move {
            while let Ok((io, _)) = listener.accept().await {
                let batch = if is_grpc { over_grpc(io).await } else { over_http(io).await };
                let resources = batch.resource_spans.into_iter();
                let new = resources.flat_map(|of| of.scope_spans).flat_map(|scope| scope.spans);
                keep.send_modify(|spans| spans.extend(new));
            }
        });
        Self { address, spans, task }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// All spans of the first trace of which `holds` is true, once its first span is there: a request's
    /// spans come together.
    pub(crate) async fn trace(&self, holds: impl Fn(&Span) -> bool) -> Vec<Span> {
        let mut spans = self.spans.clone();
        let waiting = spans.wait_for(|spans| spans.iter().any(&holds));
        let spans = timeout(PATIENCE, waiting).await.expect("no such span came").unwrap().clone();
        let trace = spans.iter().find(|span| holds(span)).unwrap().trace_id.clone();
        spans.into_iter().filter(|span| span.trace_id == trace).collect()
    }

    /// Waits for the spans of so many whole requests.
    pub(crate) async fn until_requests(&self, count: usize) {
        let mut spans = self.spans.clone();
        let is_whole = |span: &&Span| span.kind == SpanKind::Server as i32;
        let waiting = spans.wait_for(|spans| spans.iter().filter(is_whole).count() >= count);
        timeout(PATIENCE, waiting).await.expect("a batch came").unwrap();
    }

    pub(crate) fn all(&self) -> Vec<Span> {
        self.spans.borrow().clone()
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// An attribute as text.
pub(crate) fn attribute(span: &Span, key: &str) -> Option<String> {
    let pair = span.attributes.iter().find(|pair| pair.key == key)?;
    Some(match pair.value.clone() {
        Some(AnyValue { value: Some(Value::Text(text)) }) => text,
        Some(AnyValue { value: Some(Value::Integer(number)) }) => number.to_string(),
        Some(AnyValue { value: Some(Value::Number(number)) }) => number.to_string(),
        Some(AnyValue { value: Some(Value::Flag(flag)) }) => flag.to_string(),
        _ => String::new(),
    })
}

async fn over_http(mut io: TcpStream) -> ExportRequest {
    let mut bytes = Vec::new();
    loop {
        io.read_buf(&mut bytes).await.unwrap();
        let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else { continue };
        let head = String::from_utf8_lossy(&bytes[..end]).to_lowercase();
        assert!(head.starts_with("post /v1/traces http/1.1\r\n"), "{head}");
        assert!(head.contains("content-type: application/x-protobuf"), "{head}");
        let length = head.split("content-length: ").nth(1).unwrap().split("\r\n").next().unwrap();
        if bytes.len() == end + 4 + length.parse::<usize>().unwrap() {
            io.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await.unwrap();
            return ExportRequest::decode(&bytes[end + 4..]).unwrap();
        }
    }
}

async fn over_grpc(io: TcpStream) -> ExportRequest {
    let mut connection = h2::server::handshake(io).await.unwrap();
    let (request, mut answer) = connection.accept().await.unwrap().unwrap();
    let path = "/opentelemetry.proto.collector.trace.v1.TraceService/Export";
    assert_eq!(request.uri().path(), path);
    assert_eq!(request.headers()["content-type"], "application/grpc");
    let driver = tokio::spawn(async move { while connection.accept().await.is_some() {} });
    let mut body = request.into_body();
    let mut message = Vec::new();
    while let Some(data) = body.data().await {
        let data = data.unwrap();
        body.flow_control().release_capacity(data.len()).unwrap();
        message.extend_from_slice(&data);
    }
    let head = http::Response::builder().header("content-type", "application/grpc");
    let mut stream = answer.send_response(head.body(()).unwrap(), false).unwrap();
    // An empty message: not compressed, of no bytes.
    stream.send_data(vec![0; 5].into(), false).unwrap();
    let mut trailers = http::HeaderMap::new();
    trailers.insert("grpc-status", http::HeaderValue::from_static("0"));
    stream.send_trailers(trailers).unwrap();
    let _ = driver.await;
    ExportRequest::decode(&message[5..]).unwrap()
}
