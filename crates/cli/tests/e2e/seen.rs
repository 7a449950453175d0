//! What people see from outside: metrics of each level, other names for them, reports for CloudWatch.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use sim::Outcome;

use crate::gateway::{Gateway, document};
use crate::http::{CHAT, Client, ask, chat, request};
use crate::sims::{fast, fleet, prompt, seen, slow, streamed};

/// A streamed chat that asks for its usage.
fn counted(content: &str) -> Value {
    let mut body = streamed(content, 5);
    body["stream_options"] = json!({ "include_usage": true });
    body
}

#[tokio::test]
async fn a_request_shows_at_every_level() {
    let fleet = fleet(2, fast()).await;
    let gateway = Gateway::over(&fleet.urls(), json!({})).await;
    gateway.scraped(2).await;
    assert_eq!(chat(gateway.traffic, &counted("hello")).await.status, 200);
    assert_eq!(gateway.metric("wicketgate_responses_total", &["code=\"200\""]).await, 1.0);
    assert_eq!(gateway.metric("wicketgate_request_output_tokens_sum", &[]).await, 5.0);
    assert!(gateway.metric("wicketgate_endpoint_signal_age_seconds", &["models"]).await >= 0.0);
    // The window moves on every few seconds.
    gateway
        .until("the cluster's rate has the request", async || {
            gateway.metric("wicketgate_cluster_requests_per_second", &[]).await > 0.0
        })
        .await;
    assert!(gateway.metric("wicketgate_cluster_ttft_p99_seconds", &[]).await > 0.0);
    assert!(gateway.metric("wicketgate_cluster_headroom_requests", &[]).await > 0.0);
    assert_eq!(gateway.metric("wicketgate_cluster_endpoints", &["ready"]).await, 2.0);
}

#[tokio::test]
async fn names_of_others_stand_on_the_page_when_asked_for() {
    let fleet = fleet(1, fast()).await;
    let names = json!({ "observability": { "metricNames": ["wicketgate", "field", "genai"] } });
    let gateway = Gateway::over(&fleet.urls(), names).await;
    gateway.scraped(1).await;
    assert_eq!(chat(gateway.traffic, &counted("hello")).await.status, 200);
    for name in [
        "wicketgate_request_ttft_seconds_count",
        "inference_objective_request_duration_seconds_count",
        "gen_ai_server_time_to_first_token_seconds_count",
    ] {
        assert_eq!(gateway.metric(name, &[]).await, 1.0, "{name}");
    }
    let usage = "gen_ai_client_token_usage_sum";
    assert_eq!(gateway.metric(usage, &["gen_ai_token_type=\"output\""]).await, 5.0);
}

#[tokio::test]
async fn reports_in_the_embedded_metric_format_are_lines_of_their_own() {
    let fleet = fleet(2, fast()).await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("emf");
    let cloud_watch = json!({
        "mode": "emf", "target": file, "interval": "1s", "dimensions": { "Cluster": "test" },
    });
    let extra = json!({ "observability": { "cloudWatch": cloud_watch } });
    let gateway = Gateway::with_document(&document(&fleet.urls(), extra), &[]).await;
    gateway.scraped(2).await;
    let last = || -> Option<Value> {
        let text = std::fs::read_to_string(&file).ok()?;
        serde_json::from_str(text.lines().last()?).ok()
    };
    gateway
        .until("a report has both endpoints", async || {
            last().is_some_and(|line| line["ReadyEndpoints"] == 2.0)
        })
        .await;
    let line = last().unwrap();
    let directive = &line["_aws"]["CloudWatchMetrics"][0];
    assert_eq!((&directive["Namespace"], &line["Cluster"]), (&json!("Wicketgate"), &json!("test")));
    for metric in directive["Metrics"].as_array().unwrap() {
        let name = metric["Name"].as_str().unwrap();
        assert!(line[name].is_number(), "{name} in {line}");
    }
    // The line is there a moment before it is counted.
    gateway
        .until("the report is counted", async || {
            gateway.metric("wicketgate_cloudwatch_reports_total", &[]).await >= 1.0
        })
        .await;
    assert_eq!(gateway.metric("wicketgate_cloudwatch_failures_total", &[]).await, 0.0);
}

