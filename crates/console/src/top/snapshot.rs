//! What a gateway said at one instant.

use std::collections::HashMap;

use gateway::{DecisionView, EndpointView, FleetView, UsageView};
use serde::Deserialize;
use types::Timestamp;

use crate::admin::{Admin, AdminError};
use crate::scrape::{Histogram, Page};

/// Decisions that are asked for: more than a tall terminal has lines.
const DECISIONS_MOST: usize = 100;

/// Metrics that are read; all of them are about pools or the gateway, none about endpoints.
const WANTED: [&str; 14] = [
    "wicketgate_build_info",
    "wicketgate_connections_open",
    "wicketgate_requests_open",
    "wicketgate_requests_refused_total",
    "wicketgate_requests_total",
    "wicketgate_requests_in_flight",
    "wicketgate_request_ttft_seconds_bucket",
    "wicketgate_input_tokens_total",
    "wicketgate_cached_input_tokens_total",
    "wicketgate_output_tokens_total",
    "wicketgate_requests_rejected_total",
    "wicketgate_pool_saturation_ratio",
    "wicketgate_retries_total",
    "wicketgate_config_last_reload_success_timestamp_seconds",
];

/// One look at a gateway.
#[derive(Clone, Debug)]
pub(super) struct Snapshot {
    /// When its first answer was there.
    pub(super) at: Timestamp,
    pub(super) version: String,
    pub(super) is_ready: bool,
    pub(super) connections: f64,
    /// Whether the page has the names that are understood here; else there are no rates.
    pub(super) has_metrics: bool,
    pub(super) endpoints: Vec<EndpointView>,
    /// By pool.
    pub(super) counters: HashMap<String, Counters>,
    /// Newest first.
    pub(super) decisions: Vec<DecisionView>,
    /// `None`: the gateway has no flow control.
    pub(super) queues: Option<Vec<QueueView>>,
    /// `None`: it is no router over clusters.
    pub(super) clusters: Option<FleetView>,
    /// What tenants took of the GPUs; `None`: a gateway of former days.
    pub(super) usage: Option<UsageView>,
}

/// One pool's counters since the gateway's start, and its gauges.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Counters {
    pub(super) requests: f64,
    /// Those that ended in an error of an endpoint or of the gateway.
    pub(super) errors: f64,
    pub(super) rejected: f64,
    pub(super) input_tokens: f64,
    pub(super) cached_tokens: f64,
    pub(super) output_tokens: f64,
    pub(super) ttft: Histogram,
    pub(super) in_flight: f64,
    pub(super) saturation: Option<f64>,
}

/// The queue of one band of one pool.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct QueueView {
    pub(super) pool: String,
    /// A name or a priority.
    pub(super) band: serde_json::Value,
    pub(super) requests: u64,
    pub(super) tokens: u64,
    pub(super) oldest_ms: Option<u64>,
    pub(super) flows: u64,
}

#[derive(Deserialize)]
struct Flow {
    bands: Vec<QueueView>,
}

#[derive(Deserialize)]
struct Endpoints {
    endpoints: Vec<EndpointView>,
}

#[derive(Deserialize)]
struct Decisions {
    decisions: Vec<DecisionView>,
}

impl Snapshot {
    /// Asks for everything; `now` is read once the first answer is there.
    pub(super) fn take(admin: &Admin, now: impl Fn() -> Timestamp) -> Result<Self, AdminError> {
        let page = Page::read(&admin.get("/metrics")?, &WANTED);
        let at = now();
        let Endpoints { endpoints } = admin.json("/debug/endpoints")?;
        let path = format!("/debug/decisions?brief=1&most={DECISIONS_MOST}");
        let Decisions { decisions } = admin.json(&path)?;
        let is_ready = admin.ask("/readyz")?.status == 200;
        Ok(Self {
            at,
            version: page.label("wicketgate_build_info", "version").unwrap_or_default(),
            is_ready,
            connections: page.sum("wicketgate_connections_open", &[]).unwrap_or_default(),
            has_metrics: page.has("wicketgate_build_info"),
            endpoints,
            counters: page
                .by("pool")
                .iter()
                .map(|(pool, page)| (pool.clone(), counters(page)))
                .collect(),
            decisions,
            queues: admin.json_if_there("/debug/flow")?.map(|flow: Flow| flow.bands),
            clusters: admin.json_if_there("/debug/fleet")?,
            usage: admin.json_if_there("/debug/usage")?,
        })
    }

    /// Whether something was counted that is no longer: the gateway began anew.
    pub(super) fn begins_anew_after(&self, earlier: &Self) -> bool {
        let requests =
            |snapshot: &Self| snapshot.counters.values().map(|pool| pool.requests).sum::<f64>();
        let falls = |(pool, counters): (&String, &Counters)| {
            earlier.counters.get(pool).is_some_and(|before| counters.requests < before.requests)
        };
        self.counters.iter().any(falls) || (requests(earlier) > 0.0 && requests(self) == 0.0)
    }
}

/// The whole receipt of one decision; `None` if it is no longer kept.
pub(super) fn decision(
    admin: &Admin,
    request_id: &str,
) -> Result<Option<DecisionView>, AdminError> {
    // Ids come from clients; one that cannot stand in a path was never the gateway's own.
    if !request_id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.:~".contains(&byte)) {
        return Ok(None);
    }
    let path = format!("/debug/decisions?request_id={request_id}&most=1");
    let Decisions { decisions } = admin.json(&path)?;
    Ok(decisions.into_iter().next())
}

fn counters(page: &Page) -> Counters {
    let sum = |name: &str, labels: &[(&str, &str)]| page.sum(name, labels).unwrap_or_default();
    let outcome = |outcome| sum("wicketgate_requests_total", &[("outcome", outcome)]);
    Counters {
        requests: sum("wicketgate_requests_total", &[]),
        errors: outcome("endpoint_error") + outcome("gateway_error"),
        rejected: sum("wicketgate_requests_rejected_total", &[]),
        input_tokens: sum("wicketgate_input_tokens_total", &[]),
        cached_tokens: sum("wicketgate_cached_input_tokens_total", &[]),
        output_tokens: sum("wicketgate_output_tokens_total", &[]),
        ttft: page.histogram("wicketgate_request_ttft_seconds", &[]),
        in_flight: sum("wicketgate_requests_in_flight", &[]),
        saturation: page.sum("wicketgate_pool_saturation_ratio", &[]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_may_say_less_or_more_than_is_known_here() {
        let text = r#"[{"pool": "a", "band": 100, "requests": 3, "new": {}}, {"band": "bulk", "oldest_ms": null}]"#;
        let queues: Vec<QueueView> = serde_json::from_str(text).unwrap();
        assert_eq!((queues[0].requests, queues[1].oldest_ms), (3, None));
    }
}
