mod open_metrics;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use types::{EndpointMetrics, PoolName, Ratio, TenantName};

use super::labels::{EndpointState, Label, Outcome, Route, ScrapeFailure, Signal};
use super::*;

const FIELD: Names = Names { wicketgate: false, field: true, genai: false };
const BOTH: Names = Names { wicketgate: true, field: true, genai: false };
const GENAI: Names = Names { wicketgate: false, field: false, genai: true };

fn metrics() -> Metrics {
    Metrics::new(BuildInfo { version: "0.1.0", revision: "abc" })
}

/// Metrics with a pool and an endpoint, and every optional series present.
fn full() -> Metrics {
    let metrics = metrics();
    let pool = PoolName::new("llama");
    metrics.pool(&pool);
    let endpoint = metrics.endpoint(&pool, "gpu-1:8000");
    endpoint.show(&EndpointMetrics {
        waiting: Some(3),
        running: Some(5),
        kv_usage: Some(Ratio::new(0.25).unwrap()),
        ..EndpointMetrics::default()
    });
    endpoint.resident_adapters.set(2.0);
    endpoint.scrape_age.set(0.05);
    metrics.pool(&PoolName::new("llama")).flow.get_or_init(FlowMetrics::default);
    metrics.rate_limit("fair");
    endpoint.saturation.set(0.1);
    endpoint.prefill_speed.set(10_000.0);
    endpoint.step.set(0.01);
    for signal in Signal::ALL {
        endpoint.signal_age.of(*signal).set(1.0);
    }
    metrics.usage().set_bounds(10, 10);
    metrics.usage().of(&pool, &TenantName::new("team-a"));
    metrics.gateway().set_config_hash("beef");
    metrics.gateway().config_last_reload_success.set(1.0);
    metrics.gateway().certificate_expiry.set(2.0);
    metrics.rewrite_decisions(decision("v1"));
    metrics.rewrite_target(rule("v1")).share.set(0.9);
    metrics.mirror(rule("v1"));
    metrics.gateway().auth.jwks_age.set(3.0);
    let fleet = metrics.fleet();
    fleet.lease_share.set(0.5);
    fleet.store_up.set(1.0);
    for (_, reading) in fleet.pace.readings() {
        reading.set(0.5);
    }
    let member = metrics.fleet_member("west");
    for reading in
        [&member.heartbeat_age, &member.round_trip, &member.ramp, &member.spent, &member.saved]
    {
        reading.set(0.5);
    }
    metrics.membership();
    metrics
}

/// A gateway that is no router: what it shows of its cluster, a router shows of its fleet.
fn of_a_cluster() -> Metrics {
    let metrics = metrics();
    for (_, reading) in metrics.gateway().cluster.readings() {
        reading.set(0.5);
    }
    metrics
}

fn decision(target: &str) -> DecisionKey {
    DecisionKey { rewrite: "canary".into(), model: "chat".into(), target: target.into() }
}

fn rule(target: &str) -> RuleKey {
    RuleKey { rewrite: "canary".into(), rule: "0".into(), target: target.into() }
}

fn samples(page: &str) -> impl Iterator<Item = (&str, &str)> {
    page.lines().filter(|line| !line.starts_with('#')).map(|line| line.rsplit_once(' ').unwrap())
}

/// The metric a sample belongs to, and its label names without `le`.
fn metric_of(series: &str) -> (&str, Vec<&str>) {
    let (name, labels) = series.split_once('{').unwrap_or((series, ""));
    let histograms: BTreeSet<_> = names::all()
        .filter(|metric| matches!(metric.kind, Kind::Histogram(_)))
        .map(|metric| metric.name)
        .collect();
    let stem = ["_bucket", "_count", "_sum"].iter().find_map(|suffix| name.strip_suffix(suffix));
    let name = stem.filter(|stem| histograms.contains(stem)).unwrap_or(name);
    let labels = labels.trim_end_matches('}').split(',').filter_map(|label| label.split_once('='));
    (name, labels.map(|(key, _)| key).filter(|key| *key != "le").collect())
}

#[test]
fn the_page_shows_every_metric_of_the_table_with_its_labels_and_nothing_else() {
    let (router, cluster) = (full().encode(), of_a_cluster().encode());
    assert!(!router.contains("wicketgate_cluster_") && !cluster.contains("wicketgate_fleet_"));
    let mut seen = BTreeMap::new();
    for (series, _) in samples(&router).chain(samples(&cluster)) {
        let (name, labels) = metric_of(series);
        seen.insert(name, labels);
    }
    let table: BTreeMap<_, _> =
        names::all().map(|metric| (metric.name, metric.labels.to_vec())).collect();
    assert_eq!(seen, table);
}

