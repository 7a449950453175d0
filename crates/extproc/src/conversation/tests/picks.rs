//! What a request that gets an endpoint is answered with.

use prost_types::value::Kind;
use prost_types::{ListValue, Struct};

use telemetry::Tracer;
use telemetry::trace::{Sampling, Step, TraceContext};

use crate::conversation::Next;
use crate::names;
use crate::settings::{Role, Settings};
use crate::testing::{
    Stream, THREE, answer_body, answer_head, asking, body, chat, gateway, gateway_of, head,
    in_flight, pieces, set_by, trailers,
};
use crate::wire::{
    self, BodyMode, Metadata, Mutation, ProcessingRequest, ProcessingResponse,
    ProtocolConfiguration, Request, Response,
};

fn picker() -> Settings {
    Settings { role: Role::Picker, ..Settings::default() }
}

/// The pick in the metadata.
fn in_metadata(answer: &ProcessingResponse) -> String {
    let namespaces = answer.dynamic_metadata.as_ref().unwrap();
    let Some(Kind::StructValue(lb)) = &namespaces.fields[names::LB_NAMESPACE].kind else {
        panic!()
    };
    wire::string_field(lb, names::DESTINATION).unwrap().to_owned()
}

fn hinting(of: Request, kind: Kind) -> ProcessingRequest {
    let hint = wire::structure([(names::SUBSET, prost_types::Value { kind: Some(kind) })]);
    let filter_metadata = [(names::SUBSET_NAMESPACE.to_owned(), hint)].into();
    ProcessingRequest {
        metadata_context: Some(Metadata { filter_metadata }),
        request: Some(of),
        ..ProcessingRequest::default()
    }
}

fn list(texts: &[&str]) -> Kind {
    Kind::ListValue(ListValue { values: texts.iter().map(|text| wire::string(*text)).collect() })
}

#[test]
fn nothing_is_answered_before_the_body_is_here() {
    let gateway = gateway_of(&THREE);
    let mut stream = Stream::new(&gateway, picker());
    assert_eq!(stream.send(chat(&[])), Ok(Next::Read));
    let text = asking("llama");
    stream.send(body(text[..20].to_owned(), false)).unwrap();
    assert!(stream.out.is_empty());
    stream.send(body(text[20..].to_owned(), true)).unwrap();
    assert_eq!(stream.take().len(), 2);
}

#[test]
fn the_pick_stands_in_the_field_and_in_the_metadata() {
    let gateway = gateway_of(&["http://[fd00::3]:8000"]);
    let mut stream = Stream::new(&gateway, picker());
    stream.send(chat(&[])).unwrap();
    stream.send(body(asking("llama"), true)).unwrap();
    let answers = stream.take();
    assert!(
        matches!(answers[0].response, Some(Response::RequestHeaders(_))),
        "the head goes first"
    );
    assert_eq!(set_by(&answers[0], names::DESTINATION).unwrap(), "[fd00::3]:8000");
    assert_eq!(in_metadata(&answers[0]), "[fd00::3]:8000");
    assert_eq!(in_flight(&gateway), 1);
    drop(stream);
    assert_eq!(in_flight(&gateway), 0, "a stream that ends gives its credit back");
}

#[test]
fn a_body_comes_back_byte_for_byte_in_pieces_that_envoy_takes() {
    for length in [0, 1, 61_999, 62_000, 62_001, 124_000, 1 << 20] {
        let gateway = gateway_of(&THREE);
        let mut stream = Stream::new(&gateway, picker());
        stream.send(chat(&[])).unwrap();
        let mut sent = asking("llama").into_bytes();
        // White space behind the document belongs to it.
        sent.resize(sent.len().max(length), b' ');
        for chunk in sent.chunks(16_384) {
            stream.send(body(chunk.to_vec(), false)).unwrap();
        }
        stream.send(body("", true)).unwrap();
        let answers = stream.take();
        let pieces = pieces(&answers);
        let back: Vec<u8> = pieces.iter().flat_map(|(bytes, _)| bytes.to_vec()).collect();
        assert_eq!(back, sent, "{length}");
        assert!(pieces.iter().all(|(bytes, _)| bytes.len() <= 62_000));
        let last: Vec<bool> = pieces.iter().map(|(_, is_last)| *is_last).collect();
        assert_eq!(last.iter().filter(|is_last| **is_last).count(), 1);
        assert_eq!(last.last(), Some(&true));
        assert_eq!(set_by(&answers[0], "content-length").unwrap(), sent.len().to_string());
    }
}

#[test]
fn a_repeated_last_piece_is_ignored() {
    let gateway = gateway_of(&THREE);
    let mut stream = Stream::new(&gateway, picker());
    stream.send(chat(&[])).unwrap();
    stream.send(body(asking("llama"), true)).unwrap();
    stream.take();
    assert_eq!(stream.send(body("", true)), Ok(Next::Read));
    assert!(stream.out.is_empty());
}

