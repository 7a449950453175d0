//! What became of the requests so far.

use crate::doctor::catalog::{self, Finding};
use crate::doctor::facts::Facts;
use crate::text::percent;

/// Fewer requests say nothing of a share.
const REQUESTS_MIN: f64 = 100.0;
const RETRIES_MAX: f64 = 0.05;
const ABORTS_MAX: f64 = 0.01;
const REJECTED_MAX: f64 = 0.01;
/// Mean use of capacity at which a pool is as good as full.
const SATURATION_MAX: f64 = 0.95;

pub(in crate::doctor) fn check(facts: &Facts, findings: &mut Vec<Finding>) {
    let Some(gateway) = &facts.gateway else { return };
    let refused = [("reason", "too_large")];
    let too_large =
        gateway.after.sum("wicketgate_requests_refused_total", &refused).unwrap_or_default();
    if too_large > 0.0 {
        let limit = facts.settings.request_body_bytes_max;
        let seen = format!("{too_large} since its start; JSON bodies may have {limit} bytes");
        findings.push(Finding::new(&catalog::BODIES_REFUSED, &gateway.admin, seen));
    }
    let (before, after) = (gateway.before.by("pool"), gateway.after.by("pool"));
    let mut pools: Vec<_> = after.iter().collect();
    pools.sort_by_key(|(pool, _)| pool.as_str());
    for (pool, now) in pools {
        let sum = |name: &str, labels: &[(&str, &str)]| now.sum(name, labels).unwrap_or_default();
        let requests = sum("wicketgate_requests_total", &[]);
        let share = |count: f64| (requests >= REQUESTS_MIN).then(|| count / requests);

        let rejected = sum("wicketgate_requests_rejected_total", &[("reason", "saturated")]);
        let full = "wicketgate_pool_saturation_ratio";
        let is_full = |page: Option<&crate::scrape::Page>| {
            page.and_then(|page| page.sum(full, &[])).is_some_and(|share| share >= SATURATION_MAX)
        };
        if is_full(before.get(pool)) && is_full(Some(now)) {
            let seen =
                format!("it was full at both looks; {rejected} requests got 429 since its start");
            findings.push(Finding::new(&catalog::POOL_SATURATED, pool, seen));
        } else if share(rejected).is_some_and(|share| share > REJECTED_MAX) {
            let seen = format!("{} of the requests got 429", percent(rejected / requests));
            findings.push(Finding::new(&catalog::POOL_SATURATED, pool, seen));
        }
        let retries = sum("wicketgate_retries_total", &[]);
        if share(retries).is_some_and(|share| share > RETRIES_MAX) {
            let seen = format!("{retries} retries for {requests} requests");
            findings.push(Finding::new(&catalog::RETRIES_HIGH, pool, seen));
        }
        let aborted: f64 = ["endpoint_cut", "endpoint_error", "stalled"]
            .iter()
            .map(|reason| sum("wicketgate_streams_aborted_total", &[("reason", reason)]))
            .sum();
        if share(aborted).is_some_and(|share| share > ABORTS_MAX) {
            let seen = format!("{aborted} of {requests} answers");
            findings.push(Finding::new(&catalog::ABORTS_HIGH, pool, seen));
        }
    }
}
