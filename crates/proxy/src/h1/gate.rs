//! The strict reading of an HTTP/1 head: what could be read in two ways is refused, not repaired.
//!
//! A lenient parser in front of another parser is how requests are smuggled. The table that this
//! follows is `docs/security.md`, "The gate"; each of its rows is a test.

use std::mem::MaybeUninit;
use std::ops::Range;

use bytes::Bytes;
use http::Method;

use crate::fields::{Class, Fields, place_of};
use crate::head::{
    BodyLength, RequestHead, Turned, Version, check_authority, check_field, refuse_repeats,
};

/// Limits of a head.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HeadLimits {
    pub(crate) bytes_max: usize,
    pub(crate) fields_max: usize,
    pub(crate) target_bytes_max: usize,
}

/// Most fields that a document may allow.
pub(crate) const FIELDS_MAX: usize = 256;
/// Most bytes a method may have.
const METHOD_BYTES_MAX: usize = 32;

/// Finds the end of a head (the byte after its empty line). `None`: more bytes are needed.
///
/// `searched`: how many bytes were looked at before without finding it.
pub(crate) fn head_end(bytes: &[u8], searched: usize) -> Option<usize> {
    let from = searched.saturating_sub(3);
    memchr::memmem::find(&bytes[from..], b"\r\n\r\n").map(|at| from + at + 4)
}

/// A line feed without its carriage return, which parsers disagree about.
pub(crate) fn has_bare_line_feed(head: &[u8]) -> bool {
    memchr::memchr_iter(b'\n', head).any(|at| at == 0 || head[at - 1] != b'\r')
}

/// Reads a complete head (`head` ends with its empty line).
pub(crate) fn read(head: Bytes, limits: HeadLimits) -> Result<RequestHead, Turned> {
    if has_bare_line_feed(&head) {
        return Err(Turned::bad("a line of the request head ends with a bare line feed"));
    }
    let mut slots = [const { MaybeUninit::uninit() }; FIELDS_MAX];
    let slots = slots.get_mut(..limits.fields_max.min(FIELDS_MAX)).unwrap_or_default();
    let mut parsed = httparse::Request::new(&mut []);
    match parsed.parse_with_uninit_headers(&head, slots) {
        Ok(httparse::Status::Complete(_)) => {}
        Ok(httparse::Status::Partial) => return Err(Turned::bad("the request head is incomplete")),
        Err(httparse::Error::TooManyHeaders) => {
            return Err(Turned::of(
                431,
                "too_many_headers",
                "the request has too many header fields",
            ));
        }
        Err(httparse::Error::Version) => {
            return Err(Turned::of(
                505,
                "http_version",
                "only HTTP/1.0, HTTP/1.1 and HTTP/2 are spoken here",
            ));
        }
        Err(_) => return Err(Turned::bad("the request head is not valid HTTP/1.1")),
    }
    let (Some(method), Some(target), Some(version)) = (parsed.method, parsed.path, parsed.version)
    else {
        return Err(Turned::bad("the request line is incomplete"));
    };
    let version = if version == 0 { Version::Http10 } else { Version::Http11 };
    if method.len() > METHOD_BYTES_MAX {
        return Err(Turned::bad("the method is too long"));
    }
    let method = Method::from_bytes(method.as_bytes())
        .map_err(|_| Turned::bad("the method is not a token"))?;
    if target.len() > limits.target_bytes_max {
        return Err(Turned::of(414, "uri_too_long", "the request target is too long"));
    }
    let target_at = place_of(&head, target.as_bytes());

    let mut fields = Fields::with_bytes(head.clone());
    for field in parsed.headers.iter() {
        check_field(field.name.as_bytes(), field.value)?;
        fields.push(place_of(&head, field.name.as_bytes()), place_of(&head, field.value));
    }

    let (target, target_host) = split_target(&head, target_at, &method)?;
    check_host(&fields, version, target_host)?;
    refuse_repeats(&fields)?;
    let close = check_connection(&fields, version)?;
    let body = body_length(&fields, version)?;
    let expects_continue = expects_continue(&fields, version)?;
    Ok(RequestHead {
        method,
        target,
        version,
        fields,
        authority: None,
        body,
        close,
        expects_continue,
    })
}

/// The origin form of a target; for the absolute form its host beside.
fn split_target(
    head: &Bytes,
    at: Range<usize>,
    method: &Method,
) -> Result<(Bytes, Option<Bytes>), Turned> {
    let target = head.slice(at);
    if method == Method::CONNECT {
        return Err(Turned::of(405, "method_not_allowed", "CONNECT is not served here"));
    }
    if !target.iter().all(u8::is_ascii_graphic) {
        return Err(Turned::bad("the request target has characters outside ASCII"));
    }
    if target.contains(&b'#') {
        return Err(Turned::bad("the request target has a fragment"));
    }
    if target.first() == Some(&b'/') {
        return Ok((target, None));
    }
    let http = target.get(..7).is_some_and(|scheme| scheme.eq_ignore_ascii_case(b"http://"));
    let https = target.get(..8).is_some_and(|scheme| scheme.eq_ignore_ascii_case(b"https://"));
    let skip = match (http, https) {
        (true, _) => 7,
        (_, true) => 8,
        _ => return Err(Turned::bad("the request target is no path")),
    };
    let rest = target.slice(skip..);
    let host_end = memchr::memchr(b'/', &rest)
        .ok_or(Turned::bad("the request target has no path after its host"))?;
    Ok((rest.slice(host_end..), Some(rest.slice(..host_end))))
}

