//! A request that the gateway answers itself, and why.

use std::time::Duration;

use openai::ErrorKind;
use telemetry::metrics::labels;

/// Who turned a request away; the value of the header `x-wicketgate-component`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Component {
    Edge,
    Auth,
    Limit,
    Flow,
    Picker,
    Endpoint,
}

impl Component {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Edge => "edge",
            Self::Auth => "auth",
            Self::Limit => "limit",
            Self::Flow => "flow",
            Self::Picker => "picker",
            Self::Endpoint => "endpoint",
        }
    }
}

/// An error of ours, ready to be written in the dialect of its route.
///
/// The message never holds any part of the body: prompt text must not reach a log.
#[derive(Clone, Debug, PartialEq)]
pub struct Refusal {
    pub status: u16,
    pub kind: ErrorKind,
    pub code: &'static str,
    pub message: String,
    pub param: Option<&'static str>,
    pub component: Component,
    /// For 429 and 503: when it is worth trying again.
    pub retry_after: Option<Duration>,
    /// Value of `Allow`, for 405.
    pub allow: Option<&'static str>,
    /// How it is counted while no pool is known.
    pub reason: labels::Refusal,
}

impl Refusal {
    pub fn new(
        status: u16,
        code: &'static str,
        component: Component,
        reason: labels::Refusal,
        message: impl Into<String>,
    ) -> Self {
        Self {
            status,
            kind: kind_of(status),
            code,
            message: message.into(),
            param: None,
            component,
            retry_after: None,
            allow: None,
            reason,
        }
    }

    pub fn with_param(mut self, param: Option<&'static str>) -> Self {
        self.param = param;
        self
    }

    pub fn with_retry_after(mut self, after: Duration) -> Self {
        self.retry_after = Some(after);
        self
    }

    /// Whole seconds for a `Retry-After` header, at least 1.
    pub fn retry_after_seconds(&self) -> Option<u64> {
        self.retry_after.map(|after| after.as_millis().div_ceil(1000).max(1) as u64)
    }
}

/// The class of an error that SDKs branch on, by its status.
pub fn kind_of(status: u16) -> ErrorKind {
    match status {
        401 => ErrorKind::Authentication,
        403 => ErrorKind::Permission,
        404 => ErrorKind::NotFound,
        408 | 504 => ErrorKind::Timeout,
        429 => ErrorKind::RateLimit,
        503 => ErrorKind::Overloaded,
        500.. => ErrorKind::Server,
        _ => ErrorKind::InvalidRequest,
    }
}
