//! Signals about decisions: recorded traffic, predictions held against what came, a policy on trial.

use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};
use telemetry::recording::{RecordingLine, Request};

use crate::commands::run;
use crate::gateway::{Gateway, document};
use crate::http::{CHAT, ask, chat};
use crate::sims::{fast, fleet, streamed};

/// A streamed chat that asks for its usage.
fn counted(content: &str, tokens: u32) -> Value {
    let mut body = streamed(content, tokens);
    body["stream_options"] = json!({ "include_usage": true });
    body
}

#[tokio::test]
async fn recorded_traffic_tells_what_happened_and_not_what_was_said() {
    let fleet = fleet(2, fast()).await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("traffic.jsonl");
    let flag = file.display().to_string();
    let mut gateway =
        Gateway::with_document(&document(&fleet.urls(), json!({})), &["--record", flag.as_str()])
            .await;
    gateway.scraped(2).await;
    let system = "canaryprompt ".repeat(200);
    for turn in 0..3 {
        let answer =
            chat(gateway.traffic, &counted(&format!("{system}{}", "turn ".repeat(turn)), 5)).await;
        assert_eq!(answer.status, 200);
    }
    assert_eq!(gateway.metric("wicketgate_prediction_error_ratio_count", &[]).await, 3.0);
    assert!(gateway.metric("wicketgate_prefix_tokens_believed_total", &[]).await > 1000.0);
    assert!(gateway.metric("wicketgate_prefix_tokens_found_total", &[]).await > 1000.0);
    gateway.signal("INT");
    assert!(gateway.ended().await.success());

    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(!text.contains("canary"), "{text}");
    let lines: Vec<_> =
        text.lines().map(|line| RecordingLine::parse(line.as_bytes()).unwrap()).collect();
    assert!(matches!(&lines[0], RecordingLine::Header(header) if header.block_tokens == 64));
    assert!(
        matches!(&lines[1], RecordingLine::State(state) if state.pools[0].endpoints.len() == 2)
    );
    let requests: Vec<&Request> = lines
        .iter()
        .filter_map(|line| match line {
            RecordingLine::Request(request) => Some(request),
            _ => None,
        })
        .collect();
    assert_eq!(requests.len(), 3, "{text}");
    let blocks = |request: &Request| request.block_numbers().collect::<Vec<_>>();
    assert!(blocks(requests[0]).len() >= 10);
    assert!(blocks(requests[1]).starts_with(&blocks(requests[0])), "{text}");
    assert!(requests.iter().all(|request| request.output_tokens == Some(5)), "{text}");
    assert!(requests.iter().all(|request| request.predicted_ms > Some(0.0)), "{text}");
    assert!(requests[2].cached_tokens > Some(400), "{text}");
    assert_eq!(requests[1].endpoint, requests[0].endpoint);
}

#[tokio::test]
async fn recording_where_nothing_can_be_written_stops_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("gateway.json");
    let nowhere = folder.path().join("no").join("traffic.jsonl");
    let urls = ["http://127.0.0.1:9".to_owned()];
    let recording = json!({ "recording": { "file": nowhere } });
    std::fs::write(&file, document(&urls, recording).to_string()).unwrap();
    let (code, _, said) = run(&["serve", "-f", &file.display().to_string()]);
    assert_ne!(code, 0);
    assert!(said.contains("cannot record to"), "{said}");
}

#[tokio::test]
async fn a_shadow_policy_is_counted_and_explained() {
    let fleet = fleet(2, fast()).await;
    let mut document = document(&fleet.urls(), json!({}));
    document["spec"]["schedulers"][0]["shadow"] = json!({ "policy": "reference" });
    let gateway = Gateway::with_document(&document, &[]).await;
    gateway.scraped(2).await;
    let body = streamed("Hello", 3).to_string();
    let named = [("X-Request-Id", "shadowed-1")];
    assert_eq!(ask(gateway.traffic, "POST", CHAT, &named, body.as_bytes()).await.status, 200);
    let decided = gateway.metric("wicketgate_shadow_decisions_total", &[]).await;
    assert_eq!(decided, 1.0);
    assert_eq!(gateway.metric("wicketgate_shadow_regret_seconds_count", &[]).await, 1.0);

    let admin = gateway.admin.to_string();
    let (code, said, errors) = run(&["explain", "--admin", &admin, "--request-id", "shadowed-1"]);
    assert_eq!(code, 0, "{errors}");
    assert!(said.contains("shadow (queue ×2, kv-cache ×2, prefix ×3): "), "{said}");
}
