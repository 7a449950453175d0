//! Streams that break after they began: the client sees an error, never a false end.

use serde_json::{Value, json};
use sim::{FaultKind, Fleet, Outcome};

use crate::gateway::Gateway;
use crate::http::{Answer, CHAT, Client, chat, post, request};
use crate::sims::{asked, fast, fleet, seen, slow, streamed};

async fn start(extra: Value) -> (Fleet, Gateway) {
    let fleet = fleet(1, fast()).await;
    let gateway = Gateway::over(&fleet.urls(), extra).await;
    (fleet, gateway)
}

fn assert_broken(answer: &Answer, code: &str) {
    assert_eq!(answer.status, 200);
    assert!(!answer.complete, "a clean end: {}", answer.text());
    assert!(!answer.text().contains("[DONE]"), "a false end: {}", answer.text());
    let events = answer.events();
    let last: Value = serde_json::from_str(events.last().unwrap()).unwrap();
    assert_eq!(last["error"]["code"], code, "{}", answer.text());
    assert!(answer.text().ends_with("\n\n"));
}

/// peers.md §3.3 (others send an error and then `[DONE]`, or just stop); fault model, rows 4, 5, 24.
#[tokio::test]
async fn a_stream_that_its_endpoint_cuts_ends_with_an_error_event_and_no_done() {
    for reset in [false, true] {
        let (fleet, gateway) = start(json!({})).await;
        fleet.server(0).fault(FaultKind::Cut { after_chunks: Some(3), reset });
        let answer = chat(gateway.traffic, &streamed("Hello", 10)).await;
        assert_broken(&answer, "endpoint_cut");
        assert_eq!(
            gateway.metric("wicketgate_streams_aborted_total", &["endpoint_cut"]).await,
            1.0
        );
        assert_eq!(
            asked(fleet.server(0)).await.len(),
            1,
            "nothing is repeated once it was committed"
        );
    }
}

/// Fault model, row 5.
#[tokio::test]
async fn a_stream_that_ends_without_its_mark_is_no_success() {
    let (fleet, gateway) = start(json!({})).await;
    fleet.server(0).fault(FaultKind::NoDone);
    for (path, mut body) in [
        (CHAT, streamed("Hello", 5)),
        ("/v1/completions", json!({ "model": "llama-3.1-8b", "prompt": "Hello", "max_tokens": 5 })),
    ] {
        body["stream"] = json!(true);
        assert_broken(&post(gateway.traffic, path, &body).await, "endpoint_unfinished");
    }
}

/// peers.md §4 A 10: others hold a silent stream for a quarter of an hour.
#[tokio::test]
async fn a_stream_that_falls_silent_is_ended_with_an_error_event() {
    let (fleet, gateway) = start(json!({ "timeouts": { "streamIdle": "200ms" } })).await;
    fleet.server(0).fault(FaultKind::Stall { after_chunks: Some(3) });
    assert_broken(&chat(gateway.traffic, &streamed("Hello", 10)).await, "endpoint_stalled");
    seen(fleet.server(0), |request| request.outcome == Outcome::Cancelled).await;
}

/// A stream that never falls silent still has an end.
#[tokio::test]
async fn a_stream_that_lasts_too_long_is_ended_with_an_error_event() {
    let fleet = fleet(1, slow()).await;
    let gateway =
        Gateway::over(&fleet.urls(), json!({ "timeouts": { "streamDuration": "300ms" } })).await;
    let answer = chat(gateway.traffic, &streamed("Hello", 2000)).await;
    assert_broken(&answer, "endpoint_stalled");
    assert!(answer.events().len() > 3, "it did stream: {}", answer.text());
}

/// peers.md §4 A 19: an error within the stream is the endpoint's own word, passed on as it is.
#[tokio::test]
async fn an_error_event_of_the_endpoint_is_passed_on_and_counted() {
    let (fleet, gateway) = start(json!({})).await;
    fleet.server(0).fault(FaultKind::ErrorEvent { after_chunks: 3, done: false });
    let answer = chat(gateway.traffic, &streamed("Hello", 10)).await;
    let events = answer.events();
    assert!(events.last().unwrap().contains("injected fault"), "{}", answer.text());
    assert!(
        events.iter().filter(|event| event.contains("error")).count() == 1,
        "no second one of ours"
    );
    assert_eq!(gateway.metric("wicketgate_streams_aborted_total", &["endpoint_error"]).await, 1.0);
}

