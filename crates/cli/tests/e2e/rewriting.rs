//! Models that go by another name: what the endpoint gets, what the client gets back.

use serde_json::{Value, json};
use sim::{Fleet, ServerSpec};

use crate::gateway::{Gateway, document};
use crate::http::{CHAT, Client, ask, chat, request};
use crate::http2::Http2;
use crate::scripted::{Act, Scripted};
use crate::sims::{asked, fast, prompt, streamed};

/// The model of the second pool.
pub(crate) const NEXT: &str = "llama-next";

/// Two simulated servers, one pool each: `llama-3.1-8b` and [`NEXT`].
pub(crate) async fn two_pools() -> Fleet {
    let next = ServerSpec { model: NEXT.to_owned(), seed: 1, ..fast() };
    Fleet::start(vec![fast(), next]).await.unwrap()
}

/// A document over them with these rules of the rewrite `canary`.
pub(crate) fn document_of(urls: &[String], rules: Value) -> Value {
    let mut document =
        document(&urls[..1], json!({ "modelRewrites": [{ "name": "canary", "rules": rules }] }));
    let next = json!({ "name": "next", "modelName": NEXT, "endpoints": [{ "url": urls[1] }] });
    document["spec"]["schedulers"].as_array_mut().unwrap().push(next);
    document
}

pub(crate) async fn gateway_of(fleet: &Fleet, rules: Value) -> Gateway {
    let gateway = Gateway::with_document(&document_of(&fleet.urls(), rules), &[]).await;
    gateway.scraped(2).await;
    gateway
}

/// `chat` is split over both models.
pub(crate) fn split(weights: [u32; 2]) -> Value {
    json!([{
        "matches": [{ "model": { "value": "chat" } }],
        "targets": [
            { "modelRewrite": "llama-3.1-8b", "weight": weights[0], "stable": true },
            { "modelRewrite": NEXT, "weight": weights[1] },
        ],
    }])
}

pub(crate) fn named(mut body: Value, model: &str) -> Value {
    body["model"] = json!(model);
    body
}

async fn ninety_to_ten_is_ninety_to_ten_and_every_answer_has_the_clients_name() {
    let fleet = two_pools().await;
    let gateway = gateway_of(&fleet, split([90, 10])).await;
    for number in 0..200 {
        let body = if number % 2 == 0 { prompt("Hi", 1) } else { streamed("Hi", 1) };
        let answer = chat(gateway.traffic, &named(body, "chat")).await;
        assert_eq!((answer.status, answer.complete), (200, true), "{}", answer.text());
        assert!(answer.text().contains("\"model\":\"chat\""), "{}", answer.text());
        assert!(!answer.text().contains("llama"), "{}", answer.text());
    }
    let canary = asked(fleet.server(1)).await.len();
    assert!(canary.abs_diff(20) <= 3, "{canary} of 200");
    let labels = ["rewrite=\"canary\"", "model=\"chat\"", "target=\"llama-next\""];
    assert_eq!(gateway.metric("wicketgate_rewrite_decisions_total", &labels).await, canary as f64);
}

async fn a_whole_answer_has_its_right_length() {
    let fleet = two_pools().await;
    let gateway = gateway_of(&fleet, split([1, 0])).await;
    let answer = chat(gateway.traffic, &named(prompt("Hi", 3), "chat")).await;
    if let Some(length) = answer.header("content-length") {
        assert_eq!(length, answer.body.len().to_string());
    }
    assert!(answer.complete);
    assert_eq!(answer.json()["model"], "chat");
}

const CHUNKED: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";

fn chunk(text: &str) -> Vec<u8> {
    format!("{:x}\r\n{text}\r\n", text.len()).into_bytes()
}

/// A gateway in front of one scripted endpoint of `llama-3.1-8b`, which is called `an-alias`.
async fn aliased(act: Act) -> (Scripted, Gateway) {
    let endpoint = Scripted::start(None, act).await;
    let rules = json!([{
        "matches": [{ "model": { "value": "an-alias" } }],
        "targets": [{ "modelRewrite": "llama-3.1-8b" }],
    }]);
    let rewrites = json!({ "modelRewrites": [{ "name": "alias", "rules": rules }] });
    let document = document(&[endpoint.url()], rewrites);
    (endpoint, Gateway::with_document(&document, &[]).await)
}

