//! The definition of `InferenceGatewayConfig` for the API server, made of the schema that checks files.
//!
//! So a field has one description, one set of bounds and one message, whether a file is read or a
//! resource is applied. There are two definitions: ours, and AWS's group for manifests that were
//! written for it. Neither has defaults: what is not written stays unwritten, and its meaning is the
//! gateway's that reads it.

mod rules;
mod schema;
mod status;
#[cfg(test)]
mod tests;

use config::{ApiGroup, KIND};
use serde_json::{Value, json};

pub const PLURAL: &str = "inferencegatewayconfigs";
pub const SHORT_NAME: &str = "igwc";

/// The only version.
const VERSION: &str = "v1alpha1";

/// The group's name, without the version.
pub fn group_name(group: ApiGroup) -> &'static str {
    let api_version = group.api_version();
    api_version.split_once('/').map_or(api_version, |(name, _)| name)
}

/// The object that tells an API server of the resource.
pub fn definition(group: ApiGroup) -> Value {
    let group_name = group_name(group);
    let mut spec = schema::of_field("spec", group);
    rules::attach(&mut spec, group);
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": format!("{PLURAL}.{group_name}"),
            "labels": { "app.kubernetes.io/part-of": "wicketgate" },
        },
        "spec": {
            "group": group_name,
            "scope": "Namespaced",
            "names": {
                "kind": KIND,
                "listKind": format!("{KIND}List"),
                "plural": PLURAL,
                "singular": KIND.to_lowercase(),
                "shortNames": [SHORT_NAME],
                "categories": ["inference"],
            },
            "versions": [{
                "name": VERSION,
                "served": true,
                "storage": true,
                "subresources": { "status": {} },
                "additionalPrinterColumns": columns(),
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "description": "One gateway: the models behind it, how each request finds its endpoint, and who may ask.",
                        "required": ["spec"],
                        "properties": {
                            "apiVersion": { "type": "string" },
                            "kind": { "type": "string" },
                            "metadata": { "type": "object" },
                            "spec": spec,
                            "status": status::schema(),
                        },
                    },
                },
            }],
        },
    })
}

/// The same as a file.
pub fn manifest(group: ApiGroup) -> String {
    let yaml = serde_saphyr::to_string(&definition(group)).expect("JSON can be written as YAML");
    format!("# Made of the schema by `cargo xtask docs`; not edited by hand.\n{yaml}")
}

/// What `kubectl get` shows.
fn columns() -> Value {
    let condition =
        |kind: &str, part: &str| json!(format!(".status.conditions[?(@.type==\"{kind}\")].{part}"));
    json!([
        { "name": "Ready", "type": "string", "jsonPath": condition("Ready", "status") },
        { "name": "Reason", "type": "string", "jsonPath": condition("Ready", "reason") },
        { "name": "Endpoints", "type": "integer", "jsonPath": ".status.readyEndpoints", "description": "Endpoints that take requests, over all models." },
        { "name": "Accepted", "type": "string", "jsonPath": condition("Accepted", "status"), "priority": 1 },
        { "name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp" },
    ])
}
