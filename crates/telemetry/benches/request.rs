//! What one request costs here: an access-log line, and one value in a histogram.

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use criterion::{Criterion, criterion_group, criterion_main};
use types::{ModelName, PoolName};
use wicketgate_telemetry::metrics::labels::{Label, Route, Signal};
use wicketgate_telemetry::{AccessLog, BuildInfo, Entry, Metrics, Target};

fn access_log_line(c: &mut Criterion) {
    let log = AccessLog::open(Target::File("/dev/null".into()), Arc::default())
        .expect("the null device opens");
    let (model, pool) = (ModelName::new("llama-3.1-8b"), PoolName::new("llama"));
    let entry = Entry {
        time: UNIX_EPOCH + Duration::from_millis(1_789_715_103_042),
        request_id: "0d4f7c1e-5c1a-4a55-9c8e-2f6d6ef6f0b1",
        client: Some(([10, 0, 0, 7], 4711).into()),
        method: "POST",
        route: Route::ChatCompletions,
        model: Some(&model),
        pool: Some(&pool),
        endpoint: Some("gpu-1.example:8000"),
        status: 200,
        attempts: 1,
        stream: true,
        bytes_in: 32_768,
        bytes_out: 204_800,
        prompt_tokens: Some(8_192),
        completion_tokens: Some(512),
        cached_tokens: Some(4_096),
        ttft: Some(Duration::from_micros(181_007)),
        duration: Duration::from_micros(12_250_500),
        queue: Some(Duration::ZERO),
        pick: Some(Duration::from_micros(7)),
        ..Entry::default()
    };
    c.bench_function("access log line", |b| b.iter(|| log.record(black_box(&entry))));
}

fn histogram_value(c: &mut Criterion) {
    let pool = Metrics::new(BuildInfo::default()).pool(&PoolName::new("llama"));
    c.bench_function("histogram value", |b| {
        b.iter(|| pool.stream_gap.observe(black_box(Duration::from_millis(20))));
    });
}

fn page(c: &mut Criterion) {
    let pool = PoolName::new("llama");
    for count in [100, 1000] {
        let metrics = Metrics::new(BuildInfo::default());
        for index in 0..count {
            let endpoint = metrics.endpoint(&pool, &format!("gpu-{index}:8000"));
            let known = [
                &endpoint.waiting,
                &endpoint.running,
                &endpoint.kv_usage,
                &endpoint.scrape_age,
                &endpoint.saturation,
                &endpoint.prefill_speed,
                &endpoint.step,
            ];
            known.into_iter().for_each(|reading| reading.set(f64::from(index) / 7.0));
            for signal in Signal::ALL {
                endpoint.signal_age.of(*signal).set(f64::from(index) / 3.0);
            }
        }
        let name = format!("page of {count} endpoints");
        c.bench_function(&name, |b| b.iter(|| metrics.encode()));
    }
}

criterion_group!(benches, access_log_line, histogram_value, page);
criterion_main!(benches);
