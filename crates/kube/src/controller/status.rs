//! What the status of a gateway says: a pure function of what was seen.
//!
//! The conditions and reasons are AWS's where AWS has them. A condition's time changes only with its status, so
//! the same facts give the same text, and nothing is written when nothing changed.

mod conditions;
mod scheduler;
#[cfg(test)]
mod tests;

use config::{ApiGroup, Document};
use serde_json::{Value, json};

use super::desired::{self, naming_violation};
use super::key::Key;
use super::rollout::{Phase, Rollout, Trouble};
use crate::fleet::Standing;
use conditions::{Condition, merged};

/// Why a resource is not acted upon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub reason: &'static str,
    pub message: String,
    /// Places of schedulers whose selectors make no sense.
    pub selectors: Vec<usize>,
}

/// What went wrong when the objects were written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    pub message: String,
    /// A webhook said no.
    pub is_denied: bool,
}

/// All that a status tells of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Facts<'a> {
    pub key: &'a Key,
    pub generation: i64,
    pub spec: &'a Value,
    pub document: Result<&'a Document, &'a Refusal>,
    pub rollout: Option<&'a Rollout>,
    /// Of one of the gateway's pods.
    pub trouble: Option<&'a Trouble>,
    pub has_service: bool,
    pub failure: Option<&'a Failure>,
    /// One for each scheduler of the document.
    pub pools: &'a [Standing],
    /// The status so far.
    pub before: &'a Value,
    /// RFC 3339.
    pub now: &'a str,
}

impl Facts<'_> {
    fn phase(&self) -> Phase {
        match self.rollout {
            None => Phase::Pending,
            Some(rollout) => rollout.phase(self.trouble.is_some()),
        }
    }

    /// Some pod of the gateway takes requests.
    fn is_served(&self) -> bool {
        self.rollout.is_some_and(|rollout| rollout.available > 0)
    }

    fn merge(&self, before: &Value, conditions: Vec<Condition>) -> Value {
        merged(before, conditions, self.generation, self.now)
    }
}

/// Whether and why a resource is not acted upon, before anything is made of it.
pub(crate) fn refusal(key: &Key, document: Result<&Document, &config::Errors>) -> Option<Refusal> {
    let errors = match document {
        Ok(_) => {
            let message = naming_violation(key)?;
            let selectors = Vec::new();
            return Some(Refusal { reason: NAMING, message, selectors });
        }
        Err(errors) => errors,
    };
    let findings = errors.findings();
    let any = |part: &str| findings.iter().any(|finding| finding.path.contains(part));
    let reason = if any("loraAdapters") {
        "InvalidLoraAdapters"
    } else if findings.iter().any(|finding| finding.message.contains("at most 63 are allowed")) {
        NAMING
    } else if any("modelSelector") {
        "InvalidModelSelector"
    } else {
        "InvalidSpec"
    };
    let texts = findings.iter().map(|finding| match finding.path.as_str() {
        "" => finding.message.clone(),
        path => format!("{path}: {}", finding.message),
    });
    let message = texts.collect::<Vec<_>>().join("; ");
    let selectors = findings.iter().filter(|finding| finding.path.contains("modelSelector"));
    let place = |path: &str| path.split(['[', ']']).nth(1)?.parse().ok();
    let selectors = selectors.filter_map(|finding| place(&finding.path)).collect();
    Some(Refusal { reason, message, selectors })
}

/// The reason for names that Kubernetes cannot have.
pub(crate) const NAMING: &str = "ResourceNamingViolation";

/// The whole status.
pub(crate) fn status(facts: &Facts<'_>) -> Value {
    let mut status = json!({
        "observedGeneration": facts.generation,
        "conditions": facts.merge(facts.before, gateway(facts)),
        "schedulers": scheduler::all(facts),
    });
    if facts.document.is_ok() {
        status["readyEndpoints"] = json!(endpoints(facts));
        if facts.has_service {
            status["address"] = json!(desired::address(facts.key));
        }
    }
    status
}

fn endpoints(facts: &Facts<'_>) -> usize {
    facts.pools.iter().map(|pool| pool.endpoints).sum()
}

fn gateway(facts: &Facts<'_>) -> Vec<Condition> {
    vec![accepted(facts), programmed(facts), bbr(facts), blocked(facts), ready(facts)]
}

fn accepted(facts: &Facts<'_>) -> Condition {
    match facts.document {
        Err(refusal) => Condition::new("Accepted", "False", refusal.reason, &refusal.message),
        Ok(document) if document.spec.tls.is_some() && document.spec.listener.tls.is_none() => {
            let message = "valid; `tls` asks for a certificate that nobody issues here: clients speak plain HTTP, or set `listener.tls`";
            Condition::new("Accepted", "True", "Accepted", message)
        }
        Ok(_) => Condition::new("Accepted", "True", "Accepted", "valid"),
    }
}

/// The way to the gateway is there.
fn programmed(facts: &Facts<'_>) -> Condition {
    let kind = "GatewayProgrammed";
    if let Some(failure) = facts.failure {
        Condition::new(kind, "False", "NotApplied", &failure.message)
    } else if !facts.has_service {
        Condition::new(kind, "False", "Pending", "the Service is not there yet")
    } else if !facts.is_served() {
        Condition::new(kind, "False", "NoReadyGateway", &waiting(facts))
    } else {
        Condition::new(kind, "True", "Programmed", &desired::address(facts.key))
    }
}

