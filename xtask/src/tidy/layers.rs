//! Holds the direction of dependencies: crates depend only up the list, edges never on each other,
//! and each outside world is known by one crate.

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::{Findings, TextFile};
use crate::workspace::Workspace;

const PREFIX: &str = "wicketgate-";

/// Lowest layer first; a crate may depend on what stands before it.
const LAYERS: &[&str] = &[
    "types",
    "tls",
    "prefix",
    "sched",
    "flow",
    "limits",
    "rollout",
    "fleet",
    "engines",
    "openai",
    "config",
    "telemetry",
    "identity",
    "monitoring",
    "gateway",
    "proxy",
    "extproc",
    "peers",
    "global",
    "cloudwatch",
    "otlp",
    "kube",
    "sim",
    "lab",
    "console",
    "cli",
];

/// One outside world each; they never depend on each other.
const EDGES: [&str; 7] = ["proxy", "extproc", "peers", "global", "cloudwatch", "otlp", "kube"];

/// Decisions: no async, no I/O, no clock.
const PURE: [&str; 7] = ["types", "prefix", "sched", "flow", "limits", "rollout", "fleet"];

/// Libraries that only the named crates may use, besides tests.
const ONLY_IN: [(&str, &[&str]); 12] = [
    ("redis", &["global"]),
    ("hyper", &["proxy", "otlp"]),
    ("hyper-util", &["proxy", "otlp"]),
    ("axum", &["sim"]),
    ("envoy-types", &["extproc"]),
    ("tonic", &["extproc"]),
    ("chitchat", &["peers"]),
    ("reqsign-core", &["cloudwatch"]),
    ("ureq", &["cloudwatch"]),
    ("kube", &["kube"]),
    ("k8s-openapi", &["kube"]),
    ("rustls", &["tls", "proxy", "extproc", "global", "cloudwatch", "otlp", "kube"]),
];

/// Libraries that bring async or I/O.
const IMPURE: [&str; 9] =
    ["tokio", "async-std", "smol", "mio", "futures-util", "socket2", "hyper", "reqwest", "notify"];

pub(crate) fn check(workspace: &Workspace, _: &[TextFile]) -> Result<Findings> {
    let output = workspace
        .cargo()
        .args(["metadata", "--no-deps", "--format-version", "1", "--locked"])
        .output()
        .context("cannot run cargo metadata")?;
    if !output.status.success() {
        bail!("cargo metadata: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    let metadata: Value = serde_json::from_slice(&output.stdout).context("cargo metadata")?;
    Ok(Findings { errors: violations(&metadata), warnings: Vec::new() })
}

fn violations(metadata: &Value) -> Vec<String> {
    let mut errors = Vec::new();
    for package in array(&metadata["packages"]) {
        let Some(name) = package["name"].as_str().and_then(ours) else {
            continue; // xtask and the like
        };
        let Some(layer) = layer(name) else {
            errors.push(format!(
                "crate `{name}` has no place in the layers (xtask/src/tidy/layers.rs)"
            ));
            continue;
        };
        for dependency in array(&package["dependencies"]) {
            // A test may use anything: dependencies for tests only have a kind.
            if dependency["kind"].as_str().is_some() {
                continue;
            }
            let Some(used) = dependency["name"].as_str() else { continue };
            if let Some(problem) = problem(name, layer, used) {
                errors.push(format!("`{name}` depends on `{used}`: {problem}"));
            }
        }
    }
    errors
}

fn problem(name: &str, own_layer: usize, used: &str) -> Option<String> {
    if let Some(ours) = ours(used) {
        if layer(ours)? >= own_layer {
            return Some("dependencies point up the list of layers".to_owned());
        }
        if EDGES.contains(&name) && EDGES.contains(&ours) {
            return Some("edges never depend on each other".to_owned());
        }
        return None;
    }
    if PURE.contains(&name) && IMPURE.contains(&used) {
        return Some("decisions have no async and no I/O".to_owned());
    }
    let (_, allowed) = ONLY_IN.iter().find(|(library, _)| *library == used)?;
    (!allowed.contains(&name)).then(|| format!("only {} may", allowed.join(", ")))
}

/// The crate's name in the layers: its package is called `wicketgate-NAME`, the binary's without.
fn ours(package: &str) -> Option<&str> {
    if package == "wicketgate" { Some("cli") } else { package.strip_prefix(PREFIX) }
}

fn layer(name: &str) -> Option<usize> {
    LAYERS.iter().position(|layer| *layer == name)
}

fn array(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn found(name: &str, used: &str, kind: Option<&str>) -> Vec<String> {
        let dependency = json!({ "name": used, "kind": kind });
        violations(&json!({ "packages": [{ "name": name, "dependencies": [dependency] }] }))
    }

    #[test]
    fn a_dependency_down_the_layers_is_refused() {
        assert_eq!(found("wicketgate-sched", "wicketgate-gateway", None).len(), 1);
        assert!(found("wicketgate-gateway", "wicketgate-sched", None).is_empty());
    }

    #[test]
    fn edges_do_not_know_each_other() {
        assert_eq!(found("wicketgate-extproc", "wicketgate-proxy", None).len(), 1);
    }

    #[test]
    fn only_the_proxy_names_hyper_and_decisions_stay_pure() {
        assert_eq!(found("wicketgate-gateway", "hyper", None).len(), 1);
        assert!(found("wicketgate-proxy", "hyper", None).is_empty());
        assert_eq!(found("wicketgate-types", "tokio", None).len(), 1);
    }

    #[test]
    fn tests_may_use_anything() {
        assert!(found("wicketgate-engines", "wicketgate-sim", Some("dev")).is_empty());
    }

    #[test]
    fn the_binary_is_the_last_layer() {
        assert!(found("wicketgate", "wicketgate-sim", None).is_empty());
        assert_eq!(found("wicketgate", "hyper", None).len(), 1);
        assert_eq!(found("wicketgate-sim", "wicketgate", None).len(), 1);
    }

    #[test]
    fn a_crate_without_a_place_is_said() {
        assert_eq!(found("wicketgate-utils", "serde", None).len(), 1);
    }
}
