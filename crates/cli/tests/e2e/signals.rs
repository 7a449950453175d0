//! Metrics that are lost, wrong or lying: traffic flows on, and the damage is bounded.

use serde_json::json;
use sim::{FaultKind, Garbage, ServerHandle};
use tokio::task::JoinSet;

use crate::gateway::{Gateway, document};
use crate::http::{CHAT, Client, chat, request};
use crate::scripted::{Act, Scripted};
use crate::sims::{asked, asked_of_all, fast, fleet, prompt, slow, streamed};

const LOST: FaultKind = FaultKind::MetricsError { status: 500 };

async fn chats(gateway: &Gateway, count: usize) {
    for number in 0..count {
        let answer = chat(gateway.traffic, &prompt(&format!("Question {number}"), 2)).await;
        assert_eq!(answer.status, 200, "{answer:?}");
    }
}

async fn state(gateway: &Gateway, server: &ServerHandle, wanted: &str) {
    let url = server.url();
    gateway
        .until(&format!("{url} is {wanted}"), async || gateway.state_of(&url).await == wanted)
        .await;
}

/// STALE-1; fault model, rows 15 and 17.
#[tokio::test]
async fn an_endpoint_that_lost_its_metrics_gets_nothing_until_they_are_back() {
    let fleet = fleet(2, fast()).await;
    let gateway =
        Gateway::over(&fleet.urls(), json!({ "scrape": { "staleAfter": "1500ms" } })).await;
    let blind = fleet.server(0);
    blind.fault(LOST);
    state(&gateway, blind, "stale").await;
    let before = asked(blind).await.len();
    chats(&gateway, 20).await;
    assert_eq!(asked(blind).await.len(), before, "excluded while another one can be seen");

    blind.heal();
    state(&gateway, blind, "ready").await;
    gateway
        .until("it came back", async || {
            chats(&gateway, 1).await;
            asked(blind).await.len() > before
        })
        .await;
}

/// STALE-2 and STALE-4; peers.md §4 D 63 (others answer 500); fault model, row 18.
#[tokio::test]
async fn requests_flow_when_all_metrics_are_lost() {
    for count in [1, 3] {
        let fleet = fleet(count, fast()).await;
        let gateway =
            Gateway::over(&fleet.urls(), json!({ "scrape": { "staleAfter": "100ms" } })).await;
        for server in fleet.servers() {
            server.fault(LOST);
        }
        for server in fleet.servers() {
            state(&gateway, server, "stale").await;
        }
        chats(&gateway, 30).await;
        for server in fleet.servers() {
            assert!(!asked(server).await.is_empty(), "all take part");
        }
        assert!(
            gateway.metric("wicketgate_endpoint_scrape_failures_total", &["status"]).await > 0.0
        );
        assert_eq!(gateway.admin("/readyz").await.status, 200);
    }
}

/// Fault model, row 19.
#[tokio::test]
async fn nonsense_on_a_metrics_page_stops_nothing() {
    let fleet = fleet(2, fast()).await;
    let gateway = Gateway::over(&fleet.urls(), json!({})).await;
    let odd = fleet.server(0);
    for what in [
        Garbage::Nan,
        Garbage::Infinity,
        Garbage::Negative,
        Garbage::Huge,
        Garbage::Text,
        Garbage::Duplicate,
        Garbage::Binary,
        Garbage::Empty,
        Garbage::Giant,
        Garbage::Truncated,
    ] {
        let noticed = async || {
            gateway.metric("wicketgate_endpoint_scrapes_total", &[]).await
                + gateway.metric("wicketgate_endpoint_scrape_failures_total", &[]).await
        };
        let before = noticed().await;
        odd.fault(FaultKind::MetricsGarbage { what });
        gateway.until("the page was read", async || noticed().await > before + 3.0).await;
        chats(&gateway, 5).await;
        odd.heal();
        state(&gateway, odd, "ready").await;
    }
    assert!(gateway.resident_bytes() < 200 << 20, "a page of 50 MB is not read to its end");
}

