//! The client side: where we listen, how much we take, how long we wait.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use super::SecretSource;

const KIB: u64 = 1024;
const MIB: u64 = 1024 * KIB;

/// Where clients connect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listener {
    /// HTTP/1.1 and HTTP/2 without TLS. Default `0.0.0.0:8080`.
    pub address: SocketAddr,
    /// A second listener with TLS, when set.
    pub tls: Option<ListenerTls>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListenerTls {
    /// PEM, leaf first; read again when it changes.
    pub cert_file: PathBuf,
    /// PEM.
    pub key_file: PathBuf,
    /// Default `0.0.0.0:8443`.
    pub address: SocketAddr,
    /// Set: clients show certificates.
    pub client_ca: Option<ClientCa>,
}

/// Whose certificates clients may show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientCa {
    /// PEM; read again when it changes.
    pub file: PathBuf,
    /// Whether a client without one is sent away.
    pub required: bool,
}

/// Metrics, health, decisions. Not for clients, hence loopback by default.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Admin {
    /// Default `127.0.0.1:9090`.
    pub address: SocketAddr,
    /// What it asks for. `None`: it is open.
    pub token: Option<SecretSource>,
}

/// What one client, or all together, may make us hold. Each is a most, save
/// `request_body_bytes_per_second_min`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// JSON bodies; 413 beyond. With AWS's group, or when `bbr.maxRequestBodyBytes` is written,
    /// that number.
    pub request_body_bytes_max: u64,
    /// Multipart bodies (audio, images); 413 beyond. Never below `request_body_bytes_max`.
    pub multipart_body_bytes_max: u64,
    /// Bodies held at one time over all requests; 503 beyond. `None`: see
    /// [`Limits::buffered_body_bytes`].
    pub buffered_body_bytes_max: Option<u64>,
    /// A body that arrives slower, after `timeouts.requestBodyGrace`, is given up with 408.
    pub request_body_bytes_per_second_min: u64,
    /// HTTP/1.1 request line and header fields together; 431 beyond.
    pub header_bytes_max: u32,
    /// HTTP/2 header list, decoded, each field counted with 32 bytes more.
    pub http2_header_bytes_max: u32,
    /// Header fields of one request, HTTP/1.1 and HTTP/2; 431 beyond.
    pub headers_max: u32,
    /// Request target; 414 beyond.
    pub target_bytes_max: u32,
    /// Open client connections. See [`Limits::connections`].
    pub connections_max: u32,
    /// Open connections from one public address; 0 is no limit.
    pub connections_per_source_max: u32,
    /// Requests on one HTTP/1.1 connection before it is closed.
    pub requests_per_connection_max: u32,
    /// Concurrent streams of one HTTP/2 connection.
    pub http2_streams_max: u32,
    /// Flow-control window of one HTTP/2 stream.
    pub http2_stream_window_bytes_max: u32,
    /// Flow-control window of one HTTP/2 connection.
    pub http2_connection_window_bytes_max: u32,
    /// Streams reset by the client before we accepted them; GOAWAY beyond.
    pub http2_pending_resets_max: u32,
    /// Streams that we reset because of the client's errors; GOAWAY beyond.
    pub http2_error_resets_max: u32,
}

