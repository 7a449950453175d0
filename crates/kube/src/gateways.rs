//! The gateways of a cluster as an operator sees them: resources, and the pods that serve.

use config::{ApiGroup, KIND};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind, ListParams};
use kube::{Api, Client, Error, ResourceExt};
use serde::Serialize;
use serde_json::Value;

use crate::crd;

/// Gateways' pods, whoever made them: the chart or the controller.
const PODS: &str = "app.kubernetes.io/name=wicketgate,app.kubernetes.io/component=gateway";
const INSTANCE: &str = "app.kubernetes.io/instance";
/// Name of the administration listener's port in a pod, and its number where no port has that name.
const ADMIN: (&str, u16) = ("admin", 9090);

/// An `InferenceGatewayConfig`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct GatewayResource {
    pub api_version: String,
    pub namespace: String,
    pub name: String,
    /// As the controller wrote them.
    pub conditions: Vec<Condition>,
    /// Endpoints that take requests; `None`: the controller has not said.
    pub ready_endpoints: Option<u64>,
    /// Whether the status speaks of an earlier version of the resource.
    pub is_stale: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Condition {
    pub kind: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    pub reason: String,
    pub message: String,
}

/// A pod that is a gateway.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct GatewayPod {
    pub namespace: String,
    pub name: String,
    /// The resource's name, or the release's.
    pub gateway: String,
    pub is_ready: bool,
    pub is_ending: bool,
    pub admin_port: u16,
}

/// All gateways' pods. `namespace`, `None`: everywhere.
///
/// # Errors
/// The API server cannot be asked, or we may not.
pub async fn pods(client: &Client, namespace: Option<&str>) -> Result<Vec<GatewayPod>, Error> {
    let api: Api<Pod> = match namespace {
        Some(namespace) => Api::namespaced(client.clone(), namespace),
        None => Api::all(client.clone()),
    };
    let list = api.list(&ListParams::default().labels(PODS)).await?;
    let mut pods: Vec<_> = list.items.iter().map(gateway_pod).collect();
    pods.sort_by(|a, b| (&a.namespace, &a.name).cmp(&(&b.namespace, &b.name)));
    Ok(pods)
}

/// All resources, of both groups as far as the cluster knows them.
///
/// # Errors
/// The API server cannot be asked, or we may not.
pub async fn resources(
    client: &Client,
    namespace: Option<&str>,
) -> Result<Vec<GatewayResource>, Error> {
    let mut found = Vec::new();
    for group in [ApiGroup::Wicketgate, ApiGroup::Aws] {
        let (name, version) = group.api_version().split_once('/').unwrap_or_default();
        let kind = ApiResource::from_gvk_with_plural(
            &GroupVersionKind::gvk(name, version, KIND),
            crd::PLURAL,
        );
        let api: Api<DynamicObject> = match namespace {
            Some(namespace) => Api::namespaced_with(client.clone(), namespace, &kind),
            None => Api::all_with(client.clone(), &kind),
        };
        match api.list(&ListParams::default()).await {
            Ok(list) => {
                found.extend(list.items.iter().map(|one| resource(group.api_version(), one)));
            }
            // The cluster does not know this group.
            Err(Error::Api(status)) if status.code == 404 => {}
            Err(error) => return Err(error),
        }
    }
    Ok(found)
}

fn gateway_pod(pod: &Pod) -> GatewayPod {
    let conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
    let mut ready = conditions.filter(|condition| condition.type_ == "Ready");
    let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
    let mut ports = containers.flat_map(|container| container.ports.iter().flatten());
    let port = ports.find(|port| port.name.as_deref() == Some(ADMIN.0));
    GatewayPod {
        namespace: pod.namespace().unwrap_or_default(),
        name: pod.name_any(),
        gateway: pod.labels().get(INSTANCE).cloned().unwrap_or_default(),
        is_ready: ready.any(|condition| condition.status == "True"),
        is_ending: pod.metadata.deletion_timestamp.is_some(),
        admin_port: port
            .and_then(|port| u16::try_from(port.container_port).ok())
            .unwrap_or(ADMIN.1),
    }
}

fn resource(api_version: &str, object: &DynamicObject) -> GatewayResource {
    let status = &object.data["status"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let conditions = status["conditions"].as_array().into_iter().flatten();
    let observed = status["observedGeneration"].as_i64();
    GatewayResource {
        api_version: api_version.to_owned(),
        namespace: object.namespace().unwrap_or_default(),
        name: object.name_any(),
        conditions: conditions
            .map(|one| Condition {
                kind: text(&one["type"]),
                status: text(&one["status"]),
                reason: text(&one["reason"]),
                message: text(&one["message"]),
            })
            .collect(),
        ready_endpoints: status["readyEndpoints"].as_u64(),
        is_stale: observed.is_some() && observed != object.metadata.generation,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(value: Value) -> GatewayPod {
        gateway_pod(&serde_json::from_value(value).expect("a pod"))
    }

    #[test]
    fn the_admin_port_is_the_one_of_that_name_else_the_usual() {
        let with = pod(json!({
            "metadata": { "name": "a", "namespace": "n", "labels": { INSTANCE: "chat" } },
            "spec": { "containers": [{ "name": "gateway", "ports": [
                { "name": "http", "containerPort": 8080 }, { "name": "admin", "containerPort": 9191 },
            ] }] },
            "status": { "conditions": [{ "type": "Ready", "status": "True" }] },
        }));
        assert_eq!((with.admin_port, with.is_ready), (9191, true));
        assert_eq!((with.namespace.as_str(), with.gateway.as_str()), ("n", "chat"));
        let without = pod(json!({ "metadata": { "name": "a" } }));
        assert_eq!((without.admin_port, without.is_ready), (9090, false));
    }

    #[test]
    fn a_status_of_an_earlier_version_is_told_from_a_current_one() {
        let of = |generation: i64, observed: Value| {
            let object = json!({
                "apiVersion": "gateway.wicketgate.dev/v1alpha1",
                "kind": KIND,
                "metadata": { "name": "a", "generation": generation },
                "status": { "observedGeneration": observed },
            });
            resource("x", &serde_json::from_value(object).expect("an object")).is_stale
        };
        assert!(of(2, json!(1)));
        assert!(!of(2, json!(2)));
        assert!(!of(2, json!(null)), "nobody has spoken");
    }
}
