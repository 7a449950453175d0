//! Header fields as ranges into the bytes they came in, each classed once.
//!
//! HTTP/1 heads are kept as they arrived; HTTP/2 heads are written into the same form. So the
//! rules about headers exist once, and forwarding a field is copying its bytes.

use std::ops::Range;

use bytes::Bytes;

/// What a field means to us. Everything that has no entry here is passed on as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    /// Passed on.
    Other,
    /// Belongs to one connection only (RFC 9110 §7.6.1).
    HopByHop,
    /// Steers routing or identity; only we may set it (`reliability.md` B.3).
    Control,
    Host,
    ContentLength,
    TransferEncoding,
    ContentType,
    ContentEncoding,
    Connection,
    Upgrade,
    Expect,
    Authorization,
    /// `x-api-key`.
    XApiKey,
    /// `api-key`.
    ApiKey,
    Cookie,
    RequestId,
    RetryAfter,
    SessionId,
    /// The trace and the span that a request belongs to.
    TraceParent,
    /// Travel with it, within bounds.
    TraceState,
    Baggage,
    /// Says which server software answered; not passed to clients.
    Server,
}

/// Prefixes of field names that only we may set, in requests and answers.
///
/// A client that could set one would choose its endpoint, its priority or its identity.
pub(crate) const CONTROL_PREFIXES: [&str; 9] = [
    "x-gateway-",
    "x-llm-d-",
    "x-prefiller-",
    "x-slo-",
    "x-envoy-",
    "x-ai-eg-",
    "x-internal-",
    "x-wicketgate-",
    "x-forwarded-",
];

/// Names of fields that only we may set, beside [`CONTROL_PREFIXES`].
pub(crate) const CONTROL_NAMES: [&str; 3] = ["forwarded", "x-real-ip", "x-data-parallel-host-port"];

/// Classes a field by its name, in any letter case.
pub(crate) fn class_of(name: &[u8]) -> Class {
    let is = |known: &str| name.eq_ignore_ascii_case(known.as_bytes());
    // The length and first letter part the names, so an ordinary field costs one or two compares.
    match (name.len(), name.first().map(u8::to_ascii_lowercase)) {
        (4, Some(b'h')) if is("host") => Class::Host,
        (14, Some(b'c')) if is("content-length") => Class::ContentLength,
        (12, Some(b'c')) if is("content-type") => Class::ContentType,
        (16, Some(b'c')) if is("content-encoding") => Class::ContentEncoding,
        (10, Some(b'c')) if is("connection") => Class::Connection,
        (17, Some(b't')) if is("transfer-encoding") => Class::TransferEncoding,
        (7, Some(b'u')) if is("upgrade") => Class::Upgrade,
        (6, Some(b'e')) if is("expect") => Class::Expect,
        (13, Some(b'a')) if is("authorization") => Class::Authorization,
        (9, Some(b'x')) if is("x-api-key") => Class::XApiKey,
        (7, Some(b'a')) if is("api-key") => Class::ApiKey,
        (6, Some(b'c')) if is("cookie") => Class::Cookie,
        (12, Some(b'x')) if is("x-request-id") => Class::RequestId,
        (12, Some(b'x')) if is("x-session-id") => Class::SessionId,
        (11, Some(b'r')) if is("retry-after") => Class::RetryAfter,
        (11, Some(b't')) if is("traceparent") => Class::TraceParent,
        (10, Some(b't')) if is("tracestate") => Class::TraceState,
        (7, Some(b'b')) if is("baggage") => Class::Baggage,
        (6, Some(b's')) if is("server") => Class::Server,
        (10, Some(b'k')) if is("keep-alive") => Class::HopByHop,
        (2, Some(b't')) if is("te") => Class::HopByHop,
        (7, Some(b't')) if is("trailer") => Class::HopByHop,
        (16, Some(b'p')) if is("proxy-connection") => Class::HopByHop,
        (18, Some(b'p')) if is("proxy-authenticate") => Class::HopByHop,
        (19, Some(b'p')) if is("proxy-authorization") => Class::HopByHop,
        (14, Some(b'h')) if is("http2-settings") => Class::HopByHop,
        (_, Some(b'x' | b'f')) if is_control(name) => Class::Control,
        _ => Class::Other,
    }
}

fn is_control(name: &[u8]) -> bool {
    CONTROL_PREFIXES.iter().any(|prefix| {
        name.get(..prefix.len()).is_some_and(|head| head.eq_ignore_ascii_case(prefix.as_bytes()))
    }) || CONTROL_NAMES.iter().any(|known| name.eq_ignore_ascii_case(known.as_bytes()))
}

