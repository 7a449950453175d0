//! `InferenceGatewayConfig`s in a test's namespace, and what becomes of them.

use config::{ApiGroup, KIND};
use kube::Api;
use kube::api::{ApiResource, DeleteParams, DynamicObject, GroupVersionKind, Patch, PatchParams};
use serde_json::{Value, json};

use crate::namespace::{Namespace, until};

/// Group, version, kind of everything that a gateway is made of.
pub(crate) const MADE: [(&str, &str); 6] = [
    ("v1", "ServiceAccount"),
    ("rbac.authorization.k8s.io/v1", "Role"),
    ("rbac.authorization.k8s.io/v1", "RoleBinding"),
    ("v1", "Service"),
    ("apps/v1", "Deployment"),
    ("policy/v1", "PodDisruptionBudget"),
];

/// Objects of any kind in the namespace.
pub(crate) fn objects(namespace: &Namespace, version: &str, kind: &str) -> Api<DynamicObject> {
    let (group, version) = version.split_once('/').unwrap_or(("", version));
    let kind = GroupVersionKind::gvk(group, version, kind);
    Api::namespaced_with(namespace.client.clone(), &namespace.name, &ApiResource::from_gvk(&kind))
}

/// The API of a group's resources in the namespace.
pub(crate) fn gateways(namespace: &Namespace, group: ApiGroup) -> Api<DynamicObject> {
    objects(namespace, group.api_version(), KIND)
}

/// One scheduler for the pods with `app: llama`.
pub(crate) fn spec() -> Value {
    json!({
        "bbr": { "replicas": 2 },
        "schedulers": [{
            "name": "chat", "modelName": "llama-3.1-8b", "modelSelector": { "matchLabels": { "app": "llama" } },
        }],
        "scrape": { "busyInterval": "20ms", "idleInterval": "40ms" },
        "timeouts": { "drainDelay": "0s", "drain": "1s" },
    })
}

pub(crate) async fn apply(namespace: &Namespace, name: &str, spec: Value) {
    namespace
        .apply(json!({
            "apiVersion": ApiGroup::Wicketgate.api_version(),
            "kind": KIND,
            "metadata": { "name": name },
            "spec": spec,
        }))
        .await;
}

pub(crate) async fn change(namespace: &Namespace, name: &str, spec: Value) {
    let patch = Patch::Merge(json!({ "spec": spec }));
    let api = gateways(namespace, ApiGroup::Wicketgate);
    api.patch(name, &PatchParams::default(), &patch).await.unwrap();
}

pub(crate) async fn delete(namespace: &Namespace, group: ApiGroup, name: &str) {
    gateways(namespace, group).delete(name, &DeleteParams::default()).await.unwrap();
}

/// `Status/Reason` of a gateway's condition.
pub(crate) async fn condition(namespace: &Namespace, name: &str, kind: &str) -> String {
    let resource = gateways(namespace, ApiGroup::Wicketgate).get(name).await.unwrap();
    of(&resource.data["status"], kind)
}

/// The same in a status, or in a scheduler's part of it.
pub(crate) fn of(status: &Value, kind: &str) -> String {
    let conditions = status["conditions"].as_array().into_iter().flatten();
    let mut conditions = conditions.filter(|one| one["type"] == kind);
    let Some(found) = conditions.next() else { return "absent".to_owned() };
    format!("{}/{}", found["status"].as_str().unwrap(), found["reason"].as_str().unwrap())
}

pub(crate) async fn has(namespace: &Namespace, name: &str, kind: &str, expected: &str) {
    let what = format!("{kind} of {name} is {expected}");
    until(&what, async || condition(namespace, name, kind).await == expected).await;
}

/// Versions of the resource and of everything that was made of it; they change with each write.
pub(crate) async fn versions(namespace: &Namespace, name: &str) -> Vec<String> {
    let mut versions = Vec::new();
    let resource = gateways(namespace, ApiGroup::Wicketgate).get(name).await.unwrap();
    versions.push(resource.metadata.resource_version.unwrap());
    for (version, kind) in MADE {
        let object = objects(namespace, version, kind).get(&format!("{name}-gateway")).await;
        versions.push(object.unwrap().metadata.resource_version.unwrap());
    }
    versions
}
