//! Envoy's messages, as far as the endpoint picker's protocol uses them.
//!
//! Written by hand instead of generated: a dozen messages instead of a whole API, no protocol
//! compiler, and bodies as [`bytes::Bytes`], so that a chunk is handed on without being copied.
//! Fields that are not here are skipped when read.
//!
//! Sources: `envoy/service/ext_proc/v3/external_processor.proto`, `envoy/config/core/v3/base.proto`,
//! `grpc/health/v1/health.proto`. The tests with a real Envoy hold the numbers to what it sends.

mod ext_proc;
mod header;
pub mod health;
mod metadata;

pub use ext_proc::{
    BodyMode, BodyMutation, BodyResponse, CommonResponse, HeadersResponse, HttpBody, HttpHeaders,
    HttpStatus, HttpTrailers, ImmediateResponse, Mutation, ProcessingRequest, ProcessingResponse,
    ProtocolConfiguration, Request, Response, StreamedBodyResponse, TrailersResponse,
};
pub use header::{AppendAction, HeaderMap, HeaderMutation, HeaderValue, HeaderValueOption};
pub use metadata::{Metadata, list_field, string, string_field, structure};
