//! Rules of the document that give a request another model.

use std::sync::Arc;

use gateway::Gateway;

use crate::names;
use crate::settings::{Role, Settings};
use crate::testing::{
    Stream, answer_body, answer_head, asking, body, chat, gateway, head, pieces, set_by,
};
use crate::wire::{BodyMode, ProcessingRequest, ProtocolConfiguration, Response};

/// `chat` is `llama` or its adapter `sql` on the first endpoint, or `llama-4` on the second.
fn rewriting(weights: [u32; 3]) -> Arc<Gateway> {
    let [base, adapter, next] = weights;
    gateway(&format!(
        "  schedulers:
  - {{ name: one, modelName: llama, loraAdapters: [sql], endpoints: [{{ url: 'http://10.0.0.1:8000' }}] }}
  - {{ name: two, modelName: llama-4, endpoints: [{{ url: 'http://10.0.0.2:8000' }}] }}
  modelRewrites:
  - name: split
    rules:
    - matches: [{{ model: {{ value: chat }} }}]
      targets: [{{ modelRewrite: llama, weight: {base} }}, {{ modelRewrite: sql, weight: {adapter} }}, {{ modelRewrite: llama-4, weight: {next} }}]
"
    ))
}

fn settings(role: Role) -> Settings {
    Settings { role, ..Settings::default() }
}

fn asked(gateway: &Arc<Gateway>, settings: Settings, more: &[(&str, &str)], model: &str) -> Stream {
    let mut stream = Stream::new(gateway, settings);
    stream.send(chat(more)).unwrap();
    stream.send(body(asking(model), true)).unwrap();
    stream
}

fn body_of(answers: &[crate::wire::ProcessingResponse]) -> Vec<u8> {
    pieces(answers).iter().flat_map(|(bytes, _)| bytes.to_vec()).collect()
}

#[test]
fn the_target_replaces_the_name_and_nothing_else_and_its_pool_is_picked() {
    let gateway = rewriting([0, 0, 1]);
    let mut stream = asked(&gateway, settings(Role::Both), &[], "chat");
    let answers = stream.take();
    let sent = body_of(&answers);
    assert_eq!(String::from_utf8(sent.clone()).unwrap(), asking("llama-4"));
    assert_eq!(set_by(&answers[0], "content-length").unwrap(), sent.len().to_string());
    assert_eq!(set_by(&answers[0], names::DESTINATION).unwrap(), "10.0.0.2:8000");
    assert_eq!(set_by(&answers[0], names::MODEL).unwrap(), "llama-4");
    assert_eq!(set_by(&answers[0], names::BASE_MODEL).unwrap(), "llama-4");
    let Some(Response::RequestHeaders(headers)) = &answers[0].response else { panic!() };
    let mutation = headers.response.as_ref().unwrap().header_mutation.as_ref().unwrap();
    assert_eq!(mutation.remove_headers, ["accept-encoding"]);
}

#[test]
fn the_answer_carries_the_clients_name_wherever_it_is_cut() {
    let event = "data: {\"model\":\"sql\",\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n";
    let gateway = rewriting([0, 1, 0]);
    for cut in 0..event.len() {
        let mut stream = asked(&gateway, settings(Role::Picker), &[], "chat");
        let of = [(":status", "200"), ("content-type", "text/event-stream")];
        stream.send(answer_head(&of, false)).unwrap();
        stream.take();
        stream.send(answer_body(&event[..cut], false)).unwrap();
        stream.send(answer_body(&event[cut..], true)).unwrap();
        let got = body_of(&stream.take());
        assert_eq!(String::from_utf8(got).unwrap(), event.replace("sql", "chat"), "{cut}");
    }
}

#[test]
fn a_split_is_exact_here_too() {
    let gateway = rewriting([90, 0, 10]);
    let canary = (0..1000).filter(|_| {
        let mut stream = asked(&gateway, settings(Role::Picker), &[], "chat");
        set_by(&stream.take()[0], names::DESTINATION).unwrap() == "10.0.0.2:8000"
    });
    assert!(canary.count().abs_diff(100) <= 4);
}

#[test]
fn a_trusted_proxys_word_goes_before_the_rules_and_a_clients_is_nothing() {
    let gateway = rewriting([0, 0, 1]);
    for name in names::REWRITE {
        let field = [(name, "sql")];
        let trusting = Settings { trust_rewrite: true, ..settings(Role::Picker) };
        let mut stream = asked(&gateway, trusting, &field, "llama");
        assert_eq!(body_of(&stream.take()), asking("sql").as_bytes());
        // `sql` is no rule's name; neither is what was forced looked at again.
        let trusting = Settings { trust_rewrite: true, ..settings(Role::Picker) };
        let mut stream = asked(&gateway, trusting, &[(name, "chat")], "llama");
        assert!(set_by(&stream.take()[0], names::DESTINATION).is_none(), "`chat` is nobody's");
        let mut stream = asked(&gateway, settings(Role::Picker), &field, "chat");
        assert_eq!(body_of(&stream.take()), asking("llama-4").as_bytes());
    }
}

#[test]
fn a_body_that_the_proxy_holds_itself_is_replaced() {
    let gateway = rewriting([1, 0, 0]);
    let mut stream = Stream::new(&gateway, settings(Role::Picker));
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
    stream.send(body(asking("chat"), true)).unwrap();
    let answers = stream.take();
    let Some(Response::RequestBody(response)) = &answers.last().unwrap().response else { panic!() };
    let mutation = response.response.as_ref().unwrap().body_mutation.as_ref().unwrap();
    let Some(crate::wire::Mutation::Body(sent)) = &mutation.mutation else { panic!() };
    assert_eq!(&sent[..], asking("llama").as_bytes());
}

#[test]
fn a_router_alone_names_the_base_model_behind_an_alias_and_deals_nothing_out() {
    let gateway = rewriting([9, 0, 1]);
    let mut stream = asked(&gateway, settings(Role::Router), &[], "chat");
    let answers = stream.take();
    assert_eq!(set_by(&answers[0], names::MODEL).unwrap(), "chat");
    assert_eq!(set_by(&answers[0], names::BASE_MODEL).unwrap(), "llama");
    assert_eq!(body_of(&answers), asking("chat").as_bytes());
    let dealt = gateway.metrics.encode();
    assert!(!dealt.lines().any(|line| line.contains("decisions_total{") && !line.ends_with(" 0")));
}

#[test]
fn the_list_of_models_has_the_names_of_rules() {
    let gateway = rewriting([1, 0, 0]);
    let mut stream = Stream::new(&gateway, settings(Role::Both));
    stream.send(head(&[(":method", "GET"), (":path", "/v1/models")], true)).unwrap();
    let list = String::from_utf8(stream.immediate().body.to_vec()).unwrap();
    for name in ["chat", "llama", "llama-4", "sql"] {
        assert_eq!(list.matches(&format!("{{\"id\":\"{name}\"")).count(), 1, "{list}");
    }
}
