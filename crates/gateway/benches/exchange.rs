//! All that a request costs here beside its bytes on the wire: read, resolved, placed, booked, its receipt kept, its metrics
//! counted and its line logged, with eight endpoints. Once with the access log and once without.

use std::hint::black_box;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use criterion::{Criterion, criterion_group, criterion_main};
use http::Method;
use openai::Route;
use rand::SeedableRng;
use telemetry::{AccessLog, BuildInfo, Metrics, Target, clock};
use wicketgate_gateway::{
    Caller, Ending, Exchange, Gateway, Placed, Policy, RequestId, RequestMeta, Wishes,
};

const ANSWER: &[u8] = br#"{"id":"a","object":"chat.completion","model":"llama","choices":[{"index":0,"message":{"role":"assistant","content":"Hello"},"finish_reason":"stop"}],"usage":{"prompt_tokens":120,"completion_tokens":2,"total_tokens":122,"prompt_tokens_details":{"cached_tokens":96}}}"#;

fn gateway(log: Target) -> Arc<Gateway> {
    let endpoints: Vec<String> =
        (1..=8).map(|number| format!("{{ url: 'http://10.0.0.{number}:8000' }}")).collect();
    let text = format!(
        "apiVersion: gateway.wicketgate.dev/v1alpha1\nkind: InferenceGatewayConfig\nspec:\n  schedulers:\n  \
         - {{ name: chat, modelName: llama, endpoints: [{}] }}\n",
        endpoints.join(", ")
    );
    let document = config::parse(&text, "bench").expect("a document");
    let metrics = Metrics::new(BuildInfo { version: "bench", revision: "" });
    let dropped = Arc::clone(&metrics.gateway().access_log_dropped_lines);
    let log = AccessLog::open(log, dropped).expect("the log opens");
    Gateway::new(&document, Policy::Document, metrics, log)
}

fn request(gateway: &Arc<Gateway>, rng: &mut rand_pcg::Pcg64Mcg, body: &[u8]) {
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
    exchange.count_body(body);
    let placed = exchange.place(body, Some("application/json"), now).expect("it is placed");
    assert!(matches!(placed, Placed::Chosen), "flow control is off");
    black_box(exchange.attempt(now)).expect("an endpoint");
    exchange.answered(200, None, clock::now());
    exchange.watch(Some("application/json"));
    exchange.payload(ANSWER, clock::now());
    exchange.finish(Ending::Complete, clock::now());
}

fn exchange(c: &mut Criterion) {
    let text = "Summarise the following in one sentence. ".repeat(12);
    let body = format!(
        r#"{{"model":"llama","max_tokens":16,"messages":[{{"role":"user","content":"{text}"}}]}}"#
    );
    for (name, log) in
        [("with its log line", Target::File("/dev/null".into())), ("without", Target::Off)]
    {
        let gateway = gateway(log);
        let mut rng = rand_pcg::Pcg64Mcg::seed_from_u64(1);
        c.bench_function(&format!("a request, all decisions and books, {name}"), |b| {
            b.iter(|| request(&gateway, &mut rng, body.as_bytes()));
        });
    }
}

criterion_group!(benches, exchange);
criterion_main!(benches);
