//! Traces, times, and whom the GPU's time is booked to.

use std::sync::mpsc::Receiver;

use telemetry::Tracer;
use telemetry::trace::{Queued, Sampling, SpanId, Step, TraceContext, TraceId, TraceRecord};

use super::*;

const PARENT: TraceContext =
    TraceContext { trace: TraceId(0xfeed), span: SpanId(0xbee), sampled: true };

fn traced(gateway: &Arc<Gateway>, ratio: f64) -> Receiver<Queued> {
    let sampling = Sampling { ratio, follows_parent: true, errors: true, slower_than: None };
    let (tracer, records) = Tracer::new(sampling, 16, Arc::default());
    gateway.trace_with(tracer);
    records
}

fn record(records: &Receiver<Queued>) -> Box<TraceRecord> {
    records.try_recv().unwrap().unwrap()
}

#[test]
fn a_request_s_steps_and_attempts_are_handed_over_with_the_caller_as_parent() {
    let gateway = pool_of(2);
    let records = traced(&gateway, 0.0);
    let mut exchange = exchange(&gateway);
    exchange.trace(Some(PARENT), false);
    exchange.place(&body("llama"), None, at(1)).unwrap();
    let first = exchange.attempt(at(1)).unwrap();
    exchange.failed(Failure::Connect, at(2));
    let second = exchange.attempt(at(2)).unwrap();
    assert_ne!(first.traceparent, second.traceparent, "each endpoint has a parent of its own");
    exchange.answered(200, None, at(3));
    exchange.watch(Some("text/event-stream"));
    exchange.payload(b"data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n", at(4));
    exchange.finish(Ending::Complete, at(5));

    let record = record(&records);
    assert_eq!(
        (record.trace, record.parent, record.sampled),
        (PARENT.trace, Some(PARENT.span), true)
    );
    let steps: Vec<_> = record.steps.iter().map(|(step, ..)| *step).collect();
    assert_eq!(steps, [Step::Read, Step::Pick]);
    let [failed, served] = &record.attempts[..] else { panic!("{:?}", record.attempts) };
    assert_eq!((failed.failure, failed.ended), (Some("connect"), Some(at(2))));
    assert_eq!((served.answered, served.first_payload), (Some(at(3)), Some(at(4))));
    let told = TraceContext::parse(&second.traceparent.unwrap()).unwrap();
    assert_eq!(told, TraceContext { trace: PARENT.trace, span: served.span, sampled: true });
}

#[test]
fn what_is_not_sampled_is_kept_if_it_fails_on_our_side() {
    let gateway = pool_of(1);
    let records = traced(&gateway, 0.0);
    for status in [200, 404, 429, 500] {
        let mut exchange = exchange(&gateway);
        exchange.trace(None, false);
        exchange.place(&body("llama"), None, at(0)).unwrap();
        exchange.attempt(at(0)).unwrap();
        exchange.answered(status, Some(Duration::ZERO), at(0));
        exchange.finish(Ending::Complete, at(1));
    }
    let kept = record(&records);
    assert_eq!((kept.status, kept.sampled), (500, false));
    assert!(records.try_recv().is_err());
}

#[test]
fn without_a_tracer_nothing_is_kept_and_a_client_s_trace_is_left_alone() {
    let gateway = pool_of(1);
    let mut exchange = exchange(&gateway);
    exchange.trace(Some(PARENT), false);
    exchange.place(&body("llama"), None, at(0)).unwrap();
    assert_eq!(exchange.attempt(at(0)).unwrap().traceparent, None);
    assert_eq!(exchange.trace_id(), Some(PARENT.trace), "the log names it all the same");
    assert_eq!(exchange.server_timing(at(1)), None);
}

#[test]
fn a_client_that_asks_is_told_where_the_time_went() {
    let gateway = pool_of(1);
    let mut exchange = exchange(&gateway);
    exchange.trace(None, true);
    exchange.step(Step::Queue, at(0), at(2));
    exchange.place(&body("llama"), None, at(2)).unwrap();
    exchange.attempt(at(2)).unwrap();
    exchange.connected(at(2), at(3));
    exchange.answered(200, None, at(7));
    let timing = exchange.server_timing(at(7)).unwrap();
    assert!(timing.starts_with("read;dur=2000.000, queue;dur=2000.000, pick;dur="), "{timing}");
    assert!(timing.ends_with("connect;dur=1000.000, ttfb;dur=5000.000, total;dur=7000.000"));
    assert_eq!(exchange.trace_id(), None, "no trace is made up for it");
}

