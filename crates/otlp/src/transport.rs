//! One batch to the collector. A connection for each: at most one a second, and none to keep alive.

use std::io;

use bytes::{BufMut, Bytes, BytesMut};
use http::{HeaderName, HeaderValue, Request, Response, StatusCode, Uri};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper::rt::Executor;
use hyper_util::rt::TokioIo;
use prost::Message;
use rustls::pki_types::ServerName;
use tls::{Client, ClientFiles};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::settings::{Protocol, Settings};
use crate::tasks::Tasks;
use crate::wire::{ExportRequest, ExportResponse};

const GRPC_METHOD: &str = "/opentelemetry.proto.collector.trace.v1.TraceService/Export";
/// Longest answer that is read; a collector has little to say.
const ANSWER_BYTES_MAX: usize = 64 << 10;

/// Why a batch was not taken.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SendError {
    #[error("cannot connect: {0}")]
    Connect(#[source] io::Error),
    #[error("the exchange broke: {0}")]
    Exchange(String),
    #[error("status {0}")]
    Status(u16),
    #[error("gRPC status {0}: {1}")]
    Grpc(u32, String),
    #[error("{0} spans were rejected: {1}")]
    Rejected(i64, String),
}

impl SendError {
    /// Whether the same batch may be taken later.
    pub(crate) fn may_pass(&self) -> bool {
        match self {
            Self::Connect(_) | Self::Exchange(_) => true,
            Self::Status(status) => matches!(status, 429 | 502 | 503 | 504),
            // Cancelled, deadline, exhausted, aborted, unavailable, data loss: OTLP 1.7, "Failures".
            Self::Grpc(code, _) => matches!(code, 1 | 4 | 8 | 10 | 14 | 15),
            Self::Rejected(..) => false,
        }
    }
}

pub(crate) struct Transport {
    uri: Uri,
    host: String,
    port: u16,
    tls: Option<TlsConnector>,
    protocol: Protocol,
    headers: Vec<(HeaderName, HeaderValue)>,
}

impl Transport {
    pub(crate) fn new(settings: &Settings) -> io::Result<Self> {
        let uri = &settings.endpoint;
        let is_tls = uri.scheme_str() == Some("https");
        let usual = if is_tls { 443 } else { 80 };
        let host = uri.host().unwrap_or_default();
        let tls = match is_tls {
            true => Some(connector(settings)?),
            false => None,
        };
        Ok(Self {
            uri: uri.clone(),
            host: host.trim_matches(['[', ']']).to_owned(),
            port: uri.port_u16().unwrap_or(usual),
            tls,
            protocol: settings.protocol,
            headers: settings.headers.clone(),
        })
    }

    /// For the log: without a query, which could hold a key.
    pub(crate) fn shown(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }

    /// Sends a batch. What moves its connection goes into `tasks`, which the caller ends.
    pub(crate) async fn send(&self, batch: &ExportRequest, tasks: &Tasks) -> Result<(), SendError> {
        let stream = TcpStream::connect((self.host.as_str(), self.port))
            .await
            .map_err(SendError::Connect)?;
        let Some(tls) = &self.tls else { return self.exchange(stream, batch, tasks).await };
        let name = ServerName::try_from(self.host.clone())
            .map_err(|error| SendError::Connect(io::Error::other(error)))?;
        let stream = tls.connect(name, stream).await.map_err(SendError::Connect)?;
        self.exchange(stream, batch, tasks).await
    }

