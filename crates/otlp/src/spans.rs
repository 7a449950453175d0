//! From a request's record to its spans.
//!
//! ```text
//! POST /v1/chat/completions            SERVER; the client's span is its parent
//! ├─ read · auth · limits · queue · pick
//! └─ chat llama-3.1-8b                 CLIENT, one for each endpoint tried; the endpoint's parent
//!    ├─ connect                        where a new connection was needed
//!    ├─ wait                           to the first byte of the answer's body
//!    └─ stream                         from there to its end
//! ```
//!
//! Attributes follow OpenTelemetry's conventions for HTTP and generative AI, 1.37; ours begin with
//! `wicketgate.`.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use telemetry::metrics::labels::{Label, Outcome, Route};
use telemetry::trace::{AttemptRecord, SpanId, Step, TraceRecord};
use types::Timestamp;

use crate::wire::{KeyValue, Span, SpanKind, Status, StatusCode};

const SAMPLED: u32 = 0x01;
const PARENT_KNOWN: u32 = 0x100;
const PARENT_REMOTE: u32 = 0x200;

/// All spans of one request, the whole request's first.
pub(crate) fn spans_of(record: &TraceRecord) -> Vec<Span> {
    let draft = Draft { record };
    let mut spans = Vec::with_capacity(3 + record.steps.len() + 4 * record.attempts.len());
    spans.push(draft.whole());
    for (step, begun, ended) in &record.steps {
        let id = child(record.span, *step as u64 + 1);
        let mut span =
            draft.span(id, record.span, step.as_str(), SpanKind::Internal, *begun, *ended);
        if *step == Step::Pick {
            span.attributes = pick_attributes(record);
        }
        spans.push(span);
    }
    let last = record.attempts.len().saturating_sub(1);
    for (at, attempt) in record.attempts.iter().enumerate() {
        draft.attempt(attempt, at == last, &mut spans);
    }
    spans
}

struct Draft<'a> {
    record: &'a TraceRecord,
}

