//! What being seen costs a request: metrics, the receipt of its decision and its line in the access log, beside the same request
//! without any of them, in one run.
//!
//! The request without is a mirror's copy: placed, booked on its endpoint, answered and watched by the same code, and counted
//! in no metric of requests, no receipt and no log. What is compared is CPU time of all threads, the log's writer included, so
//! that other work on the machine hardly matters; phases of each kind take turns, and the median of the rounds counts.
//!
//! `cargo bench -p wicketgate-gateway --bench seen`; the aim is 8 µs.

use std::fs;
use std::hint::black_box;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use http::Method;
use openai::Route;
use rand::SeedableRng;
use telemetry::{AccessLog, BuildInfo, Metrics, Target, clock};
use wicketgate_gateway::{
    Caller, Ending, Exchange, Gateway, Policy, RequestId, RequestMeta, Wishes,
};

const ROUNDS: usize = 15;
const REQUESTS: u32 = 10_000;
const AIM_MICROS: f64 = 8.0;
/// Events of the streamed answer.
const EVENTS: usize = 64;

const WHOLE: &[u8] = br#"{"id":"a","object":"chat.completion","model":"llama","choices":[{"index":0,"message":{"role":"assistant","content":"Hello"},"finish_reason":"stop"}],"usage":{"prompt_tokens":120,"completion_tokens":2,"total_tokens":122,"prompt_tokens_details":{"cached_tokens":96}}}"#;
const EVENT: &[u8] = b"data: {\"id\":\"a\",\"object\":\"chat.completion.chunk\",\"model\":\"llama\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\" word\"},\"finish_reason\":null}]}\n\n";
const LAST: &[u8] = b"data: {\"id\":\"a\",\"object\":\"chat.completion.chunk\",\"model\":\"llama\",\"choices\":[],\"usage\":{\"prompt_tokens\":120,\"completion_tokens\":64,\"total_tokens\":184,\"prompt_tokens_details\":{\"cached_tokens\":96}}}\n\ndata: [DONE]\n\n";

/// One kind of answer.
struct Answer {
    name: &'static str,
    content_type: &'static str,
    payloads: Vec<&'static [u8]>,
    body: String,
}

fn answers() -> [Answer; 2] {
    let text = "Summarise the following in one sentence. ".repeat(12);
    let body = |stream| {
        format!(
            r#"{{"model":"llama","stream":{stream},"max_tokens":64,"messages":[{{"role":"user","content":"{text}"}}]}}"#
        )
    };
    let mut events = vec![EVENT; EVENTS];
    events.push(LAST);
    [
        Answer {
            name: "a whole answer",
            content_type: "application/json",
            payloads: vec![WHOLE],
            body: body(false),
        },
        Answer {
            name: "a stream of 64 events",
            content_type: "text/event-stream",
            payloads: events,
            body: body(true),
        },
    ]
}

fn gateway(log: Target, rewrites: &str) -> Arc<Gateway> {
    let pool = |name: &str, model: &str, net: u8| {
        let endpoints: Vec<String> =
            (1..=8).map(|number| format!("{{ url: 'http://10.0.{net}.{number}:8000' }}")).collect();
        format!(
            "  - {{ name: {name}, modelName: {model}, endpoints: [{}] }}\n",
            endpoints.join(", ")
        )
    };
    let text = format!(
        "apiVersion: gateway.wicketgate.dev/v1alpha1\nkind: InferenceGatewayConfig\nspec:\n  schedulers:\n{}{}{rewrites}",
        pool("chat", "llama", 0),
        pool("copy", "copied", 1),
    );
    let document = config::parse(&text, "bench").expect("a document");
    let metrics = Metrics::new(BuildInfo { version: "bench", revision: "" });
    let dropped = Arc::clone(&metrics.gateway().access_log_dropped_lines);
    let log = AccessLog::open(log, dropped).expect("the log opens");
    Gateway::new(&document, Policy::Document, metrics, log)
}

fn begin(gateway: &Arc<Gateway>, rng: &mut rand_pcg::Pcg64Mcg, answer: &Answer) -> Exchange {
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
    let body = answer.body.as_bytes();
    exchange.count_body(body);
    exchange.place(body, Some("application/json"), now).expect("it is placed");
    exchange
}

/// From the pick to the end.
fn end(mut exchange: Exchange, answer: &Answer) {
    black_box(exchange.attempt(clock::now())).expect("an endpoint");
    exchange.answered(200, None, clock::now());
    exchange.watch(Some(answer.content_type));
    for payload in &answer.payloads {
        exchange.payload(payload, clock::now());
    }
    exchange.finish(Ending::Complete, clock::now());
}

/// CPU time of all threads of this process, microseconds.
fn cpu_micros() -> f64 {
    let tasks = fs::read_dir("/proc/self/task").expect("Linux");
    let of = |task: fs::DirEntry| -> Option<f64> {
        let text = fs::read_to_string(task.path().join("schedstat")).ok()?;
        text.split(' ').next()?.parse().ok()
    };
    tasks.filter_map(|task| of(task.ok()?)).sum::<f64>() / 1000.0
}

fn micros_each(mut one: impl FnMut()) -> f64 {
    let before = cpu_micros();
    (0..REQUESTS).for_each(|_| one());
    (cpu_micros() - before) / f64::from(REQUESTS)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

#[expect(clippy::print_stdout, reason = "a benchmark's output")]
fn main() {
    let mirror = "  modelRewrites:\n  - { name: m, rules: [{ mirror: { modelRewrite: copied }, targets: [{ modelRewrite: llama }] }] }\n";
    let logged = gateway(Target::File("/dev/null".into()), "");
    let unlogged = gateway(Target::Off, "");
    let mirroring = gateway(Target::Off, mirror);
    let mut rng = rand_pcg::Pcg64Mcg::seed_from_u64(1);
    for answer in answers() {
        let body = answer.body.as_bytes();
        // Of one request as many copies as are wanted; reading and placing a copy is its own.
        let original = begin(&mirroring, &mut rng, &answer);
        let mut copied = || {
            let mut copy = original.copy(body, None).expect("room for a copy");
            copy.place_copy(body, Some("application/json"), clock::now()).expect("it is placed");
            end(copy, &answer);
        };
        let (mut bare, mut counted, mut all) = (Vec::new(), Vec::new(), Vec::new());
        for round in 0..=ROUNDS {
            let without = micros_each(&mut copied);
            let metrics = micros_each(|| end(begin(&unlogged, &mut rng, &answer), &answer));
            let log = micros_each(|| end(begin(&logged, &mut rng, &answer), &answer));
            // The first warms up.
            if round > 0 {
                bare.push(without);
                counted.push(metrics - without);
                all.push(log - without);
            }
        }
        let (bare, counted, all) = (median(bare), median(counted), median(all));
        let verdict = if all <= AIM_MICROS { "within" } else { "beyond" };
        println!(
            "{}: without {bare:.2} µs; metrics and receipt {counted:.2} µs more, with the log line {all:.2} µs more: {verdict} {AIM_MICROS} µs",
            answer.name
        );
    }
}
