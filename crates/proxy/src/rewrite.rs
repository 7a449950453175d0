//! Which header fields pass, and which are ours: towards endpoints and towards clients.

use bytes::Bytes;
use gateway::{Attempt, RequestId};
use http_body_util::Full;

use crate::fields::{Class, Field, Fields, write_field};
use crate::head::RequestHead;
use crate::upstream::ResponseHead;

/// Whether a client's field goes on to the endpoint.
///
/// `Authorization` does not: a client's key is meant for the gateway, and engines have their own.
fn passes_up(class: Class) -> bool {
    matches!(
        class,
        Class::Other
            | Class::ContentType
            | Class::ContentEncoding
            | Class::SessionId
            | Class::RetryAfter
            | Class::Server
    )
}

/// Whether an endpoint's field goes on to the client.
fn passes_down(class: Class) -> bool {
    matches!(
        class,
        Class::Other
            | Class::ContentType
            | Class::ContentEncoding
            | Class::RetryAfter
            | Class::SessionId
    )
}

/// Fields that the `Connection` field nominates belong to the connection, whatever their name.
fn nominated<'a>(fields: &'a Fields) -> impl Iterator<Item = &'a [u8]> + 'a {
    fields
        .iter()
        .filter(|field| field.class == Class::Connection)
        .flat_map(|field| fields.value(field).split(|byte| *byte == b','))
        .map(<[u8]>::trim_ascii)
        .filter(|name| {
            !name.eq_ignore_ascii_case(b"keep-alive") && !name.eq_ignore_ascii_case(b"close")
        })
}

fn passing<'a>(
    fields: &'a Fields,
    passes: fn(Class) -> bool,
) -> impl Iterator<Item = &'a Field> + 'a {
    // Nearly always none: then a field costs one look.
    let any_nominated = nominated(fields).next().is_some();
    fields.iter().filter(move |field| {
        let is_nominated = any_nominated
            && nominated(fields).any(|name| name.eq_ignore_ascii_case(fields.name(field)));
        passes(field.class) && !is_nominated
    })
}

/// The head of a request to an endpoint over HTTP/1.1.
pub(crate) fn request_head(
    head: &RequestHead,
    body_bytes: usize,
    attempt: &Attempt,
    id: &RequestId,
    authorization: Option<&str>,
) -> Vec<u8> {
    let mut out = Vec::with_capacity(512);
    out.extend_from_slice(head.method.as_str().as_bytes());
    out.push(b' ');
    out.extend_from_slice(attempt.address.path_prefix().as_bytes());
    out.extend_from_slice(&head.target);
    out.extend_from_slice(b" HTTP/1.1\r\n");
    write_field(&mut out, b"host", attempt.authority.as_bytes());
    for field in passing(&head.fields, passes_up) {
        write_field(&mut out, head.fields.name(field), head.fields.value(field));
    }
    write_field(&mut out, b"x-request-id", id.as_str().as_bytes());
    if let Some(authorization) = authorization {
        write_field(&mut out, b"authorization", authorization.as_bytes());
    }
    out.extend_from_slice(b"content-length: ");
    out.extend_from_slice(body_bytes.to_string().as_bytes());
    out.extend_from_slice(b"\r\n\r\n");
    out
}

/// The same request over HTTP/2.
pub(crate) fn request_http2(
    head: &RequestHead,
    body: &Bytes,
    attempt: &Attempt,
    id: &RequestId,
    authorization: Option<&str>,
) -> Result<http::Request<Full<Bytes>>, http::Error> {
    let (path, query) = head.path_and_query();
    let query = query.map(|query| format!("?{query}")).unwrap_or_default();
    let uri = format!("http://{}{}{path}{query}", attempt.authority, attempt.address.path_prefix());
    let mut request = http::Request::builder().method(head.method.clone()).uri(uri);
    for field in passing(&head.fields, passes_up) {
        request = request.header(head.fields.name(field), head.fields.value(field));
    }
    request = request.header("x-request-id", id.as_str());
    if let Some(authorization) = authorization {
        request = request.header("authorization", authorization);
    }
    request.body(Full::new(body.clone()))
}

/// The fields of an endpoint's answer as the client gets them.
pub(crate) fn answer_lines(
    head: &ResponseHead,
    id: &RequestId,
    is_event_stream: bool,
    retry_after: Option<u64>,
    exposed_endpoint: Option<&str>,
) -> Vec<u8> {
    let fields = &head.fields;
    let mut lines = Vec::with_capacity(256);
    for field in passing(fields, passes_down) {
        write_field(&mut lines, fields.name(field), fields.value(field));
    }
    write_field(&mut lines, b"x-request-id", id.as_str().as_bytes());
    if is_event_stream {
        // Whatever stands between us and the client must not hold the stream back.
        if !fields.has("cache-control") {
            write_field(&mut lines, b"cache-control", b"no-cache");
        }
        if !fields.has("x-accel-buffering") {
            write_field(&mut lines, b"x-accel-buffering", b"no");
        }
    }
    if head.status >= 400 {
        write_field(&mut lines, b"x-wicketgate-component", b"endpoint");
    }
    if let Some(seconds) = retry_after {
        write_field(&mut lines, b"retry-after", seconds.to_string().as_bytes());
    }
    if let Some(endpoint) = exposed_endpoint {
        write_field(&mut lines, b"x-wicketgate-endpoint", endpoint.as_bytes());
    }
    lines
}
