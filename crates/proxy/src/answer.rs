//! What is sent back to a client, independent of the HTTP version.

use bytes::Bytes;

use crate::fields::write_field;
use crate::relay::Relay;

/// Status, fields and body of an answer.
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// Field lines as HTTP/1 has them, lower case, without those that frame the body.
    pub(crate) lines: Vec<u8>,
    pub(crate) body: AnswerBody,
    /// Whether the client connection ends with this answer.
    pub(crate) close: bool,
}

pub(crate) enum AnswerBody {
    Full(Bytes),
    /// An endpoint's answer, passed on as it comes.
    Relay(Box<Relay>),
}

impl Answer {
    pub(crate) fn new(status: u16, content_type: &str, body: impl Into<Bytes>) -> Self {
        let mut answer = Self {
            status,
            lines: Vec::with_capacity(128),
            body: AnswerBody::Full(body.into()),
            close: false,
        };
        answer.field("content-type", content_type);
        answer
    }

    pub(crate) fn field(&mut self, name: &str, value: &str) {
        debug_assert!(!value.contains(['\r', '\n']), "a field value must not break its line");
        write_field(&mut self.lines, name.as_bytes(), value.as_bytes());
    }

    pub(crate) fn with_fields(mut self, fields: &[(&str, String)]) -> Self {
        for (name, value) in fields {
            self.field(name, value);
        }
        self
    }

    pub(crate) fn closing(mut self) -> Self {
        self.close = true;
        self
    }
}

/// The reason phrase of a status; HTTP/1 clients show it to people.
pub(crate) fn reason(status: u16) -> &'static str {
    http::StatusCode::from_u16(status)
        .ok()
        .and_then(|status| status.canonical_reason())
        .unwrap_or("")
}
