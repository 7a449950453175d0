//! What a gateway tells, as facts.

use std::collections::BTreeSet;

use gateway::{EndpointSettingsView, EndpointView, PoolSettingsView, SettingsView};

use super::ids;
use crate::doctor::facts::{
    EndpointFacts, EngineFacts, Facts, GatewayFacts, KeepAlive, Process, Seen,
};
use crate::doctor::judge;
use crate::scrape::Page;

/// What the tests below find.
pub(super) const PROVED: [&str; 20] = [
    "gateway-not-ready",
    "gateway-older",
    "admin-open",
    "traffic-open",
    "reload-rejected",
    "certificate-expires",
    "certificate-expired",
    "descriptors-low",
    "log-lines-dropped",
    "bodies-refused",
    "pool-saturated",
    "retries-high",
    "aborts-high",
    "endpoint-not-seen",
    "endpoint-ejected",
    "endpoint-stale",
    "endpoint-asleep",
    "keep-alive-never",
    "prediction-off",
    "prefix-hits-none",
];

fn page(text: &str) -> Page {
    Page::read(text.as_bytes(), &["wicketgate_"])
}

fn view() -> EndpointView {
    serde_json::from_value(serde_json::json!({
        "pool": "chat", "endpoint": "a:1", "engine": "vllm", "state": "ready", "waiting": 0,
        "running": 3, "kv_usage": 0.2, "in_flight": 3, "prefill_tokens": 0, "scrape_age_ms": 40,
        "scrape_failures": 0, "predictions": 1000, "prediction_bias": 1.0, "prediction_error": 0.1,
    }))
    .unwrap()
}

/// A gateway with one endpoint, everything in order.
fn facts() -> Facts {
    let endpoint =
        EndpointSettingsView { endpoint: "a:1".to_owned(), ..EndpointSettingsView::default() };
    let pool = PoolSettingsView {
        pool: "chat".to_owned(),
        endpoints: vec![endpoint],
        ..PoolSettingsView::default()
    };
    let traffic = "wicketgate_requests_total{pool=\"chat\",outcome=\"ok\"} 1000\nwicketgate_pool_saturation_ratio{pool=\"chat\"} 0.4\n";
    Facts {
        gateway: Some(GatewayFacts {
            admin: "127.0.0.1:9090".to_owned(),
            is_ready: true,
            tells_settings: true,
            is_open: true,
            process: Process { descriptors_max: Some(65_536), descriptors_open: Some(40) },
            before: page(traffic),
            after: page(traffic),
            ..GatewayFacts::default()
        }),
        settings: SettingsView {
            listen: "127.0.0.1:8080".to_owned(),
            admin: "127.0.0.1:9090".to_owned(),
            endpoint_idle_ms: 3000,
            connections_max: 10_000,
            pools: vec![pool],
            ..SettingsView::default()
        },
        endpoints: vec![EndpointFacts {
            pool: 0,
            endpoint: "a:1".to_owned(),
            view: Some(view()),
            seen: Seen::default(),
        }],
    }
}

/// The ids that `change` brings.
fn after(change: impl Fn(&mut Facts)) -> BTreeSet<&'static str> {
    let mut facts = facts();
    change(&mut facts);
    ids(&judge(&facts))
}

fn after_gateway(change: impl Fn(&mut GatewayFacts)) -> BTreeSet<&'static str> {
    after(|facts| change(facts.gateway.as_mut().unwrap()))
}

/// What further lines on the gateway's page bring.
fn after_lines(lines: &str) -> BTreeSet<&'static str> {
    let traffic = "wicketgate_requests_total{pool=\"chat\",outcome=\"ok\"} 1000\n";
    after_gateway(|gateway| gateway.after = page(&format!("{traffic}{lines}\n")))
}

fn after_view(change: impl Fn(&mut EndpointView)) -> BTreeSet<&'static str> {
    after(|facts| change(facts.endpoints[0].view.as_mut().unwrap()))
}

#[test]
fn a_gateway_in_order_has_no_finding() {
    assert_eq!(after(|_| {}), BTreeSet::new());
}

#[test]
fn what_is_open_or_not_ready_is_found() {
    assert_eq!(
        after_gateway(|gateway| gateway.is_ready = false),
        BTreeSet::from(["gateway-not-ready"])
    );
    assert_eq!(
        after_gateway(|gateway| gateway.tells_settings = false),
        BTreeSet::from(["gateway-older"])
    );
    let open = |facts: &mut Facts| facts.settings.admin = "0.0.0.0:9090".to_owned();
    assert_eq!(after(open), BTreeSet::from(["admin-open"]));
    let behind_token = |facts: &mut Facts| {
        open(facts);
        facts.gateway.as_mut().unwrap().is_open = false;
    };
    assert_eq!(after(behind_token), BTreeSet::new());
    let open = |facts: &mut Facts| facts.settings.listen = "[::]:8080".to_owned();
    assert_eq!(after(open), BTreeSet::from(["traffic-open"]));
    let closed = |facts: &mut Facts| {
        open(facts);
        facts.settings.auth = true;
    };
    assert_eq!(after(closed), BTreeSet::new());
}

