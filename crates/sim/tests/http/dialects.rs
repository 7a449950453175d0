//! Every API answers as its engine does.

use serde_json::{Value, json};
use types::EngineKind;
use wicketgate_sim::ServerSpec;

use crate::client::{CHAT, call, chat, fast, get, post, start};

fn texts(events: &[Value]) -> String {
    events.iter().filter_map(|event| event["choices"][0]["delta"]["content"].as_str()).collect()
}

#[tokio::test]
async fn a_chat_stream_has_a_role_a_chunk_for_each_token_usage_and_done() {
    let fleet = start(fast()).await;
    let address = fleet.server(0).address();
    let answer = post(address, CHAT, &chat("hello there", 7, true)).await;
    assert_eq!(answer.status, 200);
    assert!(answer.header("content-type").unwrap().starts_with("text/event-stream"));
    assert!(answer.complete);
    let events = answer.events();
    assert_eq!(events.len(), 1 + 7 + 1 + 1, "{}", answer.text());
    assert_eq!(events[0]["choices"][0]["delta"]["role"], "assistant");
    assert_eq!(events[6]["choices"][0]["finish_reason"], Value::Null);
    assert_eq!(events[7]["choices"][0]["finish_reason"], "length");
    // Role, three tokens of text, end of message, role of the answer.
    let usage = json!({
        "prompt_tokens": 6, "completion_tokens": 7, "total_tokens": 13,
        "prompt_tokens_details": {"cached_tokens": 0},
    });
    assert_eq!(events[8]["usage"], usage);
    assert_eq!(events[8]["choices"], json!([]));
    assert_eq!(events[9], "[DONE]");

    let whole = post(address, CHAT, &chat("hello there", 7, false)).await.json();
    assert_eq!(whole["choices"][0]["message"]["content"], texts(&events));
    assert_eq!(whole["choices"][0]["finish_reason"], "length");
    assert_eq!(whole["usage"], usage);
}

#[tokio::test]
async fn usage_is_streamed_only_when_asked_for() {
    let fleet = start(fast()).await;
    let mut body = chat("hello", 2, true);
    body["stream_options"] = Value::Null;
    let answer = post(fleet.server(0).address(), CHAT, &body).await;
    assert!(!answer.text().contains("usage"));
}

#[tokio::test]
async fn an_answer_without_a_limit_stops_by_itself_and_is_the_same_each_time() {
    let fleet = start(ServerSpec { answer_tokens: 12, ..fast() }).await;
    let address = fleet.server(0).address();
    let body = json!({"messages": [{"role": "user", "content": "how long?"}]});
    let first = post(address, CHAT, &body).await.json();
    let second = post(address, CHAT, &body).await.json();
    assert_eq!(first["choices"][0]["finish_reason"], "stop");
    assert_eq!(first["choices"], second["choices"]);
    let mut long = body.clone();
    long["min_tokens"] = json!(300);
    let long = post(address, CHAT, &long).await.json();
    assert!(long["usage"]["completion_tokens"].as_u64().unwrap() >= 300);
}

#[tokio::test]
async fn several_choices_and_prompts_are_answered_each() {
    let fleet = start(fast()).await;
    let address = fleet.server(0).address();
    let mut body = chat("hello", 3, false);
    body["n"] = json!(2);
    let answer = post(address, CHAT, &body).await.json();
    let choices = answer["choices"].as_array().unwrap();
    assert_eq!(choices.len(), 2);
    assert_ne!(choices[0]["message"], choices[1]["message"]);
    assert_eq!(answer["usage"]["completion_tokens"], 6);

    let body = json!({"prompt": ["one", "two", "three"], "max_tokens": 2, "ignore_eos": true});
    let answer = post(address, "/v1/completions", &body).await.json();
    assert_eq!(answer["object"], "text_completion");
    assert_eq!(answer["choices"].as_array().unwrap().len(), 3);
    assert_eq!(answer["choices"][2]["text"].as_str().unwrap().len(), 8);
}