/// Fault model, row 16: a slow page delays nobody else's.
#[tokio::test]
async fn a_metrics_page_that_never_comes_delays_no_request_and_no_other_scrape() {
    let fleet = fleet(2, fast()).await;
    let times = json!({ "scrape": { "timeout": "200ms", "staleAfter": "300ms" } });
    let gateway = Gateway::over(&fleet.urls(), times).await;
    fleet.server(0).fault(FaultKind::MetricsSlow { delay_ms: 60_000 });
    state(&gateway, fleet.server(0), "stale").await;
    assert_eq!(gateway.state_of(&fleet.server(1).url()).await, "ready");
    chats(&gateway, 10).await;
    gateway
        .until("the timeout was counted", async || {
            gateway.metric("wicketgate_endpoint_scrape_failures_total", &["timeout"]).await >= 1.0
        })
        .await;
}

/// Fault model, row 21: its own word says idle for ever; ours says what it was given.
#[tokio::test]
async fn an_endpoint_that_claims_to_be_idle_gets_at_most_twice_its_share() {
    let fleet = fleet(3, slow()).await;
    let gateway = Gateway::over(&fleet.urls(), json!({})).await;
    gateway.scraped(3).await;
    let liar = fleet.server(0);
    liar.fault(FaultKind::MetricsFrozen);
    let mut open = Vec::new();
    for number in 0..30 {
        let mut client = Client::connect(gateway.traffic).await;
        let body = streamed(&format!("Question {number}"), 4000).to_string();
        client.send(&request("POST", CHAT, &[], body.as_bytes())).await;
        client.until("data: ").await;
        open.push(client);
    }
    let share = asked(liar).await.len();
    let all = asked_of_all(&fleet).await.len();
    assert!((1..=20).contains(&share), "{share} of {all} went to the liar");
}

/// peers.md §4 D 47: others count a request when its answer begins, so a burst picks one endpoint.
#[tokio::test]
async fn a_burst_between_two_scrapes_is_spread() {
    let fleet = fleet(4, slow()).await;
    let never =
        json!({ "scrape": { "busyInterval": "30s", "idleInterval": "60s", "staleAfter": "300s" } });
    let gateway = Gateway::over(&fleet.urls(), never).await;
    let mut burst = JoinSet::new();
    for number in 0..40 {
        let to = gateway.traffic;
        burst.spawn(async move { chat(to, &prompt(&format!("{number}"), 3)).await.status });
    }
    while let Some(status) = burst.join_next().await {
        assert_eq!(status.unwrap(), 200);
    }
    for server in fleet.servers() {
        let share = asked(server).await.len();
        assert!((5..=15).contains(&share), "{share} of 40 at one of 4");
    }
}

/// peers.md §4 D 61: an engine without the page is served all the same.
#[tokio::test]
async fn an_endpoint_without_metrics_is_served() {
    let json = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}";
    let endpoint = Scripted::start(None, Act::Write(vec![json.into()])).await;
    let gateway = Gateway::with_document(&document(&[endpoint.url()], json!({})), &[]).await;
    assert_eq!(gateway.admin("/readyz").await.status, 200);
    chats(&gateway, 5).await;
    assert_eq!(endpoint.requests().len(), 5);
}

/// An engine asleep would take the request and never answer (peers.md §4 F 94).
#[tokio::test]
async fn an_endpoint_that_is_asleep_gets_nothing() {
    let page = "# TYPE vllm:engine_sleep_state gauge\n\
                vllm:engine_sleep_state{engine=\"0\",model_name=\"llama-3.1-8b\",sleep_state=\"awake\"} 0.0\n\
                vllm:engine_sleep_state{engine=\"0\",model_name=\"llama-3.1-8b\",sleep_state=\"weights_offloaded\"} 1.0\n\
                # TYPE vllm:num_requests_waiting gauge\n\
                vllm:num_requests_waiting{engine=\"0\",model_name=\"llama-3.1-8b\"} 0.0\n\
                # TYPE vllm:num_requests_running gauge\n\
                vllm:num_requests_running{engine=\"0\",model_name=\"llama-3.1-8b\"} 0.0\n";
    let asleep = Scripted::start(Some(page), Act::WriteAndHold(Vec::new())).await;
    let fleet = fleet(1, fast()).await;
    let urls = [fleet.urls(), vec![asleep.url()]].concat();
    let gateway = Gateway::over(&urls, json!({})).await;
    chats(&gateway, 20).await;
    assert!(asleep.requests().is_empty());
}