async fn a_name_that_comes_in_pieces_is_given_back_whole() {
    let event = "data: {\"id\":1,\"model\" : \"llama-3.1-8b\",\"choices\":[{\"delta\":{\"content\":\"\\\"model\\\":\\\"llama-3.1-8b\\\"\"}}]}\n\n";
    let mut pieces = vec![CHUNKED.as_bytes().to_vec(), chunk(event)];
    let (first, rest) = event.split_at(event.find("odel").unwrap());
    let (second, third) = rest.split_at(rest.find("3.1").unwrap());
    pieces.extend([first, second, third].map(chunk));
    // The end may be the beginning of a name too.
    pieces.push(chunk("data: [DONE]\n\n: \"mod"));
    pieces.push(b"0\r\n\r\n".to_vec());
    let (_endpoint, gateway) = aliased(Act::Write(pieces)).await;
    let answer = chat(gateway.traffic, &named(streamed("Hi", 1), "an-alias")).await;
    assert!(answer.complete);
    let renamed = event.replace("\"model\" : \"llama-3.1-8b\"", "\"model\" : \"an-alias\"");
    assert_eq!(answer.text(), format!("{renamed}{renamed}data: [DONE]\n\n: \"mod"));
}

#[tokio::test]
async fn a_client_of_http2_gets_its_name_and_what_was_held_back_at_the_end() {
    let event = "data: {\"model\":\"llama-3.1-8b\"}\n\n";
    let mut pieces = vec![CHUNKED.as_bytes().to_vec(), chunk(event), chunk("data: [DONE]\n\n: \"")];
    pieces.push(b"0\r\n\r\n".to_vec());
    let (_endpoint, gateway) = aliased(Act::Write(pieces)).await;
    let mut client = Http2::connect(gateway.traffic).await;
    let body = named(streamed("Hi", 1), "an-alias").to_string();
    let answer = client.post(CHAT, &[], &[body.as_bytes()]).await;
    assert!(answer.complete);
    assert_eq!(answer.text(), "data: {\"model\":\"an-alias\"}\n\ndata: [DONE]\n\n: \"");
}

async fn a_body_goes_on_byte_for_byte_but_for_the_name() {
    let json = r#"{"model":"llama-3.1-8b"}"#;
    let answer = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{json}",
        json.len()
    );
    let (endpoint, gateway) = aliased(Act::Write(vec![answer.into_bytes()])).await;
    let body = "{ \"seed\": 9007199254740993,\t\"model\" :  \"an\\u002dalias\" , \"messages\":[{\"role\":\"user\",\"content\":\"h\\u00e9 an-alias\"}],\"x\":1.0e5}\n";
    let answer = ask(
        gateway.traffic,
        "POST",
        CHAT,
        &[("Accept-Encoding", "gzip"), ("X-Foo", "bar")],
        body.as_bytes(),
    )
    .await;
    assert_eq!((answer.status, answer.text().as_str()), (200, r#"{"model":"an-alias"}"#));
    let seen = String::from_utf8(endpoint.requests().remove(0)).unwrap();
    let (head, sent) = seen.split_once("\r\n\r\n").unwrap();
    assert_eq!(sent, body.replace("\"an\\u002dalias\"", "\"llama-3.1-8b\""));
    let head = head.to_ascii_lowercase();
    assert!(head.contains(&format!("content-length: {}", sent.len())), "{head}");
    assert!(head.contains("x-foo: bar") && !head.contains("accept-encoding"), "{head}");
}

async fn a_client_cannot_choose_a_model_by_a_field() {
    let json = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}";
    let (endpoint, gateway) = aliased(Act::Write(vec![json.into()])).await;
    for name in ["x-llm-d-model-name-rewrite", "X-Gateway-Model-Name-Rewrite"] {
        let body = named(prompt("Hi", 1), "llama-3.1-8b").to_string();
        let answer = ask(gateway.traffic, "POST", CHAT, &[(name, "other")], body.as_bytes()).await;
        assert_eq!(answer.status, 200);
        let seen = String::from_utf8(endpoint.requests().pop().unwrap()).unwrap();
        assert!(seen.ends_with(&body), "{seen}");
        assert!(!seen.to_ascii_lowercase().contains("model-name-rewrite"), "{seen}");
    }
}

