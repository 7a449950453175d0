//! What we need to know of a pod.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;

/// Ports that a pod serves on, where they are fewer than its pool's; the field's name and its older one.
const ACTIVE_PORTS: [&str; 2] =
    ["llm-d.ai/active-ports", "inference.networking.k8s.io/active-ports"];

/// A pod, as far as it can be an endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PodView {
    pub name: Arc<str>,
    /// Another one: another pod, whatever its name and address.
    pub uid: Arc<str>,
    pub labels: BTreeMap<String, String>,
    pub ip: Option<IpAddr>,
    /// The kubelet says so.
    pub is_ready: bool,
    /// It was told to end.
    pub is_ending: bool,
    /// `None`: all ports of its pool.
    pub active_ports: Option<Vec<u16>>,
}

impl PodView {
    /// `None` for a pod without a name, which the API server never sends.
    pub(crate) fn of(pod: Pod) -> Option<Self> {
        let metadata = pod.metadata;
        let status = pod.status.unwrap_or_default();
        let is_true = |kind: &str| {
            let conditions = status.conditions.iter().flatten();
            conditions
                .filter(|condition| condition.type_ == kind)
                .any(|found| found.status == "True")
        };
        let has_ended = matches!(status.phase.as_deref(), Some("Succeeded" | "Failed"));
        Some(Self {
            name: metadata.name?.into(),
            uid: metadata.uid.unwrap_or_default().into(),
            ip: status.pod_ip.as_deref().and_then(|ip| ip.parse().ok()),
            is_ready: is_true("Ready") && !has_ended,
            is_ending: metadata.deletion_timestamp.is_some(),
            active_ports: metadata.annotations.as_ref().and_then(active_ports),
            labels: metadata.labels.unwrap_or_default(),
        })
    }

    /// Where it takes requests now; `None`: nowhere.
    pub(crate) fn takes_requests_at(&self) -> Option<IpAddr> {
        self.ip.filter(|_| self.is_ready && !self.is_ending)
    }

    pub(crate) fn serves_on(&self, port: u16) -> bool {
        self.active_ports.as_ref().is_none_or(|ports| ports.contains(&port))
    }
}

/// Ports with commas between; what is no port is left out.
fn active_ports(annotations: &BTreeMap<String, String>) -> Option<Vec<u16>> {
    let text = ACTIVE_PORTS.iter().find_map(|name| annotations.get(*name))?;
    Some(text.split(',').filter_map(|port| port.trim().parse().ok()).collect())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn view(change: impl FnOnce(&mut Value)) -> PodView {
        let mut pod = json!({
            "metadata": { "name": "a", "uid": "1", "labels": { "app": "llama" } },
            "status": {
                "phase": "Running", "podIP": "10.1.0.1",
                "conditions": [
                    { "type": "ContainersReady", "status": "False" },
                    { "type": "Ready", "status": "True" },
                ],
            },
        });
        change(&mut pod);
        PodView::of(serde_json::from_value(pod).unwrap()).unwrap()
    }

    #[test]
    fn a_ready_pod_takes_requests_at_its_address() {
        assert_eq!(view(|_| {}).takes_requests_at(), Some("10.1.0.1".parse().unwrap()));
    }

    #[test]
    fn a_pod_that_is_not_ready_or_has_no_address_or_is_ending_takes_none() {
        let not_ready = view(|pod| pod["status"]["conditions"][1]["status"] = json!("Unknown"));
        let no_address = view(|pod| pod["status"]["podIP"] = Value::Null);
        let no_status = view(|pod| pod["status"] = Value::Null);
        let ending =
            view(|pod| pod["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z"));
        let ended = view(|pod| pod["status"]["phase"] = json!("Failed"));
        for pod in [not_ready, no_address, no_status, ending, ended] {
            assert_eq!(pod.takes_requests_at(), None, "{pod:?}");
        }
    }

    #[test]
    fn an_annotation_narrows_the_ports() {
        let all = view(|_| {});
        assert!(all.serves_on(8000) && all.serves_on(8001));
        for name in ACTIVE_PORTS {
            let some = view(|pod| {
                pod["metadata"]["annotations"] = json!({ name: "8001, 8002,x" });
            });
            assert!(!some.serves_on(8000) && some.serves_on(8001) && some.serves_on(8002));
        }
    }
}