/// Each dialect has its own error event; SDKs look at nothing else.
#[tokio::test]
async fn the_error_event_is_in_the_dialect_of_the_route() {
    let (fleet, gateway) = start(json!({})).await;
    fleet.server(0).fault(FaultKind::Cut { after_chunks: Some(2), reset: false });
    let model = "llama-3.1-8b";
    let messages = json!({
        "model": model, "max_tokens": 9, "stream": true, "messages": [{ "role": "user", "content": "Hi" }],
    });
    let answer = post(gateway.traffic, "/v1/messages", &messages).await;
    let last: Value = serde_json::from_str(answer.events().last().unwrap()).unwrap();
    assert_eq!(
        (&last["type"], last["error"]["type"].as_str()),
        (&json!("error"), Some("api_error"))
    );
    assert!(answer.text().contains("event: error\n") && !answer.complete);

    let responses =
        json!({ "model": model, "max_output_tokens": 9, "stream": true, "input": "Hi" });
    let answer = post(gateway.traffic, "/v1/responses", &responses).await;
    let last: Value = serde_json::from_str(answer.events().last().unwrap()).unwrap();
    assert_eq!((&last["type"], &last["code"]), (&json!("error"), &json!("endpoint_cut")));
    assert!(answer.text().contains("event: error\n") && !answer.complete);
}

/// peers.md §4 A 5; fault model, row 6 of "legal but odd": read by event, passed on by byte.
#[tokio::test]
async fn a_stream_that_comes_in_odd_forms_is_passed_on_whole() {
    let (fleet, gateway) = start(json!({})).await;
    let odd = |early_hints, trailers, until_close, comments, split_bytes| FaultKind::Odd {
        early_hints,
        trailers,
        no_content_type: false,
        until_close,
        comments,
        split_bytes,
    };
    let plain = chat(gateway.traffic, &streamed("Hello", 6)).await;
    for kind in [
        odd(true, true, false, true, Some(1)),
        odd(false, false, true, false, Some(7)),
        odd(false, false, false, true, None),
    ] {
        fleet.server(0).heal();
        fleet.server(0).fault(kind.clone());
        let answer = chat(gateway.traffic, &streamed("Hello", 6)).await;
        assert!(answer.status == 200 && answer.complete, "{kind:?}: {answer:?}");
        assert_eq!(answer.events().len(), plain.events().len(), "{kind:?}");
        assert_eq!(answer.events().last().unwrap(), "[DONE]");
        let comments = matches!(kind, FaultKind::Odd { comments: true, .. });
        assert_eq!(answer.text().contains(": still here"), comments, "heartbeats pass");
    }
}

/// `reliability.md` A.4 and SSE-1: a chunk is passed on when it comes, not when the next one does.
#[tokio::test]
async fn what_an_endpoint_sent_reaches_the_client_while_it_says_nothing_more() {
    let (fleet, gateway) = start(json!({})).await;
    fleet.server(0).fault(FaultKind::Stall { after_chunks: Some(4) });
    let mut client = Client::connect(gateway.traffic).await;
    client.send(&request("POST", CHAT, &[], streamed("Hello", 10).to_string().as_bytes())).await;
    client.until_count("\"content\":\"", 4).await;
    assert_eq!(asked(fleet.server(0)).await[0].outcome, Outcome::Open);
}

/// The answer says what caches and proxies in between must know.
#[tokio::test]
async fn a_stream_carries_the_fields_that_keep_proxies_from_buffering() {
    let (_fleet, gateway) = start(json!({})).await;
    let answer = chat(gateway.traffic, &streamed("Hello", 2)).await;
    assert!(answer.header("content-type").unwrap().starts_with("text/event-stream"));
    assert_eq!(answer.header("cache-control"), Some("no-cache"));
    assert_eq!(answer.header("x-accel-buffering"), Some("no"));
}

/// `usage` is read on the way: the log has the tokens, the client's bytes are untouched.
#[tokio::test]
async fn the_tokens_of_a_stream_are_in_the_access_log_with_and_without_usage() {
    let (fleet, gateway) = start(json!({})).await;
    let mut body = streamed("Hello there", 7);
    let counted = |gateway: &Gateway, id: String| {
        let line = gateway.stdout().lines().find(|line| line.contains(&id)).unwrap().to_owned();
        serde_json::from_str::<Value>(&line).unwrap()
    };
    for (options, fault) in [
        (json!({ "include_usage": true }), None),
        (Value::Null, None),
        (json!({ "include_usage": true }), Some(FaultKind::OddUsage)),
    ] {
        body["stream_options"] = options;
        if let Some(fault) = fault {
            fleet.server(0).fault(fault);
        }
        let answer = chat(gateway.traffic, &body).await;
        assert!(answer.complete && answer.status == 200);
        let id = answer.header("x-request-id").unwrap().to_owned();
        gateway.logged(&id).await;
        let line = counted(&gateway, id);
        assert_eq!((&line["status"], &line["outcome"]), (&json!(200), &json!("ok")), "{line}");
    }
    assert!(gateway.metric("wicketgate_output_tokens_total", &[]).await >= 14.0);
}