#[test]
fn what_the_process_lacks_is_found() {
    let few = |gateway: &mut GatewayFacts| gateway.process.descriptors_max = Some(1024);
    assert_eq!(after_gateway(few), BTreeSet::from(["descriptors-low"]));
    let cases = [
        ("wicketgate_config_reloads_total{outcome=\"rejected\"} 1", "reload-rejected"),
        ("wicketgate_access_log_dropped_lines_total 7", "log-lines-dropped"),
        ("wicketgate_certificate_expiry_timestamp_seconds 1.0", "certificate-expired"),
        ("wicketgate_requests_refused_total{reason=\"too_large\"} 3", "bodies-refused"),
    ];
    for (line, wanted) in cases {
        assert_eq!(after_lines(line), BTreeSet::from([wanted]));
    }
    let now = telemetry::clock::unix_seconds(telemetry::clock::wall());
    let soon = format!("wicketgate_certificate_expiry_timestamp_seconds {}", now + 86_400.0);
    assert_eq!(after_lines(&soon), BTreeSet::from(["certificate-expires"]));
}

#[test]
fn shares_of_the_traffic_are_judged_once_there_is_enough_of_it() {
    let cases = [
        ("wicketgate_retries_total{pool=\"chat\",reason=\"connect\"} 80", "retries-high"),
        ("wicketgate_streams_aborted_total{pool=\"chat\",reason=\"stalled\"} 20", "aborts-high"),
        (
            "wicketgate_requests_rejected_total{pool=\"chat\",reason=\"saturated\"} 30",
            "pool-saturated",
        ),
    ];
    for (line, wanted) in cases {
        assert_eq!(after_lines(line), BTreeSet::from([wanted]));
        let few = format!("wicketgate_requests_total{{pool=\"chat\"}} 10\n{line}");
        assert_eq!(after_gateway(|gateway| gateway.after = page(&few)), BTreeSet::new());
    }
    let gone = "wicketgate_streams_aborted_total{pool=\"chat\",reason=\"client_gone\"} 500";
    assert_eq!(after_lines(gone), BTreeSet::new(), "clients may leave");
    let full = |gateway: &mut GatewayFacts| {
        gateway.before = page("wicketgate_pool_saturation_ratio{pool=\"chat\"} 1");
        gateway.after = gateway.before.clone();
    };
    assert_eq!(after_gateway(full), BTreeSet::from(["pool-saturated"]));
}

#[test]
fn what_the_gateway_knows_of_endpoints_is_judged() {
    let cases = [
        ("ejected", "endpoint-ejected"),
        ("stale", "endpoint-stale"),
        ("asleep", "endpoint-asleep"),
    ];
    for (state, wanted) in cases {
        let found = after_view(|view| view.state = state.to_owned());
        assert_eq!(found, BTreeSet::from([wanted, "pool-empty"]), "nobody else is there");
    }
    let never = |view: &mut EndpointView| {
        view.scrape_age_ms = None;
        view.scrape_failures = 3;
    };
    assert_eq!(after_view(never), BTreeSet::from(["endpoint-stale"]));
    let off = |view: &mut EndpointView| view.prediction_error = Some(0.9);
    assert_eq!(after_view(off), BTreeSet::from(["prediction-off"]));
    let elsewhere =
        |facts: &mut Facts| facts.endpoints[0].seen.unreachable = Some("no route".to_owned());
    assert_eq!(after(elsewhere), BTreeSet::from(["endpoint-not-seen"]));
}

#[test]
fn what_an_endpoint_said_of_connections_and_hits_is_judged() {
    let never = |facts: &mut Facts| facts.endpoints[0].seen.keep_alive = KeepAlive::Never;
    assert_eq!(after(never), BTreeSet::from(["keep-alive-never"]));
    let none_found = |facts: &mut Facts| {
        let mut engine = EngineFacts::default();
        engine.page.metrics.prefix_query_tokens = Some(2_000_000);
        engine.page.metrics.prefix_hit_tokens = Some(0);
        facts.endpoints[0].seen.metrics = Some(Ok(engine));
    };
    assert_eq!(after(none_found), BTreeSet::from(["prefix-hits-none"]));
}