#[test]
fn trailers_end_a_body_and_are_answered_after_it() {
    let gateway = gateway_of(&THREE);
    let mut stream = Stream::new(&gateway, picker());
    stream.send(chat(&[])).unwrap();
    stream.send(body(asking("llama"), false)).unwrap();
    stream.send(Request::RequestTrailers(trailers())).unwrap();
    let answers = stream.take();
    assert!(matches!(answers[0].response, Some(Response::RequestHeaders(_))));
    assert_eq!(pieces(&answers).iter().filter(|(_, is_last)| *is_last).count(), 0);
    assert!(matches!(answers.last().unwrap().response, Some(Response::RequestTrailers(_))));
}

#[test]
fn a_request_without_a_body_is_scheduled_like_any_other() {
    let gateway = gateway_of(&THREE);
    let get = || head(&[(":method", "GET"), (":path", "/v1/models")], true);
    let mut stream = Stream::new(&gateway, picker());
    stream.send(get()).unwrap();
    let answers = stream.take();
    assert_eq!(answers.len(), 1, "no body is owed");
    assert!(set_by(&answers[0], names::DESTINATION).is_some());
    let mut stream = Stream::new(&gateway, picker());
    stream.send_message(hinting(get(), list(&["10.0.0.2:8000"]))).unwrap();
    assert_eq!(set_by(&stream.take()[0], names::DESTINATION).unwrap(), "10.0.0.2:8000");
}

#[test]
fn a_subset_hint_is_obeyed_with_its_ports_in_either_form() {
    let gateway =
        gateway_of(&["http://10.0.0.1:8000", "http://10.0.0.1:8001", "http://[fd00::3]:8000"]);
    for (kind, expected) in [
        (list(&["10.0.0.1:8001"]), "10.0.0.1:8001"),
        (list(&["10.9.9.9:1", "[fd00::3]:8000"]), "[fd00::3]:8000"),
        (Kind::StringValue("10.9.9.9:1, 10.0.0.1:8000".to_owned()), "10.0.0.1:8000"),
    ] {
        for _ in 0..10 {
            let mut stream = Stream::new(&gateway, Settings { destinations: 4, ..picker() });
            stream.send_message(hinting(chat(&[]), kind.clone())).unwrap();
            stream.send(body(asking("llama"), true)).unwrap();
            assert_eq!(set_by(&stream.take()[0], names::DESTINATION).unwrap(), expected);
        }
    }
}

#[test]
fn a_subset_without_an_eligible_endpoint_is_503() {
    for kind in [
        list(&[]),
        list(&["10.9.9.9:8000"]),
        list(&["gpu:8000", "10.0.0.1:0", ""]),
        Kind::NumberValue(1.0),
        Kind::StructValue(Struct::default()),
    ] {
        let gateway = gateway_of(&THREE);
        let mut stream = Stream::new(&gateway, picker());
        stream.send_message(hinting(chat(&[]), kind.clone())).unwrap();
        assert_eq!(stream.send(body(asking("llama"), true)), Ok(Next::Close));
        assert_eq!(stream.immediate().status.unwrap().code, 503, "{kind:?}");
        assert_eq!(in_flight(&gateway), 0);
    }
}

#[test]
fn metadata_without_the_hint_restricts_nothing() {
    let gateway = gateway_of(&THREE);
    let mut stream = Stream::new(&gateway, picker());
    let mut message = hinting(chat(&[]), list(&[]));
    message.metadata_context.as_mut().unwrap().filter_metadata =
        [(names::SUBSET_NAMESPACE.to_owned(), Struct::default())].into();
    stream.send_message(message).unwrap();
    stream.send(body(asking("llama"), true)).unwrap();
    assert!(set_by(&stream.take()[0], names::DESTINATION).is_some());
}

#[test]
fn a_list_for_retries_names_each_endpoint_once_the_best_first() {
    let gateway = gateway_of(&THREE);
    let mut stream = Stream::new(&gateway, Settings { destinations: 3, ..picker() });
    stream.send(chat(&[])).unwrap();
    stream.send(body(asking("llama"), true)).unwrap();
    let answers = stream.take();
    let picked = set_by(&answers[0], names::DESTINATION).unwrap();
    let mut each: Vec<_> = picked.split(',').collect();
    each.sort_unstable();
    assert_eq!(each, ["10.0.0.1:8000", "10.0.0.2:8000", "[fd00::3]:8000"]);
    assert_eq!(in_metadata(&answers[0]), picked, "both places say the same");
    assert_eq!(in_flight(&gateway), 1, "only the first is charged");
}

