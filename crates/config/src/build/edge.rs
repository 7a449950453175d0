//! `listener`, `admin`, `limits` and `timeouts`.

use std::path::PathBuf;

use super::View;
use super::auth::secret;
use crate::spec::{Admin, ClientCa, Limits, Listener, ListenerTls, Timeouts};

pub(super) fn listener(view: View<'_>) -> Listener {
    let default = Listener::default();
    Listener {
        address: view.get("address").parsed().unwrap_or(default.address),
        tls: view.get("tls").present().map(listener_tls),
    }
}

fn listener_tls(view: View<'_>) -> ListenerTls {
    let file = |key| PathBuf::from(view.get(key).word().unwrap_or_default());
    let mut tls = ListenerTls::new(file("certFile"), file("keyFile"));
    if let Some(address) = view.get("address").parsed() {
        tls.address = address;
    }
    tls.client_ca = view.get("clientCaFile").word().map(|file| ClientCa {
        file: PathBuf::from(file),
        required: view.get("clientCertificates").word() != Some("optional"),
    });
    tls
}

pub(super) fn admin(view: View<'_>) -> Admin {
    Admin {
        address: view.get("address").parsed().unwrap_or(Admin::default().address),
        token: secret(view.get("token")),
    }
}

pub(super) fn limits(view: View<'_>) -> Limits {
    let default = Limits::default();
    let bytes = |key, default: u64| view.get(key).bytes().unwrap_or(default);
    let small_bytes = |key, default: u32| view.get(key).bytes().unwrap_or(default);
    let count = |key, default: u32| view.get(key).integer().unwrap_or(default);
    Limits {
        request_body_bytes_max: bytes("requestBodyBytesMax", default.request_body_bytes_max),
        multipart_body_bytes_max: bytes("multipartBodyBytesMax", default.multipart_body_bytes_max),
        buffered_body_bytes_max: view.get("bufferedBodyBytesMax").bytes(),
        request_body_bytes_per_second_min: bytes(
            "requestBodyBytesPerSecondMin",
            default.request_body_bytes_per_second_min,
        ),
        header_bytes_max: small_bytes("headerBytesMax", default.header_bytes_max),
        http2_header_bytes_max: small_bytes("http2HeaderBytesMax", default.http2_header_bytes_max),
        headers_max: count("headersMax", default.headers_max),
        target_bytes_max: small_bytes("targetBytesMax", default.target_bytes_max),
        connections_max: count("connectionsMax", default.connections_max),
        connections_per_source_max: count(
            "connectionsPerSourceMax",
            default.connections_per_source_max,
        ),
        requests_per_connection_max: count(
            "requestsPerConnectionMax",
            default.requests_per_connection_max,
        ),
        http2_streams_max: count("http2StreamsMax", default.http2_streams_max),
        http2_stream_window_bytes_max: small_bytes(
            "http2StreamWindowBytesMax",
            default.http2_stream_window_bytes_max,
        ),
        http2_connection_window_bytes_max: small_bytes(
            "http2ConnectionWindowBytesMax",
            default.http2_connection_window_bytes_max,
        ),
        http2_pending_resets_max: count("http2PendingResetsMax", default.http2_pending_resets_max),
        http2_error_resets_max: count("http2ErrorResetsMax", default.http2_error_resets_max),
    }
}

pub(super) fn timeouts(view: View<'_>) -> Timeouts {
    let default = Timeouts::default();
    let wait = |key, default| view.get(key).duration().unwrap_or(default);
    Timeouts {
        tls_handshake: wait("tlsHandshake", default.tls_handshake),
        first_request: wait("firstRequest", default.first_request),
        request_header: wait("requestHeader", default.request_header),
        request_body_idle: wait("requestBodyIdle", default.request_body_idle),
        request_body: wait("requestBody", default.request_body),
        request_body_grace: wait("requestBodyGrace", default.request_body_grace),
        keep_alive_idle: wait("keepAliveIdle", default.keep_alive_idle),
        http2_idle: wait("http2Idle", default.http2_idle),
        http2_ping_interval: wait("http2PingInterval", default.http2_ping_interval),
        http2_ping_answer: wait("http2PingAnswer", default.http2_ping_answer),
        connection_age: wait("connectionAge", default.connection_age),
        response: wait("response", default.response),
        first_byte: wait("firstByte", default.first_byte),
        stream_idle: wait("streamIdle", default.stream_idle),
        stream_duration: wait("streamDuration", default.stream_duration),
        slow_reader: wait("slowReader", default.slow_reader),
        connect: wait("connect", default.connect),
        endpoint_idle: wait("endpointIdle", default.endpoint_idle),
        endpoint_http2_idle: wait("endpointHttp2Idle", default.endpoint_http2_idle),
        drain_delay: wait("drainDelay", default.drain_delay),
        drain: wait("drain", default.drain),
    }
}
