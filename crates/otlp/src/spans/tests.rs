use std::net::SocketAddr;
use std::time::Duration;

use telemetry::access_log::ClosedBy;
use telemetry::trace::TraceId;
use types::{ModelName, PoolName, TenantName};

use super::*;
use crate::wire::Value;

fn at(millis: u64) -> Timestamp {
    Timestamp::from_millis(10_000 + millis)
}

fn record() -> TraceRecord {
    let attempt = |span, endpoint: &str, begun| AttemptRecord {
        span: SpanId(span),
        endpoint: endpoint.into(),
        engine: "vllm",
        begun: at(begun),
        connect: None,
        answered: None,
        first_payload: None,
        ended: None,
        status: 0,
        failure: None,
    };
    let failed = AttemptRecord {
        connect: Some((at(2), at(5))),
        ended: Some(at(5)),
        failure: Some("connect"),
        ..attempt(11, "gpu-1:8000", 2)
    };
    let served = AttemptRecord {
        answered: Some(at(40)),
        first_payload: Some(at(41)),
        status: 200,
        ..attempt(12, "gpu-2:8001", 5)
    };
    TraceRecord {
        trace: TraceId(0xabc),
        span: SpanId(10),
        parent: Some(SpanId(9)),
        sampled: true,
        received: at(0),
        ended: at(100),
        ended_wall: UNIX_EPOCH + Duration::from_secs(1_789_715_103),
        steps: vec![(Step::Read, at(0), at(1)), (Step::Pick, at(1), at(2))],
        attempts: vec![failed, served],
        request_id: "r-1".into(),
        method: "POST".into(),
        route: Route::ChatCompletions,
        path: "/v1/chat/completions",
        client: SocketAddr::from(([10, 0, 0, 7], 4711)),
        tenant: TenantName::new("team-a"),
        priority: None,
        objective: None,
        model: Some(ModelName::new("llama")),
        pool: Some(PoolName::new("chat")),
        stream: true,
        status: 200,
        outcome: Outcome::Ok,
        closed_by: ClosedBy::Done,
        error: None,
        prompt_tokens: Some(100),
        completion_tokens: Some(20),
        cached_tokens: Some(64),
        estimated_tokens: 90,
        prompt_blocks: 1,
        matched_blocks: 1,
        ttft: Some(Duration::from_millis(41)),
        predicted: Some(Duration::from_millis(30)),
        bytes_in: 400,
        bytes_out: 900,
    }
}

fn value(span: &Span, key: &str) -> Option<Value> {
    let pair = span.attributes.iter().find(|pair| pair.key == key)?;
    pair.value.clone()?.value
}

fn named<'a>(spans: &'a [Span], name: &str) -> Vec<&'a Span> {
    spans.iter().filter(|span| span.name == name).collect()
}

#[test]
fn spans_form_the_tree_of_a_request_s_life() {
    let spans = spans_of(&record());
    let names: Vec<_> = spans.iter().map(|span| span.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "POST /v1/chat/completions",
            "read",
            "pick",
            "chat llama",
            "connect",
            "chat llama",
            "wait",
            "stream"
        ]
    );
    let id = |of: u64| of.to_be_bytes().to_vec();
    let parents: Vec<_> = spans.iter().map(|span| span.parent_span_id.clone()).collect();
    let expected = [9, 10, 10, 10, 11, 10, 12, 12].map(id);
    assert_eq!(parents, expected);
    let mut ids: Vec<_> = spans.iter().map(|span| span.span_id.clone()).collect();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), spans.len(), "each has an id of its own");
    assert!(spans.iter().all(|span| span.trace_id == 0xabc_u128.to_be_bytes().to_vec()));
    assert_eq!(spans[0].kind, SpanKind::Server as i32);
    assert_eq!(spans[0].flags, SAMPLED | PARENT_KNOWN | PARENT_REMOTE);
}

#[test]
fn times_are_those_of_the_wall_counted_back_from_the_end() {
    let spans = spans_of(&record());
    let end = 1_789_715_103_000_000_000;
    assert_eq!(spans[0].end_time_unix_nano, end);
    assert_eq!(spans[0].start_time_unix_nano, end - 100_000_000);
    let stream = named(&spans, "stream")[0];
    assert_eq!(stream.end_time_unix_nano - stream.start_time_unix_nano, 59_000_000);
    assert!(spans.iter().all(|span| span.start_time_unix_nano <= span.end_time_unix_nano));
}

#[test]
fn an_attempt_has_the_conventions_attributes() {
    let spans = spans_of(&record());
    let attempts = named(&spans, "chat llama");
    let text = |text: &str| Some(Value::Text(text.to_owned()));
    assert_eq!(value(attempts[0], "error.type"), text("connect"));
    assert_eq!(attempts[0].status.as_ref().map(|status| status.code), Some(2));
    let served = attempts[1];
    assert_eq!(value(served, "gen_ai.operation.name"), text("chat"));
    assert_eq!(value(served, "gen_ai.provider.name"), text("vllm"));
    assert_eq!(value(served, "gen_ai.request.model"), text("llama"));
    assert_eq!(value(served, "server.address"), text("gpu-2"));
    assert_eq!(value(served, "server.port"), Some(Value::Integer(8001)));
    assert_eq!(value(served, "gen_ai.usage.input_tokens"), Some(Value::Integer(100)));
    assert_eq!(value(served, "gen_ai.usage.output_tokens"), Some(Value::Integer(20)));
    assert_eq!(value(attempts[0], "gen_ai.usage.output_tokens"), None, "it gave none");
    assert_eq!(served.status, None);
}

#[test]
fn a_failure_is_an_error_on_the_whole_and_a_client_s_mistake_is_none() {
    let mut record = record();
    record.outcome = Outcome::EndpointError;
    record.error = Some(("endpoint", "endpoint_cut"));
    let spans = spans_of(&record);
    let error = Some(Status { message: "endpoint_cut".to_owned(), code: 2 });
    assert_eq!(spans[0].status, error);
    assert_eq!(named(&spans, "chat llama")[1].status, error);
    record.outcome = Outcome::ClientError;
    record.attempts.clear();
    assert_eq!(spans_of(&record)[0].status, None);
}

#[test]
fn a_trace_that_begins_here_has_no_parent() {
    let record = TraceRecord { parent: None, sampled: false, ..record() };
    let whole = &spans_of(&record)[0];
    assert!(whole.parent_span_id.is_empty());
    assert_eq!(whole.flags & (SAMPLED | PARENT_REMOTE), 0);
}
