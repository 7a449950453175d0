//! Canaries while traffic runs: taken back, stepped, mirrored.

use serde_json::{Value, json};
use sim::FaultKind;

use crate::commands::run;
use crate::gateway::Gateway;
use crate::http::{Answer, ask, chat};
use crate::rewriting::{NEXT, document_of, gateway_of, named, split, two_pools};
use crate::sims::{asked, prompt, seen, streamed};

async fn status(gateway: &Gateway) -> Value {
    gateway.admin("/debug/rollouts?name=canary").await.json()["rollouts"][0].clone()
}

fn rollout(gateway: &Gateway, arguments: &[&str]) -> (i32, String, String) {
    let admin = gateway.admin.to_string();
    run(&[&["rollout", "--admin", &admin], arguments].concat())
}

async fn once(gateway: &Gateway) -> Answer {
    chat(gateway.traffic, &named(streamed("Hi", 1), "chat")).await
}

fn guarded(weights: [u32; 2], rollback: Value) -> Value {
    let mut rules = split(weights);
    rules[0]["rollback"] = rollback;
    rules
}

async fn a_canary_that_fails_is_taken_back_until_an_operator_resumes_it() {
    let fleet = two_pools().await;
    let rules = guarded([50, 50], json!({ "minRequests": 5, "window": "5s" }));
    let gateway = gateway_of(&fleet, rules).await;
    fleet.server(1).fault(FaultKind::Error {
        status: 500,
        retry_after: None,
        body: None,
        content_type: None,
    });
    gateway
        .until("the canary is taken back", async || {
            once(&gateway).await;
            status(&gateway).await["state"] == "rolled-back"
        })
        .await;
    let told = status(&gateway).await;
    let back = &told["targets"][1]["rolled_back"];
    let reason = back["reason"].as_str().unwrap();
    assert!(reason.contains("against 0.0 % on the stable side"), "{reason}");
    assert!(back["time"].as_str().unwrap().ends_with('Z'));
    gateway.said("rolled back: the target gets no more requests").await;
    let labels = ["target=\"llama-next\""];
    assert_eq!(gateway.metric("wicketgate_rewrite_rolled_back", &labels).await, 1.0);
    let before = asked(fleet.server(1)).await.len();
    for _ in 0..30 {
        assert_eq!(once(&gateway).await.status, 200);
    }
    assert_eq!(asked(fleet.server(1)).await.len(), before, "it gets nothing at all");

    fleet.server(1).heal();
    let (code, said, complained) = rollout(&gateway, &["resume", "canary", "--to", "10%"]);
    assert_eq!(code, 0, "{complained}");
    assert!(said.contains("active") && said.contains("10 %"), "{said}");
    for _ in 0..50 {
        assert_eq!(once(&gateway).await.status, 200);
    }
    assert!(asked(fleet.server(1)).await.len() > before);
}

async fn a_canary_that_is_slow_is_taken_back() {
    let fleet = two_pools().await;
    let rollback =
        json!({ "minRequests": 5, "window": "10s", "ttftRatio": 2, "ttftSlack": "60ms" });
    let gateway = gateway_of(&fleet, guarded([50, 50], rollback)).await;
    fleet.server(1).fault(FaultKind::SlowFirstByte { delay_ms: 150 });
    gateway
        .until("the canary is taken back", async || {
            once(&gateway).await;
            status(&gateway).await["state"] == "rolled-back"
        })
        .await;
    let told = status(&gateway).await;
    let reason = told["targets"][1]["rolled_back"]["reason"].as_str().unwrap();
    assert!(reason.starts_with("P95 TTFT "), "{reason}");
}

#[tokio::test]
async fn an_operator_sees_and_steps_a_rollout() {
    let fleet = two_pools().await;
    let gateway = gateway_of(&fleet, split([100, 0])).await;
    let (code, said, _) = rollout(&gateway, &["status"]);
    assert_eq!(code, 0);
    assert!(said.contains("canary, rule 0, for chat: active; no rollback configured"), "{said}");
    for (to, wanted) in [(None, 0.01), (None, 0.05), (Some("25%"), 0.25)] {
        let mut arguments = vec!["step", "canary"];
        arguments.extend(to.iter().flat_map(|to| ["--to", to]));
        let (code, said, complained) = rollout(&gateway, &arguments);
        assert_eq!(code, 0, "{complained}");
        assert!(
            said.contains("weights set by an operator") && said.contains("write into the document"),
            "{said}"
        );
        let share = status(&gateway).await["targets"][1]["share"].as_f64().unwrap();
        assert!((share - wanted).abs() < 1e-6, "{share}");
    }
    assert_eq!(gateway.metric("wicketgate_rewrite_share_ratio", &[NEXT]).await, 0.25);
    let before = asked(fleet.server(1)).await.len();
    for _ in 0..80 {
        once(&gateway).await;
    }
    let canary = asked(fleet.server(1)).await.len() - before;
    assert!(canary.abs_diff(20) <= 3, "{canary} of 80");

    assert_eq!(rollout(&gateway, &["pause", "canary"]).0, 0);
    let (code, _, complained) = rollout(&gateway, &["step", "canary"]);
    assert_eq!(code, 1);
    assert!(complained.contains("it is paused: resume it first"), "{complained}");
    assert_eq!(rollout(&gateway, &["resume", "canary"]).0, 0);
    let (code, said, _) = rollout(&gateway, &["set", "canary", "llama-next=0", "llama-3.1-8b=7"]);
    assert!(code == 0 && said.contains("7 (document: 100)"), "{said}");
    let (code, said, _) = rollout(&gateway, &["rollback", "canary", "--reason", "wrong answers"]);
    assert!(code == 0 && said.contains("wrong answers"), "{said}");
    let (code, said, _) = rollout(&gateway, &["status", "canary", "--json"]);
    let told: Value = serde_json::from_str(&said).unwrap();
    assert_eq!((code, &told["rollouts"][0]["state"]), (0, &json!("rolled-back")));
    let (code, _, complained) = rollout(&gateway, &["status", "carany"]);
    assert!(code == 1 && complained.contains("rewrites: canary"), "{complained}");
}