#[tokio::test]
async fn the_next_turn_of_a_chat_finds_the_last_one_in_the_cache() {
    let fleet = start(fast()).await;
    let address = fleet.server(0).address();
    let question = "x".repeat(1001);
    let first = post(address, CHAT, &chat(&question, 100, false)).await.json();
    let mut body = chat(&question, 1, false);
    let messages = body["messages"].as_array_mut().unwrap();
    messages.push(json!({
        "role": "assistant", "content": first["choices"][0]["message"]["content"].as_str().unwrap().trim(),
    }));
    messages.push(json!({"role": "user", "content": "go on"}));
    let second = post(address, CHAT, &body).await.json();
    let seen = first["usage"]["total_tokens"].as_u64().unwrap();
    let cached = second["usage"]["prompt_tokens_details"]["cached_tokens"].as_u64().unwrap();
    assert_eq!(cached, (seen - 1) / 16 * 16);

    body["cache_salt"] = json!("another tenant");
    let salted = post(address, CHAT, &body).await.json();
    assert_eq!(salted["usage"]["prompt_tokens_details"]["cached_tokens"], 0);
}

#[tokio::test]
async fn messages_stream_in_anthropics_events() {
    let fleet = start(fast()).await;
    let address = fleet.server(0).address();
    let body = json!({
        "model": "llama-3.1-8b", "system": "be brief", "max_tokens": 3, "ignore_eos": true,
        "messages": [{"role": "user", "content": [{"type": "text", "text": "hello"}]}], "stream": true,
    });
    let answer = post(address, "/v1/messages", &body).await;
    let delta = "content_block_delta";
    assert_eq!(
        answer.event_names(),
        [
            "message_start",
            "content_block_start",
            delta,
            delta,
            delta,
            "content_block_stop",
            "message_delta",
            "message_stop",
        ]
    );
    let events = answer.events();
    assert_eq!(events[6]["delta"]["stop_reason"], "max_tokens");
    assert_eq!(events[6]["usage"]["output_tokens"], 3);
    let input = events[0]["message"]["usage"]["input_tokens"].clone();

    let counted = post(address, "/v1/messages/count_tokens", &body).await.json();
    assert_eq!(counted, json!({"input_tokens": input}));
    let mut whole = body.clone();
    whole["stream"] = json!(false);
    let whole = post(address, "/v1/messages", &whole).await.json();
    assert_eq!(whole["type"], "message");
    assert_eq!(whole["content"][0]["text"].as_str().unwrap().len(), 12);
    let unknown = post(address, "/v1/messages", &json!({"model": "x", "messages": "y"})).await;
    assert_eq!(
        (unknown.status, unknown.json()["error"]["type"].clone()),
        (404, json!("not_found_error"))
    );
}

#[tokio::test]
async fn responses_stream_in_openais_events() {
    let fleet = start(fast()).await;
    let address = fleet.server(0).address();
    let body = json!({
        "model": "llama-3.1-8b", "input": "hello", "max_output_tokens": 2, "ignore_eos": true,
        "stream": true,
    });
    let answer = post(address, "/v1/responses", &body).await;
    let names = answer.event_names();
    assert_eq!(names.first().unwrap(), "response.created");
    assert_eq!(names.iter().filter(|name| *name == "response.output_text.delta").count(), 2);
    assert_eq!(names.last().unwrap(), "response.incomplete");
    let events = answer.events();
    let last = &events.last().unwrap()["response"];
    assert_eq!(last["usage"]["output_tokens"], 2);
    assert_eq!(last["output"][0]["content"][0]["text"].as_str().unwrap().len(), 8);
    let numbers: Vec<_> = events.iter().map(|event| event["sequence_number"].as_u64()).collect();
    assert_eq!(numbers, (0..events.len() as u64).map(Some).collect::<Vec<_>>());
}

