//! What a gateway's pods may ask of the cluster, and no more.

use serde_json::{Value, json};

use super::Wish;
use crate::crd;

/// Pods for endpoints, ConfigMaps for pickers and adapters, and its own resource.
pub(super) fn role(wish: Wish<'_>) -> Value {
    json!({ "rules": [
        { "apiGroups": [""], "resources": ["pods", "configmaps"], "verbs": ["list", "watch"] },
        {
            "apiGroups": [crd::group_name(wish.key.group)],
            "resources": [crd::PLURAL],
            "resourceNames": [&*wish.key.name],
            "verbs": ["list", "watch"],
        },
    ] })
}

pub(super) fn binding(wish: Wish<'_>) -> Value {
    let name = wish.key.object_name();
    json!({
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name },
        "subjects": [{ "kind": "ServiceAccount", "name": name, "namespace": &*wish.key.namespace }],
    })
}
