//! Cost of one scrape's parsing. Target: a real 50 KB vLLM page in less than 50 µs.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};

const VLLM: &[u8] =
    include_bytes!("../testdata/vllm-0.32.0-cpu-loaded-16running-32waiting-2lora.txt");
const LLAMA_CPP: &[u8] = include_bytes!("../testdata/llama-server-b11434-loaded.txt");
const OTHER: &[u8] = include_bytes!("../testdata/dynamo-frontend-1.6.1-kv-router.trimmed.txt");

fn pages(c: &mut Criterion) {
    let mut group = c.benchmark_group("page");
    for (name, page) in [("vllm", VLLM), ("llama.cpp", LLAMA_CPP), ("unknown", OTHER)] {
        group.throughput(Throughput::Bytes(page.len() as u64));
        group.bench_function(name, |b| b.iter(|| wicketgate_engines::parse(black_box(page), None)));
    }
    group.finish();
}

criterion_group!(benches, pages);
criterion_main!(benches);
