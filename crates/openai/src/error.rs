//! Errors of ours as the client of the route expects them.

use bytes::Bytes;
use serde::Serialize;

use crate::{Dialect, Route};

/// One error of the gateway's own. An error body of an engine passes untouched instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErrorObject<'a> {
    /// HTTP status that goes with it.
    pub status: u16,
    /// For people. Must not hold bytes of a request or answer.
    pub message: &'a str,
    pub kind: ErrorKind,
    /// For programs, such as `model_not_found`; never changes once released.
    pub code: &'a str,
    /// The field of the request that is at fault.
    pub param: Option<&'a str>,
    /// Why a request is not served now, where that is known more closely: `band-full`.
    pub reason: Option<&'a str>,
}

/// What clients branch on; the `type` of the error object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    InvalidRequest,
    Authentication,
    Permission,
    NotFound,
    RateLimit,
    Server,
    Overloaded,
    Timeout,
}

impl ErrorKind {
    /// OpenAI's word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::InvalidRequest => "invalid_request_error",
            Self::Authentication => "authentication_error",
            Self::Permission => "permission_error",
            Self::NotFound => "not_found_error",
            Self::RateLimit => "rate_limit_error",
            Self::Server => "server_error",
            Self::Overloaded => "overloaded_error",
            Self::Timeout => "timeout_error",
        }
    }

    /// Anthropic's word: the same list, but for 500 and for bodies that are too large (413).
    fn anthropic(self, status: u16) -> &'static str {
        match self {
            Self::Server => "api_error",
            Self::InvalidRequest if status == 413 => "request_too_large",
            other => other.as_str(),
        }
    }

    /// TGI's `error_type`.
    fn tgi(self) -> &'static str {
        match self {
            Self::InvalidRequest | Self::NotFound => "validation",
            Self::RateLimit | Self::Overloaded => "overloaded",
            Self::Authentication | Self::Permission => self.as_str(),
            Self::Server | Self::Timeout => "generation",
        }
    }
}

#[derive(Serialize)]
struct OpenAi<'a> {
    error: OpenAiInner<'a>,
}

#[derive(Serialize)]
struct OpenAiInner<'a> {
    message: &'a str,
    r#type: &'static str,
    param: Option<&'a str>,
    code: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
}

#[derive(Serialize)]
struct Anthropic<'a> {
    r#type: &'static str,
    error: AnthropicInner<'a>,
}

#[derive(Serialize)]
struct AnthropicInner<'a> {
    r#type: &'static str,
    message: &'a str,
}

#[derive(Serialize)]
struct Tgi<'a> {
    error: &'a str,
    error_type: &'static str,
}

/// An event of the Responses API; its fields lie flat.
#[derive(Serialize)]
struct ResponsesEvent<'a> {
    r#type: &'static str,
    code: &'a str,
    message: &'a str,
    param: Option<&'a str>,
}

impl ErrorObject<'_> {
    /// The body of an error answer.
    pub fn to_json(&self, dialect: Dialect) -> Bytes {
        match dialect {
            Dialect::OpenAi | Dialect::Sglang => json(&OpenAi {
                error: OpenAiInner {
                    message: self.message,
                    r#type: self.kind.as_str(),
                    param: self.param,
                    code: self.code,
                    reason: self.reason,
                },
            }),
            Dialect::Anthropic => json(&Anthropic {
                r#type: "error",
                error: AnthropicInner {
                    r#type: self.kind.anthropic(self.status),
                    message: self.message,
                },
            }),
            Dialect::Tgi => json(&Tgi { error: self.message, error_type: self.kind.tgi() }),
        }
        .into()
    }

    /// One event for a stream that has begun, to be put at an event boundary. No success
    /// terminator may follow.
    pub fn to_sse_event(&self, route: Route) -> Bytes {
        let named = route == Route::Responses || route.dialect() == Dialect::Anthropic;
        let mut event = Vec::with_capacity(256 + self.message.len());
        event.extend_from_slice(if named { b"event: error\ndata: " } else { b"data: " });
        if route == Route::Responses {
            event.extend_from_slice(&json(&ResponsesEvent {
                r#type: "error",
                code: self.code,
                message: self.message,
                param: self.param,
            }));
        } else {
            event.extend_from_slice(&self.to_json(route.dialect()));
        }
        event.extend_from_slice(b"\n\n");
        event.into()
    }
}

