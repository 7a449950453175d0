//! Refusals arrive as written; a picker that is gone does what the example says.

use serde_json::json;

use crate::http::ask;
use crate::stand::{Example, Setup};
use crate::upstream::Act;

#[tokio::test]
#[ignore = "needs Envoy"]
async fn a_saturated_pool_is_429_as_the_picker_wrote_it() {
    let stand = Setup::new(Example::OriginalDst, Act::Answer).waiting(100).start().await;
    let answer = stand.chat("llama", &[]).await;
    assert_eq!(answer.status, 429, "{answer:?}");
    assert_eq!(answer.code(), "saturated");
    assert!(answer.header("retry-after").unwrap().parse::<u64>().unwrap() >= 1);
    assert_eq!(answer.header("x-llm-d-request-dropped-reason"), Some("rejected-saturated"));
    assert_eq!(answer.header("x-wicketgate-component"), Some("flow"));
    assert_eq!(answer.header("content-type"), Some("application/json"));
    assert_eq!(stand.counts(), [0, 0, 0]);
}

#[tokio::test]
#[ignore = "needs Envoy"]
async fn what_is_wrong_is_said_in_the_apis_own_form() {
    let stand = Setup::new(Example::OriginalDst, Act::Answer).start().await;
    let answer = stand.chat("lama", &[]).await;
    assert_eq!((answer.status, answer.code().as_str()), (404, "model_not_found"));
    for (path, body, status) in [
        ("/v1/chat/completions", "", 400),
        ("/v1/chat/completions", "{\"model\":", 400),
        ("/v1/load_lora_adapter", "{}", 404),
    ] {
        let answer = ask(stand.traffic, "POST", path, &[], body.as_bytes()).await;
        assert_eq!(answer.status, status, "{answer:?}");
        assert!(answer.json()["error"]["message"].is_string(), "{answer:?}");
    }
    assert_eq!(stand.counts(), [0, 0, 0]);
}

#[tokio::test]
#[ignore = "needs Envoy"]
async fn what_envoy_refuses_looks_alike() {
    let stand = Setup::new(Example::OriginalDst, Act::Answer)
        .arguments(&["--destinations", "3"])
        .start()
        .await;
    // ORIGINAL_DST cannot read a list, so Envoy has nowhere to go.
    let answer = stand.chat("llama", &[]).await;
    assert_eq!(answer.status, 503);
    assert!(answer.json()["error"]["message"].is_string(), "{answer:?}");
    assert!(answer.header("retry-after").is_some(), "{answer:?}");
}

#[tokio::test]
#[ignore = "needs Envoy"]
async fn an_endpoints_own_refusal_passes_and_says_when_to_come_again() {
    let stand = Setup::new(Example::OriginalDst, Act::Status(429)).start().await;
    let answer = stand.chat("llama", &[]).await;
    assert_eq!((answer.status, answer.text().as_str()), (429, "{\"error\":{}}"));
    assert!(answer.header("retry-after").is_some(), "{answer:?}");
    assert_eq!(answer.header("x-wicketgate-component"), Some("endpoint"));
}

#[tokio::test]
#[ignore = "needs Envoy"]
async fn closed_a_picker_that_is_gone_is_503_until_it_is_back() {
    let mut stand = Setup::new(Example::OriginalDst, Act::Answer).start().await;
    assert_eq!(stand.chat("llama", &[]).await.status, 200);
    stand.picker.kill();
    assert_eq!(stand.chat("llama", &[]).await.status, 503);
    stand.unhealthy().await;
    assert_eq!(stand.chat("llama", &[]).await.status, 503);
    stand.picker.start();
    stand.healthy().await;
    crate::stand::until("it is back", async || stand.chat("llama", &[]).await.status == 200).await;
}

#[tokio::test]
#[ignore = "needs Envoy"]
async fn open_a_picker_that_is_gone_is_done_without_until_it_is_back() {
    let mut stand = Setup::new(Example::OverrideHost, Act::Answer).start().await;
    stand.picker.kill();
    stand.unhealthy().await;
    for _ in 0..12 {
        assert_eq!(stand.chat("llama", &[]).await.status, 200);
    }
    assert!(stand.counts().iter().all(|count| *count > 0), "spread: {:?}", stand.counts());
    stand.picker.start();
    stand.healthy().await;
    // Envoy's threads learn of it one after the other.
    crate::stand::until("it decides again", async || stand.chat("lama", &[]).await.status == 404)
        .await;
}

#[tokio::test]
#[ignore = "needs Envoy"]
async fn a_picker_that_dies_under_load_hangs_no_request() {
    for (example, while_unnoticed) in [(Example::OriginalDst, 503), (Example::OverrideHost, 500)] {
        let mut stand = Setup::new(example, Act::Answer).start().await;
        let traffic = stand.traffic;
        let body = crate::stand::chat_body("llama").to_string();
        let mut clients = tokio::task::JoinSet::new();
        for _ in 0..8 {
            let body = body.clone();
            clients.spawn(async move {
                let mut statuses = Vec::new();
                for _ in 0..60 {
                    let path = "/v1/chat/completions";
                    statuses.push(ask(traffic, "POST", path, &[], body.as_bytes()).await.status);
                }
                statuses
            });
        }
        crate::stand::until("there is load", async || stand.counts().iter().sum::<usize>() > 40)
            .await;
        stand.picker.kill();
        let statuses: Vec<_> = clients.join_all().await.into_iter().flatten().collect();
        assert_eq!(statuses.len(), 480);
        let others = statuses.iter().filter(|status| ![200, while_unnoticed].contains(status));
        assert_eq!(others.count(), 0, "{example:?}: {statuses:?}");
    }
}

#[tokio::test]
#[ignore = "needs Envoy"]
async fn a_picker_that_drains_finishes_its_streams() {
    let allowed = std::sync::Arc::new(tokio::sync::Semaphore::new(1));
    let act = Act::Events { count: 3, allowed: allowed.clone() };
    let mut stand = Setup::new(Example::OriginalDst, act).start().await;
    let mut client = crate::http::Client::connect(stand.traffic).await;
    let body = json!({ "model": "llama", "stream": true, "messages": [] }).to_string();
    let request = crate::http::request("POST", "/v1/chat/completions", &[], body.as_bytes());
    client.send(&request).await;
    client.until("token 0 ").await;
    stand.picker.terminate();
    stand.unhealthy().await;
    allowed.add_permits(3);
    let answer = client.answer().await;
    assert!(answer.complete, "{answer:?}");
    assert_eq!(answer.events().last().unwrap(), "[DONE]");
    stand.picker.ended().await;
}
