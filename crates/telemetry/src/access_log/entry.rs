//! What a line says.

use std::io::Write;
use std::net::SocketAddr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use types::{ModelName, PoolName, Priority, TenantName};

use crate::clock;
use crate::escape::push_json_string;
use crate::metrics::labels::{Label, Outcome, Route};
use crate::trace::TraceId;

/// Who ended the exchange.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ClosedBy {
    /// The response was complete.
    #[default]
    Done,
    Client,
    Endpoint,
    Gateway,
}

impl ClosedBy {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Client => "client",
            Self::Endpoint => "endpoint",
            Self::Gateway => "gateway",
        }
    }
}

/// One request. Every line has every key; what is not known is `null`.
///
/// Strings from the client are escaped and cut to 256 bytes. There is no field for the query, the
/// body, or a header other than the request id, because those may hold prompts or keys.
#[derive(Clone, Debug)]
pub struct Entry<'a> {
    /// When the request was received.
    pub time: SystemTime,
    pub request_id: &'a str,
    /// The client's trace or ours; `None` without one.
    pub trace: Option<TraceId>,
    pub client: Option<SocketAddr>,
    /// Whom the request was counted for.
    pub tenant: Option<&'a TenantName>,
    pub method: &'a str,
    pub route: Route,
    /// The configured name that the client's text matched; `_unknown` is written for `None`.
    pub model: Option<&'a ModelName>,
    /// Name of the rewrite that gave the request [`Self::model`] instead of the one asked for.
    pub rewrite: Option<&'a str>,
    pub pool: Option<&'a PoolName>,
    /// `host:port` as configured.
    pub endpoint: Option<&'a str>,
    /// 0 if no status was sent.
    pub status: u16,
    /// Who failed (`edge`, `picker`, `endpoint`, …), with [`Self::code`].
    pub component: Option<&'static str>,
    pub code: Option<&'static str>,
    /// The band in which it was placed.
    pub priority: Option<Priority>,
    /// The configured objective that holds for it, or `_unknown`.
    pub objective: Option<&'a str>,
    /// Endpoints tried.
    pub attempts: u32,
    pub stream: bool,
    pub bytes_in: u64,
    pub bytes_out: u64,
    pub prompt_tokens: Option<u64>,
    pub completion_tokens: Option<u64>,
    pub cached_tokens: Option<u64>,
    pub ttft: Option<Duration>,
    /// Expected time from the dispatch to the first token.
    pub predicted: Option<Duration>,
    pub duration: Duration,
    /// Time held back while the pool was saturated.
    pub queue: Option<Duration>,
    /// Time to choose the endpoint.
    pub pick: Option<Duration>,
    pub outcome: Outcome,
    pub closed_by: ClosedBy,
}

impl Default for Entry<'_> {
    fn default() -> Self {
        Self {
            time: UNIX_EPOCH,
            request_id: "",
            trace: None,
            client: None,
            tenant: None,
            method: "",
            route: Route::Other,
            model: None,
            rewrite: None,
            pool: None,
            endpoint: None,
            status: 0,
            component: None,
            code: None,
            priority: None,
            objective: None,
            attempts: 0,
            stream: false,
            bytes_in: 0,
            bytes_out: 0,
            prompt_tokens: None,
            completion_tokens: None,
            cached_tokens: None,
            ttft: None,
            predicted: None,
            duration: Duration::ZERO,
            queue: None,
            pick: None,
            outcome: Outcome::Ok,
            closed_by: ClosedBy::Done,
        }
    }
}

