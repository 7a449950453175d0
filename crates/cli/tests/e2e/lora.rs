//! LoRA adapters: names that stand for a base model's pool.

use serde_json::json;
use sim::{FaultKind, Fleet, ServerSpec};

use crate::gateway::Gateway;
use crate::http::{ask, chat, post};
use crate::sims::{asked, asked_of_all, fast, prompt};

/// Three servers of one model; the adapter `common` is on all, `rare` on the last only.
async fn start() -> (Fleet, Gateway) {
    let with = |adapters: &[&str], seed| ServerSpec {
        adapters: adapters.iter().map(|name| (*name).to_owned()).collect(),
        seed,
        ..fast()
    };
    let specs = vec![with(&["common"], 0), with(&["common"], 1), with(&["common", "rare"], 2)];
    let fleet = Fleet::start(specs).await.unwrap();
    let gateway = Gateway::over(&fleet.urls(), json!({})).await;
    let known = async |name: &str| {
        ask(gateway.traffic, "GET", &format!("/v1/models/{name}"), &[], b"").await.status
    };
    gateway
        .until("the adapters are known", async || {
            known("common").await == 200 && known("rare").await == 200
        })
        .await;
    // Each endpoint has told: an adapter is excluded nowhere by mistake.
    gateway
        .until("every endpoint told its models", async || {
            let mut told = 0;
            for server in fleet.servers() {
                told += usize::from(
                    !server.requests(0, std::time::Duration::ZERO).await.requests.is_empty(),
                );
            }
            told == 3
        })
        .await;
    (fleet, gateway)
}

fn with_adapter(name: &str, number: usize) -> serde_json::Value {
    let mut body = prompt(&format!("Question {number}"), 2);
    body["model"] = json!(name);
    body
}

/// LORA-5; peers.md §4 H 118.
#[tokio::test]
async fn an_adapter_on_some_endpoints_goes_to_those_only() {
    let (fleet, gateway) = start().await;
    for number in 0..12 {
        let answer = chat(gateway.traffic, &with_adapter("rare", number)).await;
        assert_eq!((answer.status, answer.json()["model"].as_str()), (200, Some("rare")));
    }
    assert_eq!(asked(fleet.server(2)).await.len(), 12);
    let answer = chat(gateway.traffic, &with_adapter("unknown", 0)).await;
    assert_eq!((answer.status, answer.code()), (404, "model_not_found".to_owned()));
    assert_eq!(asked_of_all(&fleet).await.len(), 12);
}

/// LORA-1: where an adapter is loaded, though idle, it is used again.
#[tokio::test]
async fn an_adapter_that_was_used_somewhere_is_used_there_again() {
    let (fleet, gateway) = start().await;
    for number in 0..10 {
        assert_eq!(chat(gateway.traffic, &with_adapter("common", number)).await.status, 200);
    }
    let mut shares = Vec::new();
    for server in fleet.servers() {
        shares.push(asked(server).await.len());
    }
    assert!(*shares.iter().max().unwrap() >= 8, "{shares:?}");
}

/// Fault model, row 82: the one that lost it says 404, and another one is asked.
#[tokio::test]
async fn an_adapter_that_vanished_from_an_endpoint_costs_one_retry_and_no_error() {
    let (fleet, gateway) = start().await;
    for server in &fleet.servers()[..2] {
        server.fault(FaultKind::UnloadAdapter { adapter: "common".to_owned() });
    }
    // Where the list is old, the engine's 404 corrects it; at most two of three have lost it, so
    // that a single retry may meet the second: the client then sees the engine's own 404 once.
    let mut failed = 0;
    for number in 0..20 {
        let answer = chat(gateway.traffic, &with_adapter("common", number)).await;
        failed += usize::from(answer.status != 200);
    }
    assert!(failed <= 1, "{failed} of 20");
    assert!(asked(fleet.server(2)).await.len() >= 19);
}

/// The same with one endpoint that lost it: nobody notices.
#[tokio::test]
async fn an_adapter_that_vanished_from_one_endpoint_is_answered_by_another() {
    let (fleet, gateway) = start().await;
    let first = chat(gateway.traffic, &with_adapter("common", 0)).await;
    assert_eq!(first.status, 200);
    let mut home = None;
    for server in fleet.servers() {
        if !asked(server).await.is_empty() {
            home = Some(server);
        }
    }
    let home = home.unwrap();
    home.fault(FaultKind::UnloadAdapter { adapter: "common".to_owned() });
    for number in 1..20 {
        let answer = chat(gateway.traffic, &with_adapter("common", number)).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
    }
    gateway
        .until("its list is corrected", async || {
            let before = asked(home).await.len();
            chat(gateway.traffic, &with_adapter("common", 99)).await;
            asked(home).await.len() == before
        })
        .await;
    let base = chat(gateway.traffic, &prompt("Hi", 2)).await;
    assert_eq!(base.status, 200);
    assert_eq!(
        gateway.metric("wicketgate_endpoint_ejections_total", &[]).await,
        0.0,
        "a 404 is no illness"
    );
}

/// peers.md §4 H 120: loaded at run time, found without a restart.
#[tokio::test]
async fn an_adapter_that_is_loaded_later_is_found_within_the_interval() {
    let (fleet, gateway) = start().await;
    let url = fleet.server(0).address();
    let load = json!({ "lora_name": "late", "lora_path": "/adapters/late" });
    assert_eq!(post(url, "/v1/load_lora_adapter", &load).await.status, 200);
    gateway
        .until("the gateway found it", async || {
            chat(gateway.traffic, &with_adapter("late", 0)).await.status == 200
        })
        .await;
    let seen = asked(fleet.server(0)).await;
    assert!(
        seen.iter().any(|request| request.path == "/v1/chat/completions" && request.status == 200)
    );
}
