//! The way back: nothing is held, everything is learned.

use std::sync::Arc;

use gateway::Gateway;
use telemetry::metrics::labels;

use crate::conversation::Next;
use crate::names;
use crate::settings::{Role, Settings};
use crate::testing::{
    Stream, THREE, answer_body, answer_head, asking, body, chat, gateway_of, in_flight, pieces,
    set_by, trailers,
};
use crate::wire::{
    self, BodyMode, Metadata, Mutation, ProcessingRequest, ProtocolConfiguration, Request, Response,
};

const SSE: [(&str, &str); 2] = [(":status", "200"), ("content-type", "text/event-stream")];
const JSON: [(&str, &str); 2] = [(":status", "200"), ("content-type", "application/json")];
const TOKEN: &str = "data: {\"model\":\"sql\",\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n";
const USAGE: &str = "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":2,\"total_tokens\":9}}\n\n";

fn picked(gateway: &Arc<Gateway>, settings: Settings) -> Stream {
    let mut stream = Stream::new(gateway, settings);
    stream.send(chat(&[("x-llm-d-model-name-rewrite", "sql")])).unwrap();
    stream.send(body(asking("llama"), true)).unwrap();
    stream
}

fn picker() -> Settings {
    Settings { role: Role::Picker, destinations: 3, ..Settings::default() }
}

fn requests(gateway: &Gateway, outcome: labels::Outcome) -> u64 {
    gateway.catalog().pools[0].metrics.requests.of(labels::Route::ChatCompletions).of(outcome).get()
}

#[test]
fn every_event_is_passed_on_at_once_and_unchanged() {
    let gateway = gateway_of(&THREE);
    let mut stream = picked(&gateway, picker());
    stream.take();
    stream.send(answer_head(&SSE, false)).unwrap();
    assert_eq!(stream.take().len(), 1);
    for event in [TOKEN, ": ping\n\n", USAGE, "data: [DO"] {
        stream.send(answer_body(event, false)).unwrap();
        assert_eq!(pieces(&stream.take()), [(event.into(), false)]);
    }
    stream.send(answer_body("NE]\n\n", true)).unwrap();
    assert_eq!(pieces(&stream.take()), [("NE]\n\n".into(), true)]);
    assert_eq!(in_flight(&gateway), 0, "the end gives the credit back");
    assert_eq!(requests(&gateway, labels::Outcome::Ok), 1);
    let metrics = &gateway.catalog().pools[0].metrics;
    assert_eq!((metrics.input_tokens.get(), metrics.output_tokens.get()), (7, 2));
}

#[test]
fn the_asked_name_comes_back_wherever_the_answer_is_cut() {
    let gateway = gateway_of(&THREE);
    for cut in 0..TOKEN.len() {
        let mut stream = picked(&gateway, Settings { trust_rewrite: true, ..picker() });
        stream.take();
        let head = [SSE[0], SSE[1], ("content-length", "99")];
        stream.send(answer_head(&head, false)).unwrap();
        let answers = stream.take();
        let Some(Response::ResponseHeaders(headers)) = &answers[0].response else { panic!() };
        let mutation = headers.response.as_ref().unwrap().header_mutation.as_ref().unwrap();
        assert_eq!(mutation.remove_headers, ["content-length"]);
        stream.send(answer_body(&TOKEN[..cut], false)).unwrap();
        stream.send(answer_body(&TOKEN[cut..], true)).unwrap();
        let got: Vec<u8> =
            pieces(&stream.take()).iter().flat_map(|(bytes, _)| bytes.to_vec()).collect();
        assert_eq!(got, TOKEN.replace("\"sql\"", "\"llama\"").as_bytes(), "{cut}");
    }
}

#[test]
fn what_was_held_for_a_name_is_not_lost_when_trailers_end_the_answer() {
    let gateway = gateway_of(&THREE);
    let mut stream = picked(&gateway, Settings { trust_rewrite: true, ..picker() });
    stream.send(answer_head(&JSON, false)).unwrap();
    stream.take();
    stream.send(answer_body("{\"mod", false)).unwrap();
    stream.send(Request::ResponseTrailers(trailers())).unwrap();
    let answers = stream.take();
    let got: Vec<u8> = pieces(&answers).iter().flat_map(|(bytes, _)| bytes.to_vec()).collect();
    assert_eq!(got, b"{\"mod");
    assert!(matches!(answers.last().unwrap().response, Some(Response::ResponseTrailers(_))));
}

