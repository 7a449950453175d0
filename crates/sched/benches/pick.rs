//! Observing a pool and deciding: 10 and 1,000 endpoints, three scorers and all of them.
//!
//! `cargo bench -p wicketgate-sched`

use std::sync::Arc;
use std::time::Duration;

use criterion::{Criterion, criterion_group, criterion_main};
use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
use types::{AdapterId, EndpointId, EndpointMetrics, LoraMetrics, Ratio, Slot, Timestamp};
use wicketgate_sched::{Candidate, EndpointState, Profile, RequestView, Scratch, Weights};

const NOW: Timestamp = Timestamp(1_000_000_000);

fn pool(endpoints: u16, rng: &mut Pcg64Mcg) -> Vec<Arc<EndpointState>> {
    (0..endpoints)
        .map(|n| {
            let state = Arc::new(EndpointState::new(EndpointId(u32::from(n)), Slot(n)));
            let metrics = EndpointMetrics {
                waiting: Some(rng.next_u32() % 8),
                running: Some(rng.next_u32() % 100),
                kv_usage: Ratio::new(f64::from(rng.next_u32() % 100) / 100.0).ok(),
                lora: Some(LoraMetrics {
                    max: 4,
                    running: vec![AdapterId(1)],
                    waiting: Vec::new(),
                }),
                ..EndpointMetrics::default()
            };
            state.record_scrape(&metrics, NOW, Duration::from_secs(1));
            state
        })
        .collect()
}

fn every_weight() -> Weights {
    Weights {
        running_requests: 1.0,
        lora_affinity: 1.0,
        no_hit_lru: 1.0,
        session_affinity: 1.0,
        expected_time: 1.0,
        ..Weights::REFERENCE
    }
}

fn decisions(c: &mut Criterion) {
    let mut rng = Pcg64Mcg::seed_from_u64(1);
    for endpoints in [10, 1000] {
        let pool = pool(endpoints, &mut rng);
        let mut candidates: Vec<Candidate> = Vec::new();
        let mut scratch = Scratch::default();
        for (name, weights, adapter) in [
            ("the default", Weights::default(), None),
            ("3 scorers", Weights::REFERENCE, None),
            ("8 scorers, adapter, session", every_weight(), Some(AdapterId(1))),
        ] {
            let profile = Profile::from_weights(&weights);
            let request = RequestView {
                now: NOW,
                prompt_blocks: 100,
                prompt_tokens: 6400,
                block_tokens: 64,
                adapter,
                session: adapter.map(|adapter| adapter.0),
                ..RequestView::default()
            };
            c.bench_function(&format!("decision, {endpoints} endpoints, {name}"), |b| {
                b.iter(|| {
                    candidates.clear();
                    candidates.extend(pool.iter().map(|state| state.observe(adapter, NOW)));
                    let order =
                        profile.pick(&request, &mut candidates, &mut scratch, &mut rng, None);
                    order.map(|order| order[0])
                });
            });
        }
    }
    let state = Arc::clone(&pool(1, &mut rng)[0]);
    c.bench_function("reserve, first token, drop", |b| {
        b.iter(|| state.reserve(100, NOW).first_token(NOW));
    });
}

criterion_group!(benches, decisions);
criterion_main!(benches);
