//! The objects, and the query that they scale by. Pure.

use serde_json::{Value, json};

/// What shall be scaled, and how far.
#[derive(Clone, Debug)]
pub(super) struct Wish {
    /// The pool's name, as in metrics.
    pub pool: String,
    pub namespace: Option<String>,
    pub kind: String,
    pub name: String,
    /// Fewest and most.
    pub replicas: (u32, u32),
    /// Of one endpoint.
    pub load: f64,
    pub requests_per_endpoint: u32,
}

/// The external metric of a HorizontalPodAutoscaler, which an adapter makes of [`load`].
pub(super) const METRIC: &str = "wicketgate_pool_load";

/// Seconds without load before the last replica goes.
const COOLDOWN: u32 = 300;

/// The pool's load in endpoints: those that are full count one, and what waits in the gateways counts for as many as
/// it would fill. Divided by the load aimed at, it is the number of replicas that are needed.
///
/// Saturation and endpoints are the same at each gateway, so the highest counts; queues are each one's own.
pub(super) fn load(pool: &str, requests_per_endpoint: u32) -> String {
    let of = |name: &str, more: &str| format!("{name}{{pool=\"{pool}\"{more}}}");
    let saturation = of("wicketgate_pool_saturation_ratio", "");
    let endpoints = of("wicketgate_pool_endpoints", ",state=\"ready\"");
    let queue = of("wicketgate_flow_queue_requests", "");
    format!(
        "(max({saturation}) * max({endpoints}) or vector(0)) + (sum({queue}) or vector(0)) / {requests_per_endpoint}"
    )
}

/// KEDA's.
pub(super) fn scaled_object(wish: &Wish, prometheus: &str) -> Value {
    let (min, max) = wish.replicas;
    json!({
        "apiVersion": "keda.sh/v1alpha1",
        "kind": "ScaledObject",
        "metadata": metadata(wish),
        "spec": {
            "scaleTargetRef": { "apiVersion": "apps/v1", "kind": wish.kind, "name": wish.name },
            "minReplicaCount": min,
            "maxReplicaCount": max,
            "pollingInterval": 15,
            "cooldownPeriod": COOLDOWN,
            "advanced": { "horizontalPodAutoscalerConfig": { "behavior": behavior() } },
            "triggers": [{
                "type": "prometheus",
                "metricType": "AverageValue",
                "metadata": {
                    "serverAddress": prometheus,
                    "query": load(&wish.pool, wish.requests_per_endpoint),
                    "threshold": wish.load.to_string(),
                    "activationThreshold": "0",
                },
            }],
        },
    })
}

/// Kubernetes' own.
pub(super) fn horizontal(wish: &Wish) -> Value {
    let (min, max) = wish.replicas;
    // Quantities have no fractions but thousandths.
    let milli = (wish.load * 1000.0).round();
    json!({
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": metadata(wish),
        "spec": {
            "scaleTargetRef": { "apiVersion": "apps/v1", "kind": wish.kind, "name": wish.name },
            "minReplicas": min,
            "maxReplicas": max,
            "behavior": behavior(),
            "metrics": [{
                "type": "External",
                "external": {
                    "metric": { "name": METRIC, "selector": { "matchLabels": { "pool": wish.pool } } },
                    "target": { "type": "AverageValue", "averageValue": format!("{milli}m") },
                },
            }],
        },
    })
}

/// Models load for minutes: soon up, slowly down.
fn behavior() -> Value {
    json!({
        "scaleUp": { "stabilizationWindowSeconds": 0 },
        "scaleDown": {
            "stabilizationWindowSeconds": COOLDOWN,
            "policies": [{ "type": "Pods", "value": 1, "periodSeconds": 60 }],
        },
    })
}

fn metadata(wish: &Wish) -> Value {
    let mut metadata = json!({
        "name": wish.name,
        "labels": { "app.kubernetes.io/part-of": "wicketgate" },
    });
    if let Some(namespace) = &wish.namespace {
        metadata["namespace"] = json!(namespace);
    }
    metadata
}

/// What the reader must see to.
///
/// * `is_external`: an adapter has to make the metric.
pub(super) fn preface(wish: &Wish, is_external: bool) -> String {
    let mut text = format!("# Made by `wicketgate autoscale` for the pool `{}`.\n", wish.pool);
    if is_external {
        text += &format!(
            "# The external metric `{METRIC}` is for an adapter to make (prometheus-adapter, externalRules), with the query\n#   {}\n",
            load(&wish.pool, wish.requests_per_endpoint)
        );
    }
    text
}