#[tokio::test]
async fn a_cloud_that_is_not_there_costs_a_count_and_no_request() {
    let fleet = fleet(1, fast()).await;
    let cloud_watch = json!({
        "mode": "api", "region": "eu-west-1", "endpoint": "http://127.0.0.1:1", "interval": "1s",
    });
    let extra = json!({ "observability": { "cloudWatch": cloud_watch } });
    let gateway = Gateway::with_document(&document(&fleet.urls(), extra), &[]).await;
    gateway.scraped(1).await;
    gateway
        .until("a failure is counted", async || {
            gateway.metric("wicketgate_cloudwatch_failures_total", &[]).await >= 1.0
        })
        .await;
    assert_eq!(chat(gateway.traffic, &counted("hello")).await.status, 200);
}

/// A document with every section that brings series of its own.
fn everything(urls: &[String]) -> Value {
    document(
        urls,
        json!({
            "flowControl": {},
            "objectives": [{ "name": "chat", "priority": "Critical" }],
            "rateLimits": [{ "name": "fair", "per": ["tenant"], "requests": { "perMinute": 6000 } }],
            "modelRewrites": [{
                "name": "alias",
                "rules": [{
                    "matches": [{ "model": { "value": "assistant" } }],
                    "targets": [{ "modelRewrite": "llama-3.1-8b" }],
                }],
            }],
        }),
    )
}

/// Every pair of label and value on the page.
async fn labels(gateway: &Gateway) -> BTreeSet<String> {
    let page = gateway.admin("/metrics").await.text();
    let series = page.lines().filter(|line| !line.starts_with('#'));
    let labels = series.filter_map(|line| line.rsplit_once("} ")?.0.split_once('{'));
    let pairs = labels.flat_map(|(_, labels)| labels.split("\","));
    pairs.map(|pair| pair.trim_end_matches('"').to_owned()).collect()
}

#[tokio::test]
async fn what_is_configured_stands_at_zero_before_the_first_request() {
    let fleet = fleet(1, fast()).await;
    let gateway = Gateway::with_document(&everything(&fleet.urls()), &[]).await;
    gateway.scraped(1).await;
    let page = gateway.admin("/metrics").await.text();
    for series in [
        r#"wicketgate_requests_total{pool="chat",route="chat_completions",outcome="endpoint_error"} 0"#,
        r#"wicketgate_responses_total{pool="chat",code="503"} 0"#,
        r#"wicketgate_requests_rejected_total{pool="chat",reason="saturated"} 0"#,
        r#"wicketgate_request_ttft_seconds_count{pool="chat"} 0"#,
        r#"wicketgate_flow_queue_requests{pool="chat",band="sheddable"} 0"#,
        r#"wicketgate_flow_shed_total{pool="chat",band="critical",reason="ttl_expired"} 0"#,
        r#"wicketgate_rate_limit_refusals_total{rule="fair",kind="requests"} 0"#,
        r#"wicketgate_rewrite_requests_total{rewrite="alias",rule="0",target="llama-3.1-8b",outcome="ok"} 0"#,
        r#"wicketgate_cloudwatch_failures_total{reason="connect"} 0"#,
    ] {
        assert!(page.lines().any(|line| line == series), "{series} is not in\n{page}");
    }
}