#[test]
fn endpoints_below_another_path_are_not_on_one_list() {
    let gateway = gateway_of(&["http://10.0.0.1:8000/a", "http://10.0.0.2:8000/b"]);
    let mut stream = Stream::new(&gateway, Settings { destinations: 4, ..picker() });
    stream.send(chat(&[])).unwrap();
    stream.send(body(asking("llama"), true)).unwrap();
    let answers = stream.take();
    let path = set_by(&answers[0], ":path").unwrap();
    let expected = match set_by(&answers[0], names::DESTINATION).unwrap().as_str() {
        "10.0.0.1:8000" => "/a/v1/chat/completions",
        "10.0.0.2:8000" => "/b/v1/chat/completions",
        other => panic!("{other}"),
    };
    assert_eq!(path, expected);
}

#[test]
fn a_picker_leaves_the_route_as_it_was_chosen() {
    // Deciding a weighted route again would send the request to another pool than the picker's.
    let gateway = gateway_of(&THREE);
    let mut stream = Stream::new(&gateway, picker());
    stream.send(chat(&[("x-gateway-model-name", "other")])).unwrap();
    stream.send(body(asking("llama"), true)).unwrap();
    let Some(Response::RequestHeaders(headers)) = &stream.take()[0].response else { panic!() };
    assert!(!headers.response.as_ref().unwrap().clear_route_cache);
}

#[test]
fn fields_that_steer_never_survive() {
    let gateway = gateway_of(&THREE);
    let mut stream = Stream::new(&gateway, picker());
    stream
        .send(chat(&[
            ("x-gateway-destination-endpoint", "169.254.169.254:80"),
            ("x-prefiller-host-port", "10.0.0.9:22"),
            ("x-llm-d-model-name-rewrite", "other"),
            ("x-custom", "kept"),
        ]))
        .unwrap();
    stream.send(body(asking("llama"), true)).unwrap();
    let answers = stream.take();
    assert!(set_by(&answers[0], names::DESTINATION).unwrap().ends_with(":8000"));
    let Some(Response::RequestHeaders(headers)) = &answers[0].response else { panic!() };
    let mutation = headers.response.as_ref().unwrap().header_mutation.as_ref().unwrap();
    // The destination is overwritten, not removed.
    assert_eq!(mutation.remove_headers, ["x-prefiller-host-port", "x-llm-d-model-name-rewrite"]);
}

#[test]
fn a_rewrite_changes_the_model_and_nothing_else() {
    let gateway = gateway_of(&THREE);
    let settings = Settings { trust_rewrite: true, ..picker() };
    let mut stream = Stream::new(&gateway, settings);
    stream.send(chat(&[("x-llm-d-model-name-rewrite", "sql")])).unwrap();
    let sent = asking("llama");
    stream.send(body(sent.clone(), true)).unwrap();
    let answers = stream.take();
    let back = &pieces(&answers)[0].0;
    assert_eq!(*back, sent.replace("\"llama\"", "\"sql\"").as_bytes());
    assert_eq!(set_by(&answers[0], "content-length").unwrap(), back.len().to_string());
}

#[test]
fn a_buffered_body_is_answered_as_a_whole() {
    let gateway = gateway_of(&THREE);
    let mut stream = Stream::new(&gateway, picker());
    let modes = ProtocolConfiguration {
        request_body_mode: BodyMode::Buffered as i32,
        response_body_mode: BodyMode::None as i32,
    };
    let message = ProcessingRequest {
        protocol_config: Some(modes),
        request: Some(chat(&[])),
        ..ProcessingRequest::default()
    };
    stream.send_message(message).unwrap();
    let answers = stream.take();
    assert_eq!(answers.len(), 1, "the proxy waits for it before it sends the body");
    stream.send(body(asking("llama"), true)).unwrap();
    let answers = stream.take();
    assert_eq!(answers.len(), 1);
    assert!(set_by(&answers[0], names::DESTINATION).is_some());
    let Some(Response::RequestBody(back)) = &answers[0].response else { panic!() };
    assert!(back.response.as_ref().unwrap().body_mutation.is_none(), "the proxy still has it");
}

#[test]
fn a_rewritten_buffered_body_is_replaced() {
    let gateway = gateway_of(&THREE);
    let mut stream = Stream::new(&gateway, Settings { trust_rewrite: true, ..picker() });
    let modes = ProtocolConfiguration {
        request_body_mode: BodyMode::Buffered as i32,
        response_body_mode: 0,
    };
    let message = ProcessingRequest {
        protocol_config: Some(modes),
        request: Some(chat(&[("x-gateway-model-name-rewrite", "sql")])),
        ..ProcessingRequest::default()
    };
    stream.send_message(message).unwrap();
    stream.send(body(asking("llama"), true)).unwrap();
    let answers = stream.take();
    let Some(Response::RequestBody(back)) = &answers.last().unwrap().response else { panic!() };
    let mutation = back.response.as_ref().unwrap().body_mutation.as_ref().unwrap();
    let Some(Mutation::Body(bytes)) = &mutation.mutation else { panic!() };
    assert_eq!(*bytes, asking("sql").as_bytes());
}

