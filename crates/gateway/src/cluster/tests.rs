use std::time::Duration;

use telemetry::metrics::labels::{Outcome, Route};
use types::Timestamp;

use super::Cluster;
use crate::testing::pool_of;

fn at(seconds: u64) -> Timestamp {
    Timestamp::from_duration(Duration::from_secs(seconds))
}

#[test]
fn rates_and_shares_are_of_the_window_alone() {
    let gateway = pool_of(2);
    let mut cluster = Cluster::new(at(0));
    let pool = gateway.catalog().pools[0].clone();
    let count = |outcome, times| {
        pool.metrics.requests.of(Route::ChatCompletions).of(outcome).add(times);
    };
    count(Outcome::EndpointError, 1000);
    pool.metrics.input_tokens.add(1_000_000);
    cluster.advance(&gateway, at(10));
    // Five minutes later none of that counts any more.
    for step in 1..=60 {
        cluster.advance(&gateway, at(10 + 5 * step));
    }
    count(Outcome::Ok, 60);
    count(Outcome::GatewayError, 30);
    count(Outcome::Shed, 10);
    pool.metrics.request_ttft.observe(Duration::from_millis(40));
    cluster.advance(&gateway, at(315));
    let shown = &gateway.metrics.gateway().cluster;
    assert_eq!(shown.error_ratio.get(), Some(0.3));
    assert_eq!(shown.shed_ratio.get(), Some(0.1));
    let rate = shown.request_rate.get().unwrap();
    assert!((rate - 100.0 / 300.0).abs() < 0.01, "{rate}");
    assert_eq!(shown.input_token_rate.get(), Some(0.0));
    assert!((0.02..=0.04).contains(&shown.ttft_p99.get().unwrap()));
    assert_eq!(shown.duration_p99.get(), None);
}

#[test]
fn without_requests_shares_and_percentiles_are_unknown_and_rates_zero() {
    let gateway = pool_of(1);
    Cluster::new(at(0)).advance(&gateway, at(5));
    let shown = &gateway.metrics.gateway().cluster;
    assert_eq!((shown.error_ratio.get(), shown.ttft_p99.get()), (None, None));
    assert_eq!(shown.request_rate.get(), Some(0.0));
    // Nothing was learned yet.
    assert_eq!(shown.prefill_capacity.get(), None);
}
