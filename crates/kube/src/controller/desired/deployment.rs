//! The gateway's pods.

use std::time::Duration;

use serde_json::{Map, Value, json};

use super::{Wish, group_word, labels, selector};
use crate::controller::settings::Images;

/// On top of the drain: for the last answers, and for the process to end.
const GRACE_MARGIN: Duration = Duration::from_secs(5);
/// Where a process of ours listens in its pod.
const TRAFFIC_PORT: u16 = 8080;
const ADMIN_PORT: u16 = 9090;

/// Parts of `spec` that a gateway reads once, at its start: another value means other pods.
const READ_AT_START: [&str; 11] = [
    "/listener",
    "/peers",
    "/global",
    "/accessLog",
    "/observability/tracing",
    "/observability/cloudWatch",
    "/recording",
    "/prefixIndex",
    "/ejection",
    "/limits/connectionsMax",
    "/admin/address",
];

pub(super) fn deployment(wish: Wish<'_>, images: &Images) -> Value {
    let rolling = json!({ "maxUnavailable": 0, "maxSurge": 1 });
    json!({ "spec": {
        "replicas": wish.document.spec.bbr.replicas,
        "selector": { "matchLabels": selector(wish.key) },
        "strategy": { "type": "RollingUpdate", "rollingUpdate": rolling },
        "template": { "metadata": pod_metadata(wish), "spec": pod(wish, images) },
    } })
}

fn pod_metadata(wish: Wish<'_>) -> Value {
    let mut own_labels = labels(wish.key);
    let mut annotations = json!({
        "gateway.wicketgate.dev/read-at-start": fingerprint(wish.spec),
        "prometheus.io/scrape": "true",
        "prometheus.io/port": ADMIN_PORT.to_string(),
    });
    // What tells our pods apart is ours; everything else may be said.
    put_under(&mut own_labels, defaults(wish, "labels"));
    put_under(&mut annotations, defaults(wish, "annotations"));
    json!({ "labels": own_labels, "annotations": annotations })
}

fn put_under(ours: &mut Value, theirs: &Value) {
    let (Some(ours), Some(theirs)) = (ours.as_object_mut(), theirs.as_object()) else { return };
    for (key, value) in theirs {
        ours.entry(key).or_insert_with(|| value.clone());
    }
}

fn pod(wish: Wish<'_>, images: &Images) -> Value {
    let timeouts = &wish.document.spec.timeouts;
    let grace = timeouts.drain_delay + timeouts.drain + GRACE_MARGIN;
    let mut pod = json!({
        "serviceAccountName": wish.key.object_name(),
        "terminationGracePeriodSeconds": grace.as_secs(),
        "securityContext": {
            "runAsNonRoot": true,
            "runAsUser": 65532,
            "runAsGroup": 65532,
            "seccompProfile": { "type": "RuntimeDefault" },
        },
        "topologySpreadConstraints": [
            spread(wish, "topology.kubernetes.io/zone"),
            spread(wish, "kubernetes.io/hostname"),
        ],
        "containers": [container(wish, images)],
    });
    for key in ["nodeSelector", "tolerations", "affinity", "volumes"] {
        take_over(&mut pod, key, defaults(wish, key));
    }
    pod
}

fn spread(wish: Wish<'_>, key: &str) -> Value {
    json!({
        "maxSkew": 1,
        "topologyKey": key,
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": { "matchLabels": selector(wish.key) },
    })
}

fn container(wish: Wish<'_>, images: &Images) -> Value {
    let mut ports = vec![
        json!({ "name": "http", "containerPort": TRAFFIC_PORT, "protocol": "TCP" }),
        json!({ "name": "admin", "containerPort": ADMIN_PORT, "protocol": "TCP" }),
    ];
    if let Some(tls) = &wish.document.spec.listener.tls {
        let port = tls.address.port();
        ports.push(json!({ "name": "https", "containerPort": port, "protocol": "TCP" }));
    }
    let resource = format!("{}/{}", wish.key.namespace, wish.key.name);
    let mut container = json!({
        "name": "gateway",
        "image": images.image,
        "imagePullPolicy": images.pull_policy,
        "args": [
            "serve",
            "--resource", resource,
            "--resource-group", group_word(wish.key.group),
            "--listen", format!("0.0.0.0:{TRAFFIC_PORT}"),
            "--admin", format!("0.0.0.0:{ADMIN_PORT}"),
        ],
        "ports": ports,
        "readinessProbe": { "httpGet": { "path": "/readyz", "port": ADMIN_PORT }, "periodSeconds": 5 },
        "livenessProbe": {
            "httpGet": { "path": "/healthz", "port": ADMIN_PORT }, "periodSeconds": 10, "failureThreshold": 6,
        },
        "resources": { "requests": { "cpu": "100m", "memory": "128Mi" } },
        "securityContext": {
            "allowPrivilegeEscalation": false,
            "readOnlyRootFilesystem": true,
            "capabilities": { "drop": ["ALL"] },
        },
    });
    take_over(&mut container, "resources", defaults(wish, "resources"));
    take_over(&mut container, "volumeMounts", defaults(wish, "volumeMounts"));
    for key in ["env", "envFrom"] {
        let all: Vec<Value> = variables(wish, key).cloned().collect();
        take_over(&mut container, key, &unique(all));
    }
    container
}

/// Of `podDefaults` and of all schedulers: their pickers live in this one container.
fn variables<'a>(wish: Wish<'a>, key: &'a str) -> impl Iterator<Item = &'a Value> {
    let schedulers = wish.spec.get("schedulers").and_then(Value::as_array).into_iter().flatten();
    let lists = std::iter::once(defaults(wish, key))
        .chain(schedulers.filter_map(move |scheduler| scheduler.get(key)));
    lists.filter_map(Value::as_array).flatten()
}

/// Of two with one name the later counts: lists in a container are keyed by it.
fn unique(all: Vec<Value>) -> Value {
    let mut kept: Vec<Value> = Vec::new();
    for item in all {
        let same = |other: &Value| match item.get("name") {
            Some(name) => other.get("name") == Some(name),
            None => *other == item,
        };
        match kept.iter_mut().find(|other| same(other)) {
            Some(earlier) => *earlier = item,
            None => kept.push(item),
        }
    }
    Value::Array(kept)
}

fn defaults<'a>(wish: Wish<'a>, key: &str) -> &'a Value {
    &wish.spec["podDefaults"][key]
}

/// Sets what somebody said; empty is as good as not said.
fn take_over(object: &mut Value, key: &str, said: &Value) {
    let is_empty = match said {
        Value::Null => true,
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.is_empty(),
        _ => false,
    };
    if !is_empty {
        object[key] = said.clone();
    }
}

/// The parts that are read at the start, in a few characters: FNV-1a.
fn fingerprint(spec: &Value) -> String {
    let parts: Map<String, Value> = READ_AT_START
        .into_iter()
        .filter_map(|at| Some((at.to_owned(), spec.pointer(at)?.clone())))
        .collect();
    let text = Value::Object(parts).to_string();
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    format!("{hash:016x}")
}
