//! Every fault does what it says.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;
use wicketgate_sim::{Fault, FaultKind, Fleet, Outcome};

use crate::client::{
    Answer, CHAT, End, Live, PATIENCE, call, chat, fast, get, last_ended, post, start,
};

/// Starts a server, switches the fault on by its admin call, and asks for six tokens.
async fn struck(fault: Value, stream: bool) -> (Fleet, Answer) {
    let fleet = start(fast()).await;
    let address = fleet.server(0).address();
    let accepted = post(address, "/admin/fault", &fault).await;
    assert_eq!(accepted.status, 200, "{}", accepted.text());
    let answer = post(address, CHAT, &chat("hello", 6, stream)).await;
    (fleet, answer)
}

fn chunks(answer: &Answer) -> usize {
    answer.text().matches("\"finish_reason\"").count().saturating_sub(1)
}

#[tokio::test]
async fn stall_is_silent_before_the_head_and_ends_when_the_peer_leaves() {
    let fleet = start(fast()).await;
    let server = fleet.server(0);
    server.fault(FaultKind::Stall { after_chunks: None });
    let live = Live::post(server.address(), CHAT, &chat("hello", 6, true)).await;
    let page = server.requests(0, PATIENCE).await;
    assert_eq!((page.requests[0].outcome, page.requests[0].status), (Outcome::Open, 0));
    drop(live);
    assert_eq!(last_ended(server).await.outcome, Outcome::Cancelled);
}

#[tokio::test]
async fn stall_in_the_middle_sends_just_so_many_chunks() {
    let fleet = start(fast()).await;
    let server = fleet.server(0);
    server.fault(FaultKind::Stall { after_chunks: Some(3) });
    let mut live = Live::post(server.address(), CHAT, &chat("hello", 6, true)).await;
    live.until("\"finish_reason\"", 4).await;
    // The engine finishes the rest unseen.
    while server.stats().generation_tokens < 6 {
        tokio::task::yield_now().await;
    }
    assert_eq!(String::from_utf8_lossy(&live.received).matches("\"finish_reason\"").count(), 4);
    drop(live);
    let ended = last_ended(server).await;
    assert_eq!((ended.outcome, ended.chunks_sent), (Outcome::Cancelled, 3));
}

#[tokio::test]
async fn cut_ends_the_connection_where_it_says() {
    let (fleet, answer) = struck(json!({"kind": "cut"}), true).await;
    assert_eq!((answer.status, answer.end), (0, End::Fin));
    assert_eq!(last_ended(fleet.server(0)).await.outcome, Outcome::Cut);
    let (_, answer) = struck(json!({"kind": "cut", "reset": true}), true).await;
    assert_eq!((answer.status, answer.end), (0, End::Reset));
    let (_, answer) = struck(json!({"kind": "cut", "after_chunks": 0}), true).await;
    assert_eq!((answer.status, answer.body.len(), answer.complete), (200, 0, false));
    let (_, answer) = struck(json!({"kind": "cut", "after_chunks": 3}), true).await;
    assert_eq!((chunks(&answer), answer.complete, answer.end), (3, false, End::Fin));
    let (_, answer) = struck(json!({"kind": "cut", "after_chunks": 3, "reset": true}), true).await;
    assert!(!answer.complete && answer.end == End::Reset);
    let (_, answer) = struck(json!({"kind": "cut", "after_chunks": 3}), false).await;
    assert!(answer.status == 200 && !answer.complete && !answer.body.is_empty());
}

#[tokio::test]
async fn error_answers_with_status_body_and_retry_after() {
    let (_, answer) =
        struck(json!({"kind": "error", "status": 429, "retry_after": "7"}), true).await;
    assert_eq!((answer.status, answer.header("retry-after")), (429, Some("7")));
    assert_eq!(answer.json()["error"]["type"], "RateLimitError");
    let own =
        json!({"kind": "error", "status": 502, "body": "<html>", "content_type": "text/html"});
    let (_, answer) = struck(own, false).await;
    assert_eq!((answer.status, answer.text().as_str()), (502, "<html>"));
    assert_eq!(answer.header("content-type"), Some("text/html"));
}

#[tokio::test]
async fn a_fault_strikes_the_next_so_many_or_a_share() {
    let fleet = start(fast()).await;
    let server = fleet.server(0);
    let statuses = async |count: usize| {
        let mut statuses = Vec::new();
        for _ in 0..count {
            statuses.push(post(server.address(), CHAT, &chat("hello", 1, false)).await.status);
        }
        statuses
    };
    let error = FaultKind::Error { status: 500, retry_after: None, body: None, content_type: None };
    server.fault(Fault { next: Some(2), ..Fault::from(error.clone()) });
    assert_eq!(statuses(4).await, [500, 500, 200, 200]);
    server.fault(Fault { share: 0.5, ..Fault::from(error.clone()) });
    let failed = statuses(60).await.iter().filter(|status| **status == 500).count();
    assert!((18..=42).contains(&failed), "{failed} of 60");
    server.heal();
    server.fault(Fault { path: Some("/v1/models".to_owned()), ..Fault::from(error) });
    assert_eq!(statuses(1).await, [200]);
    assert_eq!(get(server.address(), "/v1/models").await.status, 500);
}

