//! Hashing at memory speed, lookups beside writers, records.
//!
//! `cargo bench -p wicketgate-prefix`

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use types::Slot;
use wicketgate_prefix::{BlockHash, Config, Matches, PrefixIndex, block_hashes, seed};

fn chain(name: u64, blocks: usize) -> Vec<BlockHash> {
    let mut hashes = Vec::new();
    block_hashes(name, &[&vec![0; blocks * 8]], 8, usize::MAX, &mut hashes);
    hashes
}

fn hashing(c: &mut Criterion) {
    let text: Vec<u8> = (0..400 << 10).map(|n| (n % 253) as u8).collect();
    let mut out = Vec::new();
    let mut group = c.benchmark_group("block_hashes");
    group.throughput(Throughput::Bytes(text.len() as u64));
    group.bench_function("400 KiB in 256-byte blocks", |b| {
        b.iter(|| {
            out.clear();
            block_hashes(7, &[black_box(&text)], 256, usize::MAX, &mut out);
        });
    });
    group.finish();
    c.bench_function("seed and block_hashes of 512 bytes", |b| {
        b.iter(|| {
            out.clear();
            let seed = seed(black_box(7), "meta-llama/Llama-3.1-8B-Instruct", None, b"");
            block_hashes(seed, &[&text[..512]], 256, usize::MAX, &mut out);
        });
    });
}

/// An index of a million blocks on 40 endpoints, and 2,000-block prompts in it.
fn filled() -> (PrefixIndex, Vec<Vec<BlockHash>>) {
    let index = PrefixIndex::new(Config::default());
    let prompts: Vec<_> = (0..500).map(|name| chain(name, 2000)).collect();
    for (at, prompt) in prompts.iter().enumerate() {
        let slot = Slot(at as u16 % 40);
        index.set_capacity(slot, 1 << 20);
        index.record(slot, prompt);
    }
    (index, prompts)
}

fn lookup(c: &mut Criterion) {
    let (index, prompts) = filled();
    let mut matches = Matches::default();
    let mut at = 0;
    let mut next = || {
        at = (at + 17) % prompts.len();
        &prompts[at]
    };
    c.bench_function("lookup of 2,000 held blocks among a million", |b| {
        b.iter(|| index.longest_matches(next(), &mut matches));
    });
    let unknown: Vec<_> = (1000..2000).map(|name| chain(name, 3)).collect();
    let mut turn = 0;
    c.bench_function("lookup that misses at the first block", |b| {
        b.iter(|| {
            turn = (turn + 1) % unknown.len();
            index.longest_matches(&unknown[turn], &mut matches);
        });
    });
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut name = 1 << 32;
            while !is_done.load(Ordering::Relaxed) {
                name += 1;
                index.record(Slot((name % 40) as u16), &chain(name, 100));
            }
        });
        c.bench_function("lookup of 2,000 held blocks beside a writer", |b| {
            b.iter(|| index.longest_matches(next(), &mut matches));
        });
        is_done.store(true, Ordering::Relaxed);
    });
}

fn widely_held(c: &mut Criterion) {
    let index = PrefixIndex::new(Config::default());
    let prompt = chain(1, 2000);
    for slot in 0..1000 {
        index.record(Slot(slot), &prompt);
    }
    let mut matches = Matches::default();
    c.bench_function("lookup of 2,000 blocks held by 1,000 endpoints", |b| {
        b.iter(|| index.longest_matches(black_box(&prompt), &mut matches));
    });
}

fn record(c: &mut Criterion) {
    let (index, prompts) = filled();
    let mut name = 1 << 40;
    c.bench_function("record of 1,600 new blocks", |b| {
        b.iter_batched(
            || {
                name += 1;
                (Slot((name % 40) as u16), chain(name, 1600))
            },
            |(slot, prompt)| index.record(slot, &prompt),
            criterion::BatchSize::SmallInput,
        );
    });
    c.bench_function("record of 2 held blocks", |b| {
        b.iter(|| index.record(Slot(0), black_box(&prompts[0][..2])));
    });
}

criterion_group!(benches, hashing, lookup, widely_held, record);
criterion_main!(benches);