    async fn exchange<S>(
        &self,
        stream: S,
        batch: &ExportRequest,
        tasks: &Tasks,
    ) -> Result<(), SendError>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let io = TokioIo::new(stream);
        let request = match self.protocol {
            Protocol::HttpProtobuf => self.request(batch.encode_to_vec().into())?,
            Protocol::Grpc => self.request(framed(batch))?,
        };
        match self.protocol {
            Protocol::HttpProtobuf => {
                let (mut sender, connection) = http1::handshake(io).await.map_err(broke)?;
                tasks.execute(connection);
                taken_http(sender.send_request(request).await.map_err(broke)?).await
            }
            Protocol::Grpc => {
                let builder = http2::Builder::new(tasks.clone());
                let (mut sender, connection) = builder.handshake(io).await.map_err(broke)?;
                tasks.execute(connection);
                taken_grpc(sender.send_request(request).await.map_err(broke)?).await
            }
        }
    }

    fn request(&self, body: Bytes) -> Result<Request<Full<Bytes>>, SendError> {
        let authority = self.uri.authority().map_or("", |authority| authority.as_str());
        let mut request = Request::post("/").header("user-agent", USER_AGENT);
        request = match self.protocol {
            Protocol::HttpProtobuf => request
                .uri(self.uri.path())
                .header("host", authority)
                .header("connection", "close")
                .header("content-type", "application/x-protobuf"),
            Protocol::Grpc => request
                .uri(format!(
                    "{}://{authority}{GRPC_METHOD}",
                    self.uri.scheme_str().unwrap_or("http")
                ))
                .header("te", "trailers")
                .header("content-type", "application/grpc"),
        };
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        request.body(Full::new(body)).map_err(|error| SendError::Exchange(error.to_string()))
    }
}

const USER_AGENT: &str = concat!("wicketgate/", env!("CARGO_PKG_VERSION"));

/// A gRPC message: not compressed, its length, itself.
fn framed(batch: &ExportRequest) -> Bytes {
    let length = batch.encoded_len();
    let mut frame = BytesMut::with_capacity(5 + length);
    frame.put_u8(0);
    frame.put_u32(u32::try_from(length).unwrap_or(u32::MAX));
    frame.extend_from_slice(&batch.encode_to_vec());
    frame.freeze()
}

async fn taken_http(answer: Response<Incoming>) -> Result<(), SendError> {
    let status = answer.status();
    let body = Limited::new(answer.into_body(), ANSWER_BYTES_MAX).collect().await;
    if !status.is_success() {
        return Err(SendError::Status(status.as_u16()));
    }
    // What cannot be read is no refusal: the batch was taken.
    body.map_or(Ok(()), |body| accepted(&body.to_bytes()))
}

async fn taken_grpc(answer: Response<Incoming>) -> Result<(), SendError> {
    if answer.status() != StatusCode::OK {
        return Err(SendError::Status(answer.status().as_u16()));
    }
    // Without a body, the status stands in the head.
    let in_head = answer.headers().clone();
    let body = Limited::new(answer.into_body(), ANSWER_BYTES_MAX)
        .collect()
        .await
        .map_err(|error| SendError::Exchange(error.to_string()))?;
    let trailers = body.trailers().cloned().unwrap_or(in_head);
    let text = |name: &str| trailers.get(name).and_then(|value| value.to_str().ok());
    let code: u32 = text("grpc-status").and_then(|code| code.parse().ok()).unwrap_or(2);
    if code != 0 {
        return Err(SendError::Grpc(code, text("grpc-message").unwrap_or_default().to_owned()));
    }
    accepted(body.to_bytes().get(5..).unwrap_or_default())
}

fn accepted(answer: &[u8]) -> Result<(), SendError> {
    match ExportResponse::decode(answer).unwrap_or_default().partial_success {
        Some(partial) if partial.rejected_spans > 0 => {
            Err(SendError::Rejected(partial.rejected_spans, partial.error_message))
        }
        _ => Ok(()),
    }
}

fn broke(error: hyper::Error) -> SendError {
    let source = std::error::Error::source(&error).map(|source| format!(": {source}"));
    SendError::Exchange(format!("{error}{}", source.unwrap_or_default()))
}

/// Shared by all batches.
fn connector(settings: &Settings) -> io::Result<TlsConnector> {
    let protocols: &[&[u8]] = match settings.protocol {
        Protocol::Grpc => &[b"h2"],
        Protocol::HttpProtobuf => &[],
    };
    let files = ClientFiles { ca: settings.ca_file.clone(), own: None, protocols };
    let client = Client::load(files).map_err(|error| {
        let cause = std::error::Error::source(&error).map(|cause| format!(": {cause}"));
        let cause = cause.unwrap_or_default();
        io::Error::other(format!("observability.tracing.caFile: {error}{cause}"))
    })?;
    Ok(TlsConnector::from(client.config()))
}