#[test]
fn a_new_pool_shows_all_its_series_at_zero() {
    let metrics = metrics();
    metrics.pool(&PoolName::new("llama"));
    let page = metrics.encode();
    let of_pool: Vec<_> =
        samples(&page).filter(|(series, _)| series.contains("pool=\"llama\"")).collect();
    assert!(of_pool.iter().all(|(_, value)| ["0", "0.0"].contains(value)), "{of_pool:?}");
    for metric in names::POOL {
        assert!(of_pool.iter().any(|(series, _)| metric_of(series).0 == metric.name));
    }
}

#[test]
fn the_same_name_gives_the_same_cells() {
    let metrics = metrics();
    let pool = PoolName::new("llama");
    metrics.pool(&pool).requests.of(Route::Completions).of(Outcome::Shed).add(2);
    metrics.pool(&pool).requests.of(Route::Completions).of(Outcome::Shed).inc();
    metrics.endpoint(&pool, "a:1").scrape_failures.of(ScrapeFailure::Status).inc();
    let page = metrics.encode();
    for line in [
        r#"wicketgate_requests_total{pool="llama",route="completions",outcome="shed"} 3"#,
        r#"wicketgate_endpoint_scrape_failures_total{pool="llama",endpoint="a:1",reason="status"} 1"#,
    ] {
        assert!(page.contains(line), "{line} is not in\n{page}");
    }
}

#[test]
fn a_forgotten_endpoint_leaves_the_page_and_its_holders_unharmed() {
    let metrics = full();
    let pool = PoolName::new("llama");
    let held = metrics.endpoint(&pool, "gpu-1:8000");
    metrics.forget_endpoint(&pool, "gpu-1:8000");
    held.picks.inc();
    assert!(!metrics.encode().contains("gpu-1"));
    metrics.forget_pool(&pool);
    assert!(!metrics.encode().contains("llama"));
    assert_eq!(metrics.endpoint(&pool, "gpu-1:8000").picks.get(), 0);
}

#[test]
fn what_an_endpoint_does_not_say_is_absent_and_not_zero() {
    let metrics = metrics();
    let endpoint = metrics.endpoint(&PoolName::new("llama"), "a:1");
    endpoint.show(&EndpointMetrics { waiting: Some(1), ..EndpointMetrics::default() });
    let page = metrics.encode();
    assert!(
        page.contains("wicketgate_endpoint_waiting_requests{pool=\"llama\",endpoint=\"a:1\"} 1.0")
    );
    assert!(!page.contains("wicketgate_endpoint_kv_usage_ratio{"));
}

#[test]
fn histograms_are_cumulative_and_agree_with_their_count() {
    let metrics = metrics();
    let pool = metrics.pool(&PoolName::new("p"));
    for millis in [3, 30, 300_000] {
        pool.request_ttft.observe(Duration::from_millis(millis));
    }
    let page = metrics.encode();
    for line in [
        r#"wicketgate_request_ttft_seconds_bucket{pool="p",le="0.0025"} 0"#,
        r#"wicketgate_request_ttft_seconds_bucket{pool="p",le="0.005"} 1"#,
        r#"wicketgate_request_ttft_seconds_bucket{pool="p",le="60"} 2"#,
        r#"wicketgate_request_ttft_seconds_bucket{pool="p",le="+Inf"} 3"#,
        r#"wicketgate_request_ttft_seconds_count{pool="p"} 3"#,
        r#"wicketgate_request_ttft_seconds_sum{pool="p"} 300.033"#,
    ] {
        assert!(page.lines().any(|found| found == line), "{line} is not in\n{page}");
    }
    let infinite = "wicketgate_request_ttft_seconds_bucket{pool=\"p\",le=\"+Inf\"}";
    assert_eq!(page.matches(infinite).count(), 1);
    assert!(!page.contains("e+308"), "{page}");
}

#[test]
fn the_hash_of_a_former_configuration_leaves_the_page() {
    let metrics = full();
    metrics.gateway().set_config_hash("cafe");
    let page = metrics.encode();
    assert!(page.contains("wicketgate_config_info{hash=\"cafe\"} 1"));
    assert!(!page.contains("beef"));
}

