//! How the pods of a gateway come along, by what their Deployment and they themselves say.

use k8s_openapi::api::core::v1::Pod;
use kube::api::DynamicObject;
use serde_json::Value;

use super::key::GATEWAY_LABEL;

/// A Deployment, as far as a status tells of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rollout {
    /// The Deployment's controller has seen what we wrote last.
    pub is_observed: bool,
    pub wanted: u64,
    pub updated: u64,
    pub all: u64,
    pub available: u64,
    /// It gave up for now.
    pub is_past_deadline: bool,
    /// It says that pods cannot be made.
    pub refused: Option<String>,
}

/// The words that AWS's status has for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    Pending,
    Progressing,
    Available,
    Degraded,
}

impl Phase {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Pending => "Pending",
            Self::Progressing => "Progressing",
            Self::Available => "Available",
            Self::Degraded => "Degraded",
        }
    }
}

impl Rollout {
    pub(crate) fn of(deployment: &DynamicObject) -> Self {
        let number = |at: &str| deployment.data.pointer(at).and_then(Value::as_u64).unwrap_or(0);
        let conditions = deployment.data.pointer("/status/conditions").and_then(Value::as_array);
        let condition = |kind: &str, status: &str| {
            let mut all = conditions.into_iter().flatten();
            all.find(|one| one["type"] == kind && one["status"] == status)
        };
        let seen = deployment.data.pointer("/status/observedGeneration").and_then(Value::as_i64);
        Self {
            is_observed: seen.is_some() && seen >= deployment.metadata.generation,
            wanted: number("/spec/replicas"),
            updated: number("/status/updatedReplicas"),
            all: number("/status/replicas"),
            available: number("/status/availableReplicas"),
            is_past_deadline: condition("Progressing", "False")
                .is_some_and(|one| one["reason"] == "ProgressDeadlineExceeded"),
            refused: condition("ReplicaFailure", "True")
                .and_then(|one| one["message"].as_str())
                .map(str::to_owned),
        }
    }

    pub(crate) fn phase(&self, has_trouble: bool) -> Phase {
        let is_whole = self.is_observed
            && self.updated >= self.wanted
            && self.all == self.updated
            && self.available >= self.wanted;
        if is_whole {
            Phase::Available
        } else if has_trouble || self.is_past_deadline || self.refused.is_some() {
            Phase::Degraded
        } else if self.is_observed && self.all > 0 {
            Phase::Progressing
        } else {
            Phase::Pending
        }
    }
}

/// Why a pod of a gateway does not run.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Trouble {
    /// The kubelet's word.
    pub reason: String,
    pub message: String,
}

/// Waiting for these is in vain.
const IN_VAIN: [&str; 7] = [
    "CrashLoopBackOff",
    "ImagePullBackOff",
    "ErrImagePull",
    "InvalidImageName",
    "CreateContainerConfigError",
    "CreateContainerError",
    "RunContainerError",
];

/// The gateway that a pod belongs to, and what is wrong with the pod. `None`: a pod of others.
pub(crate) fn gateway_pod(pod: &Pod) -> Option<(String, Option<Trouble>)> {
    let gateway = pod.metadata.labels.as_ref()?.get(GATEWAY_LABEL)?.clone();
    let statuses = pod.status.iter().filter_map(|status| status.container_statuses.as_ref());
    let waiting = statuses.flatten().filter_map(|one| one.state.as_ref()?.waiting.as_ref());
    let trouble = waiting
        .filter_map(|waiting| {
            let reason = waiting.reason.clone().filter(|one| IN_VAIN.contains(&one.as_str()))?;
            Some(Trouble { reason, message: waiting.message.clone().unwrap_or_default() })
        })
        .next();
    Some((gateway, trouble))
}
