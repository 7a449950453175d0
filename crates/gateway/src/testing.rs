//! A gateway without a wire, for the tests of this crate.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use engines::models::ServedModel;
use http::Method;
use openai::Route;
use telemetry::{AccessLog, BuildInfo, Metrics, Target};
use types::{EndpointMetrics, PoolName, Ratio, Timestamp};

use crate::{Caller, Exchange, Gateway, Policy, RequestId, RequestMeta, Wishes};

/// A gateway in front of what the YAML below `spec:` says.
pub(crate) fn gateway(spec: &str) -> Arc<Gateway> {
    gateway_of(&document(spec))
}

pub(crate) fn gateway_of(document: &config::Document) -> Arc<Gateway> {
    let metrics = Metrics::new(BuildInfo { version: "test", revision: "" });
    let dropped = Arc::clone(&metrics.gateway().access_log_dropped_lines);
    let log = AccessLog::open(Target::Off, dropped).unwrap();
    Gateway::new(document, Policy::Document, metrics, log)
}

/// A document with this YAML below `spec:`.
pub(crate) fn document(spec: &str) -> config::Document {
    let text = format!(
        "apiVersion: gateway.wicketgate.dev/v1alpha1\nkind: InferenceGatewayConfig\nmetadata: {{ name: test }}\nspec:\n{spec}"
    );
    config::parse(&text, "test").unwrap_or_else(|errors| panic!("{errors}"))
}

/// One pool `chat` for the model `llama` with this many endpoints.
pub(crate) fn pool_of(endpoints: usize) -> Arc<Gateway> {
    let endpoints: Vec<_> =
        (1..=endpoints).map(|n| format!("{{ url: 'http://10.0.0.{n}:8000' }}")).collect();
    gateway(&format!(
        "  schedulers:\n  - name: chat\n    modelName: llama\n    endpoints: [{}]\n",
        endpoints.join(", ")
    ))
}

pub(crate) fn served(id: &str, parent: Option<&str>) -> ServedModel {
    ServedModel { id: id.to_owned(), parent: parent.map(str::to_owned), max_model_len: None }
}

pub(crate) fn at(seconds: u64) -> Timestamp {
    Timestamp::from_millis(1_000_000 + seconds * 1000)
}

pub(crate) fn exchange(gateway: &Arc<Gateway>) -> Exchange {
    exchange_at(gateway, at(0))
}

/// A chat that is received at this time.
pub(crate) fn exchange_at(gateway: &Arc<Gateway>, received: Timestamp) -> Exchange {
    Exchange::new(gateway.clone(), meta(received))
}

/// A chat of this session.
pub(crate) fn exchange_in(gateway: &Arc<Gateway>, session: Option<u64>) -> Exchange {
    let plain = meta(at(0));
    Exchange::new(gateway.clone(), RequestMeta { session, ..plain })
}

/// A chat that a route has led to this pool.
pub(crate) fn exchange_to(gateway: &Arc<Gateway>, pool: PoolName) -> Exchange {
    let plain = meta(at(0));
    Exchange::new(gateway.clone(), RequestMeta { pool: Some(pool), ..plain })
}

fn meta(received: Timestamp) -> RequestMeta {
    RequestMeta {
        id: RequestId::random(&mut rand::rng()),
        method: Method::POST,
        route: Route::ChatCompletions,
        client: SocketAddr::from((Ipv4Addr::LOCALHOST, 1)),
        received,
        session: None,
        pool: None,
        caller: Caller::anonymous(),
        wishes: Wishes::default(),
    }
}

/// A chat with wishes, received at zero.
pub(crate) fn exchange_of(gateway: &Arc<Gateway>, caller: Arc<Caller>, wishes: Wishes) -> Exchange {
    let plain = meta(at(0));
    Exchange::new(gateway.clone(), RequestMeta { caller, wishes, ..plain })
}

pub(crate) fn body(model: &str) -> Vec<u8> {
    format!(r#"{{"model":"{model}","messages":[{{"role":"user","content":"hi"}}]}}"#).into_bytes()
}

/// A fresh scrape of the n-th endpoint.
pub(crate) fn scrape(gateway: &Gateway, number: usize, waiting: u32, kv_usage: f64) {
    let metrics = EndpointMetrics {
        waiting: Some(waiting),
        running: Some(1),
        kv_usage: Ratio::new(kv_usage).ok(),
        ..EndpointMetrics::default()
    };
    gateway.members()[number].state.record_scrape(&metrics, at(0), Duration::from_secs(60));
}

/// The requests that all endpoints have by our account.
pub(crate) fn in_flight(gateway: &Gateway) -> u32 {
    gateway.members().iter().map(|member| member.state.in_flight()).sum()
}
