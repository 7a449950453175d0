//! What the controller may do is what it does: its rights against the API server's audit log.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::{Value, json};

use crate::control_plane::{Access, ControlPlane, root};
use crate::gateway::PATIENCE;
use crate::igwc::{MADE, apply, change, has, objects, spec};
use crate::namespace::{Namespace, until};
use crate::process::Controller;

/// Group, resource, verb.
type Right = (String, String, String);

/// Granted, and not seen in this test, each with its reason.
const UNSEEN: [(&str, &str, &str); 3] = [
    // They are passed on to gateways, and nobody can grant what he does not have.
    ("", "configmaps", "list"),
    ("", "configmaps", "watch"),
    // An event that comes again is counted in the first.
    ("events.k8s.io", "events", "patch"),
];

/// The rules of the example's roles, and the account that gets them.
fn roles() -> Vec<Value> {
    let path = root().join("docs/examples/kubernetes/controller.yaml");
    let text = std::fs::read_to_string(path).unwrap();
    let objects: Vec<Value> = serde_saphyr::from_multiple(&text).unwrap();
    let is_role = |object: &Value| object["kind"] == "ClusterRole" || object["kind"] == "Role";
    objects.into_iter().filter(is_role).collect()
}

fn granted(roles: &[Value]) -> BTreeSet<Right> {
    let texts = |list: &Value| -> Vec<String> {
        list.as_array().unwrap().iter().map(|one| one.as_str().unwrap().to_owned()).collect()
    };
    let mut granted = BTreeSet::new();
    for rule in roles.iter().flat_map(|role| role["rules"].as_array().unwrap()) {
        for group in texts(&rule["apiGroups"]) {
            for resource in texts(&rule["resources"]) {
                for verb in texts(&rule["verbs"]) {
                    granted.insert((group.clone(), resource.clone(), verb));
                }
            }
        }
    }
    granted
}

/// What a user asked for, by the API server's decision.
fn asked(log: &Path, user: &str) -> (BTreeSet<Right>, BTreeSet<Right>) {
    let (mut allowed, mut refused) = (BTreeSet::new(), BTreeSet::new());
    for line in std::fs::read_to_string(log).unwrap_or_default().lines() {
        let Ok(entry) = serde_json::from_str::<Value>(line) else { continue };
        if entry["impersonatedUser"]["username"] != user || entry["objectRef"].is_null() {
            continue;
        }
        let text = |key: &str| entry["objectRef"][key].as_str().unwrap_or_default().to_owned();
        let resource = match entry["objectRef"]["subresource"].as_str() {
            Some(sub) => format!("{}/{sub}", text("resource")),
            None => text("resource"),
        };
        let right = (text("apiGroup"), resource, entry["verb"].as_str().unwrap().to_owned());
        if entry["annotations"]["authorization.k8s.io/decision"] != "allow" {
            refused.insert(right);
            continue;
        }
        // A patch that makes its object needs leave to create it too.
        if right.2 == "patch" && entry["responseStatus"]["code"] == 201 {
            allowed.insert((right.0.clone(), right.1.clone(), "create".to_owned()));
        }
        allowed.insert(right);
    }
    (allowed, refused)
}

#[tokio::test]
#[ignore = "needs an API server: cargo xtask test --only kubernetes"]
async fn the_controllers_rights_suffice_and_none_is_idle() {
    let folder = tempfile::tempdir().unwrap();
    let (policy, log) = (folder.path().join("policy.yaml"), folder.path().join("audit.log"));
    let rules = json!({
        "apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"],
        "rules": [{ "level": "Metadata" }],
    });
    std::fs::write(&policy, rules.to_string()).unwrap();
    let plane = ControlPlane::start(&[
        &format!("--audit-policy-file={}", policy.display()),
        &format!("--audit-log-path={}", log.display()),
    ])
    .await;
    plane.define().await;
    let namespace = Namespace::new(&plane).await;
    let roles = roles();
    // The cluster's role in this namespace alone is as good here, and no other test's.
    for role in &roles {
        let kind = role["kind"].as_str().unwrap();
        let name = format!("controller-{}", kind.to_lowercase());
        namespace
            .apply(json!({
                "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": { "name": name },
                "rules": role["rules"],
            }))
            .await;
        namespace
            .apply(json!({
                "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": { "name": name },
                "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name },
                "subjects": [{ "kind": "ServiceAccount", "name": "controller", "namespace": namespace.name }],
            }))
            .await;
    }
    let user = format!("system:serviceaccount:{}:controller", namespace.name);
    let access = Access { user: Some(&user), ..Access::default() };
    let kubeconfig = plane.kubeconfig(access, &namespace.name);
    let controller =
        Controller::start_with(&kubeconfig, &namespace.name, &["--lease-duration", "6s"]);
    apply(&namespace, "lab", spec()).await;
    has(&namespace, "lab", "Accepted", "True/Accepted").await;
    for (version, kind) in MADE {
        let api = objects(&namespace, version, kind);
        until(kind, async || api.get_opt("lab-gateway").await.unwrap().is_some()).await;
    }
    change(&namespace, "lab", json!({ "bbr": { "replicas": 3 } })).await;
    namespace
        .apply(json!({
            "apiVersion": config::ApiGroup::Aws.api_version(), "kind": config::KIND,
            "metadata": { "name": "of-aws" },
            "spec": {
                "tls": {}, "bbr": { "enabled": true },
                "schedulers": [{ "name": "chat", "modelName": "m", "modelSelector": {} }],
            },
        }))
        .await;
    let unseen: BTreeSet<Right> =
        UNSEEN.map(|(group, resource, verb)| (group.into(), resource.into(), verb.into())).into();
    let expected: BTreeSet<Right> = granted(&roles).difference(&unseen).cloned().collect();
    let mut idle = expected.clone();
    let using = until("every right was used", async || {
        let (allowed, _) = asked(&log, &user);
        idle = expected.difference(&allowed).cloned().collect();
        idle.is_empty()
    });
    // Shorter than its own patience, to say which.
    let _ = tokio::time::timeout(PATIENCE / 2, using).await;
    assert!(idle.is_empty(), "granted and never used: {idle:?}\n{}", controller.said());
    let (_, refused) = asked(&log, &user);
    assert!(refused.is_empty(), "{refused:?}\n{}", controller.said());
}
