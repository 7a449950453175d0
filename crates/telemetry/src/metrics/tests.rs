use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use types::{EndpointMetrics, PoolName, Ratio};

use super::labels::{Outcome, Route, ScrapeFailure};
use super::*;

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
    metrics.gateway().set_config_hash("beef");
    metrics.gateway().config_last_reload_success.set(1.0);
    metrics.gateway().certificate_expiry.set(2.0);
    metrics
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
    let page = full().encode();
    let mut seen = BTreeMap::new();
    for (series, _) in samples(&page) {
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