#[test]
fn histograms_name_a_trace_that_was_kept() {
    let gateway = pool_of(1);
    let _records = traced(&gateway, 1.0);
    let mut exchange = exchange(&gateway);
    exchange.trace(None, false);
    exchange.place(&body("llama"), None, at(0)).unwrap();
    exchange.attempt(at(0)).unwrap();
    exchange.answered(200, None, at(0));
    let trace = exchange.trace_id().unwrap();
    exchange.finish(Ending::Complete, at(3));
    let page = gateway.metrics_page_open(at(3));
    let line = page.lines().find(|line| line.contains("# {")).unwrap();
    assert!(line.starts_with("wicketgate_request_duration_seconds_bucket{"), "{line}");
    assert!(
        line.contains("le=\"5.0\"") && line.contains(&format!("trace_id=\"{trace}\"")),
        "{line}"
    );
    assert!(line.contains("} 3 "), "{line}");
    assert!(page.ends_with("# EOF\n"));
    assert!(!gateway.metrics_page(at(3)).contains("# {"));
}

#[test]
fn gpu_time_is_booked_to_the_tenant_and_what_was_cached_is_saved() {
    let gateway = pool_of(1);
    let mut exchange = exchange(&gateway);
    let long = format!(
        r#"{{"model":"llama","stream":true,"messages":[{{"role":"user","content":"{}"}}]}}"#,
        "word ".repeat(800)
    );
    exchange.place(long.as_bytes(), None, at(0)).unwrap();
    exchange.attempt(at(0)).unwrap();
    exchange.answered(200, None, at(0));
    exchange.watch(Some("text/event-stream"));
    exchange.payload(b"data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n", at(1));
    exchange.payload(
        b"data: {\"choices\":[],\"usage\":{\"prompt_tokens\":1000,\"completion_tokens\":101,\"prompt_tokens_details\":{\"cached_tokens\":750}}}\n\ndata: [DONE]\n\n",
        at(9),
    );
    exchange.finish(Ending::Complete, at(9));
    let usage = gateway.usage_view();
    let row = &usage.rows[0];
    assert_eq!((row.pool.as_str(), row.tenant.as_str(), row.requests), ("chat", "anonymous", 1));
    assert!(row.prefill_gpu_seconds > 0.0 && row.decode_gpu_seconds > 0.0, "{row:?}");
    assert!((row.saved_gpu_seconds / row.prefill_gpu_seconds - 3.0).abs() < 0.01, "{row:?}");
    assert_eq!(row.cost, None, "nobody named a price");
}

#[test]
fn a_price_makes_a_cost_of_the_time() {
    let gateway = gateway(
        "  schedulers:\n  - name: chat\n    modelName: llama\n    endpoints: [{ url: 'http://10.0.0.1:8000' }]\n  \
         observability: { prices: [{ scheduler: chat, gpuHour: 3.6, gpusPerEndpoint: 8 }] }\n",
    );
    let usage = gateway.metrics.usage();
    let row = usage.of(&types::PoolName::new("chat"), &types::TenantName::new("a"));
    row.seconds.of(labels::Work::Decode).add(Duration::from_secs(100));
    let view = gateway.usage_view();
    assert_eq!(view.currency, "USD");
    assert!((view.rows[0].decode_gpu_seconds - 800.0).abs() < 1e-9);
    assert!((view.rows[0].cost.unwrap() - 0.8).abs() < 1e-9);
}

