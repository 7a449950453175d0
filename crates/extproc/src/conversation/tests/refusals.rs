//! What gets no endpoint, and how its client is told.

use std::time::Duration;

use types::{EndpointMetrics, Ratio, Timestamp};

use crate::conversation::Next;
use crate::names;
use crate::settings::{Paths, Settings};
use crate::testing::{
    Stream, THREE, asking, body, chat, gateway, gateway_of, head, in_flight, set_by,
};
use crate::wire::{ImmediateResponse, Response};

fn code(immediate: &ImmediateResponse) -> i32 {
    immediate.status.unwrap().code
}

fn field(immediate: ImmediateResponse, name: &str) -> Option<String> {
    set_by(&Response::Immediate(immediate).into(), name)
}

#[test]
fn an_unknown_model_is_404_in_the_apis_own_form() {
    let gateway = gateway_of(&THREE);
    let mut stream = Stream::new(&gateway, Settings::default());
    stream.send(chat(&[("x-request-id", "r1")])).unwrap();
    assert_eq!(stream.send(body(asking("lama"), true)), Ok(Next::Close));
    let immediate = stream.immediate();
    assert_eq!(code(&immediate), 404);
    let text = std::str::from_utf8(&immediate.body).unwrap();
    assert!(text.contains("\"code\":\"model_not_found\"") && text.contains("`llama`"), "{text}");
    assert_eq!(field(immediate.clone(), "content-type").unwrap(), "application/json");
    assert_eq!(field(immediate.clone(), "x-wicketgate-component").unwrap(), "edge");
    assert_eq!(field(immediate.clone(), "x-request-id").unwrap(), "r1");
    assert_eq!(field(immediate, names::DROPPED_REASON), None, "it was wrong, not shed");
}

#[test]
fn a_saturated_pool_is_429_with_retry_after_and_the_fields_reason() {
    let gateway = gateway_of(&["http://10.0.0.1:8000"]);
    let metrics = EndpointMetrics {
        waiting: Some(100),
        running: Some(1),
        kv_usage: Ratio::new(0.5).ok(),
        ..EndpointMetrics::default()
    };
    let mut stream = Stream::new(&gateway, Settings::default());
    let minute = Duration::from_secs(60);
    gateway.members()[0].state.record_scrape(&metrics, stream.now, minute);
    stream.send(chat(&[])).unwrap();
    assert_eq!(stream.send(body(asking("llama"), true)), Ok(Next::Close));
    let immediate = stream.immediate();
    assert_eq!(code(&immediate), 429);
    assert!(field(immediate.clone(), "retry-after").unwrap().parse::<u64>().unwrap() >= 1);
    assert_eq!(field(immediate.clone(), names::DROPPED_REASON).unwrap(), "rejected-saturated");
    assert_eq!(field(immediate, "x-wicketgate-component").unwrap(), "flow");
    assert_eq!(in_flight(&gateway), 0);
}

#[test]
fn a_pool_without_endpoints_is_503_with_retry_after() {
    // A discovered endpoint that has not told its models yet.
    let gateway = gateway("  discover: [{ url: 'http://10.0.0.1:8000' }]\n");
    let mut stream = Stream::new(&gateway, Settings::default());
    stream.send(chat(&[])).unwrap();
    stream.send(body(asking("llama"), true)).unwrap();
    let immediate = stream.immediate();
    assert_eq!(code(&immediate), 503);
    assert!(field(immediate.clone(), "retry-after").is_some());
    assert_eq!(field(immediate, names::DROPPED_REASON).unwrap(), "rejected-no-endpoints");
}

#[test]
fn a_body_that_is_no_request_is_400() {
    for text in ["", "{", "{\"model\":\"llama\",\"model\":\"llama\"}", "null"] {
        let gateway = gateway_of(&THREE);
        let mut stream = Stream::new(&gateway, Settings::default());
        stream.send(chat(&[])).unwrap();
        assert_eq!(stream.send(body(text, true)), Ok(Next::Close), "{text}");
        assert_eq!(code(&stream.immediate()), 400, "{text}");
    }
}

#[test]
fn a_chat_without_a_body_is_400() {
    let gateway = gateway_of(&THREE);
    let mut stream = Stream::new(&gateway, Settings::default());
    stream.send(head(&[(":method", "POST"), (":path", "/v1/chat/completions")], true)).unwrap();
    assert_eq!(code(&stream.immediate()), 400);
}

#[test]
fn a_body_beyond_the_limit_is_413_as_soon_as_that_is_known() {
    let small = || {
        gateway(
            "  limits: { requestBodyBytesMax: 65536 }\n  schedulers:\n  - name: chat\n    modelName: llama\n    endpoints: [{ url: 'http://10.0.0.1:8000' }]\n",
        )
    };
    let mut stream = Stream::new(&small(), Settings::default());
    assert_eq!(stream.send(chat(&[("content-length", "65537")])), Ok(Next::Close));
    assert_eq!(code(&stream.immediate()), 413);
    let mut stream = Stream::new(&small(), Settings::default());
    stream.send(chat(&[])).unwrap();
    assert_eq!(stream.send(body(vec![b' '; 65536], false)), Ok(Next::Read));
    assert_eq!(stream.send(body("x", false)), Ok(Next::Close));
    assert_eq!(code(&stream.immediate()), 413);
}

