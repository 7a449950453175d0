//! What a gateway is made of: a pure function from its resource to objects.
//!
//! All of them bear one name, belong to the resource (so the cluster's garbage collection removes them with it), and
//! are written by server-side apply, so that what others add to them stays.

mod access;
mod deployment;
#[cfg(test)]
mod tests;

use config::{ApiGroup, Document, KIND};
use serde_json::{Value, json};

use super::key::{GATEWAY_LABEL, Key, Kind, MANAGED_BY};
use super::settings::Images;

/// Port of the Service.
pub(crate) const HTTP_PORT: u16 = 80;
const HTTPS_PORT: u16 = 443;
/// Longest name of a Service.
const NAME_MAX: usize = 63;

/// A gateway as its resource describes it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wish<'a> {
    pub key: &'a Key,
    pub uid: &'a str,
    pub document: &'a Document,
    /// `spec` as it was written; parts of it are for pods only.
    pub spec: &'a Value,
}

/// Why a name cannot be that of our objects.
pub(crate) fn naming_violation(key: &Key) -> Option<String> {
    let name = key.object_name();
    if name.len() > NAME_MAX {
        let is = name.len();
        return Some(format!(
            "`{name}` has {is} characters, at most {NAME_MAX} are allowed; shorten `metadata.name`"
        ));
    }
    let is_label = name.starts_with(|c: char| c.is_ascii_lowercase()) && !name.contains('.');
    (!is_label).then(|| {
        format!("`{name}` cannot name a Service: `metadata.name` must begin with a letter and have no dots")
    })
}

/// The objects, in the order in which they are made.
pub(crate) fn objects(wish: Wish<'_>, images: &Images) -> Vec<(Kind, Value)> {
    Kind::ALL
        .into_iter()
        .map(|kind| {
            let mut object = match kind {
                Kind::ServiceAccount => json!({}),
                Kind::Role => access::role(wish),
                Kind::RoleBinding => access::binding(wish),
                Kind::Service => service(wish),
                Kind::Deployment => deployment::deployment(wish, images),
                Kind::PodDisruptionBudget => budget(wish),
            };
            object["apiVersion"] = json!(kind.api_version());
            object["kind"] = json!(kind.name());
            object["metadata"] = metadata(wish);
            (kind, object)
        })
        .collect()
}

/// Where clients in the cluster connect.
pub(crate) fn address(key: &Key) -> String {
    format!("http://{}.{}.svc", key.object_name(), key.namespace)
}

fn metadata(wish: Wish<'_>) -> Value {
    json!({
        "name": wish.key.object_name(),
        "namespace": &*wish.key.namespace,
        "labels": labels(wish.key),
        "ownerReferences": [{
            "apiVersion": wish.key.group.api_version(),
            "kind": KIND,
            "name": &*wish.key.name,
            "uid": wish.uid,
            "controller": true,
            // It would need a right to the resource's finalizers, and nothing has to wait for us.
            "blockOwnerDeletion": false,
        }],
    })
}

fn labels(key: &Key) -> Value {
    json!({
        "app.kubernetes.io/name": "wicketgate",
        "app.kubernetes.io/instance": &*key.name,
        "app.kubernetes.io/component": "gateway",
        MANAGED_BY.0: MANAGED_BY.1,
        GATEWAY_LABEL: &*key.name,
    })
}

/// What tells the gateway's pods from all others. It can never change.
fn selector(key: &Key) -> Value {
    json!({ "app.kubernetes.io/name": "wicketgate", GATEWAY_LABEL: &*key.name })
}

fn service(wish: Wish<'_>) -> Value {
    let mut ports = vec![json!({
        "name": "http", "port": HTTP_PORT, "targetPort": "http", "protocol": "TCP", "appProtocol": "http",
    })];
    if wish.document.spec.listener.tls.is_some() {
        ports.push(json!({
            "name": "https", "port": HTTPS_PORT, "targetPort": "https", "protocol": "TCP", "appProtocol": "https",
        }));
    }
    json!({ "spec": { "type": "ClusterIP", "selector": selector(wish.key), "ports": ports } })
}

fn budget(wish: Wish<'_>) -> Value {
    json!({ "spec": {
        "maxUnavailable": 1,
        "selector": { "matchLabels": selector(wish.key) },
        // A pod that is not ready serves nobody and must not keep a node from being drained.
        "unhealthyPodEvictionPolicy": "AlwaysAllow",
    } })
}

/// The word for a group on our command line.
fn group_word(group: ApiGroup) -> &'static str {
    match group {
        ApiGroup::Wicketgate => "wicketgate",
        ApiGroup::Aws => "aws",
    }
}
