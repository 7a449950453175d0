//! The schema of `status`: AWS's conditions, and how many endpoints there are.

use serde_json::{Value, json};

/// What of a rollout AWS tells.
pub(crate) const ROLLOUT_STATES: [&str; 4] = ["Pending", "Progressing", "Available", "Degraded"];

/// As many conditions as there are kinds, and some to come.
const CONDITIONS_MAX: usize = 16;

pub(super) fn schema() -> Value {
    json!({
        "type": "object",
        "description": "Written by the controller.",
        "properties": {
            "observedGeneration": {
                "type": "integer",
                "format": "int64",
                "description": "The generation of `spec` that all of this is about.",
            },
            "conditions": conditions(),
            "readyEndpoints": {
                "type": "integer",
                "format": "int32",
                "description": "Endpoints that take requests, over all schedulers.",
            },
            "address": {
                "type": "string",
                "description": "Where clients in the cluster connect.",
            },
            "tls": {
                "type": "object",
                "description": "The certificate, where one was issued.",
                "properties": {
                    "acmArn": { "type": "string" },
                    "issuedAt": { "type": "string", "format": "date-time" },
                    "dnsNames": { "type": "array", "items": { "type": "string" } },
                },
            },
            "schedulers": {
                "type": "array",
                "description": "One entry for each of `spec.schedulers`.",
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["name"],
                "items": scheduler(),
            },
        },
    })
}

fn scheduler() -> Value {
    json!({
        "type": "object",
        "required": ["name"],
        "properties": {
            "name": { "type": "string" },
            "conditions": conditions(),
            "currentScheduler": { "type": "string", "description": "The picker that decides now." },
            "rolloutState": { "type": "string", "enum": ROLLOUT_STATES },
            "pods": {
                "type": "integer",
                "format": "int32",
                "description": "Pods that `modelSelector` finds.",
            },
            "readyEndpoints": {
                "type": "integer",
                "format": "int32",
                "description": "Endpoints that take requests.",
            },
        },
    })
}

/// Kubernetes' own type `Condition`.
fn conditions() -> Value {
    json!({
        "type": "array",
        "maxItems": CONDITIONS_MAX,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
        "items": {
            "type": "object",
            "required": ["type", "status", "reason", "message", "lastTransitionTime"],
            "properties": {
                "type": { "type": "string", "maxLength": 316 },
                "status": { "type": "string", "enum": ["True", "False", "Unknown"] },
                "reason": { "type": "string", "minLength": 1, "maxLength": 1024 },
                "message": { "type": "string", "maxLength": 32768 },
                "lastTransitionTime": { "type": "string", "format": "date-time" },
                "observedGeneration": { "type": "integer", "format": "int64", "minimum": 0 },
            },
        },
    })
}
