//! `envoy.service.ext_proc.v3`.

use std::collections::HashMap;

use bytes::Bytes;
use prost_types::Struct;

use super::header::{HeaderMap, HeaderMutation};
use super::metadata::Metadata;

/// What the proxy tells us.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ProcessingRequest {
    #[prost(message, optional, tag = "8")]
    pub metadata_context: Option<Metadata>,
    /// By filter name; which attributes there are is a matter of the proxy's configuration.
    #[prost(map = "string, message", tag = "9")]
    pub attributes: HashMap<String, Struct>,
    /// The proxy only looks on; it ignores what we answer.
    #[prost(bool, tag = "10")]
    pub observability_mode: bool,
    /// In the first message only.
    #[prost(message, optional, tag = "11")]
    pub protocol_config: Option<ProtocolConfiguration>,
    #[prost(oneof = "Request", tags = "2, 3, 4, 5, 6, 7")]
    pub request: Option<Request>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
pub enum Request {
    #[prost(message, tag = "2")]
    RequestHeaders(HttpHeaders),
    #[prost(message, tag = "3")]
    ResponseHeaders(HttpHeaders),
    #[prost(message, tag = "4")]
    RequestBody(HttpBody),
    #[prost(message, tag = "5")]
    ResponseBody(HttpBody),
    #[prost(message, tag = "6")]
    RequestTrailers(HttpTrailers),
    #[prost(message, tag = "7")]
    ResponseTrailers(HttpTrailers),
}

#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct ProtocolConfiguration {
    #[prost(enumeration = "BodyMode", tag = "1")]
    pub request_body_mode: i32,
    #[prost(enumeration = "BodyMode", tag = "2")]
    pub response_body_mode: i32,
}

/// How the proxy hands bodies over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub enum BodyMode {
    None = 0,
    /// Chunk by chunk, one answer for each; the headers have gone on before.
    Streamed = 1,
    /// Whole, after the answer to the headers.
    Buffered = 2,
    BufferedPartial = 3,
    /// Chunk by chunk, answered whenever and in whatever pieces we like.
    FullDuplexStreamed = 4,
    Grpc = 5,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct HttpHeaders {
    #[prost(message, optional, tag = "1")]
    pub headers: Option<HeaderMap>,
    /// There is no body.
    #[prost(bool, tag = "3")]
    pub end_of_stream: bool,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct HttpBody {
    #[prost(bytes = "bytes", tag = "1")]
    pub body: Bytes,
    /// The last chunk, and no trailers follow.
    #[prost(bool, tag = "2")]
    pub end_of_stream: bool,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct HttpTrailers {
    #[prost(message, optional, tag = "1")]
    pub trailers: Option<HeaderMap>,
}

/// What we tell the proxy.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ProcessingResponse {
    /// By namespace.
    #[prost(message, optional, tag = "8")]
    pub dynamic_metadata: Option<Struct>,
    #[prost(oneof = "Response", tags = "1, 2, 3, 4, 5, 6, 7")]
    pub response: Option<Response>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
pub enum Response {
    #[prost(message, tag = "1")]
    RequestHeaders(HeadersResponse),
    #[prost(message, tag = "2")]
    ResponseHeaders(HeadersResponse),
    #[prost(message, tag = "3")]
    RequestBody(BodyResponse),
    #[prost(message, tag = "4")]
    ResponseBody(BodyResponse),
    #[prost(message, tag = "5")]
    RequestTrailers(TrailersResponse),
    #[prost(message, tag = "6")]
    ResponseTrailers(TrailersResponse),
    #[prost(message, tag = "7")]
    Immediate(ImmediateResponse),
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct HeadersResponse {
    #[prost(message, optional, tag = "1")]
    pub response: Option<CommonResponse>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct BodyResponse {
    #[prost(message, optional, tag = "1")]
    pub response: Option<CommonResponse>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct TrailersResponse {
    #[prost(message, optional, tag = "1")]
    pub header_mutation: Option<HeaderMutation>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct CommonResponse {
    #[prost(message, optional, tag = "2")]
    pub header_mutation: Option<HeaderMutation>,
    #[prost(message, optional, tag = "3")]
    pub body_mutation: Option<BodyMutation>,
    /// Headers that decide the route changed: decide it anew.
    #[prost(bool, tag = "5")]
    pub clear_route_cache: bool,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct BodyMutation {
    #[prost(oneof = "Mutation", tags = "1, 3")]
    pub mutation: Option<Mutation>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
pub enum Mutation {
    /// Replaces the chunk or body that is being answered.
    #[prost(bytes = "bytes", tag = "1")]
    Body(Bytes),
    /// In full duplex, a piece of the body; without it the proxy has nothing to send on.
    #[prost(message, tag = "3")]
    Streamed(StreamedBodyResponse),
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct StreamedBodyResponse {
    #[prost(bytes = "bytes", tag = "1")]
    pub body: Bytes,
    #[prost(bool, tag = "2")]
    pub end_of_stream: bool,
}

/// An answer to the client, instead of an endpoint's.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ImmediateResponse {
    #[prost(message, optional, tag = "1")]
    pub status: Option<HttpStatus>,
    #[prost(message, optional, tag = "2")]
    pub headers: Option<HeaderMutation>,
    #[prost(bytes = "bytes", tag = "3")]
    pub body: Bytes,
    /// For the proxy's own access log.
    #[prost(string, tag = "5")]
    pub details: String,
}

#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct HttpStatus {
    #[prost(int32, tag = "1")]
    pub code: i32,
}

impl From<Response> for ProcessingResponse {
    fn from(response: Response) -> Self {
        Self { dynamic_metadata: None, response: Some(response) }
    }
}

impl BodyResponse {
    /// A piece of a body in full duplex.
    pub fn streamed(body: Bytes, end_of_stream: bool) -> Self {
        let streamed = Mutation::Streamed(StreamedBodyResponse { body, end_of_stream });
        Self::mutating(streamed)
    }

    /// Another body instead of the one that is being answered.
    pub fn replaced(body: Bytes) -> Self {
        Self::mutating(Mutation::Body(body))
    }

    fn mutating(mutation: Mutation) -> Self {
        let body_mutation = Some(BodyMutation { mutation: Some(mutation) });
        Self { response: Some(CommonResponse { body_mutation, ..CommonResponse::default() }) }
    }
}
