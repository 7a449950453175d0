//! What tenants cost, by key, price and page; a template that is edited while it is in use.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use crate::auth::{Closed, bearer};
use crate::gateway::Gateway;
use crate::http::{CHAT, ask, chat};
use crate::sims::{fast, fleet, prompt};

/// Long enough for an alarm at `within: 2s` on a machine that is busy.
const ALARM_PATIENCE: Duration = Duration::from_secs(120);

#[tokio::test]
async fn each_tenant_s_gpu_seconds_are_told_with_their_cost() {
    let observability = json!({
        "usage": { "tenantSeriesMax": 1 },
        "currency": "EUR",
        "prices": [{ "scheduler": "chat", "gpuHour": 3600.0, "gpusPerEndpoint": 2 }],
    });
    let closed = Closed::start(json!({}), json!({ "observability": observability })).await;
    let keys = [closed.key("alice", &[]).await, closed.key("bob", &[]).await];
    for (key, requests) in keys.iter().zip([2, 1]) {
        for _ in 0..requests {
            let (name, value) = bearer(key);
            let body = prompt("Hi", 20).to_string();
            let fields = [(name, value.as_str())];
            let answer = ask(closed.gateway.traffic, "POST", CHAT, &fields, body.as_bytes()).await;
            assert_eq!(answer.status, 200);
        }
    }
    // Each key was tried once when it was made.
    let mut usage = Value::Null;
    closed
        .gateway
        .until("all requests were booked", async || {
            usage = closed.gateway.admin("/debug/usage").await.json();
            let rows = usage["rows"].as_array().unwrap().iter();
            rows.map(|row| row["requests"].as_u64().unwrap()).sum::<u64>() == 5
        })
        .await;
    assert_eq!(usage["currency"], "EUR");
    let row = |tenant: &str| {
        let rows = usage["rows"].as_array().unwrap();
        rows.iter().find(|row| row["tenant"] == tenant).unwrap_or_else(|| panic!("{usage}")).clone()
    };
    let number = |row: &Value, key: &str| row[key].as_f64().unwrap();
    for tenant in ["alice", "bob"] {
        let row = row(tenant);
        let seconds = number(&row, "prefill_gpu_seconds") + number(&row, "decode_gpu_seconds");
        assert!(seconds > 0.0 && (number(&row, "cost") - seconds).abs() < 1e-9, "{row}");
    }
    assert_eq!(
        (row("alice")["requests"].clone(), row("bob")["requests"].clone()),
        (3.into(), 2.into())
    );

    let shown = async |tenant: &str| {
        let tenant = format!("tenant=\"{tenant}\"");
        closed.gateway.metric("wicketgate_tenant_gpu_seconds_total", &[&tenant]).await
    };
    let seconds = |row: Value| {
        (number(&row, "prefill_gpu_seconds") + number(&row, "decode_gpu_seconds")) / 2.0
    };
    assert!((shown("alice").await - seconds(row("alice"))).abs() < 1e-6, "the first has a series");
    assert!((shown("_other").await - seconds(row("bob"))).abs() < 1e-6, "the others are one");
    assert_eq!(shown("bob").await, 0.0);
}

#[tokio::test]
async fn an_edit_that_breaks_a_template_is_blamed_at_its_block_with_what_it_costs() {
    let fleet = fleet(1, fast()).await;
    let observability = json!({
        "prefixAlarm": { "within": "2s", "lossTokensPerHourMin": 1000 },
        "prices": [{ "scheduler": "chat", "gpuHour": 2.0 }],
    });
    let gateway = Gateway::over(&fleet.urls(), json!({ "observability": observability })).await;
    // 256 bytes are a block: the edit stands in the eighth.
    let line = |number: usize| format!("{number:06} canary rule of all prompts. ");
    let template: String = (0..200).map(line).collect();
    let (before, after) = template.split_at(1900);
    let send = async |number: u32, edit: &str| {
        let text = format!("{before}{edit}{after}question {number:08}");
        assert_eq!(chat(gateway.traffic, &prompt(&text, 1)).await.status, 200);
    };
    let begun = Instant::now();
    let mut number = 0;
    // What is usual must be known for six times `within`, at a rate that then goes on.
    while begun.elapsed() < Duration::from_secs(14) {
        send(number, "[no date]").await;
        number += 1;
    }
    assert_eq!(gateway.metric("wicketgate_prefix_regressions_total", &[]).await, 0.0);
    let alarm = async {
        // At the rate of before: prompts that merely cease are no regression.
        while gateway.metric("wicketgate_prefix_regressions_open", &["chat"]).await < 1.0 {
            for _ in 0..20 {
                send(number, &format!("{number:09}")).await;
                number += 1;
            }
        }
    };
    tokio::time::timeout(ALARM_PATIENCE, alarm).await.expect("no alarm");

    let page = gateway.admin("/debug/prefixes").await.json();
    let templates = page["templates"].as_array().unwrap();
    let regression = templates.iter().map(|row| &row["regression"]).find(|row| !row.is_null());
    let regression = regression.unwrap_or_else(|| panic!("{page}"));
    assert_eq!((&regression["cause"], &regression["block"]), (&json!("per_request"), &json!(7)));
    for key in ["lost_tokens_per_hour", "lost_gpu_seconds_per_hour", "lost_cost_per_hour"] {
        assert!(regression[key].as_f64().unwrap() > 0.0, "{key} of {regression}");
    }
    assert!(gateway.metric("wicketgate_prefix_loss_tokens_per_hour", &["chat"]).await > 1000.0);
    gateway.said("share less than they did").await;
    assert!(gateway.stderr().contains("block=7"), "{}", gateway.stderr());
    for told in [page.to_string(), gateway.stderr(), gateway.stdout()] {
        assert!(!told.contains("canary"), "text of a prompt in {told}");
    }
}