#[tokio::test]
async fn a_client_of_http_1_0_gets_a_renamed_stream_until_its_end() {
    let fleet = two_pools().await;
    let gateway = gateway_of(&fleet, split([1, 0])).await;
    let body = named(streamed("Hi", 3), "chat").to_string();
    let asked = String::from_utf8(request("POST", CHAT, &[], body.as_bytes())).unwrap();
    let mut client = Client::connect(gateway.traffic).await;
    client.send(asked.replace("HTTP/1.1", "HTTP/1.0").as_bytes()).await;
    let answer = client.answer().await;
    assert!(answer.text().ends_with("data: [DONE]\n\n"), "{}", answer.text());
    assert!(answer.text().contains("\"model\":\"chat\""));
}

async fn aliases_are_listed_once_and_explained() {
    let fleet = two_pools().await;
    let gateway = gateway_of(&fleet, split([90, 10])).await;
    let list = ask(gateway.traffic, "GET", "/v1/models", &[], b"").await.json();
    let ids: Vec<_> =
        list["data"].as_array().unwrap().iter().map(|m| m["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["chat", "llama-3.1-8b", NEXT]);
    assert_eq!(ask(gateway.traffic, "GET", "/v1/models/chat", &[], b"").await.status, 200);
    let admin = gateway.admin.to_string();
    let (code, said, complained) =
        crate::commands::run(&["explain", "--admin", &admin, "--model", "chat"]);
    assert_eq!(code, 0, "{complained}");
    assert!(said.contains("rewrite canary, rule 0, sends it to llama"), "{said}");
    assert!(said.contains("llama-3.1-8b 90.0 %, llama-next 10.0 %"), "{said}");
}

async fn a_session_stays_with_its_target() {
    let mut rules = split([50, 50]);
    rules[0]["sticky"] = json!("session");
    let fleet = two_pools().await;
    let gateway = gateway_of(&fleet, rules).await;
    for session in 0..12 {
        let id = format!("session-{session}");
        let before = asked(fleet.server(1)).await.len();
        for _ in 0..3 {
            let body = named(prompt("Hi", 1), "chat").to_string();
            let fields = [("x-session-id", id.as_str())];
            let answer = ask(gateway.traffic, "POST", CHAT, &fields, body.as_bytes()).await;
            assert_eq!(answer.status, 200);
        }
        let gained = asked(fleet.server(1)).await.len() - before;
        assert!(gained == 0 || gained == 3, "{id}: {gained} of 3");
    }
}

async fn the_access_log_names_the_rewrite_and_the_target() {
    let fleet = two_pools().await;
    let gateway = gateway_of(&fleet, split([0, 1])).await;
    let ask = async |id: &str, body: Value| {
        let body = body.to_string();
        ask(gateway.traffic, "POST", CHAT, &[("x-request-id", id)], body.as_bytes()).await
    };
    assert_eq!(ask("to-next", named(prompt("Hi", 1), "chat")).await.status, 200);
    let line = gateway.logged("to-next").await;
    assert_eq!((line["rewrite"].as_str(), line["model"].as_str()), (Some("canary"), Some(NEXT)));
    assert_eq!(ask("as-it-is", prompt("Hi", 1)).await.status, 200);
    assert!(gateway.logged("as-it-is").await["rewrite"].is_null());
}

crate::front::on_both_paths!(
    ninety_to_ten_is_ninety_to_ten_and_every_answer_has_the_clients_name,
    a_whole_answer_has_its_right_length,
    a_name_that_comes_in_pieces_is_given_back_whole,
    a_body_goes_on_byte_for_byte_but_for_the_name,
    a_client_cannot_choose_a_model_by_a_field,
    aliases_are_listed_once_and_explained,
    a_session_stays_with_its_target,
    the_access_log_names_the_rewrite_and_the_target,
);