#[test]
fn without_its_body_a_request_goes_to_the_only_pool() {
    let modes = ProtocolConfiguration { request_body_mode: 0, response_body_mode: 0 };
    let message = || ProcessingRequest {
        protocol_config: Some(modes),
        request: Some(chat(&[])),
        ..ProcessingRequest::default()
    };
    let one = gateway_of(&THREE);
    let mut stream = Stream::new(&one, picker());
    stream.send_message(message()).unwrap();
    assert!(set_by(&stream.take()[0], names::DESTINATION).is_some());
    let two = gateway(
        "  schedulers:\n  - { name: a, modelName: a, endpoints: [{ url: 'http://10.0.0.1:1' }] }\n  \
         - { name: b, modelName: b, endpoints: [{ url: 'http://10.0.0.2:1' }] }\n",
    );
    let mut stream = Stream::new(&two, picker());
    stream.send_message(message()).unwrap();
    assert_eq!(stream.immediate().status.unwrap().code, 400);
}

#[test]
fn the_endpoints_key_replaces_the_clients() {
    let gateway = gateway_of(&THREE);
    let settings = Settings { endpoint_authorization: Some("Bearer k".into()), ..picker() };
    let mut stream = Stream::new(&gateway, settings);
    stream.send(chat(&[("authorization", "Bearer client")])).unwrap();
    stream.send(body(asking("llama"), true)).unwrap();
    assert_eq!(set_by(&stream.take()[0], "authorization").unwrap(), "Bearer k");
}

const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

#[test]
fn an_endpoint_s_parent_is_the_attempt_and_the_caller_s_trace_goes_on() {
    let gateway = gateway_of(&THREE);
    let sampling = Sampling { ratio: 0.0, follows_parent: true, errors: false, slower_than: None };
    let (tracer, records) = Tracer::new(sampling, 4, std::sync::Arc::default());
    gateway.trace_with(tracer);
    let mut stream = Stream::new(&gateway, picker());
    stream.send(chat(&[("traceparent", PARENT), ("x-wicketgate-timing", "1")])).unwrap();
    stream.send(body(asking("llama"), true)).unwrap();
    let told = set_by(&stream.take()[0], "traceparent").unwrap();
    let told = TraceContext::parse(told.as_bytes()).unwrap();
    stream.send(answer_head(&[(":status", "200")], false)).unwrap();
    let timing = set_by(&stream.take()[0], "server-timing").unwrap();
    assert!(timing.contains("pick;dur=") && timing.contains("ttfb;dur="), "{timing}");
    stream.send(answer_body("{}", true)).unwrap();
    let record = records.try_recv().unwrap().unwrap();
    assert_eq!(record.trace, told.trace);
    assert_eq!(record.parent.unwrap().to_string(), "00f067aa0ba902b7");
    assert_eq!(record.attempts[0].span, told.span);
    let steps: Vec<_> = record.steps.iter().map(|(step, ..)| *step).collect();
    assert_eq!(steps, [Step::Auth, Step::Read, Step::Pick], "as in the built-in proxy");
}

#[test]
fn who_asks_is_told_where_the_time_went_of_a_refusal_too() {
    let gateway = gateway_of(&THREE);
    let mut stream = Stream::new(&gateway, picker());
    stream.send(chat(&[("x-wicketgate-timing", "1")])).unwrap();
    stream.send(body(asking("nobody"), true)).unwrap();
    let Some(Response::Immediate(refusal)) = stream.take().remove(0).response else { panic!() };
    let fields = refusal.headers.unwrap().set_headers;
    let timing = fields.iter().filter_map(|option| option.header.as_ref());
    let timing = timing.filter(|header| header.key == "server-timing").count();
    assert_eq!(timing, 1);
}

#[test]
fn without_tracing_a_trace_passes_and_a_broken_one_is_removed() {
    let gateway = gateway_of(&THREE);
    for (value, is_removed) in [(PARENT, false), ("00-broken", true)] {
        let mut stream = Stream::new(&gateway, picker());
        stream.send(chat(&[("traceparent", value)])).unwrap();
        stream.send(body(asking("llama"), true)).unwrap();
        let answers = stream.take();
        assert_eq!(set_by(&answers[0], "traceparent"), None);
        let Some(Response::RequestHeaders(head)) = &answers[0].response else { panic!() };
        let mutation = head.response.as_ref().unwrap().header_mutation.as_ref().unwrap();
        assert_eq!(mutation.remove_headers.iter().any(|name| name == "traceparent"), is_removed);
    }
}
