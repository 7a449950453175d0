//! The limits and deadlines of the data path, as plain values.

use std::time::Duration;

use config::Spec;
use rand::RngExt;

use crate::h1::HeadLimits;

/// Taken from the document when a connection is accepted.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) head: HeadLimits,
    pub(crate) first_request: Duration,
    pub(crate) request_header: Duration,
    pub(crate) keep_alive_idle: Duration,
    pub(crate) requests_per_connection_max: u32,
    pub(crate) request_body_idle: Duration,
    pub(crate) request_body: Duration,
    pub(crate) request_body_grace: Duration,
    pub(crate) request_body_bytes_per_second_min: u64,
    pub(crate) slow_reader: Duration,
    pub(crate) tls_handshake: Duration,
    /// With up to a tenth more or less, so that connections made together do not end together.
    pub(crate) connection_age: Duration,
    pub(crate) http2_idle: Duration,
    pub(crate) http2_streams_max: u32,
    pub(crate) http2_header_list_bytes_max: u32,
    pub(crate) http2_stream_window_bytes: u32,
    pub(crate) http2_connection_window_bytes: u32,
    pub(crate) http2_pending_resets_max: usize,
    pub(crate) http2_error_resets_max: usize,
    pub(crate) http2_ping_interval: Duration,
    pub(crate) http2_ping_answer: Duration,
}

impl Settings {
    pub(crate) fn of(spec: &Spec) -> Self {
        let (limits, times) = (&spec.limits, &spec.timeouts);
        Self {
            head: HeadLimits {
                bytes_max: limits.header_bytes_max as usize,
                fields_max: limits.headers_max as usize,
                target_bytes_max: limits.target_bytes_max as usize,
            },
            first_request: times.first_request,
            request_header: times.request_header,
            keep_alive_idle: times.keep_alive_idle,
            requests_per_connection_max: limits.requests_per_connection_max,
            request_body_idle: times.request_body_idle,
            request_body: times.request_body,
            request_body_grace: times.request_body_grace,
            request_body_bytes_per_second_min: limits.request_body_bytes_per_second_min,
            slow_reader: times.slow_reader,
            tls_handshake: times.tls_handshake,
            connection_age: times.connection_age.mul_f64(rand::rng().random_range(0.9..=1.1)),
            http2_idle: times.http2_idle,
            http2_streams_max: limits.http2_streams_max,
            http2_header_list_bytes_max: limits.http2_header_bytes_max,
            http2_stream_window_bytes: limits.http2_stream_window_bytes_max,
            http2_connection_window_bytes: limits.http2_connection_window_bytes_max,
            http2_pending_resets_max: limits.http2_pending_resets_max as usize,
            http2_error_resets_max: limits.http2_error_resets_max as usize,
            http2_ping_interval: times.http2_ping_interval,
            http2_ping_answer: times.http2_ping_answer,
        }
    }
}