#[tokio::test]
async fn the_document_goes_before_the_operator_once_it_changes_the_rule() {
    let fleet = two_pools().await;
    let gateway = gateway_of(&fleet, split([100, 0])).await;
    assert_eq!(rollout(&gateway, &["step", "canary", "--to", "50%"]).0, 0);
    // Something else changes: the step stays.
    let mut document = document_of(&fleet.urls(), split([100, 0]));
    document["spec"]["exposeDecision"] = json!(true);
    gateway.rewrite(&document.to_string());
    gateway
        .until("the document is in force", async || {
            once(&gateway).await.header("x-wicketgate-endpoint").is_some()
        })
        .await;
    assert_eq!(status(&gateway).await["overridden"], true);
    gateway.rewrite(&document_of(&fleet.urls(), split([80, 20])).to_string());
    gateway
        .until("the document's weights are in force", async || {
            let told = status(&gateway).await;
            told["overridden"] == false && told["targets"][1]["share"] == 0.2
        })
        .await;
}

#[tokio::test]
async fn pages_of_other_origins_change_nothing() {
    let fleet = two_pools().await;
    let gateway = gateway_of(&fleet, split([100, 0])).await;
    let path = "/debug/rollouts/canary";
    let action = json!({ "action": "step", "to": 1.0 }).to_string();
    let post = async |fields: &[(&str, &str)], body: &str| {
        ask(gateway.admin, "POST", path, fields, body.as_bytes()).await.status
    };
    let json_type = ("Content-Type", "application/json");
    assert_eq!(post(&[json_type, ("Origin", "http://evil.example")], &action).await, 403);
    assert_eq!(post(&[json_type, ("Origin", "null")], &action).await, 403);
    for wrong in ["{", "{\"action\":\"explode\"}", "{\"action\":\"step\",\"tO\":1}", "[]"] {
        assert_eq!(post(&[], wrong).await, 400, "{wrong}");
    }
    assert_eq!(status(&gateway).await["overridden"], false);
    let unknown = ask(gateway.admin, "POST", "/debug/rollouts/other", &[], action.as_bytes()).await;
    assert_eq!(unknown.status, 404);
    assert_eq!(post(&[], &action).await, 200);
    assert_eq!(status(&gateway).await["overridden"], true);
}

#[tokio::test]
async fn copies_go_to_the_mirror_and_never_to_a_client() {
    let fleet = two_pools().await;
    let rules = json!([{
        "targets": [{ "modelRewrite": "llama-3.1-8b" }],
        "mirror": { "modelRewrite": NEXT },
    }]);
    let gateway = gateway_of(&fleet, rules).await;
    for number in 0..10 {
        let body = if number % 2 == 0 { prompt("Hi", 2) } else { streamed("Hi", 2) };
        let answer = chat(gateway.traffic, &named(body, "chat")).await;
        assert!(answer.status == 200 && !answer.text().contains(NEXT), "{}", answer.text());
    }
    gateway
        .until("all copies are answered", async || {
            status(&gateway).await["mirror"]["answered"] == 10
        })
        .await;
    assert_eq!(asked(fleet.server(0)).await.len(), 10);
    assert_eq!(asked(fleet.server(1)).await.len(), 10);
    assert_eq!(gateway.metric("wicketgate_requests_total", &["pool=\"next\""]).await, 0.0);
    assert_eq!(gateway.metric("wicketgate_requests_open", &[]).await, 0.0);
    let labels = ["target=\"llama-next\"", "outcome=\"ok\""];
    assert_eq!(gateway.metric("wicketgate_rewrite_mirrored_total", &labels).await, 10.0);
}

#[tokio::test]
async fn a_mirror_that_hangs_or_is_gone_harms_no_client() {
    let fleet = two_pools().await;
    let rules = json!([{
        "targets": [{ "modelRewrite": "llama-3.1-8b" }],
        "mirror": { "modelRewrite": NEXT, "concurrencyMax": 2 },
    }]);
    let gateway = gateway_of(&fleet, rules).await;
    fleet.server(1).fault(FaultKind::Stall { after_chunks: None });
    for _ in 0..10 {
        assert_eq!(once(&gateway).await.status, 200);
    }
    seen(fleet.server(1), |_| true).await;
    let told = status(&gateway).await;
    assert_eq!(told["mirror"]["under_way"], 2);
    assert_eq!(told["mirror"]["left_out"], 8);
}

crate::front::on_both_paths!(
    a_canary_that_fails_is_taken_back_until_an_operator_resumes_it,
    a_canary_that_is_slow_is_taken_back,
);
