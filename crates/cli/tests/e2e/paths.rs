//! Every path that is served, with the engine that has it; and what `/v1/models` says.

use serde_json::{Value, json};
use sim::ServerSpec;
use types::EngineKind;

use crate::bodies::sha256;
use crate::gateway::{Gateway, document};
use crate::http::{CHAT, ask, post};
use crate::sims::{asked, fast, fleet};

const MODEL: &str = "llama-3.1-8b";

fn bodies(engine: EngineKind) -> Vec<(&'static str, Value)> {
    let messages = json!([{ "role": "user", "content": "Hi" }]);
    let mut bodies = vec![
        (CHAT, json!({ "model": MODEL, "messages": messages, "max_tokens": 3 })),
        (CHAT, json!({ "model": MODEL, "messages": messages, "max_tokens": 3, "stream": true })),
        ("/v1/completions", json!({ "model": MODEL, "prompt": "Hi", "max_tokens": 3 })),
        (
            "/v1/completions",
            json!({ "model": MODEL, "prompt": "Hi", "max_tokens": 3, "stream": true }),
        ),
        ("/v1/responses", json!({ "model": MODEL, "input": "Hi", "max_output_tokens": 3 })),
        (
            "/v1/responses",
            json!({ "model": MODEL, "input": "Hi", "max_output_tokens": 3, "stream": true }),
        ),
        ("/v1/messages", json!({ "model": MODEL, "messages": messages, "max_tokens": 3 })),
        (
            "/v1/messages",
            json!({ "model": MODEL, "messages": messages, "max_tokens": 3, "stream": true }),
        ),
        ("/v1/messages/count_tokens", json!({ "model": MODEL, "messages": messages })),
        ("/v1/embeddings", json!({ "model": MODEL, "input": "Hi" })),
        ("/v1/rerank", json!({ "model": MODEL, "query": "Hi", "documents": ["a", "b"] })),
        ("/v1/score", json!({ "model": MODEL, "text_1": "Hi", "text_2": ["a", "b"] })),
        ("/tokenize", json!({ "model": MODEL, "prompt": "Hi there" })),
        ("/detokenize", json!({ "model": MODEL, "tokens": [1, 2, 3] })),
    ];
    match engine {
        EngineKind::Sglang => bodies.extend([
            ("/generate", json!({ "text": "Hi", "sampling_params": { "max_new_tokens": 3 } })),
            (
                "/generate",
                json!({ "text": "Hi", "sampling_params": { "max_new_tokens": 3 }, "stream": true }),
            ),
        ]),
        EngineKind::Tgi => bodies.extend([
            ("/generate", json!({ "inputs": "Hi", "parameters": { "max_new_tokens": 3 } })),
            (
                "/generate",
                json!({ "inputs": "Hi", "parameters": { "max_new_tokens": 3 }, "stream": true }),
            ),
            ("/generate_stream", json!({ "inputs": "Hi", "parameters": { "max_new_tokens": 3 } })),
        ]),
        _ => {}
    }
    bodies
}

/// The list of paths.
#[tokio::test]
async fn every_path_answers_through_the_gateway_as_its_engine_does() {
    for engine in [EngineKind::Vllm, EngineKind::Sglang, EngineKind::Tgi] {
        let spec = ServerSpec { model: MODEL.to_owned(), ..ServerSpec { engine, ..fast() } };
        let fleet = fleet(1, spec).await;
        let gateway = Gateway::with_flags(&fleet.urls(), &[]).await;
        let server = fleet.server(0);
        for (path, body) in bodies(engine) {
            let streams = body["stream"] == true || path == "/generate_stream";
            let answer = post(gateway.traffic, path, &body).await;
            let shown = format!("{engine:?} {path} {body}: {}", answer.text());
            assert_eq!((answer.status, answer.complete), (200, true), "{shown}");
            let kind = if streams { "text/event-stream" } else { "application/json" };
            assert!(answer.header("content-type").unwrap().starts_with(kind), "{shown}");
            let seen = asked(server).await.pop().unwrap();
            assert_eq!((seen.path.as_str(), seen.status), (path, 200));
            assert_eq!(seen.body_sha256, sha256(body.to_string().as_bytes()), "{shown}");
        }
        let found = gateway.endpoints().await;
        assert_eq!(found[0]["engine"], engine.as_str(), "told from its metrics");
        assert_eq!(
            gateway.metric("wicketgate_requests_total", &["outcome=\"ok\""]).await,
            bodies(engine).len() as f64
        );
    }
}

