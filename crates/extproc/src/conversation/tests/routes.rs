//! Body-based routing: which model a request is for, said in fields.

use telemetry::metrics::labels;

use crate::conversation::Next;
use crate::names;
use crate::settings::{Role, Settings};
use crate::testing::{
    Stream, THREE, asking, body, chat, gateway_of, head, in_flight, pieces, set_by,
};
use crate::wire::{
    BodyMode, CommonResponse, ProcessingRequest, ProcessingResponse, ProtocolConfiguration,
    Response,
};

fn router() -> Settings {
    Settings { role: Role::Router, ..Settings::default() }
}

fn common(answer: &ProcessingResponse) -> &CommonResponse {
    let Some(Response::RequestHeaders(headers)) = &answer.response else { panic!("{answer:?}") };
    headers.response.as_ref().unwrap()
}

#[test]
fn the_model_and_its_base_are_named_and_the_route_is_decided_anew() {
    for (model, base) in [("llama", Some("llama")), ("sql", Some("llama")), ("elsewhere", None)] {
        let gateway = gateway_of(&THREE);
        let mut stream = Stream::new(&gateway, router());
        stream.send(chat(&[])).unwrap();
        let sent = asking(model);
        stream.send(body(sent.clone(), true)).unwrap();
        let answers = stream.take();
        assert_eq!(set_by(&answers[0], names::MODEL).as_deref(), Some(model));
        assert_eq!(set_by(&answers[0], names::BASE_MODEL).as_deref(), base);
        assert_eq!(set_by(&answers[0], names::DESTINATION), None, "a router picks nothing");
        assert!(common(&answers[0]).clear_route_cache);
        assert_eq!(pieces(&answers)[0].0, sent.as_bytes());
        assert_eq!(in_flight(&gateway), 0);
    }
}

#[test]
fn both_steps_are_taken_in_one_stream() {
    let gateway = gateway_of(&THREE);
    let mut stream = Stream::new(&gateway, Settings::default());
    stream.send(chat(&[])).unwrap();
    stream.send(body(asking("sql"), true)).unwrap();
    let answers = stream.take();
    assert_eq!(set_by(&answers[0], names::MODEL).as_deref(), Some("sql"));
    assert_eq!(set_by(&answers[0], names::BASE_MODEL).as_deref(), Some("llama"));
    assert!(set_by(&answers[0], names::DESTINATION).is_some());
    assert!(common(&answers[0]).clear_route_cache);
}

#[test]
fn a_client_cannot_name_a_model_in_a_field() {
    let spoofed = [("x-gateway-model-name", "secret"), ("x-gateway-base-model-name", "secret")];
    for text in ["{\"messages\":[]}", "{\"model\":null,\"messages\":[]}"] {
        let gateway = gateway_of(&THREE);
        let mut stream = Stream::new(&gateway, router());
        stream.send(chat(&spoofed)).unwrap();
        stream.send(body(text, true)).unwrap();
        let answers = stream.take();
        let common = common(&answers[0]);
        let removed = &common.header_mutation.as_ref().unwrap().remove_headers;
        assert_eq!(*removed, ["x-gateway-model-name", "x-gateway-base-model-name"], "{text}");
        assert!(common.clear_route_cache, "a route was chosen by it");
    }
    let gateway = gateway_of(&THREE);
    let mut stream = Stream::new(&gateway, router());
    stream.send(chat(&spoofed)).unwrap();
    stream.send(body(asking("elsewhere"), true)).unwrap();
    let answers = stream.take();
    assert_eq!(set_by(&answers[0], names::MODEL).as_deref(), Some("elsewhere"));
    let mutation = common(&answers[0]).header_mutation.as_ref().unwrap();
    assert_eq!(mutation.remove_headers, ["x-gateway-base-model-name"], "set, or gone");
}

#[test]
fn a_router_passes_what_it_does_not_know() {
    for (method, path) in [("GET", "/"), ("GET", "/v1/models"), ("POST", "/anything")] {
        let gateway = gateway_of(&THREE);
        let mut stream = Stream::new(&gateway, router());
        stream.send(head(&[(":method", method), (":path", path)], method == "GET")).unwrap();
        if method == "POST" {
            stream.send(body("no json", true)).unwrap();
        }
        let answers = stream.take();
        assert!(matches!(answers[0].response, Some(Response::RequestHeaders(_))), "{path}");
    }
}

#[test]
fn what_parsers_would_disagree_about_is_refused_by_the_router_already() {
    for text in ["{\"model\":\"a\",\"model\":\"b\"}", "{", "", "{\"model\":1}", "[]"] {
        let gateway = gateway_of(&THREE);
        let mut stream = Stream::new(&gateway, router());
        stream.send(chat(&[])).unwrap();
        assert_eq!(stream.send(body(text, true)), Ok(Next::Close));
        assert_eq!(stream.immediate().status.unwrap().code, 400, "{text}");
        let refused = &gateway.metrics.gateway().requests_refused;
        assert_eq!(refused.of(labels::Refusal::BadRequest).get(), 1, "it is counted");
    }
}

#[test]
fn a_router_that_is_not_shown_the_answer_ends_its_stream() {
    let gateway = gateway_of(&THREE);
    for (response, expected) in
        [(BodyMode::None, Next::Close), (BodyMode::FullDuplexStreamed, Next::Read)]
    {
        let modes = ProtocolConfiguration {
            request_body_mode: BodyMode::FullDuplexStreamed as i32,
            response_body_mode: response as i32,
        };
        let mut stream = Stream::new(&gateway, router());
        let message = ProcessingRequest {
            protocol_config: Some(modes),
            request: Some(chat(&[])),
            ..ProcessingRequest::default()
        };
        stream.send_message(message).unwrap();
        assert_eq!(stream.send(body(asking("llama"), true)), Ok(expected));
    }
}

#[test]
fn a_form_is_routed_by_its_field() {
    let gateway = gateway_of(&THREE);
    let mut stream = Stream::new(&gateway, Settings::default());
    let fields = [
        (":method", "POST"),
        (":path", "/v1/audio/transcriptions"),
        ("content-type", "multipart/form-data; boundary=b"),
    ];
    stream.send(head(&fields, false)).unwrap();
    let form = "--b\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\nllama\r\n--b\r\n\
                Content-Disposition: form-data; name=\"file\"; filename=\"a.wav\"\r\n\r\nRIFF\r\n--b--\r\n";
    stream.send(body(form, true)).unwrap();
    let answers = stream.take();
    assert_eq!(set_by(&answers[0], names::MODEL).as_deref(), Some("llama"), "{answers:?}");
    assert_eq!(pieces(&answers)[0].0, form.as_bytes());
}