#[test]
fn the_endpoint_that_served_gets_the_credit_however_the_proxy_says_it() {
    let by_metadata = |served: &str| {
        let lb = wire::structure([(names::SERVED, wire::string(served))]);
        let filter_metadata = [(names::LB_NAMESPACE.to_owned(), lb)].into();
        ProcessingRequest {
            metadata_context: Some(Metadata { filter_metadata }),
            request: Some(answer_head(&SSE, false)),
            ..ProcessingRequest::default()
        }
    };
    let by_attribute = |served: &str| {
        let attributes = wire::structure([("upstream.address", wire::string(served))]);
        ProcessingRequest {
            attributes: [("envoy.filters.http.ext_proc".to_owned(), attributes)].into(),
            request: Some(answer_head(&SSE, false)),
            ..ProcessingRequest::default()
        }
    };
    let makers: [&dyn Fn(&str) -> ProcessingRequest; 2] = [&by_metadata, &by_attribute];
    for make in makers {
        let gateway = gateway_of(&THREE);
        let mut stream = picked(&gateway, picker());
        let list = set_by(&stream.take()[0], names::DESTINATION).unwrap();
        let second = list.split(',').nth(1).unwrap();
        stream.send_message(make(second)).unwrap();
        let busy: Vec<_> = gateway
            .members()
            .iter()
            .filter(|member| member.state.in_flight() > 0)
            .map(|member| member.authority.clone())
            .collect();
        assert_eq!(busy, [second]);
    }
}

#[test]
fn a_served_endpoint_that_is_none_of_ours_changes_nothing() {
    for served in ["", "10.9.9.9:1", "nonsense", "10.0.0.1"] {
        let gateway = gateway_of(&THREE);
        let mut stream = picked(&gateway, picker());
        let lb = wire::structure([(names::SERVED, wire::string(served))]);
        let message = ProcessingRequest {
            metadata_context: Some(Metadata {
                filter_metadata: [(names::LB_NAMESPACE.to_owned(), lb)].into(),
            }),
            request: Some(answer_head(&SSE, false)),
            ..ProcessingRequest::default()
        };
        stream.send_message(message).unwrap();
        assert_eq!(in_flight(&gateway), 1, "{served}");
    }
}

#[test]
fn a_stream_without_its_end_mark_is_not_booked_as_whole() {
    let gateway = gateway_of(&THREE);
    let mut stream = picked(&gateway, picker());
    stream.send(answer_head(&SSE, false)).unwrap();
    stream.send(answer_body(TOKEN, true)).unwrap();
    assert_eq!(requests(&gateway, labels::Outcome::EndpointError), 1);
}

#[test]
fn a_client_that_leaves_gives_its_credit_back() {
    let gateway = gateway_of(&THREE);
    let mut stream = picked(&gateway, picker());
    stream.send(answer_head(&SSE, false)).unwrap();
    stream.send(answer_body(TOKEN, false)).unwrap();
    assert_eq!(in_flight(&gateway), 1);
    stream.conversation.closed(stream.now);
    assert_eq!(in_flight(&gateway), 0);
    assert_eq!(requests(&gateway, labels::Outcome::Cancelled), 1);
}

#[test]
fn an_answer_whose_body_we_are_not_shown_ends_with_the_stream() {
    let gateway = gateway_of(&THREE);
    let mut stream = Stream::new(&gateway, picker());
    let modes = ProtocolConfiguration {
        request_body_mode: BodyMode::FullDuplexStreamed as i32,
        response_body_mode: BodyMode::None as i32,
    };
    let message = ProcessingRequest {
        protocol_config: Some(modes),
        request: Some(chat(&[])),
        ..ProcessingRequest::default()
    };
    stream.send_message(message).unwrap();
    assert_eq!(stream.send(body(asking("llama"), true)), Ok(Next::Read));
    stream.send(answer_head(&JSON, false)).unwrap();
    stream.conversation.closed(stream.now);
    assert_eq!(requests(&gateway, labels::Outcome::Ok), 1);
}

