//! What reading costs on the request path: bodies on the way in, event streams on the way back.
//!
//! Targets, one core: a 400 KB chat body at 1.5 GB/s or more, 0.5 KB within 1 µs, an ordinary
//! stream event well under 1 µs.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use openai::{Limits, Route, SseReader, UsageReader, scan};

use wicketgate_openai as openai;

const PROSE: &str = "The quick brown fox jumps over the lazy dog, and then it rests for a while in \
    the shade.\\nNext line, with \\\"a quotation\\\" of some words and a longer tail of text here.\\n";
const CODE: &str =
    "    fn name(&self) -> &str {\\n        \\\"x\\\"\\n    }\\n\\n    let s = \\\"\\\\n\\\";\\n";
const CHINESE: &str = "人工智能网关把每个请求送到最先回答的显卡，客户端无需改动。\\n";
const ESCAPED: &str = "\\u4eba\\u5de5\\u667a\\u80fd\\u7f51\\u5173";

/// A chat of turns of about 2 KB (less for a small body), as the OpenAI SDK serialises it.
fn chat(text: &str, bytes: usize) -> Vec<u8> {
    let mut body = String::from(r#"{"messages":[{"role":"system","content":"You are terse."}"#);
    let turn = text.repeat((bytes.min(2048) / text.len()).max(1));
    let mut user = true;
    while body.len() < bytes {
        let role = if user { "user" } else { "assistant" };
        body.push_str(&format!(r#",{{"role":"{role}","content":"{turn}"}}"#));
        user = !user;
    }
    body.push_str(r#"],"model":"meta-llama/Llama-3.1-8B-Instruct","temperature":0.7,"max_tokens":256,"stream":true,"stream_options":{"include_usage":true}}"#);
    body.into_bytes()
}

fn tokens(count: u32) -> Vec<u8> {
    let ids: Vec<String> = (0..count).map(|id| (id * 7919 % 128_000).to_string()).collect();
    format!(r#"{{"model":"m","prompt":[{}]}}"#, ids.join(",")).into_bytes()
}

fn bodies(c: &mut Criterion) {
    let mut group = c.benchmark_group("scan");
    let limits = Limits::default();
    let cases = [
        ("chat_0.5k", Route::ChatCompletions, chat(PROSE, 200)),
        ("chat_32k", Route::ChatCompletions, chat(PROSE, 32_000)),
        ("chat_400k_prose", Route::ChatCompletions, chat(PROSE, 400_000)),
        ("chat_400k_code", Route::ChatCompletions, chat(CODE, 400_000)),
        ("chat_400k_chinese", Route::ChatCompletions, chat(CHINESE, 400_000)),
        ("chat_400k_chinese_escaped", Route::ChatCompletions, chat(ESCAPED, 400_000)),
        ("token_ids_400k", Route::Completions, tokens(60_000)),
    ];
    for (name, route, body) in &cases {
        scan(*route, body, &limits).expect("the bench bodies are valid");
        group.throughput(Throughput::Bytes(body.len() as u64));
        group.bench_function(*name, |b| b.iter(|| scan(*route, black_box(body), &limits)));
    }
    group.finish();
}

const EVENT: &str = "data: {\"id\":\"chatcmpl-8d6ce2f1b6a64e3b\",\"object\":\"chat.completion.chunk\",\"created\":1758200000,\"model\":\"meta-llama/Llama-3.1-8B-Instruct\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\" word\"},\"logprobs\":null,\"finish_reason\":null}]}\n\n";
const LAST: &str = "data: {\"id\":\"chatcmpl-8d6ce2f1b6a64e3b\",\"object\":\"chat.completion.chunk\",\"created\":1758200000,\"model\":\"meta-llama/Llama-3.1-8B-Instruct\",\"choices\":[],\"usage\":{\"prompt_tokens\":1200,\"total_tokens\":1300,\"completion_tokens\":100,\"prompt_tokens_details\":{\"cached_tokens\":1024}}}\n\n";

fn answers(c: &mut Criterion) {
    let mut group = c.benchmark_group("sse");
    for (name, event) in [("event", EVENT), ("usage_event", LAST)] {
        let mut reader = SseReader::new();
        group.throughput(Throughput::Bytes(event.len() as u64));
        group.bench_function(name, |b| b.iter(|| reader.push(black_box(event.as_bytes()))));
    }
    let mut reader = SseReader::new();
    let (head, tail) = EVENT.as_bytes().split_at(EVENT.len() / 2);
    group.bench_function("event_in_two_chunks", |b| {
        b.iter(|| {
            reader.push(black_box(head));
            reader.push(black_box(tail));
        });
    });
    group.finish();

    let vector: Vec<String> = (0..4096).map(|i| format!("{:.8}", f64::from(i).sin())).collect();
    let answer = format!(
        r#"{{"object":"list","data":[{{"index":0,"embedding":[{}]}}],"usage":{{"prompt_tokens":8,"total_tokens":8}}}}"#,
        vector.join(",")
    );
    let mut group = c.benchmark_group("usage");
    group.throughput(Throughput::Bytes(answer.len() as u64));
    group.bench_function("embedding_48k", |b| {
        b.iter(|| {
            let mut reader = UsageReader::new();
            reader.push(black_box(answer.as_bytes()));
            reader.usage()
        });
    });
    group.finish();
}

criterion_group!(benches, bodies, answers);
criterion_main!(benches);
