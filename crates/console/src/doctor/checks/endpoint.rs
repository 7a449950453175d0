//! Endpoints one by one: reachable, in order, in step.

use std::time::Duration;

use crate::doctor::catalog::{self, Finding};
use crate::doctor::facts::{EndpointFacts, Facts, KeepAlive};
use crate::text::{count, duration, percent, time};

/// Seconds by which clocks may differ: `Date` has whole ones, and answers take time.
const CLOCK_APART_S: u64 = 5;
/// Predictions that must have been compared before they are judged.
const PREDICTIONS_MIN: u64 = 200;
/// Mean error over observed time that is too much.
const PREDICTION_ERROR_MAX: f64 = 0.6;
/// Prompt tokens that an engine must have looked up before its hits are judged.
const LOOKED_UP_MIN: u64 = 500_000;

pub(in crate::doctor) fn check(facts: &Facts, findings: &mut Vec<Finding>) {
    let idle = Duration::from_millis(facts.settings.endpoint_idle_ms);
    for endpoint in &facts.endpoints {
        let place = || endpoint.endpoint.clone();
        standing(endpoint, findings);
        if let Some(why) = &endpoint.seen.unreachable {
            let works = endpoint.view.as_ref().is_some_and(|view| view.state == "ready");
            let kind =
                if works { &catalog::ENDPOINT_NOT_SEEN } else { &catalog::ENDPOINT_UNREACHABLE };
            findings.push(Finding::new(kind, place(), why.clone()));
            continue;
        }
        match endpoint.seen.keep_alive {
            KeepAlive::ClosedAfter(after) if after <= idle => {
                let seen = format!(
                    "closed after {} of idleness; the gateway keeps connections for {}",
                    duration(after),
                    duration(idle)
                );
                findings.push(Finding::new(&catalog::KEEP_ALIVE_SHORT, place(), seen));
            }
            KeepAlive::Never => {
                let seen = "its answer says `Connection: close`";
                findings.push(Finding::new(&catalog::KEEP_ALIVE_NEVER, place(), seen));
            }
            _ => {}
        }
        if let Some(ahead) = endpoint.seen.clock_ahead_s
            && ahead.unsigned_abs() > CLOCK_APART_S
        {
            let way = if ahead > 0 { "ahead" } else { "behind" };
            let seen = format!("{} {way}", time(ahead.unsigned_abs() as f64));
            findings.push(Finding::new(&catalog::CLOCK_APART, place(), seen));
        }
        caching(endpoint, findings);
    }
}

/// By the gateway's word.
fn standing(endpoint: &EndpointFacts, findings: &mut Vec<Finding>) {
    let Some(view) = &endpoint.view else { return };
    let place = endpoint.endpoint.clone();
    let age = view.scrape_age_ms.map_or("never read".to_owned(), |age| {
        format!("last read {} ago", time(age as f64 / 1000.0))
    });
    match view.state.as_str() {
        "ejected" => {
            findings.push(Finding::new(&catalog::ENDPOINT_EJECTED, place.clone(), "it is out now"))
        }
        "asleep" => {
            findings.push(Finding::new(&catalog::ENDPOINT_ASLEEP, place.clone(), "by its own word"))
        }
        "stale" => {
            let seen = format!("{age}, {} failures in a row", view.scrape_failures);
            findings.push(Finding::new(&catalog::ENDPOINT_STALE, place.clone(), seen));
        }
        _ if view.scrape_age_ms.is_none() && view.scrape_failures > 0 => {
            let seen = format!("{age}, {} failures in a row", view.scrape_failures);
            findings.push(Finding::new(&catalog::ENDPOINT_STALE, place.clone(), seen));
        }
        _ => {}
    }
    if let Some(error) = view.prediction_error
        && view.predictions >= PREDICTIONS_MIN
        && error > PREDICTION_ERROR_MAX
    {
        let bias = view.prediction_bias.unwrap_or(1.0);
        let seen = format!(
            "off by {} over {} requests, {bias:.2} times what was observed",
            percent(error),
            count(view.predictions)
        );
        findings.push(Finding::new(&catalog::PREDICTION_OFF, place, seen));
    }
}

fn caching(endpoint: &EndpointFacts, findings: &mut Vec<Finding>) {
    let Some(facts) = endpoint.metrics() else { return };
    let metrics = &facts.page.metrics;
    if facts.prefix_caching == Some(false) {
        let seen = "vllm:cache_config_info says enable_prefix_caching=\"False\"";
        findings.push(Finding::new(&catalog::PREFIX_CACHING_OFF, endpoint.endpoint.clone(), seen));
    } else if let (Some(looked_up), Some(0)) =
        (metrics.prefix_query_tokens, metrics.prefix_hit_tokens)
        && looked_up >= LOOKED_UP_MIN
    {
        let seen = format!("{} prompt tokens were looked up, none was found", count(looked_up));
        findings.push(Finding::new(&catalog::PREFIX_HITS_NONE, endpoint.endpoint.clone(), seen));
    }
}