#[tokio::test]
async fn a_fault_ends_after_its_time_and_with_delete() {
    let fleet = start(fast()).await;
    let address = fleet.server(0).address();
    let fault = json!({"kind": "error", "status": 500, "duration_ms": 400});
    post(address, "/admin/fault", &fault).await;
    assert_eq!(post(address, CHAT, &chat("hello", 1, false)).await.status, 500);
    while post(address, CHAT, &chat("hello", 1, false)).await.status == 500 {}
    post(address, "/admin/fault", &json!({"kind": "error", "status": 500})).await;
    let state = get(address, "/admin/state").await.json();
    assert_eq!(state["faults"][0]["kind"], "error");
    assert_eq!(call(address, "DELETE", "/admin/fault", &[], b"").await.json()["faults"], json!([]));
    assert_eq!(post(address, CHAT, &chat("hello", 1, false)).await.status, 200);
    assert_eq!(post(address, "/admin/fault", &json!({"kind": "explode"})).await.status, 400);
}

#[tokio::test]
async fn a_header_asks_for_a_fault_of_one_request() {
    let fleet = start(fast()).await;
    let address = fleet.server(0).address();
    let headers = [("x-sim-fault", "{\"kind\":\"error\",\"status\":503}")];
    let body = chat("hello", 1, false).to_string();
    assert_eq!(call(address, "POST", CHAT, &headers, body.as_bytes()).await.status, 503);
    assert_eq!(call(address, "POST", CHAT, &[], body.as_bytes()).await.status, 200);
}

#[tokio::test]
async fn slow_headers_and_slow_first_bytes_take_their_time() {
    for (fault, at_least) in [
        (json!({"kind": "slow_headers", "delay_ms": 120}), 120),
        (json!({"kind": "slow_headers", "delay_ms": 0, "drip_ms": 1}), 80),
        (json!({"kind": "slow_first_byte", "delay_ms": 120}), 120),
    ] {
        let begun = Instant::now();
        let (_, answer) = struck(fault.clone(), true).await;
        assert!(begun.elapsed() >= Duration::from_millis(at_least), "{fault}");
        assert!(answer.complete && chunks(&answer) == 6, "{fault}");
    }
}

#[tokio::test]
async fn the_head_comes_before_a_slow_first_byte() {
    let fleet = start(fast()).await;
    fleet.server(0).fault(FaultKind::SlowFirstByte { delay_ms: 60_000 });
    let mut live = Live::post(fleet.server(0).address(), CHAT, &chat("hello", 6, true)).await;
    live.until("\r\n\r\n", 1).await;
}

#[tokio::test]
async fn an_error_event_comes_within_the_stream() {
    let (_, answer) = struck(json!({"kind": "error_event"}), true).await;
    assert_eq!((answer.status, answer.complete), (200, true));
    assert_eq!(answer.events().len(), 1);
    assert_eq!(answer.events()[0]["error"]["code"], 500);
    let (_, answer) =
        struck(json!({"kind": "error_event", "after_chunks": 2, "done": true}), true).await;
    let events = answer.events();
    assert_eq!(events.len(), 5);
    assert!(events[3]["error"].is_object());
    assert_eq!(events[4], "[DONE]");
    let (_, answer) = struck(json!({"kind": "error_event"}), false).await;
    assert_eq!(answer.status, 500);
}

#[tokio::test]
async fn a_stream_can_be_empty_or_lack_its_end() {
    let (_, answer) = struck(json!({"kind": "empty_stream"}), true).await;
    assert_eq!((answer.status, answer.body.len(), answer.complete), (200, 0, true));
    let (_, answer) = struck(json!({"kind": "no_done"}), true).await;
    assert!(answer.complete && chunks(&answer) == 6);
    assert!(!answer.text().contains("[DONE]"));
}

#[tokio::test]
async fn a_body_can_be_shorter_than_its_length_says() {
    let (_, answer) = struck(json!({"kind": "truncated_body", "bytes": 20}), false).await;
    assert_eq!((answer.status, answer.body.len(), answer.complete), (200, 20, false));
}

#[tokio::test]
async fn usage_can_be_odd_or_absent() {
    for stream in [true, false] {
        let (_, answer) = struck(json!({"kind": "odd_usage"}), stream).await;
        let usage = if stream {
            answer.events().into_iter().find(|event| event["usage"].is_object()).unwrap()
        } else {
            answer.json()
        };
        assert!(usage["usage"]["prompt_tokens"].is_string());
        assert!(usage["usage"]["total_tokens"].is_null());
        let (_, answer) = struck(json!({"kind": "no_usage"}), stream).await;
        assert!(!answer.text().contains("usage") && answer.complete);
    }
}

