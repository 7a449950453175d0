//! Requests that wait for a full pool, behind Envoy.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::sync::Semaphore;

use crate::http::{Client, ask, request};
use crate::stand::{Example, Setup, Stand, chat_body, until};
use crate::upstream::Act;

const OBJECTIVE: &str = "x-llm-d-inference-objective";

fn queueing(act: Act, flow: Value) -> Setup {
    let objectives = json!([
        { "name": "critical", "priority": "Critical" },
        { "name": "sheddable", "priority": "Sheddable" },
    ]);
    let more = json!({ "flowControl": flow, "objectives": objectives });
    Setup::new(Example::OriginalDst, act).document(more, 1)
}

async fn begin(stand: &Stand, objective: &str) -> Client {
    let mut client = Client::connect(stand.traffic).await;
    let body = chat_body("llama").to_string();
    let headers = [(OBJECTIVE, objective)];
    client.send(&request("POST", "/v1/chat/completions", &headers, body.as_bytes())).await;
    client
}

async fn queued(stand: &Stand, count: u64) {
    until("they wait", async || {
        let page = ask(stand.picker.admin, "GET", "/debug/flow", &[], b"").await.json();
        let bands = page["bands"].as_array().cloned().unwrap_or_default();
        bands.iter().filter_map(|band| band["requests"].as_u64()).sum::<u64>() == count
    })
    .await;
}

/// Gives each endpoint a request, one after the other: two that come at the same instant can be put on
/// the same endpoint by two threads.
async fn fill(stand: &Stand, objective: &str) -> Vec<Client> {
    let mut busy = Vec::new();
    for number in 1..=3 {
        busy.push(begin(stand, objective).await);
        until("it was sent", async || stand.counts().iter().sum::<usize>() == number).await;
    }
    assert_eq!(stand.counts(), [1, 1, 1]);
    busy
}

#[tokio::test]
#[ignore = "needs Envoy"]
async fn a_request_for_a_full_pool_waits_for_its_turn() {
    let allowed = Arc::new(Semaphore::new(0));
    let act = Act::Events { count: 1, allowed: allowed.clone() };
    let stand = queueing(act, json!({})).start().await;
    let mut busy = fill(&stand, "standard").await;
    let mut fourth = begin(&stand, "standard").await;
    queued(&stand, 1).await;
    for upstream in &stand.upstreams {
        upstream.set(Act::Answer);
    }
    drop(busy.pop());
    assert_eq!(fourth.answer().await.status, 200);
}

#[tokio::test]
#[ignore = "needs Envoy"]
async fn a_client_that_leaves_the_queue_is_never_sent() {
    let stand = queueing(Act::Silence, json!({})).start().await;
    let _busy = fill(&stand, "standard").await;
    let fourth = begin(&stand, "standard").await;
    queued(&stand, 1).await;
    drop(fourth);
    queued(&stand, 0).await;
    assert_eq!(stand.counts(), [1, 1, 1]);
}

#[tokio::test]
#[ignore = "needs Envoy"]
async fn sheddable_requests_are_refused_at_once_and_told_why() {
    let stand = queueing(Act::Silence, json!({})).start().await;
    let _busy = fill(&stand, "standard").await;
    let answer = begin(&stand, "sheddable").await.answer().await;
    assert_eq!((answer.status, answer.code()), (429, "saturated".to_owned()));
    assert_eq!(answer.json()["error"]["reason"], "saturated");
    assert_eq!(answer.header("x-wicketgate-dropped-reason"), Some("saturated"));
    assert!(answer.header("retry-after").is_some());
}

#[tokio::test]
#[ignore = "needs Envoy"]
async fn a_critical_request_calls_back_one_that_has_not_answered() {
    let flow =
        json!({ "revoke": true, "bands": [{ "priority": "Sheddable", "whenSaturated": "queue" }] });
    let stand = queueing(Act::Silence, flow).start().await;
    let mut low = fill(&stand, "sheddable").await;
    let _critical = begin(&stand, "critical").await;
    // The newest is called back.
    let answer = low.pop().unwrap().answer().await;
    assert_eq!((answer.status, answer.code()), (429, "evicted".to_owned()));
    assert_eq!(answer.header("x-llm-d-request-dropped-reason"), Some("evicted"));
    until("the critical one was sent", async || stand.counts().iter().sum::<usize>() == 4).await;
}