#[test]
fn a_body_that_never_ends_is_408_at_its_deadline() {
    let gateway = gateway_of(&THREE);
    let mut stream = Stream::new(&gateway, Settings::default());
    stream.send(chat(&[])).unwrap();
    stream.send(body("{", false)).unwrap();
    let deadline = stream.conversation.deadline().unwrap();
    assert!(deadline > stream.now);
    assert_eq!(stream.conversation.expired(deadline, &mut stream.out), Next::Close);
    assert_eq!(code(&stream.immediate()), 408);
    assert_eq!(stream.conversation.deadline(), None);
}

#[test]
fn bytes_that_are_held_are_given_back_when_the_stream_ends() {
    let gateway = gateway_of(&THREE);
    let held = || gateway.metrics.gateway().buffered_body_bytes.get();
    let mut stream = Stream::new(&gateway, Settings::default());
    stream.send(chat(&[])).unwrap();
    stream.send(body(vec![b' '; 1000], false)).unwrap();
    assert_eq!(held(), 1000);
    drop(stream);
    assert_eq!(held(), 0);
    let mut stream = Stream::new(&gateway, Settings::default());
    stream.send(chat(&[])).unwrap();
    stream.send(body(asking("llama"), true)).unwrap();
    assert_eq!(held(), 0, "once it has gone on it is not ours any more");
}

#[test]
fn unknown_paths_are_404_unless_all_are_let_in() {
    for path in ["/health", "/v1/load_lora_adapter", "/metrics"] {
        let gateway = gateway_of(&THREE);
        let request = || head(&[(":method", "GET"), (":path", path)], true);
        let mut stream = Stream::new(&gateway, Settings::default());
        assert_eq!(stream.send(request()), Ok(Next::Close));
        assert_eq!(code(&stream.immediate()), 404, "{path}");
        let settings = Settings { paths: Paths::Any, ..Settings::default() };
        let mut stream = Stream::new(&gateway, settings);
        stream.send(request()).unwrap();
        assert!(set_by(&stream.take()[0], names::DESTINATION).is_some(), "{path}");
    }
}

#[test]
fn a_path_that_the_document_opens_goes_to_its_pool_unread() {
    let gateway = gateway(
        "  allowedPaths: [{ path: /rerank/raw, methods: [POST], scheduler: b }]\n  schedulers:\n  \
         - { name: a, modelName: a, endpoints: [{ url: 'http://10.0.0.1:1' }] }\n  \
         - { name: b, modelName: b, endpoints: [{ url: 'http://10.0.0.2:1' }] }\n",
    );
    let mut stream = Stream::new(&gateway, Settings::default());
    stream.send(head(&[(":method", "POST"), (":path", "/rerank/raw")], false)).unwrap();
    stream.send(body("\0 no json", true)).unwrap();
    assert_eq!(set_by(&stream.take()[0], names::DESTINATION).unwrap(), "10.0.0.2:1");
}

#[test]
fn with_several_pools_the_list_of_models_is_ours() {
    let gateway = gateway(
        "  schedulers:\n  - { name: a, modelName: a, endpoints: [{ url: 'http://10.0.0.1:1' }] }\n  \
         - { name: b, modelName: b, endpoints: [{ url: 'http://10.0.0.2:1' }] }\n",
    );
    let mut stream = Stream::new(&gateway, Settings::default());
    stream.send(head(&[(":method", "GET"), (":path", "/v1/models")], true)).unwrap();
    let immediate = stream.immediate();
    assert_eq!(code(&immediate), 200);
    let text = std::str::from_utf8(&immediate.body).unwrap();
    assert!(text.contains("\"a\"") && text.contains("\"b\""), "{text}");
    let mut stream = Stream::new(&gateway, Settings::default());
    stream.send(head(&[(":method", "GET"), (":path", "/v1/models/c")], true)).unwrap();
    assert_eq!(code(&stream.immediate()), 404);
}

#[test]
fn a_compressed_body_is_415() {
    let gateway = gateway_of(&THREE);
    let mut stream = Stream::new(&gateway, Settings::default());
    assert_eq!(stream.send(chat(&[("content-encoding", "gzip")])), Ok(Next::Close));
    assert_eq!(code(&stream.immediate()), 415);
}

#[test]
fn an_error_on_anthropics_path_has_anthropics_form() {
    let gateway = gateway_of(&THREE);
    let mut stream = Stream::new(&gateway, Settings::default());
    stream.send(head(&[(":method", "POST"), (":path", "/v1/messages")], false)).unwrap();
    stream.send(body("{\"model\":\"x\",\"messages\":[]}", true)).unwrap();
    let immediate = stream.immediate();
    let text = std::str::from_utf8(&immediate.body).unwrap();
    assert!(text.contains("\"type\":\"error\""), "{text}");
}

#[test]
fn refused_requests_are_counted_and_leave_nothing_open() {
    let gateway = gateway_of(&THREE);
    for text in ["{", "{\"model\":\"x\",\"messages\":[]}"] {
        let mut stream = Stream::new(&gateway, Settings::default());
        stream.send(chat(&[])).unwrap();
        stream.send(body(text, true)).unwrap();
        stream.conversation.closed(Timestamp::ZERO);
    }
    let metrics = gateway.metrics.gateway();
    assert_eq!(metrics.requests_open.get(), 0);
}