impl Draft<'_> {
    fn span(
        &self,
        id: SpanId,
        parent: SpanId,
        name: &str,
        kind: SpanKind,
        begun: Timestamp,
        ended: Timestamp,
    ) -> Span {
        Span {
            trace_id: self.record.trace.0.to_be_bytes().to_vec(),
            span_id: id.0.to_be_bytes().to_vec(),
            parent_span_id: parent.0.to_be_bytes().to_vec(),
            name: name.to_owned(),
            kind: kind as i32,
            start_time_unix_nano: self.unix_nanos(begun),
            end_time_unix_nano: self.unix_nanos(ended.max(begun)),
            attributes: Vec::new(),
            events: Vec::new(),
            status: None,
            flags: PARENT_KNOWN | if self.record.sampled { SAMPLED } else { 0 },
        }
    }

    fn unix_nanos(&self, at: Timestamp) -> u64 {
        let before_end = self.record.ended.since(at);
        let wall = self.record.ended_wall.checked_sub(before_end).unwrap_or(UNIX_EPOCH);
        unix_nanos(wall)
    }

    fn whole(&self) -> Span {
        let record = self.record;
        let name = format!("{} {}", record.method, record.path);
        let mut span = self.span(
            record.span,
            record.parent.unwrap_or(SpanId(0)),
            &name,
            SpanKind::Server,
            record.received,
            record.ended,
        );
        match record.parent {
            None => span.parent_span_id.clear(),
            Some(_) => span.flags |= PARENT_REMOTE,
        }
        let out = &mut span.attributes;
        out.push(KeyValue::text("http.request.method", &*record.method));
        out.push(KeyValue::text("http.route", record.path));
        out.push(KeyValue::integer("http.response.status_code", record.status));
        out.push(KeyValue::text("client.address", record.client.ip().to_string()));
        out.push(KeyValue::integer("http.request.body.size", record.bytes_in));
        out.push(KeyValue::integer("http.response.body.size", record.bytes_out));
        out.push(KeyValue::text("wicketgate.request_id", &*record.request_id));
        out.push(KeyValue::text("wicketgate.tenant", record.tenant.as_str()));
        out.push(KeyValue::text("wicketgate.outcome", record.outcome.as_str()));
        out.push(KeyValue::text("wicketgate.closed_by", record.closed_by.as_str()));
        out.push(KeyValue::flag("wicketgate.stream", record.stream));
        if let Some(pool) = &record.pool {
            out.push(KeyValue::text("wicketgate.pool", pool.as_str()));
        }
        if let Some(priority) = record.priority {
            out.push(KeyValue::integer("wicketgate.priority", priority.0));
        }
        if let Some(objective) = &record.objective {
            out.push(KeyValue::text("wicketgate.objective", &**objective));
        }
        if let Some(ttft) = record.ttft {
            let seconds = ttft.as_secs_f64();
            out.push(KeyValue::number("gen_ai.server.time_to_first_token", seconds));
        }
        if let Some((component, code)) = record.error {
            out.push(KeyValue::text("error.type", code));
            out.push(KeyValue::text("wicketgate.component", component));
        }
        if matches!(record.outcome, Outcome::EndpointError | Outcome::GatewayError) {
            span.status = Some(failed(record.error.map_or("", |(_, code)| code)));
        }
        span
    }

    fn attempt(&self, attempt: &AttemptRecord, is_last: bool, out: &mut Vec<Span>) {
        let record = self.record;
        let operation = operation(record.route);
        let model = record.model.as_ref().map(types::ModelName::as_str);
        let name = model.map_or(operation.to_owned(), |model| format!("{operation} {model}"));
        let ended = attempt.ended.unwrap_or(record.ended);
        let mut span =
            self.span(attempt.span, record.span, &name, SpanKind::Client, attempt.begun, ended);
        let list = &mut span.attributes;
        list.push(KeyValue::text("gen_ai.operation.name", operation));
        list.push(KeyValue::text("gen_ai.provider.name", attempt.engine));
        if let Some(model) = model {
            list.push(KeyValue::text("gen_ai.request.model", model));
        }
        let (host, port) = attempt.endpoint.rsplit_once(':').unwrap_or((&attempt.endpoint, ""));
        list.push(KeyValue::text("server.address", host));
        if let Ok(port) = port.parse::<u16>() {
            list.push(KeyValue::integer("server.port", port));
        }
        if attempt.status > 0 {
            list.push(KeyValue::integer("http.response.status_code", attempt.status));
        }
        if is_last {
            for (key, tokens) in [
                ("gen_ai.usage.input_tokens", record.prompt_tokens),
                ("gen_ai.usage.output_tokens", record.completion_tokens),
                ("gen_ai.usage.cache_read.input_tokens", record.cached_tokens),
            ] {
                list.extend(tokens.map(|tokens| KeyValue::integer(key, tokens)));
            }
        }
        let broke = is_last && matches!(record.outcome, Outcome::EndpointError);
        if let Some(failure) = attempt.failure {
            list.push(KeyValue::text("error.type", failure));
            span.status = Some(failed(failure));
        } else if broke {
            let code = record.error.map_or("endpoint_error", |(_, code)| code);
            list.push(KeyValue::text("error.type", code));
            span.status = Some(failed(code));
        }
        out.push(span);

        let mut part = |number, name, begun, ended| {
            let id = child(attempt.span, number);
            out.push(self.span(id, attempt.span, name, SpanKind::Internal, begun, ended));
        };
        let mut waits_from = attempt.begun;
        if let Some((begun, connected)) = attempt.connect {
            part(1, "connect", begun, connected);
            waits_from = connected;
        }
        if attempt.failure != Some("connect") {
            let until = attempt.first_payload.or(attempt.answered).unwrap_or(ended);
            part(2, "wait", waits_from, until);
        }
        if let Some(first) = attempt.first_payload {
            part(3, "stream", first, ended);
        }
    }
}

fn pick_attributes(record: &TraceRecord) -> Vec<KeyValue> {
    let mut list = vec![
        KeyValue::integer("wicketgate.prompt.estimated_tokens", record.estimated_tokens),
        KeyValue::integer("wicketgate.prompt.blocks", record.prompt_blocks),
        KeyValue::integer("wicketgate.prompt.matched_blocks", record.matched_blocks),
    ];
    if let Some(predicted) = record.predicted {
        list.push(KeyValue::number("wicketgate.predicted_ttft", predicted.as_secs_f64()));
    }
    list
}

fn failed(message: &str) -> Status {
    Status { message: message.to_owned(), code: StatusCode::Error as i32 }
}

/// The convention's word for what is asked, where it has one.
fn operation(route: Route) -> &'static str {
    match route {
        Route::ChatCompletions | Route::Responses | Route::Messages => "chat",
        Route::Completions | Route::Generate | Route::GenerateStream => "text_completion",
        Route::Embeddings => "embeddings",
        other => other.as_str(),
    }
}

/// The id of a span below another: mixed from its parent's, so that nobody draws it on the request path
/// (splitmix64; Steele, Lea, Flood 2014).
fn child(of: SpanId, number: u64) -> SpanId {
    let mut bits = of.0.wrapping_add(number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    SpanId((bits ^ (bits >> 31)).max(1))
}

fn unix_nanos(at: SystemTime) -> u64 {
    let since: Duration = at.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
