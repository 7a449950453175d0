//! Errors as each engine words them.

use types::EngineKind;

use super::{event, quoted};

/// Why a request is refused.
#[derive(Clone, Debug)]
pub(crate) struct ApiError {
    pub(crate) status: u16,
    pub(crate) message: String,
    pub(crate) param: Option<&'static str>,
    pub(crate) retry_after: Option<String>,
}

/// Whose error object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ErrorForm {
    Vllm,
    Sglang,
    Tgi,
    Anthropic,
}

impl ErrorForm {
    pub(crate) fn of(engine: EngineKind, path: &str) -> Self {
        match engine {
            _ if path.starts_with("/v1/messages") => Self::Anthropic,
            EngineKind::Sglang => Self::Sglang,
            EngineKind::Tgi => Self::Tgi,
            _ => Self::Vllm,
        }
    }
}

impl ApiError {
    pub(crate) fn new(status: u16, message: impl Into<String>) -> Self {
        Self { status, message: message.into(), param: None, retry_after: None }
    }

    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, message)
    }

    pub(crate) fn model_not_found(model: &str) -> Self {
        let message = format!("The model `{model}` does not exist.");
        Self { param: Some("model"), ..Self::new(404, message) }
    }

    pub(crate) fn json(&self, form: ErrorForm) -> String {
        let (message, status) = (quoted(&self.message), self.status);
        let param = self.param.map_or("null".to_owned(), quoted);
        match form {
            ErrorForm::Vllm => format!(
                "{{\"error\":{{\"message\":{message},\"type\":\"{}\",\"param\":{param},\
                 \"code\":{status}}}}}",
                self.openai_type()
            ),
            ErrorForm::Sglang => format!(
                "{{\"object\":\"error\",\"message\":{message},\"type\":\"{}\",\"param\":{param},\
                 \"code\":{status}}}",
                self.openai_type()
            ),
            ErrorForm::Tgi => {
                let kind = match status {
                    429 | 503 => "overloaded",
                    400..500 => "validation",
                    _ => "generation",
                };
                format!("{{\"error\":{message},\"error_type\":\"{kind}\"}}")
            }
            ErrorForm::Anthropic => {
                let kind = match status {
                    404 => "not_found_error",
                    429 => "rate_limit_error",
                    503 | 529 => "overloaded_error",
                    400..500 => "invalid_request_error",
                    _ => "api_error",
                };
                format!(
                    "{{\"type\":\"error\",\"error\":{{\"type\":\"{kind}\",\"message\":{message}}}}}"
                )
            }
        }
    }

    /// The error as an event within a stream.
    pub(crate) fn event(&self, out: &mut Vec<u8>, form: ErrorForm) {
        let name = (form == ErrorForm::Anthropic).then_some("error");
        // In a stream SGLang, too, wraps the object as OpenAI does.
        let form = if form == ErrorForm::Sglang { ErrorForm::Vllm } else { form };
        event(out, name, &self.json(form));
    }

    fn openai_type(&self) -> &'static str {
        match self.status {
            404 => "NotFoundError",
            429 => "RateLimitError",
            503 => "ServiceUnavailableError",
            400..500 => "BadRequestError",
            _ => "InternalServerError",
        }
    }
}
