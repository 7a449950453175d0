//! What a shadow policy costs on the request path.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use http::Method;
use openai::Route;
use telemetry::{AccessLog, BuildInfo, Metrics, Target};
use types::Timestamp;
use wicketgate_gateway::{
    Caller, Ending, Exchange, Gateway, Policy, RequestId, RequestMeta, Wishes,
};

fn gateway(shadow: &str) -> Arc<Gateway> {
    let endpoints: Vec<_> =
        (1..=50).map(|n| format!("{{ url: 'http://10.0.0.{n}:8000' }}")).collect();
    let text = format!(
        "apiVersion: gateway.wicketgate.dev/v1alpha1\nkind: InferenceGatewayConfig\nspec:\n  schedulers:\n  \
         - name: chat\n    modelName: llama\n    {shadow}\n    endpoints: [{}]\n",
        endpoints.join(", ")
    );
    let document = config::parse(&text, "test").unwrap();
    let metrics = Metrics::new(BuildInfo::default());
    let dropped = Arc::clone(&metrics.gateway().access_log_dropped_lines);
    let log = AccessLog::open(Target::Off, dropped).unwrap();
    Gateway::new(&document, Policy::Document, metrics, log)
}

/// Allocations of a hundred requests, after enough of them that every buffer has its size.
fn allocations(gateway: &Arc<Gateway>) -> u64 {
    let text = "word ".repeat(400);
    let body = format!(r#"{{"model":"llama","messages":[{{"role":"user","content":"{text}"}}]}}"#);
    let mut rng = rand::rng();
    let mut serve = |millis| {
        let now = Timestamp::from_millis(millis);
        let meta = RequestMeta {
            id: RequestId::random(&mut rng),
            method: Method::POST,
            route: Route::ChatCompletions,
            client: SocketAddr::from((Ipv4Addr::LOCALHOST, 1)),
            received: now,
            session: None,
            pool: None,
            caller: Caller::anonymous(),
            wishes: Wishes::default(),
        };
        let mut exchange = Exchange::new(gateway.clone(), meta);
        exchange.place(body.as_bytes(), None, now).unwrap();
        exchange.attempt(now).unwrap();
        exchange.answered(200, None, now);
        exchange.finish(Ending::Complete, now);
    };
    (0..400).for_each(&mut serve);
    allocation_counter::measure(|| (400..500).for_each(&mut serve)).count_total
}

#[test]
fn a_shadow_policy_allocates_nothing() {
    let without = allocations(&gateway(""));
    let with = allocations(&gateway("shadow: { weights: { predictedLatency: 1 } }"));
    assert_eq!(with, without);
}
