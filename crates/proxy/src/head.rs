//! A request's head after the gate: nothing in it is ambiguous.

use bytes::Bytes;
use http::Method;

use crate::fields::{Class, Fields};

/// How the body of an HTTP/1 request ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BodyLength {
    None,
    Known(u64),
    Chunked,
    /// HTTP/2: ends with its stream.
    Stream,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Version {
    Http10,
    Http11,
    Http2,
}

/// Method, target and fields of one request.
#[derive(Clone, Debug)]
pub(crate) struct RequestHead {
    pub(crate) method: Method,
    /// Path and query as they were sent; begins with `/`.
    pub(crate) target: Bytes,
    pub(crate) version: Version,
    pub(crate) fields: Fields,
    /// HTTP/2's `:authority`, which stands in no field.
    pub(crate) authority: Option<Bytes>,
    pub(crate) body: BodyLength,
    /// The client wants (or must have) the connection closed after this request.
    pub(crate) close: bool,
    /// The client waits for `100 Continue` before it sends the body.
    pub(crate) expects_continue: bool,
}

impl RequestHead {
    /// The host that the client asks for, with or without a port; empty if HTTP/1.0 names none.
    pub(crate) fn host(&self) -> &str {
        let named = self.authority.as_deref().or_else(|| self.fields.get(Class::Host));
        named.and_then(|host| std::str::from_utf8(host).ok()).unwrap_or_default()
    }

    /// Path and query, apart; always text, since the gate lets nothing else pass.
    pub(crate) fn path_and_query(&self) -> (&str, Option<&str>) {
        let target = std::str::from_utf8(&self.target).unwrap_or("/");
        match target.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (target, None),
        }
    }
}

/// A request that the gate turns away, and why.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub(crate) struct Turned {
    pub(crate) status: u16,
    pub(crate) code: &'static str,
    pub(crate) message: &'static str,
}

impl Turned {
    pub(crate) const fn bad(message: &'static str) -> Self {
        Self { status: 400, code: "bad_request", message }
    }

    pub(crate) const fn of(status: u16, code: &'static str, message: &'static str) -> Self {
        Self { status, code, message }
    }
}

/// Refuses a `Host` or `:authority` that could be read in two ways.
///
/// `a/b`, `a@b` and the like steered authorization in front of model servers (CVE-2026-48710).
pub(crate) fn check_authority(host: &[u8]) -> Result<(), Turned> {
    let fits = !host.is_empty()
        && host.len() <= 255
        && host.iter().all(|b| b.is_ascii_alphanumeric() || b"-._:[]".contains(b));
    if fits {
        Ok(())
    } else {
        Err(Turned::bad("the Host header is not a plain host name and port"))
    }
}

/// Refuses a field that servers read in different ways.
pub(crate) fn check_field(name: &[u8], value: &[u8]) -> Result<(), Turned> {
    if name.contains(&b'_') {
        return Err(Turned::bad("a header name has an underscore, which servers read as a hyphen"));
    }
    if value.iter().any(|byte| *byte >= 0x80) {
        return Err(Turned::bad("a header value has bytes outside ASCII"));
    }
    Ok(())
}

/// Fields that policy reads must not come twice: readers differ about which one counts.
pub(crate) fn refuse_repeats(fields: &Fields) -> Result<(), Turned> {
    const ONCE: [Class; 8] = [
        Class::Authorization,
        Class::XApiKey,
        Class::ApiKey,
        Class::ContentType,
        Class::ContentEncoding,
        Class::RequestId,
        Class::Expect,
        Class::SessionId,
    ];
    if ONCE.iter().any(|class| fields.count(*class) > 1) {
        return Err(Turned::bad("a header that may come once came more than once"));
    }
    Ok(())
}
