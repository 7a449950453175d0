//! The endpoints of a document, simulated, each with one thing wrong.

use std::collections::BTreeSet;
use std::time::Duration;

use gateway::SettingsView;
use sim::{FaultKind, Fleet, Quirks, ServerSpec};
use types::EngineKind;

use super::ids;
use crate::doctor::gather::{Probing, offline};
use crate::doctor::judge;

/// What the tests below find.
pub(super) const PROVED: [&str; 16] = [
    "endpoint-unreachable",
    "metrics-unreadable",
    "signal-missing",
    "scorer-without-input",
    "prefix-caching-off",
    "keep-alive-short",
    "clock-apart",
    "pool-empty",
    "model-missing",
    "models-unreadable",
    "version-differs",
    "engine-differs",
    "block-size-differs",
    "context-differs",
    "lora-off",
    "adapter-missing",
];

fn spec(quirks: Quirks) -> ServerSpec {
    ServerSpec { quirks, ..ServerSpec::default() }
}

/// What the doctor finds at `fleet`, with `extra` in the scheduler and beside it.
async fn found(fleet: &Fleet, scheduler: &str, beside: &str) -> BTreeSet<&'static str> {
    let endpoints: Vec<String> =
        fleet.urls().iter().map(|url| format!("{{ url: \"{url}\" }}")).collect();
    let text = format!(
        "apiVersion: gateway.wicketgate.dev/v1alpha1\nkind: InferenceGatewayConfig\nspec:\n  \
         listener: {{ address: \"127.0.0.1:8080\" }}\n  {beside}\n  schedulers:\n    - name: chat\n      \
         modelName: llama-3.1-8b\n      {scheduler}\n      endpoints: [{}]\n",
        endpoints.join(", ")
    );
    look(config::parse(&text, "test.yaml").expect("a document")).await
}

async fn look(document: config::Document) -> BTreeSet<&'static str> {
    let probing = Probing { key: None, patience: Duration::from_secs(10) };
    let settings = SettingsView::of(&document);
    let facts = tokio::task::spawn_blocking(move || offline(settings, &probing)).await.unwrap();
    ids(&judge(&facts))
}

/// A short wait for idle connections, so that a test does not take the three seconds of the default.
const BRISK: &str = "timeouts: { endpointIdle: 100ms }";