#[tokio::test]
async fn answers_can_be_odd_and_legal() {
    let plain = struck(json!({"kind": "no_usage"}), true).await.1;
    let (_, answer) = struck(
        json!({"kind": "odd", "early_hints": true, "trailers": true, "no_content_type": true, "split_bytes": 3}),
        true,
    )
    .await;
    assert_eq!(answer.informational, [103]);
    assert_eq!(answer.header("content-type"), None);
    assert!(answer.complete && answer.trailers.contains("x-sim-trailer: 1"));
    assert!(answer.events().len() > plain.events().len(), "the events are whole again");
    let (_, answer) =
        struck(json!({"kind": "odd", "until_close": true, "comments": true}), true).await;
    assert_eq!(answer.header("transfer-encoding"), None);
    assert!(answer.text().contains(": still here\n\n") && answer.text().ends_with("[DONE]\n\n"));
}

#[tokio::test]
async fn refuse_closes_listener_and_connections_and_the_cache_survives() {
    let fleet = start(fast()).await;
    let server = fleet.server(0);
    post(server.address(), CHAT, &chat(&"same".repeat(64), 1, false)).await;
    let mut live = Live::post(server.address(), CHAT, &chat("hello", 5000, true)).await;
    live.until("data:", 2).await;
    let mut listening = server.listening();
    server.fault(FaultKind::Refuse);
    assert!(!live.finish().await.unwrap().complete);
    listening.wait_for(|open| !open).await.unwrap();
    assert!(tokio::net::TcpStream::connect(server.address()).await.is_err());
    assert_eq!(server.stats().blocks_used, 0);
    server.heal();
    listening.wait_for(|open| *open).await.unwrap();
    let again = post(server.address(), CHAT, &chat(&"same".repeat(64), 1, false)).await.json();
    assert_eq!(again["usage"]["prompt_tokens_details"]["cached_tokens"], 64);
}

#[tokio::test]
async fn a_refusal_with_a_duration_ends_by_itself() {
    let fleet = start(fast()).await;
    let server = fleet.server(0);
    let mut live = Live::post(server.address(), CHAT, &chat("hello", 5000, true)).await;
    live.until("data:", 2).await;
    server.fault(Fault { duration_ms: Some(20), ..Fault::from(FaultKind::Refuse) });
    live.finish().await;
    server.listening().wait_for(|open| *open).await.unwrap();
    assert_eq!(get(server.address(), "/health").await.status, 200);
}

#[tokio::test]
async fn restart_comes_back_with_cold_caches_and_counters_at_zero() {
    let fleet = start(fast()).await;
    let server = fleet.server(0);
    post(server.address(), CHAT, &chat(&"same".repeat(64), 1, false)).await;
    let mut listening = server.listening();
    post(server.address(), "/admin/fault", &json!({"kind": "restart", "down_ms": 50})).await;
    listening.wait_for(|open| !open).await.unwrap();
    listening.wait_for(|open| *open).await.unwrap();
    assert_eq!(server.stats().prefix_query_tokens, 0);
    let again = post(server.address(), CHAT, &chat(&"same".repeat(64), 1, false)).await.json();
    assert_eq!(again["usage"]["prompt_tokens_details"]["cached_tokens"], 0);
    assert_eq!(get(server.address(), "/admin/state").await.json()["deaths"], 1);
}

#[tokio::test]
async fn poison_kills_the_process_with_everyone_on_it() {
    let fleet = start(fast()).await;
    let server = fleet.server(0);
    let fault = json!({"kind": "poison", "marker": "arsenic", "down_ms": 50});
    post(server.address(), "/admin/fault", &fault).await;
    let mut bystander = Live::post(server.address(), CHAT, &chat("hello", 5000, true)).await;
    bystander.until("data:", 2).await;
    let mut listening = server.listening();
    let answer = post(server.address(), CHAT, &chat("some arsenic", 1, false)).await;
    assert_eq!(answer.status, 0);
    assert!(!bystander.finish().await.unwrap().complete);
    listening.wait_for(|open| !open).await.unwrap();
    listening.wait_for(|open| *open).await.unwrap();
    assert_eq!(post(server.address(), CHAT, &chat("hello", 1, false)).await.status, 200);
}

#[tokio::test]
async fn an_adapter_can_vanish_silently() {
    let fleet =
        start(wicketgate_sim::ServerSpec { adapters: vec!["sql".to_owned()], ..fast() }).await;
    let address = fleet.server(0).address();
    let mut body = chat("hello", 1, false);
    body["model"] = json!("sql");
    assert_eq!(post(address, CHAT, &body).await.status, 200);
    post(address, "/admin/fault", &json!({"kind": "unload_adapter", "adapter": "sql"})).await;
    assert_eq!(post(address, CHAT, &body).await.status, 404);
}