#[test]
fn chunks_of_the_older_mode_are_answered_one_by_one_without_their_bytes() {
    let gateway = gateway_of(&THREE);
    let mut stream = Stream::new(&gateway, Settings { trust_rewrite: true, ..picker() });
    let modes = ProtocolConfiguration {
        request_body_mode: BodyMode::Buffered as i32,
        response_body_mode: BodyMode::Streamed as i32,
    };
    let message = ProcessingRequest {
        protocol_config: Some(modes),
        request: Some(chat(&[("x-llm-d-model-name-rewrite", "sql")])),
        ..ProcessingRequest::default()
    };
    stream.send_message(message).unwrap();
    stream.send(body(asking("llama"), true)).unwrap();
    stream.send(answer_head(&SSE, false)).unwrap();
    stream.take();
    stream.send(answer_body(": ping\n\n", false)).unwrap();
    stream.send(answer_body(TOKEN, false)).unwrap();
    let answers = stream.take();
    let mutation = |at: usize| {
        let Some(Response::ResponseBody(body)) = &answers[at].response else { panic!() };
        body.response.as_ref().unwrap().body_mutation.clone()
    };
    assert_eq!(mutation(0), None, "unchanged: the proxy still has it");
    let renamed = TOKEN.replace("\"sql\"", "\"llama\"");
    assert_eq!(mutation(1).unwrap().mutation, Some(Mutation::Body(renamed.into())));
}

#[test]
fn a_refusal_of_the_endpoint_gets_a_retry_after_if_it_has_none() {
    let gateway = gateway_of(&THREE);
    let mut stream = picked(&gateway, picker());
    stream.take();
    stream.send(answer_head(&[(":status", "503")], true)).unwrap();
    assert!(set_by(&stream.take()[0], "retry-after").is_some());
    let mut stream = picked(&gateway, picker());
    stream.take();
    stream.send(answer_head(&[(":status", "429"), ("retry-after", "7")], true)).unwrap();
    assert_eq!(set_by(&stream.take()[0], "retry-after"), None);
}

#[test]
fn an_answer_that_the_proxy_gives_before_the_request_is_here_is_passed_on() {
    let gateway = gateway_of(&THREE);
    let mut stream = Stream::new(&gateway, picker());
    stream.send(chat(&[])).unwrap();
    stream.send(body("{", false)).unwrap();
    assert_eq!(stream.send(answer_head(&[(":status", "408")], false)), Ok(Next::Read));
    stream.send(answer_body("late", true)).unwrap();
    assert_eq!(stream.take().len(), 2);
    assert_eq!(gateway.metrics.gateway().requests_open.get(), 0);
}

#[test]
fn what_an_endpoint_says_in_our_name_does_not_reach_the_client() {
    let mut stream = picked(&gateway_of(&THREE), picker());
    stream.take();
    let theirs = [
        (":status", "404"),
        ("content-type", "application/json"),
        ("X-Wicketgate-Endpoint", "10.0.0.1"),
        ("x-wicketgate-endpoint", "10.0.0.2"),
        ("x-wicketgate-component", "edge"),
        ("x-gateway-destination-endpoint", "10.0.0.1:80"),
        ("x-llm-d-request-dropped-reason", "evicted"),
        ("x-envoy-upstream-service-time", "7"),
        ("x-custom", "kept"),
    ];
    stream.send(answer_head(&theirs, false)).unwrap();
    let answer = &stream.take()[0];
    assert_eq!(set_by(answer, "x-wicketgate-component").as_deref(), Some("endpoint"));
    let Some(Response::ResponseHeaders(headers)) = &answer.response else { panic!() };
    let mutation = headers.response.as_ref().unwrap().header_mutation.as_ref().unwrap();
    assert_eq!(
        mutation.remove_headers,
        [
            "x-gateway-destination-endpoint",
            "x-llm-d-request-dropped-reason",
            "x-wicketgate-endpoint"
        ]
    );
}

#[test]
fn nothing_of_ours_is_told_to_clients_unless_the_document_says_so() {
    let gateway = gateway_of(&THREE);
    let mut stream = picked(&gateway, picker());
    stream.take();
    stream.send(answer_head(&JSON, false)).unwrap();
    let Some(Response::ResponseHeaders(headers)) = &stream.take()[0].response else { panic!() };
    assert_eq!(headers.response.as_ref().unwrap().header_mutation, None);
}
