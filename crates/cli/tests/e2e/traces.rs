//! Traces from the client to the endpoint and to a collector; times; what is logged, changed while running.

use otlp::wire::{Span, SpanKind};
use serde_json::{Value, json};
use sim::FaultKind;

use crate::collector::{Collector, attribute};
use crate::gateway::{Gateway, document};
use crate::http::{Answer, CHAT, Client, ask, chat, request};
use crate::sims::{asked, fast, fleet, slow, streamed};

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const PARENT: &str = "00f067aa0ba902b7";

fn traced(collector: &Collector, more: Value) -> Value {
    let mut tracing = json!({ "endpoint": collector.url(), "sampleRatio": 1 });
    for (key, value) in more.as_object().unwrap() {
        tracing[key] = value.clone();
    }
    json!({ "observability": { "tracing": tracing } })
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

async fn ask_in_trace(gateway: &Gateway, flags: &str, more: &[(&str, &str)]) -> Answer {
    let parent = format!("00-{TRACE}-{PARENT}-{flags}");
    let fields = [&[("traceparent", parent.as_str())], more].concat();
    let body = streamed("canaryprompt of a trace", 5).to_string();
    ask(gateway.traffic, "POST", CHAT, &fields, body.as_bytes()).await
}

fn whole(span: &Span) -> bool {
    span.kind == SpanKind::Server as i32
}

#[tokio::test]
async fn a_trace_goes_from_the_client_through_us_to_the_endpoint() {
    for is_grpc in [false, true] {
        let collector = if is_grpc { Collector::grpc().await } else { Collector::http().await };
        let fleet = fleet(1, fast()).await;
        let protocol = if is_grpc { "grpc" } else { "http/protobuf" };
        let extra = traced(&collector, json!({ "protocol": protocol }));
        let gateway = Gateway::over(&fleet.urls(), extra).await;
        let answer = ask_in_trace(&gateway, "01", &[("tracestate", "vendor=1")]).await;
        assert_eq!(answer.status, 200);

        let spans = collector.trace(whole).await;
        let root = spans.iter().find(|span| whole(span)).unwrap();
        assert_eq!((hex(&root.trace_id), hex(&root.parent_span_id)), (TRACE.into(), PARENT.into()));
        assert_eq!(root.name, "POST /v1/chat/completions");
        assert_eq!(attribute(root, "http.response.status_code").as_deref(), Some("200"));
        let attempt = spans.iter().find(|span| span.kind == SpanKind::Client as i32).unwrap();
        assert_eq!(attempt.name, "chat llama-3.1-8b");
        assert_eq!(attempt.parent_span_id, root.span_id);
        assert_eq!(attribute(attempt, "gen_ai.operation.name").as_deref(), Some("chat"));
        assert_eq!(attribute(attempt, "gen_ai.provider.name").as_deref(), Some("vllm"));
        let names: Vec<_> = spans.iter().map(|span| span.name.as_str()).collect();
        for name in ["auth", "read", "pick", "connect", "wait", "stream"] {
            assert!(names.contains(&name), "{name} in {names:?}");
        }

        // The endpoint's parent is the span of the attempt.
        let seen = asked(&fleet.servers()[0]).await;
        let field = |name: &str| {
            let fields = seen[0].headers.iter();
            fields
                .filter(|(key, _)| key == name)
                .map(|(_, value)| value.clone())
                .collect::<Vec<_>>()
        };
        assert_eq!(field("traceparent"), [format!("00-{TRACE}-{}-01", hex(&attempt.span_id))]);
        assert_eq!(field("tracestate"), ["vendor=1"]);

        assert!(!format!("{:?}", collector.all()).contains("canary"));
        let id = answer.header("x-request-id").unwrap();
        assert_eq!(gateway.logged(id).await["trace_id"], TRACE);
        gateway
            .until("the trace was counted", async || {
                gateway.metric("wicketgate_traces_total", &["exported"]).await >= 1.0
            })
            .await;
    }
}

#[tokio::test]
async fn what_is_not_sampled_is_exported_only_if_it_fails() {
    let collector = Collector::http().await;
    let fleet = fleet(1, fast()).await;
    let gateway = Gateway::over(&fleet.urls(), traced(&collector, json!({}))).await;
    assert_eq!(ask_in_trace(&gateway, "00", &[]).await.status, 200);
    fleet.servers()[0].fault(FaultKind::Cut { after_chunks: Some(2), reset: false });
    ask_in_trace(&gateway, "00", &[]).await;
    let spans = collector.trace(whole).await;
    assert_eq!(spans[0].status.as_ref().unwrap().code, 2, "{:?}", spans[0]);
    let seen = asked(&fleet.servers()[0]).await;
    let told = |at: usize| {
        let mut fields = seen[at].headers.iter();
        fields.find(|(key, _)| key == "traceparent").unwrap().1.clone()
    };
    assert!(
        told(0).ends_with("-00") && told(0).starts_with(&format!("00-{TRACE}-")),
        "{}",
        told(0)
    );
}

#[tokio::test]
async fn what_is_left_is_exported_when_the_process_ends() {
    let collector = Collector::http().await;
    let fleet = fleet(1, fast()).await;
    let mut gateway = Gateway::over(&fleet.urls(), traced(&collector, json!({}))).await;
    chat(gateway.traffic, &streamed("hello", 3)).await;
    gateway.signal("INT");
    assert!(gateway.ended().await.success());
    assert!(collector.all().iter().any(whole), "the last batch was lost");
}

#[tokio::test]
async fn without_tracing_a_client_s_trace_passes_through_and_stands_in_the_log() {
    let fleet = fleet(1, fast()).await;
    let gateway = Gateway::over(&fleet.urls(), json!({})).await;
    let answer = ask_in_trace(&gateway, "01", &[]).await;
    let id = answer.header("x-request-id").unwrap();
    assert_eq!(gateway.logged(id).await["trace_id"], TRACE);
    let seen = asked(&fleet.servers()[0]).await;
    let own = ("traceparent".to_owned(), format!("00-{TRACE}-{PARENT}-01"));
    assert!(seen[0].headers.contains(&own), "{:?}", seen[0].headers);
}

#[tokio::test]
async fn a_client_that_asks_is_told_where_the_time_went() {
    let fleet = fleet(1, fast()).await;
    let gateway = Gateway::over(&fleet.urls(), json!({})).await;
    let body = streamed("hello", 3).to_string();
    let plain = ask(gateway.traffic, "POST", CHAT, &[], body.as_bytes()).await;
    assert_eq!(plain.header("server-timing"), None);
    let wish = [("x-wicketgate-timing", "1")];
    let told = ask(gateway.traffic, "POST", CHAT, &wish, body.as_bytes()).await;
    let timing = told.header("server-timing").unwrap();
    for part in ["read;dur=", "pick;dur=", "ttfb;dur=", "total;dur="] {
        assert!(timing.contains(part), "{timing}");
    }
    assert_eq!(told.header("traceparent"), None);
    let seen = asked(&fleet.servers()[0]).await;
    assert!(seen[1].headers.iter().all(|(name, _)| name != "x-wicketgate-timing"));
    let refused = ask(gateway.traffic, "POST", CHAT, &wish, b"{").await;
    assert_eq!(refused.status, 400);
    assert!(refused.header("server-timing").is_some());
}

#[tokio::test]
async fn histograms_name_traces_to_those_who_read_open_metrics() {
    let collector = Collector::http().await;
    let fleet = fleet(1, fast()).await;
    let gateway = Gateway::over(&fleet.urls(), traced(&collector, json!({}))).await;
    ask_in_trace(&gateway, "01", &[]).await;
    let accept = [("accept", "application/openmetrics-text;version=1.0.0,text/plain;q=0.5")];
    let mut page = String::new();
    gateway
        .until("a trace was named", async || {
            let answer = ask(gateway.admin, "GET", "/metrics", &accept, b"").await;
            let kind = answer.header("content-type").unwrap().to_owned();
            assert!(kind.starts_with("application/openmetrics-text"), "{kind}");
            page = answer.text();
            page.contains(&format!("# {{trace_id=\"{TRACE}\"}}"))
        })
        .await;
    assert!(page.ends_with("# EOF\n"));
    assert!(!gateway.admin("/metrics").await.text().contains("trace_id"));
}

#[tokio::test]
async fn what_is_logged_changes_at_run_time_but_not_from_a_browser() {
    let fleet = fleet(1, fast()).await;
    let gateway =
        Gateway::with_document(&document(&fleet.urls(), json!({})), &["--log", "info"]).await;
    assert_eq!(gateway.admin("/debug/log-level").await.text(), "info\n");
    let put = async |fields: &[(&str, &str)], filter: &str| {
        let length = filter.len().to_string();
        let fields = [fields, &[("Content-Length", length.as_str())]].concat();
        ask(gateway.admin, "PUT", "/debug/log-level", &fields, filter.as_bytes()).await
    };
    for field in ["Origin", "Sec-Fetch-Site"] {
        assert_eq!(put(&[(field, "http://127.0.0.1")], "trace").await.status, 403, "{field}");
    }
    assert_eq!(put(&[], "=,=").await.status, 400);
    assert_eq!(gateway.admin("/debug/log-level").await.text(), "info\n");
    let answer = put(&[], "info,wicketgate_gateway=debug").await;
    assert_eq!((answer.status, answer.text().trim()), (200, "wicketgate_gateway=debug,info"));
    gateway.signal("USR1");
    let is = async |filter: &str| gateway.admin("/debug/log-level").await.text().trim() == filter;
    gateway.until("a level more", async || is("wicketgate_gateway=debug,debug").await).await;
    gateway.signal("USR2");
    gateway.until("as at the start", async || is("info").await).await;
}

#[tokio::test]
async fn usage_and_templates_are_told_without_a_word_of_a_prompt() {
    let fleet = fleet(1, fast()).await;
    let gateway = Gateway::over(&fleet.urls(), json!({})).await;
    let system = "canaryprompt ".repeat(400);
    for turn in 0..4 {
        let mut body = streamed(&format!("{system}{turn}{}", "turn ".repeat(100)), 5);
        body["stream_options"] = json!({ "include_usage": true });
        assert_eq!(chat(gateway.traffic, &body).await.status, 200);
    }
    let usage = gateway.admin("/debug/usage").await.json();
    assert_eq!(usage["rows"][0]["tenant"], "anonymous");
    assert_eq!(usage["rows"][0]["requests"], 4);
    assert!(usage["rows"][0]["prefill_gpu_seconds"].as_f64().unwrap() > 0.0, "{usage}");
    assert!(gateway.metric("wicketgate_gpu_seconds_total", &["prefill"]).await > 0.0);
    let templates = gateway.admin("/debug/prefixes").await.json();
    assert!(templates["templates"][0]["shared_tokens"].as_u64().unwrap() >= 1000, "{templates}");
    assert!(!templates.to_string().contains("canary"));
}

#[tokio::test]
async fn a_request_that_waited_shows_it_in_its_trace_and_in_the_log() {
    let collector = Collector::http().await;
    let fleet = fleet(1, slow()).await;
    let mut extra = traced(&collector, json!({}));
    extra["flowControl"] = json!({});
    extra["objectives"] = json!([{ "name": "urgent", "priority": "Critical" }]);
    extra["rateLimits"] = json!([{ "name": "fair", "requests": { "perMinute": 1000 } }]);
    let mut document = document(&fleet.urls(), extra);
    document["spec"]["schedulers"][0]["saturation"] = json!({ "concurrency": 1 });
    let gateway = Gateway::with_document(&document, &[]).await;
    gateway.scraped(1).await;
    let mut first = Client::connect(gateway.traffic).await;
    let body = streamed("Hello", 5000).to_string();
    first.send(&request("POST", CHAT, &[], body.as_bytes())).await;
    first.until("data:").await;

    let mut second = Client::connect(gateway.traffic).await;
    let parent = format!("00-{TRACE}-{PARENT}-01");
    let fields = [("traceparent", parent.as_str()), ("x-gateway-inference-objective", "urgent")];
    second.send(&request("POST", CHAT, &fields, streamed("Hi", 2).to_string().as_bytes())).await;
    gateway
        .until("it waits", async || {
            gateway.metric("wicketgate_flow_queue_requests", &["\"critical\""]).await == 1.0
        })
        .await;
    drop(first);
    let answer = second.answer().await;
    assert_eq!(answer.status, 200);

    let spans = collector.trace(|span| whole(span) && hex(&span.trace_id) == TRACE).await;
    let root = spans.iter().find(|span| whole(span)).unwrap();
    assert_eq!(attribute(root, "wicketgate.priority").as_deref(), Some("100"));
    assert_eq!(attribute(root, "wicketgate.objective").as_deref(), Some("urgent"));
    let of = |name: &str| spans.iter().find(|span| span.name == name).unwrap();
    for name in ["auth", "read", "limits", "queue", "pick"] {
        assert_eq!(of(name).parent_span_id, root.span_id, "{name}");
    }
    let queue = of("queue");
    assert!(queue.end_time_unix_nano > queue.start_time_unix_nano);
    let line = gateway.logged(answer.header("x-request-id").unwrap()).await;
    assert_eq!((&line["priority"], &line["objective"]), (&json!(100), &json!("urgent")));
    assert_eq!((&line["tenant"], &line["trace_id"]), (&json!("anonymous"), &json!(TRACE)));
    let waited = line["queue_ms"].as_f64().unwrap() * 1e6;
    let shown = (queue.end_time_unix_nano - queue.start_time_unix_nano) as f64;
    assert!((waited - shown).abs() < 1e6, "{waited} ns in the log, {shown} ns in the trace");
}

#[tokio::test]
async fn a_collector_that_comes_back_gets_the_next_batch_on_a_connection_of_its_own() {
    for is_grpc in [false, true] {
        let collector = if is_grpc { Collector::grpc().await } else { Collector::http().await };
        let fleet = fleet(1, fast()).await;
        let protocol = if is_grpc { "grpc" } else { "http/protobuf" };
        let extra = traced(&collector, json!({ "protocol": protocol }));
        let gateway = Gateway::over(&fleet.urls(), extra).await;
        // The collector serves one connection at a time: one that stayed open would stall the next batch.
        for batch in 1..=3 {
            let answer = chat(gateway.traffic, &streamed("Hi", 2)).await;
            assert_eq!(answer.status, 200);
            collector.until_requests(batch).await;
        }
        let exported = gateway.metric("wicketgate_traces_total", &["exported"]).await;
        assert!(exported >= 2.0, "{exported}");
    }
}
