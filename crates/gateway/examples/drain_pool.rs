//! Prints what it costs to let ten thousand waiting requests go, one for each that ends:
//! `cargo run --release -p wicketgate-gateway --example drain_pool`.
//!
//! Unlike the example of `wicketgate-flow`, which drains the queue alone, each request is a whole one: its turn comes
//! by the pool's room, its endpoint is chosen anew, credit is booked under the endpoint's bound, its books are closed.
//! No bytes are sent.

#![allow(clippy::print_stdout, clippy::disallowed_methods, clippy::expect_used)]

use std::collections::VecDeque;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Instant;

use http::Method;
use openai::Route;
use rand::SeedableRng;
use telemetry::{AccessLog, BuildInfo, Metrics, Target, clock};
use wicketgate_gateway::{
    Caller, Ending, Exchange, Gateway, Placed, Policy, RequestId, RequestMeta, Turn, Wishes,
};

const BODY: &[u8] = br#"{"model":"llama","max_tokens":16,"messages":[{"role":"user","content":"Summarise the following in one sentence."}]}"#;
const WAITING: usize = 10_000;
const ROUNDS: usize = 5;

fn gateway(endpoints: usize, concurrency: usize) -> Arc<Gateway> {
    let urls: Vec<String> = (1..=endpoints)
        .map(|number| {
            format!("{{ url: 'http://10.0.{}.{}:8000' }}", number / 250, number % 250 + 1)
        })
        .collect();
    let text = format!(
        "apiVersion: gateway.wicketgate.dev/v1alpha1\nkind: InferenceGatewayConfig\nspec:\n  flowControl:\n    \
         defaultBand: {{ requestsMax: 100000 }}\n  schedulers:\n  - {{ name: chat, modelName: llama, \
         saturation: {{ concurrency: {concurrency} }}, endpoints: [{}] }}\n",
        urls.join(", ")
    );
    let document = config::parse(&text, "drain").expect("a document");
    let metrics = Metrics::new(BuildInfo { version: "drain", revision: "" });
    let dropped = Arc::clone(&metrics.gateway().access_log_dropped_lines);
    let log = AccessLog::open(Target::Off, dropped).expect("the log opens");
    Gateway::new(&document, Policy::Document, metrics, log)
}

fn begin(gateway: &Arc<Gateway>, rng: &mut rand_pcg::Pcg64Mcg) -> (Exchange, Placed) {
    let now = clock::now();
    let mut exchange = Exchange::new(
        Arc::clone(gateway),
        RequestMeta {
            id: RequestId::random(rng),
            method: Method::POST,
            route: Route::ChatCompletions,
            client: SocketAddr::from((Ipv4Addr::LOCALHOST, 4711)),
            received: now,
            session: None,
            pool: None,
            caller: Caller::anonymous(),
            wishes: Wishes::default(),
        },
    );
    exchange.count_body(BODY);
    let placed = exchange.place(BODY, Some("application/json"), now).expect("it may wait");
    (exchange, placed)
}

/// Milliseconds from the first end to the last request's booking.
async fn drain(gateway: &Arc<Gateway>, room: usize, rng: &mut rand_pcg::Pcg64Mcg) -> f64 {
    let mut sent = VecDeque::new();
    for _ in 0..room {
        let (mut exchange, placed) = begin(gateway, rng);
        assert!(matches!(placed, Placed::Chosen), "there is room");
        let _ = exchange.attempt(clock::now()).expect("an endpoint");
        sent.push_back(exchange);
    }
    let mut waiting: VecDeque<(Exchange, Turn)> = VecDeque::new();
    for _ in 0..WAITING {
        match begin(gateway, rng) {
            (exchange, Placed::Waits(turn)) => waiting.push_back((exchange, turn)),
            (_, Placed::Chosen) => unreachable!("the pool is full"),
        }
    }
    let begun = Instant::now();
    while let Some((mut next, turn)) = waiting.pop_front() {
        let mut ended = sent.pop_front().expect("as many are under way as there is room for");
        ended.answered(200, None, clock::now());
        ended.finish(Ending::Complete, clock::now());
        drop(ended);
        let grant = turn.come().await.expect("its turn comes");
        next.go(grant, clock::now()).expect("an endpoint has room");
        let _ = next.attempt(clock::now()).expect("an endpoint");
        sent.push_back(next);
    }
    begun.elapsed().as_secs_f64() * 1e3
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    println!(
        "endpoints  each takes  waiting  drained in ms (of {ROUNDS}: least, median)  a request us"
    );
    for (endpoints, each) in [(4, 64), (8, 128), (64, 32)] {
        let mut rng = rand_pcg::Pcg64Mcg::seed_from_u64(1);
        let mut all = Vec::new();
        for _ in 0..ROUNDS {
            all.push(drain(&gateway(endpoints, each), endpoints * each, &mut rng).await);
        }
        all.sort_by(f64::total_cmp);
        let (least, median) = (all[0], all[ROUNDS / 2]);
        println!(
            "{endpoints:>9}  {each:>10}  {WAITING:>7}  {least:>22.1}, {median:>8.1}  {:>12.2}",
            median * 1e3 / WAITING as f64
        );
    }
}