fn json(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).expect("strings and structs always serialise")
}

#[cfg(test)]
mod tests {
    use super::*;

    const MODEL: ErrorObject<'static> = ErrorObject {
        status: 404,
        message: "no model \"x\"\nhere",
        kind: ErrorKind::NotFound,
        code: "model_not_found",
        param: Some("model"),
        reason: None,
    };

    fn text(bytes: Bytes) -> String {
        String::from_utf8(bytes.to_vec()).unwrap()
    }

    #[test]
    fn an_error_has_the_form_of_its_dialect() {
        let openai = r#"{"error":{"message":"no model \"x\"\nhere","type":"not_found_error","param":"model","code":"model_not_found"}}"#;
        assert_eq!(text(MODEL.to_json(Dialect::OpenAi)), openai);
        assert_eq!(text(MODEL.to_json(Dialect::Sglang)), openai);
        assert_eq!(
            text(MODEL.to_json(Dialect::Anthropic)),
            r#"{"type":"error","error":{"type":"not_found_error","message":"no model \"x\"\nhere"}}"#
        );
        assert_eq!(
            text(MODEL.to_json(Dialect::Tgi)),
            r#"{"error":"no model \"x\"\nhere","error_type":"validation"}"#
        );
    }

    #[test]
    fn why_a_request_is_not_served_now_stands_beside_its_code() {
        let full = ErrorObject { code: "band_full", reason: Some("band-full"), ..MODEL };
        let text = text(full.to_json(Dialect::OpenAi));
        assert!(text.ends_with(r#""code":"band_full","reason":"band-full"}}"#), "{text}");
    }

    #[test]
    fn an_error_without_a_field_says_null() {
        let error = ErrorObject { param: None, ..MODEL };
        assert!(text(error.to_json(Dialect::OpenAi)).contains(r#""param":null"#));
    }

    #[test]
    fn anthropic_clients_get_their_own_words() {
        let too_large = ErrorObject { status: 413, kind: ErrorKind::InvalidRequest, ..MODEL };
        assert!(text(too_large.to_json(Dialect::Anthropic)).contains("request_too_large"));
        let server = ErrorObject { status: 500, kind: ErrorKind::Server, ..MODEL };
        assert!(text(server.to_json(Dialect::Anthropic)).contains("api_error"));
    }

    #[test]
    fn an_error_in_a_stream_is_exactly_one_event_of_its_dialect() {
        for route in Route::ALL {
            let event = text(MODEL.to_sse_event(route));
            assert!(event.ends_with("}\n\n"), "{event}");
            assert_eq!(event.matches("\n\n").count(), 1);
            assert_eq!(event.matches("data: ").count(), 1);
            let mut reader = crate::SseReader::new();
            reader.push(event.as_bytes());
            assert!(reader.error() && !reader.done() && reader.at_event_boundary(), "{event}");
        }
        assert!(
            text(MODEL.to_sse_event(Route::ChatCompletions)).starts_with(r#"data: {"error":{"#)
        );
        assert_eq!(
            text(MODEL.to_sse_event(Route::Messages)),
            "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"not_found_error\",\
             \"message\":\"no model \\\"x\\\"\\nhere\"}}\n\n"
        );
        assert_eq!(
            text(MODEL.to_sse_event(Route::Responses)),
            "event: error\ndata: {\"type\":\"error\",\"code\":\"model_not_found\",\
             \"message\":\"no model \\\"x\\\"\\nhere\",\"param\":\"model\"}\n\n"
        );
    }
}
