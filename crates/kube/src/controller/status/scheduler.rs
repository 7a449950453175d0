//! One scheduler's part of the status.

use config::SchedulerSpec;
use serde_json::{Value, json};

use super::conditions::Condition;
use super::{Facts, Phase, picker, waiting};
use crate::fleet::Standing;

pub(super) fn all(facts: &Facts<'_>) -> Vec<Value> {
    match facts.document {
        Ok(document) => {
            let pairs = document.spec.schedulers.iter().zip(facts.pools);
            pairs.map(|(scheduler, pool)| accepted(facts, scheduler, *pool)).collect()
        }
        Err(refusal) => {
            let written = facts.spec["schedulers"].as_array().into_iter().flatten().enumerate();
            written
                .filter_map(|(at, scheduler)| {
                    let name = scheduler["name"].as_str()?;
                    Some(refused(facts, name, refusal.selectors.contains(&at)))
                })
                .collect()
        }
    }
}

fn before<'a>(facts: &Facts<'a>, name: &str) -> &'a Value {
    let entries = facts.before["schedulers"].as_array().into_iter().flatten();
    entries.into_iter().find(|entry| entry["name"] == name).unwrap_or(&Value::Null)
}

fn accepted(facts: &Facts<'_>, scheduler: &SchedulerSpec, pool: Standing) -> Value {
    let name = scheduler.name.as_str();
    let mut conditions = vec![backends(scheduler, pool), pool_ready(facts), epp(facts)];
    if !scheduler.lora_adapters.is_empty() {
        // Only the servers know, and only the gateway asks them.
        let message = "what servers say of adapters is in the gateway's /debug/endpoints; `wicketgate doctor` judges it";
        conditions.push(Condition::new("LoraSupported", "Unknown", "NotObserved", message));
    }
    json!({
        "name": name,
        "conditions": facts.merge(before(facts, name), conditions),
        "currentScheduler": picker(scheduler, facts.key.group),
        "rolloutState": facts.phase().word(),
        "pods": pool.pods,
        "readyEndpoints": pool.endpoints,
    })
}

fn refused(facts: &Facts<'_>, name: &str, is_selector: bool) -> Value {
    let mut conditions =
        vec![Condition::new("PoolReady", "False", "NotAccepted", "the resource is not accepted")];
    if is_selector {
        let message = "the selector makes no sense; see the gateway's Accepted";
        conditions.push(Condition::new("BackendsReady", "False", "InvalidModelSelector", message));
    }
    json!({ "name": name, "conditions": facts.merge(before(facts, name), conditions) })
}

fn backends(scheduler: &SchedulerSpec, pool: Standing) -> Condition {
    let kind = "BackendsReady";
    let outside = scheduler.endpoints.len();
    if pool.endpoints > 0 {
        let message = format!("{} endpoints of {} pods", pool.endpoints, pool.pods);
        Condition::new(kind, "True", "Ready", &message)
    } else if outside > 0 {
        let message = format!("{outside} endpoints of the document, which nobody watches here");
        Condition::new(kind, "True", "Declared", &message)
    } else if pool.pods > 0 {
        let message = format!("{} pods match, none is ready", pool.pods);
        Condition::new(kind, "False", "NoReadyModelPods", &message)
    } else {
        Condition::new(kind, "False", "NoModelPods", "no pod matches `modelSelector`")
    }
}

/// The way from the gateway to the pool.
fn pool_ready(facts: &Facts<'_>) -> Condition {
    if facts.has_service && facts.failure.is_none() {
        Condition::new("PoolReady", "True", "Accepted", "the gateway routes to it")
    } else {
        let message = "the gateway's objects are not there yet";
        let why = facts.failure.map_or(message, |failure| &failure.message);
        Condition::new("PoolReady", "False", "NotFound", why)
    }
}

/// The picker lives in the gateway's pods.
fn epp(facts: &Facts<'_>) -> Condition {
    if facts.is_served() {
        return Condition::new("EPPReady", "True", "Ready", "the gateway's pods pick");
    }
    let reason = match (facts.trouble, facts.rollout) {
        (Some(trouble), _) => trouble.reason.as_str(),
        (None, Some(rollout)) if rollout.is_past_deadline => "ProgressDeadlineExceeded",
        (None, _) if facts.phase() == Phase::Degraded => "ReplicaFailure",
        (None, _) => "Progressing",
    };
    Condition::new("EPPReady", "False", reason, &waiting(facts))
}
