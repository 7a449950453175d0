//! A small fleet, for tests of everything that shows one.

use std::collections::HashMap;

use gateway::{DecisionView, EndpointView, PriceView, UsageRow, UsageView};
use types::Timestamp;

use super::super::snapshot::{Counters, QueueView, Snapshot};
use crate::scrape::Histogram;

/// One endpoint, in order and at work.
pub(in super::super) fn endpoint(pool: &str, name: &str) -> EndpointView {
    serde_json::from_value(serde_json::json!({
        "pool": pool, "endpoint": name, "engine": "vllm", "state": "ready", "waiting": 2,
        "running": 14, "kv_usage": 0.41, "in_flight": 16, "peers_in_flight": 0,
        "prefill_tokens": 5120, "scrape_age_ms": 85, "scrape_failures": 0, "predictions": 412,
        "prediction_bias": 1.02, "prediction_error": 0.08, "saturation": 0.25,
        "adapters": ["sql"], "adapters_max": 4, "speed": {
            "idle_ttft_ms": 45.0, "prefill_tokens_per_second": 41_500.0, "base_ms": 20.0,
            "step_ms": 7.4, "output_tokens": 200.0, "samples": 30.0,
        }, "block_size_tokens": 16, "block_count": 27_000,
    }))
    .expect("an endpoint")
}

/// One decision with three candidates.
pub(in super::super) fn decision(number: u32, endpoint: &str) -> DecisionView {
    let candidate = |name: &str, total: f32| {
        serde_json::json!({
            "endpoint": name, "removed_by": null, "scores": [total], "total": total, "waiting": 2.0,
            "running": 14.0, "scraped_waiting": 2, "scraped_running": 14, "kv_usage": 0.41,
            "in_flight": 16, "prefill_tokens": 5120, "matched_blocks": 12, "lora": "Unknown",
            "health": "Healthy", "saturation": 0.25, "predicted_ttft_ms": 84.0 / total,
            "scrape_age_ms": 85, "freshness": 1.0,
        })
    };
    let mut removed = candidate("10.0.0.3:8000", 0.0);
    removed["removed_by"] = "stale".into();
    removed["scores"] = serde_json::json!([]);
    removed["predicted_ttft_ms"] = serde_json::Value::Null;
    serde_json::from_value(serde_json::json!({
        "time": format!("2026-11-30T05:26:{:02}.042Z", number % 60), "request_id": format!("request-{number}"),
        "route": "/v1/chat/completions", "model": "llama-3.1-8b", "pool": "chat", "prompt_tokens": 1830,
        "prompt_blocks": 28, "took_us": 3.4, "profile": "wicketgate", "picker": "max-score",
        "order": [endpoint, "10.0.0.2:8000"],
        "scorers": [{"name": "expected-time", "weight": 1.0}],
        "candidates": [candidate(endpoint, 1.0), candidate("10.0.0.2:8000", 0.62), removed],
        "shadow": {"scorers": [{"name": "queue", "weight": 2.0}], "endpoint": "10.0.0.2:8000",
                   "same": false, "predicted_ttft_ms": 120.0, "regret_ms": -36.0},
    }))
    .expect("a decision")
}

/// Two tenants in a pool that has a price, one in a pool without.
fn usage(requests: f64) -> UsageView {
    let row = |pool: &str, tenant: &str, share: f64, price: Option<f64>| UsageRow {
        pool: pool.to_owned(),
        tenant: tenant.to_owned(),
        requests: (requests * share) as u64,
        input_tokens: (requests * share * 1800.0) as u64,
        cached_input_tokens: (requests * share * 1100.0) as u64,
        output_tokens: (requests * share * 210.0) as u64,
        prefill_gpu_seconds: requests * share * 0.5,
        decode_gpu_seconds: requests * share * 4.0,
        saved_gpu_seconds: requests * share * 1.25,
        cost: price.map(|price| requests * share * 4.5 * price / 3600.0),
        saved: price.map(|price| requests * share * 1.25 * price / 3600.0),
    };
    UsageView {
        currency: "USD".to_owned(),
        prices: vec![PriceView { pool: "chat".to_owned(), gpu_hour: 2.49, gpus_per_endpoint: 8 }],
        rows: vec![
            row("chat", "research", 0.2, Some(2.49)),
            row("chat", "assistant", 0.7, Some(2.49)),
            row("embed", "evil\u{1b}[2J", 0.1, None),
        ],
    }
}

/// Two pools with four endpoints, one of them stale, one with a hostile name.
pub(in super::super) fn snapshot(second: u64, requests: f64) -> Snapshot {
    let mut endpoints = vec![
        endpoint("chat", "10.0.0.1:8000"),
        endpoint("chat", "10.0.0.2:8000"),
        endpoint("chat", "10.0.0.3:8000"),
        endpoint("embed", "evil\u{1b}[2J:8000"),
    ];
    endpoints[1].kv_usage = Some(0.93);
    endpoints[1].waiting = Some(31);
    endpoints[1].saturation = 0.97;
    endpoints[2].state = "stale".to_owned();
    endpoints[2].scrape_age_ms = Some(14_000);
    endpoints[2].kv_usage = None;
    endpoints[2].speed = None;
    endpoints[3].engine = "tgi".to_owned();
    let counters = Counters {
        requests,
        errors: requests / 50.0,
        rejected: requests / 20.0,
        input_tokens: requests * 1800.0,
        cached_tokens: requests * 1100.0,
        output_tokens: requests * 210.0,
        ttft: Histogram::new(
            [(0.04, 0.4), (0.1, 0.8), (0.5, 1.0), (f64::INFINITY, 1.0)]
                .into_iter()
                .map(|(bound, share)| (bound, share * requests)),
        ),
        in_flight: 48.0,
        saturation: Some(0.61),
    };
    let queues = vec![
        QueueView {
            pool: "chat".to_owned(),
            band: 100.into(),
            requests: 12,
            tokens: 21_960,
            oldest_ms: Some(340),
            flows: 3,
        },
        QueueView { pool: "chat".to_owned(), band: "bulk".into(), ..QueueView::default() },
    ];
    Snapshot {
        at: Timestamp::from_millis(second * 1000),
        version: "0.1.0".to_owned(),
        is_ready: true,
        connections: 212.0,
        has_metrics: true,
        endpoints,
        counters: HashMap::from([
            ("chat".to_owned(), counters),
            ("embed".to_owned(), Counters::default()),
        ]),
        decisions: (0..9).map(|number| decision(number, "10.0.0.1:8000")).collect(),
        queues: Some(queues),
        clusters: None,
        usage: Some(usage(requests)),
    }
}
