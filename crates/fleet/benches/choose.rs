//! Deciding among 10 and 100 members, and taking a heartbeat.
//!
//! `cargo bench -p wicketgate-fleet`

#[path = "../tests/shared/mod.rs"]
mod shared;

use criterion::{Criterion, criterion_group, criterion_main};
use rand::SeedableRng;
use rand_pcg::Pcg64Mcg;
use wicketgate_fleet::{Aim, Request, Scratch};

use shared::NOW;

fn decisions(c: &mut Criterion) {
    let (mut scratch, mut rng) = (Scratch::default(), Pcg64Mcg::seed_from_u64(1));
    let blocks: Vec<u64> = (1..=64).collect();
    for members in [10, 100] {
        let fleet = shared::fleet(members, 64);
        let plain = Request { prompt_tokens: 2000, ..Request::new("model-40") };
        let prefix = Request { blocks: &blocks, ..Request::new("model-40-adapter-3") };
        let kinds = [
            ("plain", plain.clone()),
            ("adapter and prefix that nobody has", prefix),
            ("session", Request { affinity: Some(7), ..plain.clone() }),
            ("cheapest", Request { aim: Aim::Cheapest, ..plain }),
        ];
        for (name, request) in kinds {
            c.bench_function(&format!("decision, {members} members, {name}"), |b| {
                b.iter(|| fleet.choose(&request, &mut scratch, &mut rng, NOW));
            });
        }
    }
    let fleet = shared::fleet(100, 64);
    c.bench_function("publish 100 members", |b| b.iter(|| fleet.tick(NOW)));
}

criterion_group!(benches, decisions);
criterion_main!(benches);
