//! Which header fields pass, and which are ours: towards endpoints and towards clients.

use bytes::Bytes;
use gateway::{Attempt, RATE_LIMIT_FIELDS, RequestId};
use http_body_util::Full;

use crate::fields::{Class, Field, Fields, write_field};
use crate::head::RequestHead;
use crate::tracing::passing_trace;
use crate::upstream::ResponseHead;

/// Whether a client's field goes on to the endpoint.
///
/// Credentials do not: a client's key is meant for the gateway, and engines have their own.
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

/// The same where the document hands credentials on.
fn passes_up_with_credentials(class: Class) -> bool {
    let is_credential =
        matches!(class, Class::Authorization | Class::XApiKey | Class::ApiKey | Class::Cookie);
    is_credential || passes_up(class)
}

/// The same where only cookies go on: nothing is authenticated here, or the endpoint has a key of its
/// own, which stands in the client's place.
fn passes_up_with_cookie(class: Class) -> bool {
    class == Class::Cookie || passes_up(class)
}

/// What is said to endpoints about who asks.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Credentials<'a> {
    /// Value of `Authorization`.
    pub(crate) own: Option<&'a str>,
    /// The client's go on too, where there is no own.
    pub(crate) of_client: bool,
    /// The client's cookies go on.
    pub(crate) cookies: bool,
}

impl Credentials<'_> {
    fn passes(self) -> fn(Class) -> bool {
        match (self.of_client, self.own) {
            (true, None) => passes_up_with_credentials,
            _ if self.cookies => passes_up_with_cookie,
            _ => passes_up,
        }
    }
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
    credentials: Credentials<'_>,
) -> Vec<u8> {
    let mut out = Vec::with_capacity(512);
    out.extend_from_slice(head.method.as_str().as_bytes());
    out.push(b' ');
    out.extend_from_slice(attempt.address.path_prefix().as_bytes());
    out.extend_from_slice(&head.target);
    out.extend_from_slice(b" HTTP/1.1\r\n");
    write_field(&mut out, b"host", attempt.authority.as_bytes());
    for field in passing(&head.fields, credentials.passes()) {
        write_field(&mut out, head.fields.name(field), head.fields.value(field));
    }
    for (name, value) in passing_trace(&head.fields, attempt) {
        write_field(&mut out, name, value);
    }
    write_field(&mut out, b"x-request-id", id.as_str().as_bytes());
    if let Some(authorization) = credentials.own {
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
    credentials: Credentials<'_>,
) -> Result<http::Request<Full<Bytes>>, http::Error> {
    let (path, query) = head.path_and_query();
    let query = query.map(|query| format!("?{query}")).unwrap_or_default();
    let uri = format!("http://{}{}{path}{query}", attempt.authority, attempt.address.path_prefix());
    let mut request = http::Request::builder().method(head.method.clone()).uri(uri);
    for field in passing(&head.fields, credentials.passes()) {
        request = request.header(head.fields.name(field), head.fields.value(field));
    }
    for (name, value) in passing_trace(&head.fields, attempt) {
        request = request.header(name, value);
    }
    request = request.header("x-request-id", id.as_str());
    if let Some(authorization) = credentials.own {
        request = request.header("authorization", authorization);
    }
    request.body(Full::new(body.clone()))
}

/// The fields of an endpoint's answer as the client gets them.
///
/// * `retry_after`: in the place of its own.
pub(crate) fn answer_lines(
    head: &ResponseHead,
    id: &RequestId,
    is_event_stream: bool,
    retry_after: Option<u64>,
    member: Option<&str>,
    exposed: &[(&str, String)],
    told: &[(&str, String)],
) -> Vec<u8> {
    let fields = &head.fields;
    let has_limits = told.iter().any(|(name, _)| is_rate_limit(name.as_bytes()));
    let mut lines = Vec::with_capacity(256);
    for field in passing(fields, passes_down) {
        // Whoever has limits here is not to pace itself by an endpoint's.
        if has_limits && is_rate_limit(fields.name(field)) {
            continue;
        }
        if retry_after.is_some() && fields.name(field).eq_ignore_ascii_case(b"retry-after") {
            continue;
        }
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
        write_field(&mut lines, b"x-wicketgate-component", component(head, member));
        if let Some(member) = member
            && exposed.is_empty()
        {
            write_field(&mut lines, gateway::MEMBER.as_bytes(), member.as_bytes());
        }
    }
    if let Some(seconds) = retry_after {
        write_field(&mut lines, b"retry-after", seconds.to_string().as_bytes());
    }
    for (name, value) in exposed.iter().chain(told) {
        write_field(&mut lines, name.as_bytes(), value.as_bytes());
    }
    lines
}

/// Who an error is from. A member is a gateway itself and knows better than we; an engine's word counts for
/// nothing.
fn component<'a>(head: &'a ResponseHead, member: Option<&str>) -> &'a [u8] {
    if member.is_none() {
        return b"endpoint";
    }
    let said = head.fields.find("x-wicketgate-component").unwrap_or_default();
    let known = ["edge", "auth", "limit", "flow", "picker", "endpoint"];
    if known.iter().any(|known| known.as_bytes() == said) { said } else { b"member" }
}

fn is_rate_limit(name: &[u8]) -> bool {
    let head = name.get(..RATE_LIMIT_FIELDS.len());
    head.is_some_and(|head| head.eq_ignore_ascii_case(RATE_LIMIT_FIELDS.as_bytes()))
}
