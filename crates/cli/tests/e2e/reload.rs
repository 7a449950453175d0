//! A document that changes while traffic runs.

use serde_json::json;

use crate::gateway::{Gateway, document};
use crate::http::{Answer, CHAT, Client, ask, chat, request};
use crate::sims::{asked, fast, fleet, prompt, slow, streamed};

async fn reloads(gateway: &Gateway, outcome: &str) -> f64 {
    gateway.metric("wicketgate_config_reloads_total", &[outcome]).await
}

/// Opens `count` streams of `tokens` tokens and waits until each has begun.
async fn open_streams(gateway: &Gateway, count: usize, tokens: u32) -> Vec<Client> {
    let mut open = Vec::new();
    for number in 0..count {
        let mut client = Client::connect(gateway.traffic).await;
        let body = streamed(&format!("Question {number}"), tokens).to_string();
        client.send(&request("POST", CHAT, &[], body.as_bytes())).await;
        client.until("data: ").await;
        open.push(client);
    }
    open
}

fn assert_whole(answer: &Answer) {
    assert!(
        answer.complete && answer.text().ends_with("data: [DONE]\n\n"),
        "a stream was dropped: {}",
        answer.text()
    );
}

/// The point 2.
#[tokio::test]
async fn reloading_drops_no_stream_and_moves_new_requests() {
    let fleet = fleet(2, slow()).await;
    let (first, second) = (&fleet.urls()[..1], &fleet.urls()[1..]);
    let gateway = Gateway::over(first, json!({})).await;
    let mut open = open_streams(&gateway, 10, 150).await;

    gateway.rewrite(&document(&fleet.urls(), json!({})).to_string());
    gateway.scraped(2).await;
    assert_eq!(reloads(&gateway, "applied").await, 1.0);
    gateway
        .until("the new endpoint gets requests", async || {
            assert_eq!(chat(gateway.traffic, &prompt("Hi", 2)).await.status, 200);
            !asked(fleet.server(1)).await.is_empty()
        })
        .await;

    gateway.rewrite(&document(second, json!({})).to_string());
    gateway.until("the first is gone", async || gateway.endpoints().await.len() == 1).await;
    let before = asked(fleet.server(0)).await.len();
    for _ in 0..10 {
        assert_eq!(chat(gateway.traffic, &prompt("Hi", 2)).await.status, 200);
    }
    assert_eq!(asked(fleet.server(0)).await.len(), before, "a removed endpoint gets nothing new");
    for client in &mut open {
        assert_whole(&client.answer().await);
    }
    let gone = fleet.server(0).address().to_string();
    assert!(!gateway.admin("/metrics").await.text().contains(&gone), "its series are gone");
}

/// peers.md §4 F 93; Cloudflare, 18 November 2025.
#[tokio::test]
async fn a_bad_document_changes_nothing_and_is_told_on_standard_error() {
    let fleet = fleet(1, slow()).await;
    let gateway = Gateway::over(&fleet.urls(), json!({})).await;
    let mut open = open_streams(&gateway, 3, 100).await;
    let good = document(&fleet.urls(), json!({}));
    let mut misspelt = good.clone();
    misspelt["spec"]["shedulers"] = json!([]);
    let cut = good.to_string()[..100].to_owned();
    for (rejected, text) in
        [misspelt.to_string(), cut, String::new(), "\u{0}".to_owned()].iter().enumerate()
    {
        gateway.rewrite(text);
        let wanted = (rejected + 1) as f64;
        gateway
            .until("it was rejected", async || reloads(&gateway, "rejected").await == wanted)
            .await;
        assert_eq!(chat(gateway.traffic, &prompt("Hi", 2)).await.status, 200);
    }
    gateway.said("the old one stays in force").await;
    gateway.said("did you mean `schedulers`").await;
    std::fs::remove_file(gateway.document_file()).unwrap();
    gateway
        .until("the missing file was noticed", async || reloads(&gateway, "rejected").await == 5.0)
        .await;
    assert_eq!(chat(gateway.traffic, &prompt("Hi", 2)).await.status, 200);

    gateway.rewrite(&document(&fleet.urls(), json!({ "exposeDecision": true })).to_string());
    gateway
        .until("the good one is in force", async || reloads(&gateway, "applied").await == 1.0)
        .await;
    assert!(
        chat(gateway.traffic, &prompt("Hi", 2)).await.header("x-wicketgate-endpoint").is_some()
    );
    for client in &mut open {
        assert_whole(&client.answer().await);
    }
}

/// SIGHUP reads the same file again, whether it changed or not.
#[tokio::test]
async fn sighup_reads_the_document_again() {
    let fleet = fleet(1, fast()).await;
    let gateway = Gateway::over(&fleet.urls(), json!({})).await;
    for wanted in [1.0, 2.0] {
        gateway.signal("HUP");
        gateway.until("it was read", async || reloads(&gateway, "unchanged").await == wanted).await;
    }
    assert_eq!(chat(gateway.traffic, &prompt("Hi", 2)).await.status, 200);
}

/// Limits and times hold for connections that are accepted after the change.
#[tokio::test]
async fn a_changed_limit_holds_for_the_next_connection() {
    let fleet = fleet(1, fast()).await;
    let gateway = Gateway::over(&fleet.urls(), json!({})).await;
    let body = prompt(&"x".repeat(2000), 2).to_string();
    assert_eq!(ask(gateway.traffic, "POST", CHAT, &[], body.as_bytes()).await.status, 200);
    gateway.rewrite(
        &document(&fleet.urls(), json!({ "limits": { "requestBodyBytesMax": 1000 } })).to_string(),
    );
    gateway.until("it is in force", async || reloads(&gateway, "applied").await == 1.0).await;
    assert_eq!(ask(gateway.traffic, "POST", CHAT, &[], body.as_bytes()).await.status, 413);
}

/// Some parts are read once; a document that changes them says so instead of half obeying.
#[tokio::test]
async fn a_change_that_needs_a_restart_is_told() {
    let fleet = fleet(1, fast()).await;
    let gateway = Gateway::over(&fleet.urls(), json!({})).await;
    gateway.rewrite(
        &document(&fleet.urls(), json!({ "prefixIndex": { "blockTokens": 32 } })).to_string(),
    );
    gateway.said("takes force only with a restart").await;
    assert!(gateway.stderr().contains("prefixIndex"));
    assert_eq!(chat(gateway.traffic, &prompt("Hi", 2)).await.status, 200);
}

/// A setting of the scrapes is read by tasks that run since before the reload.
#[tokio::test]
async fn a_reload_reaches_the_scrapes_of_endpoints_that_stay() {
    let fleet = fleet(2, fast()).await;
    let scrape = |stale_after: &str| {
        let times = json!({ "idleInterval": "200ms", "staleAfter": stale_after });
        document(&fleet.urls(), json!({ "scrape": times }))
    };
    let gateway = Gateway::with_document(&scrape("60s"), &[]).await;
    gateway.scraped(2).await;
    gateway.rewrite(&scrape("400ms").to_string());
    gateway.until("it is applied", async || reloads(&gateway, "applied").await == 1.0).await;
    let scrapes = async || gateway.metric("wicketgate_endpoint_scrapes_total", &[]).await;
    // One scrape of each endpoint may have been under way; those after it know the new setting.
    let seen = scrapes().await;
    gateway.until("more scrapes came", async || scrapes().await >= seen + 8.0).await;
    let url = fleet.server(0).url();
    fleet.server(0).fault(sim::FaultKind::MetricsError { status: 500 });
    gateway.until("it is stale", async || gateway.state_of(&url).await == "stale").await;
}