impl Entry<'_> {
    /// Appends the line with its end.
    pub(super) fn format(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"time\":\"");
        clock::push_rfc3339(self.time, out);
        out.push(b'"');
        string(out, "request_id", Some(self.request_id));
        trace_id(out, self.trace);
        key(out, "client");
        match self.client {
            // An address has nothing to escape.
            Some(client) => write!(out, "\"{client}\"").unwrap_or_default(),
            None => out.extend_from_slice(b"null"),
        }
        string(out, "tenant", self.tenant.map(TenantName::as_str));
        string(out, "method", Some(self.method));
        string(out, "route", Some(self.route.as_str()));
        string(out, "model", Some(self.model.map_or("_unknown", ModelName::as_str)));
        string(out, "rewrite", self.rewrite);
        string(out, "pool", self.pool.map(PoolName::as_str));
        string(out, "endpoint", self.endpoint);
        number(out, "status", Some(u64::from(self.status)));
        string(out, "component", self.component);
        string(out, "code", self.code);
        signed(out, "priority", self.priority.map(|priority| priority.0));
        string(out, "objective", self.objective);
        number(out, "attempts", Some(u64::from(self.attempts)));
        key(out, "stream");
        out.extend_from_slice(if self.stream { b"true" } else { b"false" });
        number(out, "bytes_in", Some(self.bytes_in));
        number(out, "bytes_out", Some(self.bytes_out));
        number(out, "prompt_tokens", self.prompt_tokens);
        number(out, "completion_tokens", self.completion_tokens);
        number(out, "cached_tokens", self.cached_tokens);
        millis(out, "ttft_ms", self.ttft);
        millis(out, "predicted_ms", self.predicted);
        millis(out, "duration_ms", Some(self.duration));
        millis(out, "queue_ms", self.queue);
        number(out, "pick_us", self.pick.map(micros));
        string(out, "outcome", Some(self.outcome.as_str()));
        string(out, "closed_by", Some(self.closed_by.as_str()));
        out.extend_from_slice(b"}\n");
    }
}

fn key(out: &mut Vec<u8>, key: &str) {
    out.extend_from_slice(b",\"");
    out.extend_from_slice(key.as_bytes());
    out.extend_from_slice(b"\":");
}

fn string(out: &mut Vec<u8>, name: &str, value: Option<&str>) {
    key(out, name);
    match value {
        Some(value) => push_json_string(value, out),
        None => out.extend_from_slice(b"null"),
    }
}

fn trace_id(out: &mut Vec<u8>, trace: Option<TraceId>) {
    key(out, "trace_id");
    let Some(TraceId(bits)) = trace else { return out.extend_from_slice(b"null") };
    out.push(b'"');
    for at in (0..32).rev() {
        out.push(b"0123456789abcdef"[((bits >> (4 * at)) & 15) as usize]);
    }
    out.push(b'"');
}

fn signed(out: &mut Vec<u8>, name: &str, value: Option<i32>) {
    key(out, name);
    let Some(value) = value else { return out.extend_from_slice(b"null") };
    if value < 0 {
        out.push(b'-');
    }
    push_number(u64::from(value.unsigned_abs()), out);
}

fn number(out: &mut Vec<u8>, name: &str, value: Option<u64>) {
    key(out, name);
    match value {
        Some(value) => push_number(value, out),
        None => out.extend_from_slice(b"null"),
    }
}

/// Milliseconds with three decimals.
fn millis(out: &mut Vec<u8>, name: &str, value: Option<Duration>) {
    key(out, name);
    let Some(value) = value else { return out.extend_from_slice(b"null") };
    let micros = micros(value);
    push_number(micros / 1000, out);
    let digit = |value: u64| b'0' + u8::try_from(value % 10).unwrap_or_default();
    out.extend_from_slice(&[b'.', digit(micros / 100), digit(micros / 10), digit(micros)]);
}

fn micros(value: Duration) -> u64 {
    u64::try_from(value.as_micros()).unwrap_or(u64::MAX)
}

fn push_number(value: u64, out: &mut Vec<u8>) {
    let mut digits = [0_u8; 20];
    let mut at = digits.len();
    let mut rest = value;
    loop {
        at -= 1;
        digits[at] = b'0' + u8::try_from(rest % 10).unwrap_or_default();
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}
