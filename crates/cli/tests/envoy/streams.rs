//! Events reach the client as they are sent, and what nobody waits for is given up.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::sync::Semaphore;
use tokio::time::Instant;

use crate::http::{Client, request};
use crate::stand::{Example, Setup, Stand, chat_body, until};
use crate::upstream::{Act, Upstream};

const EVENTS: usize = 40;

/// A stream of which each event is sent only when `allowed` says so.
async fn streaming(stand: &Stand) -> Client {
    let mut asked = chat_body("llama");
    asked["stream"] = Value::Bool(true);
    let mut client = Client::connect(stand.traffic).await;
    let body = asked.to_string();
    client.send(&request("POST", "/v1/chat/completions", &[], body.as_bytes())).await;
    client
}

#[tokio::test]
#[ignore = "needs Envoy"]
async fn an_event_is_not_held_back_for_the_next() {
    let allowed = Arc::new(Semaphore::new(0));
    let act = Act::Events { count: EVENTS, allowed: allowed.clone() };
    let stand = Setup::new(Example::OriginalDst, act).start().await;
    let mut client = streaming(&stand).await;
    let mut delays = Vec::new();
    for number in 0..EVENTS {
        // The endpoint sends the next one only after this one was read, so a buffer would wait for ever.
        allowed.add_permits(1);
        client.until(&format!("token {number} ")).await;
        let got = Instant::now();
        let sent = *stand
            .upstreams
            .iter()
            .find_map(|upstream| upstream.sent().get(number).copied())
            .as_ref()
            .unwrap();
        delays.push(got.duration_since(sent));
    }
    let answer = client.answer().await;
    assert!(answer.complete);
    assert_eq!(answer.events().last().unwrap(), "[DONE]");
    delays.sort();
    // At low load; the machine that runs the tests is not always.
    assert!(delays[EVENTS / 2] < Duration::from_millis(5), "{delays:?}");
}

#[tokio::test]
#[ignore = "needs Envoy"]
async fn a_client_that_leaves_frees_its_endpoint_and_its_credit() {
    let allowed = Arc::new(Semaphore::new(1));
    let act = Act::Events { count: EVENTS, allowed };
    let stand = Setup::new(Example::OverrideHost, act).start().await;
    let mut client = streaming(&stand).await;
    client.until("token 0 ").await;
    assert_eq!(stand.picker.in_flight().await, 1);
    drop(client);
    until("the endpoint sees it", async || {
        stand.upstreams.iter().map(Upstream::open).sum::<usize>() == 0
    })
    .await;
    until("the credit is back", async || stand.picker.in_flight().await == 0).await;
}

#[tokio::test]
#[ignore = "needs Envoy"]
async fn a_stream_whose_picker_dies_never_looks_complete() {
    let allowed = Arc::new(Semaphore::new(1));
    let act = Act::Events { count: EVENTS, allowed: allowed.clone() };
    let mut stand = Setup::new(Example::OriginalDst, act).start().await;
    let mut client = streaming(&stand).await;
    client.until("token 0 ").await;
    stand.picker.kill();
    allowed.add_permits(EVENTS);
    let answer = client.answer().await;
    let is_whole = answer.events().len() == EVENTS + 1;
    assert_eq!(answer.complete, is_whole, "{answer:?}");
}