#[tokio::test]
async fn sglang_generates_with_the_whole_text_in_each_event() {
    let fleet = start(ServerSpec { engine: EngineKind::Sglang, ..fast() }).await;
    let address = fleet.server(0).address();
    let body = json!({
        "text": "hello", "stream": true,
        "sampling_params": {"max_new_tokens": 3, "ignore_eos": true},
    });
    let events = post(address, "/generate", &body).await.events();
    assert_eq!(events.len(), 4);
    assert!(events[2]["text"].as_str().unwrap().starts_with(events[1]["text"].as_str().unwrap()));
    assert_eq!(events[2]["meta_info"]["finish_reason"]["type"], "length");
    assert_eq!(events[2]["meta_info"]["completion_tokens"], 3);
    assert_eq!(events[3], "[DONE]");
    let again = post(
        address,
        "/generate",
        &json!({"input_ids": [1, 2, 3, 4], "sampling_params": {"max_new_tokens": 1}}),
    )
    .await;
    assert_eq!(again.json()["meta_info"]["prompt_tokens"], 4);
}

#[tokio::test]
async fn tgi_generates_whole_and_streamed_and_does_not_look_at_the_model() {
    let fleet = start(ServerSpec { engine: EngineKind::Tgi, ..fast() }).await;
    let address = fleet.server(0).address();
    let body = json!({
        "inputs": "hello", "parameters": {"max_new_tokens": 3, "ignore_eos": true, "details": true},
    });
    let whole = post(address, "/generate", &body).await.json();
    assert_eq!(whole["details"]["generated_tokens"], 3);
    let stream = post(address, "/generate_stream", &body).await;
    assert!(stream.text().starts_with("data:{"));
    let events = stream.events();
    assert_eq!(events.len(), 3);
    assert_eq!(events[1]["generated_text"], Value::Null);
    assert_eq!(events[2]["generated_text"], whole["generated_text"]);
    let mut body = chat("hello", 1, false);
    body["model"] = json!("tgi");
    assert_eq!(post(address, CHAT, &body).await.status, 200);
    assert_eq!(get(address, "/info").await.json()["router"], "text-generation-router");
}

#[tokio::test]
async fn prompts_are_read_for_embeddings_rerank_and_score() {
    let fleet = start(fast()).await;
    let address = fleet.server(0).address();
    let body = json!({"model": "llama-3.1-8b", "input": ["one", "two"], "dimensions": 8});
    let answer = post(address, "/v1/embeddings", &body).await.json();
    assert_eq!(answer["data"][1]["embedding"].as_array().unwrap().len(), 8);
    assert_eq!(answer["usage"]["prompt_tokens"], 2);
    let body = json!({"query": "q", "documents": ["one", "two", "three"], "top_n": 2});
    let answer = post(address, "/v1/rerank", &body).await.json();
    let scores: Vec<f64> = answer["results"]
        .as_array()
        .unwrap()
        .iter()
        .map(|result| result["relevance_score"].as_f64().unwrap())
        .collect();
    assert!(scores.len() == 2 && scores[0] >= scores[1]);
    let body = json!({"text_1": "q", "text_2": ["one", "two"]});
    let answer = post(address, "/v1/score", &body).await.json();
    assert_eq!(answer["data"].as_array().unwrap().len(), 2);
    assert!(fleet.server(0).stats().generation_tokens >= 7, "the engine did the work");
}

#[tokio::test]
async fn a_recording_is_transcribed_from_a_form() {
    let fleet = start(fast()).await;
    let mut body = Vec::new();
    for (head, content) in [
        ("name=\"model\"", &b"llama-3.1-8b"[..]),
        ("name=\"file\"; filename=\"a.wav\"\r\nContent-Type: audio/wav", &[0xFE; 5000]),
    ] {
        body.extend(format!("--XX\r\nContent-Disposition: form-data; {head}\r\n\r\n").as_bytes());
        body.extend(content);
        body.extend(b"\r\n");
    }
    body.extend(b"--XX--\r\n");
    let headers = [("Content-Type", "multipart/form-data; boundary=XX")];
    let path = "/v1/audio/transcriptions";
    let answer = call(fleet.server(0).address(), "POST", path, &headers, &body).await;
    assert!(!answer.json()["text"].as_str().unwrap().is_empty());
    let log = fleet.server(0).requests(0, crate::client::PATIENCE).await;
    assert_eq!(log.requests[0].body_bytes, body.len());
}

