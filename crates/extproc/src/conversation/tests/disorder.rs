//! What a proxy should never send.

use proptest::prelude::*;

use crate::conversation::{Next, Violation};
use crate::settings::Settings;
use crate::testing::{
    Stream, THREE, answer_body, answer_head, asking, body, chat, gateway_of, head, in_flight,
    trailers,
};
use crate::wire::{BodyMode, ProcessingRequest, ProtocolConfiguration, Request};

fn stream() -> Stream {
    Stream::new(&gateway_of(&THREE), Settings::default())
}

#[test]
fn messages_out_of_order_end_the_stream() {
    let mut fresh = stream();
    let violations = [
        fresh.send(body("x", true)),
        stream().send(Request::RequestTrailers(trailers())),
        stream().send(answer_body("x", true)),
        stream().send(Request::ResponseTrailers(trailers())),
        stream().send(answer_head(&[(":status", "200")], false)),
        stream().send_message(ProcessingRequest::default()),
    ];
    for violation in violations {
        assert!(violation.is_err(), "{violation:?}");
    }
    let mut twice = stream();
    twice.send(chat(&[])).unwrap();
    assert!(matches!(twice.send(chat(&[])), Err(Violation::OutOfOrder { .. })));
    let mut twice = stream();
    twice.send(chat(&[])).unwrap();
    twice.send(body(asking("llama"), true)).unwrap();
    twice.send(answer_head(&[(":status", "200")], false)).unwrap();
    assert!(twice.send(answer_head(&[(":status", "200")], false)).is_err());
}

#[test]
fn a_mode_in_which_no_pick_would_count_is_refused_with_the_mode_to_use() {
    for mode in
        [BodyMode::Streamed as i32, BodyMode::BufferedPartial as i32, BodyMode::Grpc as i32, 99]
    {
        let config = ProtocolConfiguration { request_body_mode: mode, response_body_mode: 0 };
        let message = ProcessingRequest {
            protocol_config: Some(config),
            request: Some(chat(&[])),
            ..ProcessingRequest::default()
        };
        let violation = stream().send_message(message).unwrap_err();
        assert!(violation.to_string().contains("FULL_DUPLEX_STREAMED"), "{violation}");
    }
    let message = ProcessingRequest {
        observability_mode: true,
        request: Some(chat(&[])),
        ..ProcessingRequest::default()
    };
    assert!(matches!(stream().send_message(message), Err(Violation::Unsupported(_))));
}

#[test]
fn a_head_without_fields_is_400() {
    let mut stream = stream();
    assert_eq!(stream.send(head(&[], true)), Ok(Next::Close));
    assert_eq!(stream.immediate().status.unwrap().code, 400);
}

#[test]
fn an_answer_without_a_status_harms_nothing() {
    let mut stream = stream();
    stream.send(chat(&[])).unwrap();
    stream.send(body(asking("llama"), true)).unwrap();
    assert_eq!(stream.send(answer_head(&[(":status", "abc")], true)), Ok(Next::Read));
}

fn any_message() -> impl Strategy<Value = Request> {
    prop_oneof![
        any::<bool>()
            .prop_map(|eos| head(&[(":method", "POST"), (":path", "/v1/completions")], eos)),
        any::<bool>().prop_map(|eos| head(&[(":method", "GET"), (":path", "/v1/models")], eos)),
        Just(chat(&[])),
        (0_usize..3, any::<bool>()).prop_map(|(which, eos)| {
            let text = asking("llama");
            let text = [text.clone(), String::new(), text[..9].to_owned()][which].clone();
            body(text, eos)
        }),
        Just(Request::RequestTrailers(trailers())),
        (any::<bool>(), 0_u16..700)
            .prop_map(|(eos, status)| answer_head(&[(":status", &status.to_string())], eos)),
        (any::<bool>(), any::<bool>())
            .prop_map(|(eos, full)| answer_body(if full { "data: {}\n\n" } else { "" }, eos)),
        Just(Request::ResponseTrailers(trailers())),
    ]
}

proptest! {
    #[test]
    fn no_sequence_of_messages_leaks_credit(messages in proptest::collection::vec(any_message(), 0..12)) {
        let gateway = gateway_of(&THREE);
        let mut stream = Stream::new(&gateway, Settings::default());
        for message in messages {
            if !matches!(stream.send(message), Ok(Next::Read)) {
                break;
            }
        }
        stream.conversation.closed(stream.now);
        drop(stream);
        prop_assert_eq!(in_flight(&gateway), 0);
        prop_assert_eq!(gateway.metrics.gateway().requests_open.get(), 0);
        prop_assert_eq!(gateway.metrics.gateway().buffered_body_bytes.get(), 0);
    }
}
