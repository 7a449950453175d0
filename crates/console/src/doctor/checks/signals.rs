//! Whether those who decide get the signals they decide by.

use super::some;
use crate::doctor::catalog::{self, Finding};
use crate::doctor::facts::{EndpointFacts, EngineFacts, Facts};

/// A scorer, what it needs, and whether a page has it.
type Need = (&'static str, &'static str, fn(&EngineFacts) -> bool);

/// Scorers that go by what an engine reports; the others account by themselves.
const NEEDS: [Need; 5] = [
    ("queue", "waiting requests", |engine| engine.page.metrics.waiting.is_some()),
    ("kv-cache", "KV-cache use", |engine| engine.page.metrics.kv_usage.is_some()),
    ("running-requests", "running requests", |engine| engine.page.metrics.running.is_some()),
    ("lora-affinity", "adapters", |engine| engine.says_adapters),
    ("load-aware", "waiting requests", |engine| engine.page.metrics.waiting.is_some()),
];

pub(in crate::doctor) fn check(facts: &Facts, findings: &mut Vec<Finding>) {
    for endpoint in &facts.endpoints {
        match &endpoint.seen.metrics {
            Some(Err(why)) => findings.push(Finding::new(
                &catalog::METRICS_UNREADABLE,
                endpoint.endpoint.clone(),
                why.clone(),
            )),
            Some(Ok(engine)) if !engine.page.anomalies.missing.is_empty() => {
                let seen = format!(
                    "{} does not say: {}",
                    engine.page.metrics.engine.as_str(),
                    engine.page.anomalies.missing.join(", ")
                );
                findings.push(Finding::new(
                    &catalog::SIGNAL_MISSING,
                    endpoint.endpoint.clone(),
                    seen,
                ));
            }
            _ => {}
        }
    }
    for (place, pool) in facts.settings.pools.iter().enumerate() {
        for (name, needs, has) in NEEDS {
            if !pool.scorers.iter().any(|scorer| scorer.name == name && scorer.weight > 0.0) {
                continue;
            }
            // Without an adapter to place the scorer decides nothing, which is right.
            if name == "lora-affinity" && pool.adapters.is_empty() {
                continue;
            }
            let lacks =
                |endpoint: &&EndpointFacts| endpoint.metrics().is_some_and(|engine| !has(engine));
            let lacking =
                facts.members(place).filter(lacks).map(|endpoint| endpoint.endpoint.clone());
            let lacking = some(lacking);
            if !lacking.is_empty() {
                let seen = format!("`{name}` needs {needs}; not said by {lacking}");
                findings.push(Finding::new(&catalog::SCORER_WITHOUT_INPUT, &pool.pool, seen));
            }
        }
    }
}