async fn fleet_of(specs: Vec<ServerSpec>) -> Fleet {
    Fleet::start(specs).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fleet_in_order_has_no_finding() {
    let lora = ServerSpec {
        adapters: vec!["support-de".to_owned()],
        ..spec(Quirks { clock_ahead_s: Some(0), ..Quirks::default() })
    };
    let fleet = fleet_of(vec![lora.clone(), lora]).await;
    let scheduler =
        "loraAdapters: [support-de]\n      policy: reference\n      weights: { loraAffinity: 1 }";
    assert_eq!(found(&fleet, scheduler, BRISK).await, BTreeSet::new());
    for engine in [EngineKind::Sglang, EngineKind::Tgi, EngineKind::TensorRtLlm] {
        let fleet = fleet_of(vec![ServerSpec::new(engine, "llama-3.1-8b/h100")]).await;
        assert_eq!(found(&fleet, "", BRISK).await, BTreeSet::new(), "{engine:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn replicas_that_differ_are_found() {
    let cases = [
        (Quirks { version: Some("0.31.0".to_owned()), ..Quirks::default() }, "version-differs"),
        (Quirks { block_size: Some(32), ..Quirks::default() }, "block-size-differs"),
        (Quirks { prefix_caching: false, ..Quirks::default() }, "prefix-caching-off"),
        (Quirks { clock_ahead_s: Some(-90), ..Quirks::default() }, "clock-apart"),
        (Quirks { clock_ahead_s: Some(90), ..Quirks::default() }, "clock-apart"),
        (
            Quirks { silent: vec!["vllm:kv_cache_usage_perc".to_owned()], ..Quirks::default() },
            "signal-missing",
        ),
    ];
    for (quirks, wanted) in cases {
        let fleet = fleet_of(vec![ServerSpec::default(), spec(quirks)]).await;
        assert_eq!(found(&fleet, "", BRISK).await, BTreeSet::from([wanted]));
    }
    let short = ServerSpec { max_model_len: Some(4096), ..ServerSpec::default() };
    let fleet = fleet_of(vec![ServerSpec::default(), short]).await;
    assert_eq!(found(&fleet, "", BRISK).await, BTreeSet::from(["context-differs"]));
    let other = ServerSpec::new(EngineKind::Sglang, "llama-3.1-8b/h100");
    let fleet = fleet_of(vec![ServerSpec::default(), other]).await;
    assert_eq!(found(&fleet, "", BRISK).await, BTreeSet::from(["engine-differs"]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_keep_alive_below_the_idle_time_is_measured() {
    let hasty = ServerSpec { keep_alive: Duration::from_millis(300), ..ServerSpec::default() };
    let fleet = fleet_of(vec![hasty]).await;
    assert_eq!(
        found(&fleet, "", "timeouts: { endpointIdle: 1s }").await,
        BTreeSet::from(["keep-alive-short"])
    );
    assert_eq!(
        found(&fleet, "", BRISK).await,
        BTreeSet::new(),
        "it closes later than the gateway would"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics_that_cannot_be_read_and_scorers_without_input_are_found() {
    let fleet = fleet_of(vec![ServerSpec::default(), ServerSpec::default()]).await;
    fleet.server(0).fault(FaultKind::MetricsError { status: 401 });
    assert_eq!(found(&fleet, "", BRISK).await, BTreeSet::from(["metrics-unreadable"]));
    let fleet = fleet_of(vec![ServerSpec::new(EngineKind::Tgi, "llama-3.1-8b/h100")]).await;
    let found = found(&fleet, "policy: reference", BRISK).await;
    assert_eq!(found, BTreeSet::from(["scorer-without-input"]), "TGI reports no KV use");
}

#[tokio::test(flavor = "multi_thread")]
async fn endpoints_that_are_away_or_serve_something_else_are_found() {
    let fleet = fleet_of(vec![ServerSpec::default(), ServerSpec::default()]).await;
    fleet.server(0).fault(FaultKind::Refuse);
    fleet.server(0).listening().wait_for(|open| !open).await.unwrap();
    assert_eq!(found(&fleet, "", BRISK).await, BTreeSet::from(["endpoint-unreachable"]));
    fleet.server(1).fault(FaultKind::Refuse);
    fleet.server(1).listening().wait_for(|open| !open).await.unwrap();
    assert_eq!(
        found(&fleet, "", BRISK).await,
        BTreeSet::from(["endpoint-unreachable", "pool-empty"])
    );

    let other = ServerSpec { model: "qwen-3-8b".to_owned(), ..ServerSpec::default() };
    let fleet = fleet_of(vec![other]).await;
    assert_eq!(found(&fleet, "", BRISK).await, BTreeSet::from(["model-missing"]));
    let fault = FaultKind::Error { status: 404, retry_after: None, body: None, content_type: None };
    let fleet = fleet_of(vec![ServerSpec::default()]).await;
    fleet.server(0).fault(sim::Fault { path: Some("/v1/models".to_owned()), ..fault.into() });
    assert_eq!(found(&fleet, "", BRISK).await, BTreeSet::from(["models-unreadable"]));
}

#[tokio::test(flavor = "multi_thread")]
async fn adapters_that_an_endpoint_does_not_serve_are_found() {
    let scheduler = "loraAdapters: [support-de, sql]";
    let fleet = fleet_of(vec![ServerSpec::default()]).await;
    assert_eq!(found(&fleet, scheduler, BRISK).await, BTreeSet::from(["lora-off"]));
    let one = ServerSpec { adapters: vec!["sql".to_owned()], ..ServerSpec::default() };
    let fleet = fleet_of(vec![one]).await;
    assert_eq!(found(&fleet, scheduler, BRISK).await, BTreeSet::from(["adapter-missing"]));
}

#[tokio::test(flavor = "multi_thread")]
async fn endpoints_without_a_model_are_compared_with_those_that_serve_the_same() {
    let other = ServerSpec { model: "qwen-3-8b".to_owned(), ..ServerSpec::default() };
    let old = spec(Quirks { version: Some("0.31.0".to_owned()), ..Quirks::default() });
    let fleet = fleet_of(vec![ServerSpec::default(), other, old]).await;
    let mut document = config::from_flags(&fleet.urls(), None, None).unwrap();
    document.spec.listener.address = "127.0.0.1:8080".parse().unwrap();
    document.spec.timeouts.endpoint_idle = Duration::from_millis(100);
    assert_eq!(look(document).await, BTreeSet::from(["version-differs"]));
}
