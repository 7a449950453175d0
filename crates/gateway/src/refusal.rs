//! A request that the gateway answers itself, and why.

use std::borrow::Cow;
use std::time::Duration;

use openai::ErrorKind;
use telemetry::metrics::labels;

/// Why a request is not served now: `saturated`, `band-full`, `ttl-expired`, `evicted`, `deadline`,
/// `rate-limited`.
const DROPPED_REASON: &str = "x-wicketgate-dropped-reason";
/// llm-d's name for it.
const FIELD_DROPPED_REASON: &str = "x-llm-d-request-dropped-reason";
/// Milliseconds until the first token would have come, from the refusal.
const PREDICTED_TTFT: &str = "x-wicketgate-predicted-ttft-ms";

/// Requests that wait before where it would have.
const QUEUE_AHEAD: &str = "x-wicketgate-queue-ahead";

/// The member that had a request, at a router over clusters.
pub const MEMBER: &str = "x-wicketgate-member";

/// Who turned a request away; the value of the header `x-wicketgate-component`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Component {
    Edge,
    Auth,
    Limit,
    Flow,
    Picker,
    Endpoint,
    /// A cluster's gateway, behind a router of the global tier.
    Member,
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
            Self::Member => "member",
        }
    }
}

/// What a client must do otherwise, as its header field has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Demand {
    /// One of these methods: `Allow`.
    Method(&'static str),
    /// Credentials of this kind: `WWW-Authenticate`.
    Credentials(&'static str),
}

impl Demand {
    fn field(self) -> (&'static str, Cow<'static, str>) {
        match self {
            Self::Method(methods) => ("allow", methods.into()),
            Self::Credentials(challenge) => ("www-authenticate", challenge.into()),
        }
    }
}

/// What a request that is refused would have met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prospect {
    /// Its first token after so many milliseconds: [`PREDICTED_TTFT`].
    FirstTokenMs(u32),
    /// So many requests that wait before it: [`QUEUE_AHEAD`].
    Ahead(u32),
}

impl Prospect {
    fn field(self) -> (&'static str, Cow<'static, str>) {
        match self {
            Self::FirstTokenMs(time) => (PREDICTED_TTFT, time.to_string().into()),
            Self::Ahead(count) => (QUEUE_AHEAD, count.to_string().into()),
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
    pub message: Box<str>,
    pub param: Option<&'static str>,
    pub component: Component,
    /// For 429 and 503: when it is worth trying again.
    pub retry_after: Option<Duration>,
    /// What the client must do otherwise, for 401 and 405.
    pub demand: Option<Demand>,
    /// How it is counted while no pool is known.
    pub reason: labels::Refusal,
    /// For 429: why the request is not served now.
    pub dropped: Option<labels::Rejection>,
    /// What would have become of it.
    pub prospect: Option<Prospect>,
    /// The member that had the request, at a router over clusters.
    pub member: Option<Box<str>>,
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
            message: message.into().into(),
            param: None,
            component,
            retry_after: None,
            demand: None,
            reason,
            dropped: None,
            prospect: None,
            member: None,
        }
    }

    pub fn with_member(mut self, member: &str) -> Self {
        self.member = Some(member.into());
        self
    }

    pub fn with_param(mut self, param: Option<&'static str>) -> Self {
        self.param = param;
        self
    }

    pub fn with_retry_after(mut self, after: Duration) -> Self {
        self.retry_after = Some(after);
        self
    }

    pub fn with_dropped(mut self, dropped: labels::Rejection) -> Self {
        self.dropped = Some(dropped);
        self
    }

    /// Why the request is not served now, as header and error object say it: `band-full`.
    pub fn dropped_reason(&self) -> Option<&'static str> {
        Some(match self.dropped? {
            labels::Rejection::Saturated => "saturated",
            labels::Rejection::BandFull => "band-full",
            labels::Rejection::TtlExpired => "ttl-expired",
            labels::Rejection::Evicted => "evicted",
            labels::Rejection::Deadline => "deadline",
            labels::Rejection::RateLimited => "rate-limited",
            labels::Rejection::Endpoint => return None,
        })
    }

    /// The same in the field's words, which are fewer.
    pub fn field_reason(&self) -> Option<&'static str> {
        Some(match self.dropped? {
            labels::Rejection::Saturated
            | labels::Rejection::BandFull
            | labels::Rejection::Deadline => "rejected-saturated",
            labels::Rejection::TtlExpired => "rejected-ttl-expired",
            labels::Rejection::Evicted => "evicted",
            labels::Rejection::RateLimited | labels::Rejection::Endpoint => return None,
        })
    }

    /// Header fields of the answer that say why, and what to do otherwise.
    pub fn reason_fields(&self) -> impl Iterator<Item = (&'static str, Cow<'static, str>)> {
        let ours = self.dropped_reason().map(|reason| (DROPPED_REASON, reason.into()));
        let field = self.field_reason().map(|reason| (FIELD_DROPPED_REASON, reason.into()));
        let prospect = self.prospect.map(Prospect::field);
        let member = self.member.as_deref().map(|member| (MEMBER, Cow::Owned(member.to_owned())));
        let demand = self.demand.map(Demand::field);
        ours.into_iter().chain(field).chain(prospect).chain(member).chain(demand)
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