/// Body-based routing is part of the gateway's pods.
fn bbr(facts: &Facts<'_>) -> Condition {
    let is_off = facts.document.is_ok_and(|document| !document.spec.bbr.enabled);
    if is_off {
        Condition::new("BBRReady", "True", "Disabled", "the one scheduler gets every request")
    } else if facts.is_served() {
        Condition::new("BBRReady", "True", "Ready", "the gateway's pods route by the body")
    } else {
        Condition::new("BBRReady", "False", facts.phase().word(), &waiting(facts))
    }
}

/// Somebody else's admission webhook refuses objects or pods of ours.
fn blocked(facts: &Facts<'_>) -> Condition {
    let denied = facts.failure.filter(|failure| failure.is_denied).map(|f| f.message.as_str());
    let refused = facts.rollout.and_then(|rollout| rollout.refused.as_deref());
    match denied.or(refused.filter(|message| is_webhooks(message))) {
        Some(message) => Condition::new("AdmissionBlocked", "True", "WebhookDenied", message),
        None => Condition::new("AdmissionBlocked", "False", "Admitted", ""),
    }
}

/// Whether an API server's refusal is a webhook's.
pub(crate) fn is_webhooks(message: &str) -> bool {
    message.contains("admission webhook")
}

fn ready(facts: &Facts<'_>) -> Condition {
    let Ok(document) = facts.document else {
        let message = "see Accepted; what was valid last stays in force";
        return Condition::new("Ready", "Unknown", "NotAccepted", message);
    };
    let programmed = programmed(facts);
    if programmed.status != "True" {
        return Condition::new("Ready", "False", "GatewayNotProgrammed", &programmed.message);
    }
    let pairs = document.spec.schedulers.iter().zip(facts.pools);
    let outside = |scheduler: &config::SchedulerSpec| !scheduler.endpoints.is_empty();
    let empty: Vec<&str> = pairs
        .filter(|(scheduler, pool)| pool.endpoints == 0 && !outside(scheduler))
        .map(|(scheduler, _)| scheduler.name.as_str())
        .collect();
    if empty.is_empty() {
        let message = format!("{} endpoints take requests", endpoints(facts));
        Condition::new("Ready", "True", "Ready", &message)
    } else {
        let message = format!("no endpoint takes requests for: {}", empty.join(", "));
        Condition::new("Ready", "False", "NoReadyEndpoints", &message)
    }
}

/// Why no pod of the gateway serves, or not all do.
fn waiting(facts: &Facts<'_>) -> String {
    if let Some(Trouble { reason, message }) = facts.trouble {
        return format!("{reason}: {message}");
    }
    match facts.rollout {
        None => "the Deployment is not there yet".to_owned(),
        Some(Rollout { refused: Some(message), .. }) => message.clone(),
        Some(rollout) => {
            let (available, wanted) = (rollout.available, rollout.wanted);
            format!("{available} of {wanted} pods of the gateway are available")
        }
    }
}

/// What is ours of a status, in which nothing else is touched.
const OURS: [&str; 5] =
    ["observedGeneration", "conditions", "schedulers", "readyEndpoints", "address"];

/// A merge that makes one status of another.
pub(crate) fn change(before: &Value, after: &Value) -> Value {
    let changed = OURS.into_iter().filter(|key| before.get(key) != after.get(key));
    changed.map(|key| (key.to_owned(), after.get(key).cloned().unwrap_or_default())).collect()
}

/// Something that changed and that people look for in events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Notice {
    pub is_warning: bool,
    pub reason: String,
    pub message: String,
}

/// What changed from one status to the next, for events.
pub(crate) fn notices(before: &Value, after: &Value) -> Vec<Notice> {
    ["Accepted", "AdmissionBlocked", "Ready"]
        .into_iter()
        .filter_map(|kind| {
            let (old, new) = (conditions::find(before, kind), conditions::find(after, kind)?);
            let same = |key: &str| old.is_some_and(|old| old[key] == new[key]);
            let is_good =
                new["status"] == if kind == "AdmissionBlocked" { "False" } else { "True" };
            if same("status") && same("reason") || (kind == "AdmissionBlocked" && is_good) {
                return None;
            }
            let text = |key: &str| new[key].as_str().unwrap_or_default().to_owned();
            Some(Notice { is_warning: !is_good, reason: text("reason"), message: text("message") })
        })
        .collect()
}

/// The word that a group's `currentScheduler` has.
fn picker(scheduler: &config::SchedulerSpec, group: ApiGroup) -> &'static str {
    match group {
        ApiGroup::Aws => match scheduler.scheduler {
            config::spec::PickerImage::LlmD => "llm-d",
            config::spec::PickerImage::Epp => "epp",
        },
        ApiGroup::Wicketgate if scheduler.picker_config.is_some() => "picker-config",
        ApiGroup::Wicketgate if scheduler.config_map_ref.is_some() => "picker-config",
        ApiGroup::Wicketgate => match scheduler.policy {
            config::Policy::Wicketgate => "wicketgate",
            config::Policy::Reference => "reference",
        },
    }
}
