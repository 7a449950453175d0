//! Adapters that a document names, against what engines can serve.

use types::EngineKind;

use super::some;
use crate::doctor::catalog::{self, Finding};
use crate::doctor::facts::Facts;

pub(in crate::doctor) fn check(facts: &Facts, findings: &mut Vec<Finding>) {
    for endpoint in &facts.endpoints {
        let Some(pool) = facts.pool_of(endpoint) else { continue };
        if pool.adapters.is_empty() {
            continue;
        }
        let Some(models) = endpoint.models() else { continue };
        let is_served = |adapter: &&String| models.iter().any(|model| model.id == **adapter);
        let missing = || pool.adapters.iter().filter(|adapter| !is_served(adapter)).cloned();
        if missing().next().is_none() {
            continue;
        }
        let is_off = endpoint.metrics().is_some_and(|engine| {
            engine.page.metrics.engine == EngineKind::Vllm && !engine.says_adapters
        });
        let has_none = models.iter().all(|model| model.parent.is_none());
        let kind = if is_off && has_none { &catalog::LORA_OFF } else { &catalog::ADAPTER_MISSING };
        let seen = format!("not served there: {}", some(missing()));
        findings.push(Finding::new(kind, endpoint.endpoint.clone(), seen));
    }
}