#[test]
fn an_edit_that_breaks_a_template_is_told_with_its_cost() {
    let gateway = pool_of(1);
    let prompt = |own: u64, edit: &str| {
        let line = |n: u64| format!("{n:08} of a rule that all have ");
        let template: String = (0..300).map(line).collect();
        let (before, after) = template.split_at(2000);
        format!(
            r#"{{"model":"llama","messages":[{{"role":"user","content":"{before}{edit}{after}{own:032}"}}]}}"#
        )
    };
    let mut now = at(0);
    let mut send = |own: u64, edit: &str| {
        let mut exchange = exchange_at(&gateway, now);
        exchange.place(prompt(own, edit).as_bytes(), None, now).unwrap();
        exchange.finish(Ending::ClientGone, now);
        now = now + Duration::from_millis(100);
        if own.is_multiple_of(50) {
            gateway.judge_templates(now);
        }
    };
    for own in 0..3000 {
        send(own, "--------");
    }
    for own in 3000..3600 {
        send(own, &format!("{own:08}"));
    }
    let view = gateway.templates_view(now);
    let regression = view.templates.iter().find_map(|row| row.regression.as_ref()).unwrap();
    // 256 bytes a block; the message begins a few bytes into the first.
    assert_eq!((regression.cause, regression.block), ("per_request", 7));
    assert!(regression.lost_tokens_per_hour > 100_000.0, "{regression:?}");
    assert!(regression.lost_gpu_seconds_per_hour > 0.0);
    let metrics = &gateway.catalog().pools[0].metrics;
    assert_eq!((metrics.prefix_regressions.get(), metrics.prefix_regressions_open.get()), (1, 1));
    assert!(metrics.prefix_loss.get().unwrap() > 100_000.0);
}

/// One endpoint that takes one request at a time, a queue before it, and a rate limit.
fn queued() -> Arc<Gateway> {
    gateway(
        "  schedulers:\n  - name: chat\n    modelName: llama\n    saturation: { concurrency: 1 }\n    \
         endpoints: [{ url: 'http://10.0.0.1:8000' }]\n  \
         objectives: [{ name: urgent, priority: Critical }]\n  flowControl: {}\n  \
         rateLimits: [{ name: fair, requests: { perMinute: 100 } }]\n",
    )
}

fn step_of(record: &TraceRecord, step: Step) -> Option<(Timestamp, Timestamp)> {
    let mut steps = record.steps.iter();
    steps.find(|(of, ..)| *of == step).map(|(_, begun, ended)| (*begun, *ended))
}

#[tokio::test]
async fn a_request_that_waits_shows_its_queue_its_limits_and_what_it_is_entitled_to() {
    let gateway = queued();
    let records = traced(&gateway, 1.0);
    let mut first = placed(&gateway);
    first.attempt(at(0)).unwrap();
    let wishes = Wishes { objective: Some("urgent".into()), ..Wishes::default() };
    let mut second = crate::testing::exchange_of(&gateway, Caller::anonymous(), wishes);
    second.trace(Some(PARENT), true);
    second.step(Step::Auth, at(0), at(1));
    second.arrive(at(1)).unwrap();
    let Ok(Placed::Waits(turn)) = second.place(&body("llama"), None, at(2)) else {
        panic!("there was room")
    };
    let timing = second.server_timing(at(4)).unwrap();
    assert!(timing.contains("queue;dur=2000.000"), "{timing}");
    first.finish(Ending::Complete, at(5));
    let grant = turn.come().await.unwrap();
    second.go(grant, at(5)).unwrap();
    second.attempt(at(5)).unwrap();
    second.answered(200, None, at(6));
    second.finish(Ending::Complete, at(7));

    let record = record(&records);
    let steps: Vec<_> = record.steps.iter().map(|(step, ..)| *step).collect();
    assert_eq!(steps, [Step::Auth, Step::Read, Step::Limits, Step::Queue, Step::Pick]);
    assert_eq!(step_of(&record, Step::Read), Some((at(1), at(2))), "from the head's judgement on");
    assert_eq!(step_of(&record, Step::Queue), Some((at(2), at(5))));
    assert_eq!(record.priority, Some(types::Priority::CRITICAL));
    assert_eq!(record.objective.as_deref(), Some("urgent"));
}

#[tokio::test]
async fn what_is_turned_away_in_the_queue_waited_until_then() {
    let gateway = queued();
    let records = traced(&gateway, 1.0);
    let mut first = placed(&gateway);
    first.attempt(at(0)).unwrap();
    let wishes = Wishes { objective: Some("made-up".into()), ..Wishes::default() };
    let mut second = crate::testing::exchange_of(&gateway, Caller::anonymous(), wishes);
    second.trace(None, false);
    let placed = second.place(&body("llama"), None, at(1)).unwrap();
    assert!(matches!(placed, Placed::Waits(_)));
    assert_eq!(second.waited(at(3)), Some(Duration::from_secs(2)));
    second.finish(Ending::ClientGone, at(9));
    let record = record(&records);
    assert_eq!(step_of(&record, Step::Queue), Some((at(1), at(9))));
    assert_eq!(step_of(&record, Step::Pick), None);
    assert_eq!(record.objective.as_deref(), Some("_unknown"), "a client's word is not kept");
}