#[tokio::test]
async fn what_strangers_write_into_requests_makes_no_series() {
    let fleet = fleet(1, fast()).await;
    let gateway = Gateway::with_document(&everything(&fleet.urls()), &[]).await;
    gateway.scraped(1).await;
    // What readings show of their own accord once there is traffic is there before.
    assert_eq!(chat(gateway.traffic, &counted("hello")).await.status, 200);
    gateway
        .until("the cluster's rate has the request", async || {
            gateway.metric("wicketgate_cluster_requests_per_second", &[]).await > 0.0
        })
        .await;
    let known = labels(&gateway).await;
    for number in 0..40 {
        let name = format!("stranger-{number}");
        let mut body = prompt("hello", 2);
        body["user"] = json!(name);
        let headers = [
            ("x-gateway-inference-objective", name.as_str()),
            ("x-gateway-inference-fairness-id", name.as_str()),
            ("x-session-id", name.as_str()),
            ("x-request-id", name.as_str()),
            ("authorization", name.as_str()),
            ("user-agent", name.as_str()),
        ];
        let send = async |method: &str, path: &str, body: &Value| {
            let body = body.to_string();
            ask(gateway.traffic, method, path, &headers, body.as_bytes()).await.status
        };
        assert_eq!(send("POST", CHAT, &body).await, 200);
        body["model"] = json!(format!("{name}\",evil=\""));
        assert_eq!(send("POST", CHAT, &body).await, 404);
        assert_eq!(send("POST", &format!("/{name}"), &body).await, 404);
    }
    let after = labels(&gateway).await;
    let new: Vec<&String> = after.difference(&known).collect();
    assert!(new.is_empty(), "{new:?}");
}

#[tokio::test]
async fn every_request_is_counted_once_however_it_ends() {
    let fleet = fleet(1, slow()).await;
    let gateway = Gateway::with_document(&everything(&fleet.urls()), &[]).await;
    gateway.scraped(1).await;
    for _ in 0..3 {
        assert_eq!(chat(gateway.traffic, &counted("hello")).await.status, 200);
    }
    let mut wrong = prompt("hello", 2);
    wrong["max_tokens"] = json!(0);
    assert_eq!(chat(gateway.traffic, &wrong).await.status, 400);
    // Some leave in the middle, some before the first byte.
    for wait in [true, false, true, false] {
        let mut client = Client::connect(gateway.traffic).await;
        let body = streamed("hello", 4000).to_string();
        client.send(&request("POST", CHAT, &[], body.as_bytes())).await;
        let open = seen(fleet.server(0), |request| request.outcome == Outcome::Open).await.number;
        if wait {
            client.until_count("data: ", 2).await;
        }
        drop(client);
        seen(fleet.server(0), |request| request.number == open && request.outcome != Outcome::Open)
            .await;
    }
    gateway
        .until("all have ended", async || {
            gateway.metric("wicketgate_requests_in_flight", &[]).await == 0.0
        })
        .await;
    for (name, labels, count) in [
        ("wicketgate_requests_total", [].as_slice(), 8.0),
        ("wicketgate_requests_total", &["\"ok\""], 3.0),
        ("wicketgate_requests_total", &["\"client_error\""], 1.0),
        ("wicketgate_requests_total", &["\"cancelled\""], 4.0),
        ("wicketgate_responses_total", &[], 8.0),
        ("wicketgate_responses_total", &["\"400\""], 1.0),
        ("wicketgate_request_duration_seconds_count", &[], 8.0),
        ("wicketgate_streams_aborted_total", &["client_gone"], 4.0),
        ("wicketgate_flow_dispatched_total", &[], 8.0),
        ("wicketgate_flow_queue_duration_seconds_count", &[], 8.0),
        ("wicketgate_request_output_tokens_count", &[], 3.0),
        ("wicketgate_endpoint_in_flight_requests", &[], 0.0),
        ("wicketgate_endpoint_prefill_tokens", &[], 0.0),
        ("wicketgate_flow_queue_requests", &[], 0.0),
        ("wicketgate_flow_queue_tokens", &[], 0.0),
    ] {
        assert_eq!(gateway.metric(name, labels).await, count, "{name} {labels:?}");
    }
}
