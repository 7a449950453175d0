//! Metrics pages that are frozen, slow, broken or absurd.

use std::time::Duration;

use engines::parse;
use serde_json::json;
use tokio::time::Instant;
use wicketgate_sim::{FaultKind, Garbage};

use crate::client::{Answer, CHAT, chat, fast, get, post, start};

async fn spoilt(what: Garbage) -> Answer {
    let fleet = start(fast()).await;
    fleet.server(0).fault(FaultKind::MetricsGarbage { what });
    get(fleet.server(0).address(), "/metrics").await
}

#[tokio::test]
async fn a_frozen_page_does_not_change_until_healed() {
    let fleet = start(fast()).await;
    let server = fleet.server(0);
    server.fault(FaultKind::MetricsFrozen);
    let before = get(server.address(), "/metrics").await.text();
    post(server.address(), CHAT, &chat("hello", 3, false)).await;
    assert_eq!(get(server.address(), "/metrics").await.text(), before);
    server.heal();
    assert_ne!(get(server.address(), "/metrics").await.text(), before);
}

#[tokio::test]
async fn values_can_be_nonsense() {
    for (what, value) in [
        (Garbage::Nan, "NaN"),
        (Garbage::Infinity, "+Inf"),
        (Garbage::Negative, "-7.0"),
        (Garbage::Huge, "1e308"),
        (Garbage::Text, "several"),
    ] {
        let page = spoilt(what).await.text();
        let running = format!(
            "vllm:num_requests_running{{engine=\"0\",model_name=\"llama-3.1-8b\"}} {value}\n"
        );
        assert!(page.contains(&running), "{what:?}: {page}");
    }
    let page = spoilt(Garbage::Duplicate).await.text();
    assert_eq!(page.matches("\nvllm:num_requests_running{").count(), 2);
}

#[tokio::test]
async fn a_page_can_be_no_page_at_all() {
    assert_eq!(spoilt(Garbage::Empty).await.body, b"");
    assert!(String::from_utf8(spoilt(Garbage::Binary).await.body).is_err());
    assert!(!spoilt(Garbage::Truncated).await.text().ends_with('\n'));
    assert!(spoilt(Garbage::Giant).await.body.len() > 50_000_000);
}

#[tokio::test]
async fn no_garbage_panics_the_parser_of_the_gateway() {
    for what in [Garbage::Nan, Garbage::Huge, Garbage::Text, Garbage::Binary, Garbage::Truncated] {
        // Whatever it makes of it.
        let _ = parse(&spoilt(what).await.body, None);
    }
}

#[tokio::test]
async fn a_page_can_be_slow_or_an_error_while_requests_are_served() {
    let fleet = start(fast()).await;
    let address = fleet.server(0).address();
    post(address, "/admin/fault", &json!({"kind": "metrics_error", "status": 500})).await;
    assert_eq!(get(address, "/metrics").await.status, 500);
    assert_eq!(post(address, CHAT, &chat("hello", 1, false)).await.status, 200);
    fleet.server(0).heal();
    fleet.server(0).fault(FaultKind::MetricsSlow { delay_ms: 120 });
    let begun = Instant::now();
    assert_eq!(get(address, "/metrics").await.status, 200);
    assert!(begun.elapsed() >= Duration::from_millis(120));
}