/// How long each step may take. All above zero, save `drain_delay`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timeouts {
    pub tls_handshake: Duration,
    /// From accept to the first byte of the first request.
    pub first_request: Duration,
    /// From a request's first byte to the end of its header.
    pub request_header: Duration,
    /// Gap between two reads of a request body.
    pub request_body_idle: Duration,
    /// Whole request body.
    pub request_body: Duration,
    /// How long a body may be slower than `limits.requestBodyBytesPerSecondMin`.
    pub request_body_grace: Duration,
    /// HTTP/1.1 connection without a request.
    pub keep_alive_idle: Duration,
    /// HTTP/2 connection without a stream.
    pub http2_idle: Duration,
    /// Silence, while streams are open, after which an HTTP/2 PING is sent.
    pub http2_ping_interval: Duration,
    /// Wait for that PING's answer.
    pub http2_ping_answer: Duration,
    /// Age at which a client connection is closed gracefully, give or take a tenth.
    pub connection_age: Duration,
    /// Whole answer of a request that does not stream.
    pub response: Duration,
    /// From the endpoint having the request to its first byte.
    pub first_byte: Duration,
    /// Gap between two reads of a stream from the endpoint.
    pub stream_idle: Duration,
    /// Whole stream.
    pub stream_duration: Duration,
    /// We hold bytes for the client and it takes none.
    pub slow_reader: Duration,
    /// Connecting to an endpoint.
    pub connect: Duration,
    /// HTTP/1.1 connection to an endpoint without a request.
    pub endpoint_idle: Duration,
    /// HTTP/2 connection to an endpoint without a stream.
    pub endpoint_http2_idle: Duration,
    /// From SIGTERM (not ready at once) until no new connections are accepted.
    pub drain_delay: Duration,
    /// From then until open requests are ended.
    pub drain: Duration,
}

impl Limits {
    /// The most bytes of bodies to hold, given the memory that the process may use.
    ///
    /// The setting, else a quarter of `memory_bytes`, else 512 MiB; never below one largest body.
    pub fn buffered_body_bytes(&self, memory_bytes: Option<u64>) -> u64 {
        self.buffered_body_bytes_max
            .or(memory_bytes.map(|bytes| bytes / 4))
            .unwrap_or(512 * MIB)
            .max(self.request_body_bytes_max)
            .max(self.multipart_body_bytes_max)
    }

    /// The most client connections, given the process's file descriptor limit: the setting, but at
    /// most half of the descriptors less 512, and at least 16.
    pub fn connections(&self, descriptors: u64) -> u32 {
        let fit = u32::try_from((descriptors / 2).saturating_sub(512)).unwrap_or(u32::MAX);
        self.connections_max.min(fit.max(16))
    }
}

fn any_address(port: u16) -> SocketAddr {
    SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), port)
}

impl Default for Listener {
    fn default() -> Self {
        Self { address: any_address(8080), tls: None }
    }
}

impl ListenerTls {
    pub fn new(cert_file: PathBuf, key_file: PathBuf) -> Self {
        Self { cert_file, key_file, address: any_address(8443), client_ca: None }
    }
}

impl Default for Admin {
    fn default() -> Self {
        Self { address: SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 9090), token: None }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            request_body_bytes_max: 10 * MIB,
            multipart_body_bytes_max: 64 * MIB,
            buffered_body_bytes_max: None,
            request_body_bytes_per_second_min: KIB,
            header_bytes_max: 64 << 10,
            http2_header_bytes_max: 16 << 10,
            headers_max: 100,
            target_bytes_max: 8 << 10,
            connections_max: 10_000,
            connections_per_source_max: 256,
            requests_per_connection_max: 1_000,
            http2_streams_max: 100,
            http2_stream_window_bytes_max: 256 << 10,
            http2_connection_window_bytes_max: 1 << 20,
            http2_pending_resets_max: 20,
            http2_error_resets_max: 64,
        }
    }
}

impl Default for Timeouts {
    fn default() -> Self {
        let secs = Duration::from_secs;
        Self {
            tls_handshake: secs(10),
            first_request: secs(60),
            request_header: secs(10),
            request_body_idle: secs(30),
            request_body: secs(300),
            request_body_grace: secs(10),
            keep_alive_idle: secs(75),
            http2_idle: secs(300),
            http2_ping_interval: secs(20),
            http2_ping_answer: secs(20),
            connection_age: secs(3600),
            response: secs(600),
            first_byte: secs(600),
            stream_idle: secs(300),
            stream_duration: secs(3600),
            slow_reader: secs(60),
            connect: secs(1),
            endpoint_idle: secs(3),
            endpoint_http2_idle: secs(300),
            drain_delay: secs(10),
            drain: secs(600),
        }
    }
}
