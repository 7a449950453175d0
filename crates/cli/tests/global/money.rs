//! Prices, budgets and residency.

use serde_json::json;

use crate::http::{CHAT, ask, chat};
use crate::load::prompt;
use crate::stand::{Plan, Stand};

fn price(input: f64, output: f64) -> serde_json::Value {
    json!({ "price": { "inputPerMillion": input, "outputPerMillion": output } })
}

#[tokio::test]
async fn the_cheapest_member_that_is_fast_enough_gets_the_request_and_the_saving_is_told() {
    let plan = Plan {
        router: json!({ "routing": { "shaping": "cheapest", "slo": { "ttft": "30s" } } }),
        members: vec![price(10.0, 30.0), price(1.0, 3.0), price(5.0, 15.0)],
        ..Plan::default()
    };
    let stand = Stand::start(plan).await;
    for n in 0..10 {
        let answer = chat(stand.router().traffic, &prompt(&format!("Question {n}"), 5)).await;
        assert_eq!(answer.header("x-wicketgate-member"), Some("b"), "{answer:?}");
    }
    let fleet = stand.router().admin("/debug/fleet").await.json();
    let saving = &fleet["savings"][0];
    assert_eq!((&saving["member"], &saving["requests"]), (&json!("b"), &json!(10)), "{fleet}");
    assert!(saving["spent"].as_f64() > Some(0.0), "{fleet}");
    let (_, text) = stand.router().command(&["status"]);
    assert!(text.contains("by shaping"), "{text}");
}

#[tokio::test]
async fn a_tenant_that_has_spent_its_budget_is_refused_until_tomorrow() {
    let plan = Plan {
        clusters: 1,
        router: json!({ "tenants": [{ "tenant": "anonymous", "budgetPerDay": 1.0 }] }),
        // One answer costs more than all that there is.
        members: vec![price(1_000_000.0, 1_000_000.0)],
        ..Plan::default()
    };
    let stand = Stand::start(plan).await;
    let to = stand.router().traffic;
    assert_eq!(chat(to, &prompt("Hi", 5)).await.status, 200);
    let answer = chat(to, &prompt("Hi", 5)).await;
    assert_eq!((answer.status, answer.code()), (429, "insufficient_quota".to_owned()));
    assert!(answer.header("retry-after").is_some());
    let budgets = stand.router().admin("/debug/fleet").await.json()["budgets"].clone();
    assert_eq!(budgets[0]["remaining"], 0.0, "{budgets}");
}

#[tokio::test]
async fn no_request_leaves_the_residency_that_its_tenant_asks_for() {
    let plan = Plan {
        router: json!({ "tenants": [{ "tenant": "anonymous", "residency": ["eu"] }] }),
        members: vec![
            json!({}),
            json!({ "residency": ["eu", "hipaa"] }),
            json!({ "residency": ["us"] }),
        ],
        ..Plan::default()
    };
    let mut stand = Stand::start(plan).await;
    for n in 0..10 {
        let answer = chat(stand.router().traffic, &prompt(&format!("Question {n}"), 3)).await;
        assert_eq!(answer.header("x-wicketgate-member"), Some("b"));
    }
    // Rather no answer than one from elsewhere.
    stand.clusters[1].process.kill();
    for _ in 0..5 {
        let body = prompt("Hi", 3).to_string();
        let answer = ask(stand.router().traffic, "POST", CHAT, &[], body.as_bytes()).await;
        assert_eq!(answer.status, 503, "{answer:?}");
        assert!(answer.header("retry-after").is_some());
    }
}

#[tokio::test]
async fn a_member_gets_only_the_models_that_the_document_allows_it() {
    let plan = Plan {
        clusters: 2,
        members: vec![json!({ "models": ["another-model"] })],
        ..Plan::default()
    };
    let stand = Stand::start(plan).await;
    for n in 0..10 {
        let answer = chat(stand.router().traffic, &prompt(&format!("Question {n}"), 3)).await;
        assert_eq!(answer.header("x-wicketgate-member"), Some("b"));
    }
}