/// BODY-6: the model is a field of the form.
#[tokio::test]
async fn a_transcription_is_routed_by_the_model_in_its_form() {
    let fleet = fleet(2, fast()).await;
    let mut two = document(&fleet.urls()[..1], json!({}));
    let other =
        json!({ "name": "other", "modelName": "other", "endpoints": [{ "url": fleet.urls()[1] }] });
    two["spec"]["schedulers"].as_array_mut().unwrap().push(other);
    let gateway = Gateway::with_document(&two, &[]).await;
    let form = |model: &str| {
        let mut form =
            b"--xyz\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.wav\"\r\n\
            Content-Type: audio/wav\r\n\r\n"
                .to_vec();
        form.extend([0_u8, 255, 13, 10, 45, 45, 120].repeat(500));
        form.extend(format!("\r\n--xyz\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\n{model}\r\n--xyz--\r\n").bytes());
        form
    };
    let kind = [("Content-Type", "multipart/form-data; boundary=xyz")];
    let path = "/v1/audio/transcriptions";
    let body = form(MODEL);
    let answer = ask(gateway.traffic, "POST", path, &kind, &body).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(asked(fleet.server(0)).await[0].body_sha256, sha256(&body));
    ask(gateway.traffic, "POST", path, &kind, &form("other")).await;
    assert_eq!(asked(fleet.server(1)).await.len(), 1, "the other model's endpoint");
    assert_eq!(ask(gateway.traffic, "POST", path, &kind, &form("unknown")).await.status, 404);
    assert_eq!(ask(gateway.traffic, "POST", path, &kind, b"--xyz\r\nbroken").await.status, 400);
    assert_eq!(ask(gateway.traffic, "POST", path, &[], b"{}").await.status, 415);
}

/// BODY-7: one list over all pools, adapters included.
#[tokio::test]
async fn the_list_of_models_is_merged_over_pools() {
    let chat =
        ServerSpec { model: "org/chat".to_owned(), adapters: vec!["support".to_owned()], ..fast() };
    let embed = ServerSpec { engine: EngineKind::Tgi, model: "embed".to_owned(), ..fast() };
    let fleet = sim::Fleet::start(vec![chat.clone(), chat, embed]).await.unwrap();
    let gateway = Gateway::with_flags(&fleet.urls(), &[]).await;
    let list = async || ask(gateway.traffic, "GET", "/v1/models", &[], b"").await.json();
    gateway
        .until("all models are known", async || list().await["data"].as_array().unwrap().len() == 3)
        .await;
    let list = list().await;
    let ids: Vec<&str> =
        list["data"].as_array().unwrap().iter().map(|card| card["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["embed", "org/chat", "support"]);
    assert_eq!(list["data"][2]["parent"], "org/chat");
    assert!(list["data"].as_array().unwrap().iter().all(|card| card["object"] == "model"));
    for path in ["/v1/models/org/chat", "/v1/models/org%2Fchat", "/v1/models/support"] {
        let card = ask(gateway.traffic, "GET", path, &[], b"").await;
        assert_eq!((card.status, card.json()["object"].as_str()), (200, Some("model")), "{path}");
    }
    let missing = ask(gateway.traffic, "GET", "/v1/models/org/other", &[], b"").await;
    assert_eq!((missing.status, missing.code()), (404, "model_not_found".to_owned()));
    assert!(asked(fleet.server(0)).await.is_empty(), "answered by the gateway");
}

/// Decision 4: more paths only where the document says so.
#[tokio::test]
async fn a_path_that_the_document_opens_is_forwarded_and_no_other() {
    let fleet = fleet(1, fast()).await;
    let opened = json!({ "allowedPaths": [{ "path": "/version", "methods": ["GET"], "scheduler": "chat" }] });
    let gateway = Gateway::over(&fleet.urls(), opened).await;
    let answer = ask(gateway.traffic, "GET", "/version", &[], b"").await;
    assert_eq!(
        (answer.status, answer.json()["version"].is_string()),
        (200, true),
        "{}",
        answer.text()
    );
    assert_eq!(ask(gateway.traffic, "POST", "/version", &[], b"{}").await.status, 405);
    for path in ["/version/", "/health", "/versio", "/Version", "/v1/../version"] {
        assert_eq!(ask(gateway.traffic, "GET", path, &[], b"").await.status, 404, "{path}");
    }
    assert_eq!(asked(fleet.server(0)).await.len(), 1);
}