fn check_host(fields: &Fields, version: Version, target_host: Option<Bytes>) -> Result<(), Turned> {
    match (fields.count(Class::Host), version) {
        (0, Version::Http10) => return Ok(()),
        (0, _) => return Err(Turned::bad("the request has no Host header")),
        (1, _) => {}
        _ => return Err(Turned::bad("the request has more than one Host header")),
    }
    let host = fields.get(Class::Host).unwrap_or_default();
    check_authority(host)?;
    match target_host {
        Some(target_host) if !target_host.eq_ignore_ascii_case(host) => {
            Err(Turned::bad("the request target names another host than the Host header"))
        }
        _ => Ok(()),
    }
}

/// Whether the connection closes after this request.
fn check_connection(fields: &Fields, version: Version) -> Result<bool, Turned> {
    let mut close = version == Version::Http10;
    for field in fields.iter().filter(|field| field.class == Class::Connection) {
        for option in fields.value(field).split(|byte| *byte == b',') {
            let option = option.trim_ascii();
            if option.eq_ignore_ascii_case(b"close") {
                close = true;
            } else if option.eq_ignore_ascii_case(b"keep-alive") {
                close = close && version != Version::Http10;
            } else if !matches!(
                crate::fields::class_of(option),
                Class::Other | Class::HopByHop | Class::Upgrade | Class::Control
            ) {
                return Err(Turned::bad(
                    "the Connection header names a field that is not the connection's",
                ));
            }
        }
    }
    if let Some(upgrade) = fields.get(Class::Upgrade) {
        let names_h2c = upgrade
            .split(|byte| *byte == b',')
            .any(|protocol| protocol.trim_ascii().eq_ignore_ascii_case(b"h2c"));
        if names_h2c {
            return Err(Turned::bad(
                "an upgrade to h2c is not offered; use HTTP/2 with prior knowledge",
            ));
        }
    }
    Ok(close)
}

fn body_length(fields: &Fields, version: Version) -> Result<BodyLength, Turned> {
    let lengths = fields.count(Class::ContentLength);
    match fields.count(Class::TransferEncoding) {
        0 => {}
        _ if lengths > 0 => {
            return Err(Turned::bad("the request has both Content-Length and Transfer-Encoding"));
        }
        _ if version == Version::Http10 => {
            return Err(Turned::bad("HTTP/1.0 has no Transfer-Encoding"));
        }
        1 => {
            let coding = fields.get(Class::TransferEncoding).unwrap_or_default();
            return if coding.eq_ignore_ascii_case(b"chunked") {
                Ok(BodyLength::Chunked)
            } else if coding
                .to_ascii_lowercase()
                .windows(7)
                .filter(|part| *part == b"chunked")
                .count()
                > 1
            {
                Err(Turned::bad("the body is chunked twice"))
            } else {
                Err(Turned::of(
                    501,
                    "transfer_coding",
                    "chunked is the only transfer coding served here",
                ))
            };
        }
        _ => return Err(Turned::bad("the request has more than one Transfer-Encoding header")),
    }
    match lengths {
        0 => Ok(BodyLength::None),
        1 => parse_length(fields.get(Class::ContentLength).unwrap_or_default())
            .map(|length| if length == 0 { BodyLength::None } else { BodyLength::Known(length) })
            .ok_or(Turned::bad("the Content-Length is not a plain number")),
        _ => Err(Turned::bad("the request has more than one Content-Length header")),
    }
}

/// A length in its only form: digits, no sign, no leading zero.
pub(crate) fn parse_length(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() || digits.len() > 18 || (digits.len() > 1 && digits[0] == b'0') {
        return None;
    }
    digits.iter().try_fold(0_u64, |length, digit| {
        digit.is_ascii_digit().then(|| length * 10 + u64::from(digit - b'0'))
    })
}

fn expects_continue(fields: &Fields, version: Version) -> Result<bool, Turned> {
    match fields.get(Class::Expect) {
        None => Ok(false),
        Some(value) if value.eq_ignore_ascii_case(b"100-continue") => {
            Ok(version != Version::Http10)
        }
        Some(_) => {
            Err(Turned::of(417, "expectation_failed", "only `Expect: 100-continue` is understood"))
        }
    }
}

#[cfg(test)]
mod tests;
