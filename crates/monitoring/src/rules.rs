//! Recording rules: what dashboards and alerts ask often, worked out once.
//!
//! Named `level:metric:operation`, as Prometheus advises. Gateways that share pools add up: every rule sums over them.

/// One series that is worked out every [`INTERVAL`].
#[derive(Debug)]
pub struct Rule {
    pub record: String,
    pub expr: String,
}

/// How often rules and alerts are worked out.
pub const INTERVAL: &str = "30s";

/// Windows of the error ratio: pairs of a long and a short one make an alert both sure and quick to end.
pub const ERROR_WINDOWS: [&str; 4] = ["5m", "30m", "1h", "6h"];

/// Outcomes that are our fault or an endpoint's. What a client did wrong, or was refused for want of
/// capacity, is no error: the latter has alerts of its own.
pub const FAILED: &str = r#"outcome=~"endpoint_error|gateway_error""#;

/// All rules, in the order in which they are worked out.
pub fn all() -> Vec<Rule> {
    let mut rules: Vec<Rule> = ERROR_WINDOWS.iter().map(|window| error_ratio(window)).collect();
    rules.extend(fixed());
    rules
}

fn error_ratio(window: &str) -> Rule {
    Rule {
        record: format!("pool:wicketgate_request_errors:ratio_rate{window}"),
        expr: format!(
            "sum by (pool) (rate(wicketgate_requests_total{{{FAILED}}}[{window}])) \
             / (sum by (pool) (rate(wicketgate_requests_total[{window}])) > 0)"
        ),
    }
}

fn fixed() -> impl Iterator<Item = Rule> {
    let histogram = |level: &str, by: &str, metric: &str, share: &str| {
        let record = format!("{level}:wicketgate_{metric}:p{}_5m", share.trim_start_matches("0."));
        let buckets = format!("rate(wicketgate_{metric}_bucket[5m])");
        (record, format!("histogram_quantile({share}, sum by ({by}) ({buckets}))"))
    };
    let rate = |metric: &str| {
        (
            format!("pool:wicketgate_{metric}:rate5m"),
            format!("sum by (pool) (rate(wicketgate_{metric}_total[5m]))"),
        )
    };
    let quotient = |record: &str, above: &str, below: &str| {
        let sum = |metric| format!("sum by (pool) (rate(wicketgate_{metric}_total[5m]))");
        (format!("pool:wicketgate_{record}"), format!("{} / ({} > 0)", sum(above), sum(below)))
    };
    [
        rate("requests"),
        rate("input_tokens"),
        rate("output_tokens"),
        quotient("cached_input_tokens:ratio_rate5m", "cached_input_tokens", "input_tokens"),
        quotient("prefix_blocks:hit_ratio_rate5m", "prefix_blocks_matched", "prefix_blocks_looked_up"),
        quotient("requests_rejected:ratio_rate5m", "requests_rejected", "requests"),
        quotient("retries:ratio_rate5m", "retries", "requests"),
        quotient("prediction_error:ratio_rate5m", "prediction_error_seconds", "prediction_observed_seconds"),
        histogram("pool", "pool, le", "request_ttft_seconds", "0.50"),
        histogram("pool", "pool, le", "request_ttft_seconds", "0.99"),
        histogram("pool", "pool, le", "request_duration_seconds", "0.99"),
        histogram("pool", "pool, le", "request_time_per_output_token_seconds", "0.99"),
        histogram("cluster", "le", "request_ttft_seconds", "0.99"),
        histogram("cluster", "le", "request_duration_seconds", "0.99"),
        (
            "pool:wicketgate_endpoint_kv_usage:mean".to_owned(),
            "avg by (pool) (wicketgate_endpoint_kv_usage_ratio)".to_owned(),
        ),
        (
            "cluster:wicketgate_requests:rate5m".to_owned(),
            "sum (rate(wicketgate_requests_total[5m]))".to_owned(),
        ),
        (
            // Each gateway sees all requests on the endpoints, so the least headroom is the true one.
            "cluster:wicketgate_headroom_requests:ratio".to_owned(),
            "min (wicketgate_cluster_headroom_requests / (wicketgate_cluster_capacity_requests > 0))".to_owned(),
        ),
    ]
    .into_iter()
    .map(|(record, expr)| Rule { record, expr })
}