#[test]
fn names_from_the_configuration_cannot_break_the_page() {
    let metrics = metrics();
    metrics.pool(&PoolName::new("a\"} 1\nforged 2\\"));
    let page = metrics.encode();
    assert!(!page.lines().any(|line| line.starts_with("forged")), "{page}");
    assert!(page.contains(r#"pool="a\"} 1\nforged 2\\""#), "{page}");
}

#[test]
fn the_page_is_served_as_prometheus_text() {
    assert_eq!(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8");
    assert!(!metrics().encode().contains("# EOF"));
}

#[test]
fn the_fields_names_stand_beside_ours_or_alone() {
    let metrics = full();
    let names = |page: &str| -> BTreeSet<String> {
        let described = page.lines().filter_map(|line| line.strip_prefix("# TYPE "));
        described.filter_map(|line| line.split(' ').next()).map(str::to_owned).collect()
    };
    let ours = names(&metrics.encode());
    let field: BTreeSet<String> = field::ALIASES
        .iter()
        .map(|alias| alias.name)
        .chain(field::MEANS.iter().map(|mean| mean.name))
        .map(str::to_owned)
        .collect();
    assert_eq!(names(&metrics.encode_with(FIELD)), field);
    assert_eq!(names(&metrics.encode_with(BOTH)), &ours | &field);
    let page = metrics.encode_with(FIELD);
    for name in &field {
        let has_series = samples(&page).any(|(series, _)| series.starts_with(name.as_str()));
        assert!(has_series, "{name} has no series in\n{page}");
    }
}

#[test]
fn an_alias_shows_the_same_number_with_the_fields_labels() {
    let metrics = full();
    let pool = metrics.pool(&PoolName::new("llama"));
    pool.requests_in_flight.set(7);
    pool.endpoints.of(EndpointState::Ready).set(3);
    pool.endpoints.of(EndpointState::Stale).set(2);
    metrics.endpoint(&PoolName::new("llama"), "gpu-2:8000").waiting.set(6.0);
    let page = metrics.encode_with(FIELD);
    for line in [
        r#"llm_d_epp_request_running{inference_pool="llama"} 7"#,
        r#"inference_pool_ready_pods{name="llama"} 3"#,
        r#"llm_d_epp_ready_endpoints{name="llama"} 3"#,
        r#"llm_d_epp_per_endpoint_queue_size{name="llama",model_server_endpoint="gpu-1:8000"} 3.0"#,
        r#"inference_pool_per_pod_queue_size{name="llama",model_server_pod="gpu-2:8000"} 6.0"#,
        r#"llm_d_epp_info{build_ref="0.1.0",commit="abc"} 1"#,
        // Over the endpoints that say it: two, and one.
        r#"inference_pool_average_queue_size{name="llama"} 4.5"#,
        r#"llm_d_epp_average_kv_cache_utilization{name="llama"} 0.25"#,
    ] {
        assert!(page.lines().any(|found| found == line), "{line} is not in\n{page}");
    }
    assert!(!page.contains("stale"), "{page}");
}

#[test]
fn a_rewrite_that_is_gone_leaves_no_series_behind() {
    let metrics = metrics();
    for target in ["v1", "v2"] {
        metrics.rewrite_decisions(decision(target)).inc();
        metrics.rewrite_target(rule(target));
        metrics.mirror(rule(target));
    }
    let kept = ([decision("v1")].into(), [rule("v1")].into(), BTreeSet::new());
    metrics.keep_rewrites(&kept.0, &kept.1, &kept.2);
    let page = metrics.encode();
    assert!(page.contains("target=\"v1\"") && !page.contains("target=\"v2\""), "{page}");
    assert!(!page.contains("mirrored_total{"), "{page}");
}

#[test]
fn decisions_have_the_fields_name_and_labels_too() {
    let metrics = metrics();
    metrics.rewrite_decisions(decision("v1")).add(3);
    let page = metrics.encode_with(FIELD);
    let line = "llm_d_epp_model_rewrite_decisions_total{model_rewrite_name=\"canary\",model_name=\"chat\",target_model=\"v1\"} 3";
    assert!(page.contains(line), "{page}");
}

#[test]
fn one_name_for_two_of_our_metrics_is_described_once_and_told_apart_by_its_label() {
    let metrics = full();
    let pool = metrics.pool(&PoolName::new("llama"));
    pool.request_input_tokens.observe(100.0);
    pool.request_output_tokens.observe(20.0);
    pool.request_ttft.observe(Duration::from_millis(30));
    let page = metrics.encode_with(GENAI);
    for line in [
        r#"gen_ai_client_token_usage_sum{gen_ai_token_type="input",gen_ai_request_model="llama"} 100.0"#,
        r#"gen_ai_client_token_usage_sum{gen_ai_token_type="output",gen_ai_request_model="llama"} 20.0"#,
        r#"gen_ai_server_time_to_first_token_seconds_count{gen_ai_request_model="llama"} 1"#,
    ] {
        assert!(page.lines().any(|found| found == line), "{line} is not in\n{page}");
    }
    assert_eq!(page.matches("# TYPE gen_ai_client_token_usage ").count(), 1);
    assert!(!page.contains("wicketgate_") && !page.contains("llm_d_"), "{page}");
}

#[test]
fn a_status_has_a_code_of_its_own_or_that_of_its_class() {
    use super::labels::Code;
    for (status, code) in [
        (200, "200"),
        (204, "other_2xx"),
        (302, "other"),
        (418, "other"),
        (499, "499"),
        (529, "other_5xx"),
    ] {
        assert_eq!(Code::of(status).as_str(), code);
    }
}
