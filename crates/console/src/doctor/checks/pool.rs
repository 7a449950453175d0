//! Replicas that should be alike, and pools with nobody in them.

use std::collections::BTreeMap;

use types::EngineKind;

use super::some;
use crate::doctor::catalog::{self, Finding, Kind};
use crate::doctor::facts::{EndpointFacts, Facts};

pub(in crate::doctor) fn check(facts: &Facts, findings: &mut Vec<Finding>) {
    for (place, pool) in facts.settings.pools.iter().enumerate() {
        let members: Vec<&EndpointFacts> = facts.members(place).collect();
        if members.is_empty() && (pool.model.is_empty() || !pool.endpoints.is_empty()) {
            // Endpoints whose models are being found out are in other pools by now.
            continue;
        }
        if !members.iter().any(|member| is_usable(member)) {
            let seen = format!("none of {} is ready", members.len());
            findings.push(Finding::new(&catalog::POOL_EMPTY, &pool.pool, seen));
        }
        for member in &members {
            models(member, &pool.model, findings);
        }
        let mut replicas = Replicas { pool: &pool.pool, members, findings };
        replicas
            .differ(&catalog::ENGINE_DIFFERS, |member| Some(engine(member)?.as_str().to_owned()));
        replicas.differ(&catalog::CONTEXT_DIFFERS, |member| {
            let model = member.models()?.iter().find(|model| model.id == pool.model)?;
            Some(format!("{} tokens", model.max_model_len?))
        });
        // Versions and block sizes of different engines say nothing of each other.
        for kind in replicas.engines() {
            replicas.differ(&catalog::VERSION_DIFFERS, |member| {
                let version = member.seen.version.as_ref()?;
                (engine(member) == Some(kind)).then(|| format!("{} {version}", kind.as_str()))
            });
            replicas.differ(&catalog::BLOCK_SIZE_DIFFERS, |member| {
                let size = member.metrics()?.page.metrics.block_size_tokens?;
                (engine(member) == Some(kind)).then(|| format!("{size} tokens"))
            });
        }
    }
}

/// The endpoints of one pool.
struct Replicas<'a> {
    pool: &'a str,
    members: Vec<&'a EndpointFacts>,
    findings: &'a mut Vec<Finding>,
}

impl Replicas<'_> {
    /// A finding if members tell more than one value; `None`: that member does not tell.
    fn differ(&mut self, kind: &'static Kind, told: impl Fn(&EndpointFacts) -> Option<String>) {
        let mut groups: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for member in &self.members {
            if let Some(value) = told(member) {
                groups.entry(value).or_default().push(member.endpoint.clone());
            }
        }
        if groups.len() > 1 {
            let seen: Vec<String> = groups
                .into_iter()
                .map(|(value, members)| format!("{value}: {}", some(members.into_iter())))
                .collect();
            self.findings.push(Finding::new(kind, self.pool, seen.join("; ")));
        }
    }

    /// Each kind once.
    fn engines(&self) -> Vec<EngineKind> {
        let mut engines: Vec<_> = self.members.iter().filter_map(|member| engine(member)).collect();
        engines.sort_by_key(|engine| engine.as_str());
        engines.dedup();
        engines
    }
}

fn is_usable(member: &EndpointFacts) -> bool {
    match &member.view {
        Some(view) => view.state == "ready",
        None => member.seen.unreachable.is_none(),
    }
}

fn engine(member: &EndpointFacts) -> Option<EngineKind> {
    Some(member.metrics()?.page.metrics.engine)
}

fn models(member: &EndpointFacts, model: &str, findings: &mut Vec<Finding>) {
    let place = || member.endpoint.clone();
    match &member.seen.models {
        Some(Err(why)) => {
            findings.push(Finding::new(&catalog::MODELS_UNREADABLE, place(), why.clone()));
        }
        Some(Ok(models)) if !model.is_empty() && models.iter().all(|served| served.id != model) => {
            let served = some(models.iter().map(|served| served.id.clone()));
            let seen = format!("`{model}` is not among what it serves: {served}");
            findings.push(Finding::new(&catalog::MODEL_MISSING, place(), seen));
        }
        _ => {}
    }
}