#[tokio::test]
async fn text_is_tokenized_and_back() {
    let fleet = start(fast()).await;
    let address = fleet.server(0).address();
    let text = "the text that comes back";
    let tokens = post(address, "/tokenize", &json!({"prompt": text})).await.json();
    assert_eq!(tokens["count"], 6);
    let back = post(address, "/detokenize", &json!({"tokens": tokens["tokens"]})).await.json();
    assert_eq!(back["prompt"], text);
}

#[tokio::test]
async fn adapters_are_listed_loaded_used_and_unloaded() {
    let adapters = vec!["sql".to_owned()];
    let fleet = start(ServerSpec { adapters, time_scale: 0.01, ..ServerSpec::default() }).await;
    let address = fleet.server(0).address();
    let models = get(address, "/v1/models").await.json();
    assert_eq!(models["data"][0]["id"], "llama-3.1-8b");
    assert_eq!(models["data"][0]["parent"], Value::Null);
    assert_eq!(
        (&models["data"][1]["id"], &models["data"][1]["parent"]),
        (&json!("sql"), &json!("llama-3.1-8b"))
    );
    assert_eq!(get(address, "/v1/models/sql").await.json()["root"], "/adapters/sql");

    let mut body = chat("hello", 2, false);
    body["model"] = json!("legal");
    assert_eq!(post(address, CHAT, &body).await.status, 404);
    let load = json!({"lora_name": "legal", "lora_path": "/adapters/legal"});
    let loaded = post(address, "/v1/load_lora_adapter", &load).await;
    assert_eq!(loaded.text(), "Success: LoRA adapter 'legal' added successfully.");
    assert_eq!(post(address, "/v1/load_lora_adapter", &load).await.status, 400);
    let answer = post(address, CHAT, &body).await.json();
    assert_eq!(answer["model"], "legal");
    assert_eq!(post(address, "/v1/unload_lora_adapter", &load).await.status, 200);
    assert_eq!(post(address, CHAT, &body).await.status, 404);
    assert_eq!(post(address, "/v1/unload_lora_adapter", &load).await.status, 404);
}

#[tokio::test]
async fn what_an_engine_refuses_is_refused_in_its_words() {
    let spec = ServerSpec { max_model_len: Some(100), ..fast() };
    let fleet = start(spec).await;
    let address = fleet.server(0).address();
    let mut body = chat("hello", 2, false);
    body["model"] = json!("gpt-4");
    let answer = post(address, CHAT, &body).await;
    assert_eq!(answer.status, 404);
    assert_eq!(
        answer.json(),
        json!({"error": {
            "message": "The model `gpt-4` does not exist.", "type": "NotFoundError",
            "param": "model", "code": 404,
        }})
    );
    let answer = post(address, CHAT, &chat("hello", 99, false)).await;
    assert_eq!(answer.status, 400);
    assert!(answer.text().contains("maximum context length is 100 tokens"), "{}", answer.text());
    assert_eq!(call(address, "POST", CHAT, &[], b"{\"model\":").await.status, 400);
    assert_eq!(call(address, "POST", CHAT, &[], b"[]").await.status, 400);
    assert_eq!(get(address, CHAT).await.status, 405);
    assert_eq!(get(address, "/nothing/here").await.status, 404);
    assert_eq!(get(address, "/health").await.status, 200);
    assert_eq!(get(address, "/version").await.json()["version"], "0.33.0");
}