/// One field: ranges into [`Fields::bytes`].
#[derive(Clone, Debug)]
pub(crate) struct Field {
    pub(crate) class: Class,
    name: Range<u32>,
    value: Range<u32>,
}

/// All fields of a head, in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fields {
    bytes: Bytes,
    fields: Vec<Field>,
}

impl Fields {
    pub(crate) fn with_bytes(bytes: Bytes) -> Self {
        Self { bytes, fields: Vec::with_capacity(16) }
    }

    /// Adds a field by the places of its name and value in the bytes.
    pub(crate) fn push(&mut self, name: Range<usize>, value: Range<usize>) -> Class {
        let class = class_of(&self.bytes[name.clone()]);
        // Heads are bounded far below 4 GiB before anything gets here.
        let short = |range: Range<usize>| range.start as u32..range.end as u32;
        self.fields.push(Field { class, name: short(name), value: short(value) });
        class
    }

    pub(crate) fn name(&self, field: &Field) -> &[u8] {
        &self.bytes[field.name.start as usize..field.name.end as usize]
    }

    pub(crate) fn value(&self, field: &Field) -> &[u8] {
        &self.bytes[field.value.start as usize..field.value.end as usize]
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Field> {
        self.fields.iter()
    }

    /// The value of the first field of a class.
    pub(crate) fn get(&self, class: Class) -> Option<&[u8]> {
        self.fields.iter().find(|field| field.class == class).map(|field| self.value(field))
    }

    pub(crate) fn get_str(&self, class: Class) -> Option<&str> {
        self.get(class).and_then(|value| std::str::from_utf8(value).ok())
    }

    /// The value of the first field of this name, in lower case (for names without a class).
    pub(crate) fn find(&self, name: &str) -> Option<&[u8]> {
        let is_named = |field: &&Field| self.name(field).eq_ignore_ascii_case(name.as_bytes());
        self.fields.iter().find(is_named).map(|field| self.value(field))
    }

    /// Drops every field of this name, in lower case.
    pub(crate) fn remove(&mut self, name: &str) {
        let bytes = &self.bytes;
        self.fields.retain(|field| {
            let own = &bytes[field.name.start as usize..field.name.end as usize];
            !own.eq_ignore_ascii_case(name.as_bytes())
        });
    }

    /// The value of a [`Class::Control`] field, by its lower-case name.
    pub(crate) fn control(&self, name: &str) -> Option<&str> {
        let mut fields = self.fields.iter().filter(|field| field.class == Class::Control);
        let found = fields.find(|field| self.name(field).eq_ignore_ascii_case(name.as_bytes()))?;
        std::str::from_utf8(self.value(found)).ok()
    }

    pub(crate) fn count(&self, class: Class) -> usize {
        self.fields.iter().filter(|field| field.class == class).count()
    }

    /// Whether any field of this name exists (for names without a class).
    pub(crate) fn has(&self, name: &str) -> bool {
        self.fields.iter().any(|field| self.name(field).eq_ignore_ascii_case(name.as_bytes()))
    }
}

/// Where `part` lies in `whole`; httparse hands out slices of the very buffer it was given.
pub(crate) fn place_of(whole: &[u8], part: &[u8]) -> Range<usize> {
    let start = (part.as_ptr() as usize).wrapping_sub(whole.as_ptr() as usize).min(whole.len());
    start..(start + part.len()).min(whole.len())
}

/// Appends `name: value\r\n`.
pub(crate) fn write_field(out: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    out.extend_from_slice(name);
    out.extend_from_slice(b": ");
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_that_steers_routing_is_control_in_any_case() {
        for name in [
            "x-gateway-destination-endpoint",
            "X-Gateway-Model-Name",
            "x-LLM-D-anything",
            "x-prefiller-url",
            "X-Forwarded-For",
            "Forwarded",
            "x-envoy-retry-on",
            "X-Wicketgate-Component",
            "x-data-parallel-host-port",
        ] {
            assert_eq!(class_of(name.as_bytes()), Class::Control, "{name}");
        }
    }

    #[test]
    fn fields_of_sdks_are_passed_on() {
        for name in
            ["x-stainless-lang", "openai-organization", "anthropic-version", "user-agent", "x-foo"]
        {
            assert_eq!(class_of(name.as_bytes()), Class::Other, "{name}");
        }
    }
}
