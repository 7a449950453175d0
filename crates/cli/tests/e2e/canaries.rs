//! Privacy: what clients send and get appears in no log, no metric and no debug page.

use serde_json::json;
use sim::FaultKind;

use crate::gateway::Gateway;
use crate::http::{CHAT, ask, post};
use crate::sims::{fast, fleet};

const CANARIES: [&str; 6] =
    ["canaryprompt", "canarykey", "canaryfield", "canaryquery", "canaryunknown", "canarytool"];

/// `reliability.md` B.5.
#[tokio::test]
async fn prompts_answers_and_keys_are_found_nowhere_but_where_they_belong() {
    let fleet = fleet(2, fast()).await;
    let gateway = Gateway::with_flags(&fleet.urls(), &["--log", "debug"]).await;
    let key = [("Authorization", "Bearer canarykey")];
    let body = |stream: bool| {
        json!({
            "model": "llama-3.1-8b", "max_tokens": 20, "ignore_eos": true, "stream": stream, "canaryfield": "canaryfield",
            "messages": [{ "role": "user", "content": format!("canaryprompt {}", "word ".repeat(400)) }],
            "tools": [{ "type": "function", "function": { "name": "canarytool" } }],
        })
    };
    let mut answers = Vec::new();
    for stream in [false, true] {
        let path = format!("{CHAT}?q=canaryquery");
        let answer =
            ask(gateway.traffic, "POST", &path, &key, body(stream).to_string().as_bytes()).await;
        assert_eq!(answer.status, 200);
        if !stream {
            answers.push(
                answer.json()["choices"][0]["message"]["content"].as_str().unwrap().to_owned(),
            );
        }
    }
    // Paths of failure: a broken body, an unknown model, an engine's error, a cut, a client that left.
    let broken = format!("{},", body(false));
    assert_eq!(ask(gateway.traffic, "POST", CHAT, &key, broken.as_bytes()).await.status, 400);
    assert_eq!(ask(gateway.traffic, "POST", CHAT, &key, b"{\"canaryprompt").await.status, 400);
    let mut unknown = body(false);
    unknown["model"] = json!("canaryunknown");
    assert_eq!(post(gateway.traffic, CHAT, &unknown).await.status, 404);
    for kind in [
        FaultKind::Cut { after_chunks: Some(2), reset: false },
        FaultKind::Error {
            status: 500,
            retry_after: None,
            body: Some("canaryprompt".to_owned()),
            content_type: None,
        },
        FaultKind::ErrorEvent { after_chunks: 1, done: false },
    ] {
        for server in fleet.servers() {
            server.heal();
            server.fault(kind.clone());
        }
        ask(gateway.traffic, "POST", CHAT, &key, body(true).to_string().as_bytes()).await;
    }
    let explained =
        ask(gateway.admin, "POST", "/debug/explain", &[], body(false).to_string().as_bytes()).await;
    assert_eq!(explained.status, 200);

    let mut places = vec![("/debug/explain".to_owned(), explained.text())];
    for path in ["/metrics", "/debug/decisions", "/debug/endpoints", "/debug/live", "/"] {
        places.push((path.to_owned(), gateway.admin(path).await.text()));
    }
    gateway.until("all is logged", async || gateway.stdout().lines().count() >= 8).await;
    places.push(("standard output".to_owned(), gateway.stdout()));
    places.push(("standard error".to_owned(), gateway.stderr()));
    let answer = answers.iter().map(|answer| &answer[..answer.len().min(40)]);
    for (place, text) in places {
        assert!(!text.is_empty(), "{place} is empty");
        for canary in CANARIES.into_iter().chain(answer.clone()) {
            assert!(!text.contains(canary), "`{canary}` is in {place}:\n{text}");
        }
    }
}

/// LiteLLM PR 39136, llm-d-router 1625: every unknown name minted a series for ever.
#[tokio::test]
async fn unknown_model_names_make_no_metric_series() {
    let fleet = fleet(1, fast()).await;
    let gateway = Gateway::over(&fleet.urls(), json!({})).await;
    let series = async || gateway.admin("/metrics").await.text().lines().count();
    let unknown = |number: u32| json!({ "model": format!("unknown-{number}"), "messages": [] });
    post(gateway.traffic, CHAT, &unknown(0)).await;
    let before = series().await;
    for number in 1..200 {
        assert_eq!(post(gateway.traffic, CHAT, &unknown(number)).await.status, 404);
    }
    assert_eq!(series().await, before);
}
