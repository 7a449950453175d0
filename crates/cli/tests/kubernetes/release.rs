//! A release of the chart on a real API server: its life, its pods, its rights.

use std::path::Path;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{
    ApiResource, DynamicObject, GroupVersionKind, ListParams, ObjectMeta, Patch, PatchParams,
    PostParams,
};
use kube::{Api, Client};
use serde_json::{Value, json};

use crate::control_plane::{Access, ControlPlane, shared};
use crate::helm::{Helm, chart, template};
use crate::namespace::{Namespace, until};

const DEFINITION: &str = "inferencegatewayconfigs.gateway.wicketgate.dev";

/// Both parts, with rights in one namespace only, so that tests do not meet.
fn values(namespace: &str, replicas: u32, label: &str) -> Value {
    json!({
        "controller": { "watchNamespace": namespace },
        "gateway": {
            "enabled": true,
            "replicas": replicas,
            "spec": { "schedulers": [{
                "name": "chat", "modelName": "llama-3.1-8b", "modelSelector": { "matchLabels": { "app": label } },
            }] },
        },
    })
}

/// Kinds that a release has.
const KINDS: [(&str, &str, &str); 9] = [
    ("", "v1", "ConfigMap"),
    ("", "v1", "Service"),
    ("", "v1", "ServiceAccount"),
    ("", "v1", "Secret"),
    ("apps", "v1", "Deployment"),
    ("policy", "v1", "PodDisruptionBudget"),
    ("networking.k8s.io", "v1", "NetworkPolicy"),
    ("rbac.authorization.k8s.io", "v1", "Role"),
    ("rbac.authorization.k8s.io", "v1", "RoleBinding"),
];

fn api(
    client: &Client,
    namespace: &str,
    (group, version, kind): (&str, &str, &str),
) -> Api<DynamicObject> {
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
    Api::namespaced_with(client.clone(), namespace, &kind)
}

/// `Kind/name` of all that is there, sorted.
async fn present(namespace: &Namespace) -> Vec<String> {
    let mut names = Vec::new();
    for kind in KINDS {
        let list = api(&namespace.client, &namespace.name, kind).list(&ListParams::default()).await;
        let named = list.unwrap().items.into_iter();
        names.extend(named.map(|one| format!("{}/{}", kind.2, one.metadata.name.unwrap())));
    }
    // Namespaces come with these where a controller manager runs.
    names.retain(|name| {
        !["ConfigMap/kube-root-ca.crt", "ServiceAccount/default"].contains(&name.as_str())
    });
    names.sort();
    names
}

async fn deployment(namespace: &Namespace) -> Value {
    let deployments = api(&namespace.client, &namespace.name, ("apps", "v1", "Deployment"));
    serde_json::to_value(deployments.get("wicketgate").await.unwrap()).unwrap()
}

async fn document(namespace: &Namespace) -> String {
    let maps = api(&namespace.client, &namespace.name, ("", "v1", "ConfigMap"));
    let map = maps.get("wicketgate").await.unwrap();
    map.data["data"]["gateway.yaml"].as_str().unwrap().to_owned()
}

#[tokio::test]
#[ignore = "needs an API server: cargo xtask test --only kubernetes"]
async fn a_release_is_installed_upgraded_and_rolled_back_and_leaves_nothing_when_it_goes() {
    let namespace = Namespace::new(shared().await).await;
    assert_eq!(present(&namespace).await, [""; 0]);
    let helm = Helm::new(&namespace.name, &namespace.kubeconfig);
    helm.put("install", &chart(), &values(&namespace.name, 2, "llama"));
    assert_eq!(deployment(&namespace).await["spec"]["replicas"], 2);
    let installed = present(&namespace).await;
    assert!(installed.contains(&"Deployment/wicketgate-controller".to_owned()), "{installed:?}");

    helm.put("upgrade", &chart(), &values(&namespace.name, 3, "qwen"));
    assert_eq!(deployment(&namespace).await["spec"]["replicas"], 3);
    assert!(document(&namespace).await.contains("app: qwen"));

    helm.rollback("1");
    assert_eq!(deployment(&namespace).await["spec"]["replicas"], 2);
    assert!(document(&namespace).await.contains("app: llama"));
    assert_eq!(helm.history().len(), 3);

    helm.uninstall();
    until("nothing is left", async || present(&namespace).await.is_empty()).await;
}

#[tokio::test]
#[ignore = "needs an API server: cargo xtask test --only kubernetes"]
async fn an_upgrade_changes_no_pods_selector_and_takes_no_object_away() {
    let namespace = Namespace::new(shared().await).await;
    let helm = Helm::new(&namespace.name, &namespace.kubeconfig);
    helm.put("install", &chart(), &values(&namespace.name, 2, "llama"));
    let before = (present(&namespace).await, deployment(&namespace).await);
    // Labels and versions change with a release; what selects pods must not, or pods are cut off.
    let mut changed = values(&namespace.name, 2, "llama");
    changed["image"] = json!({ "tag": "0.2.0" });
    changed["commonLabels"] = json!({ "team": "inference" });
    helm.put("upgrade", &chart(), &changed);
    let after = (present(&namespace).await, deployment(&namespace).await);
    let without_history = |names: &[String]| -> Vec<String> {
        names.iter().filter(|name| !name.starts_with("Secret/")).cloned().collect()
    };
    assert_eq!(without_history(&before.0), without_history(&after.0));
    assert_eq!(before.1["spec"]["selector"], after.1["spec"]["selector"]);
    let image = &after.1["spec"]["template"]["spec"]["containers"][0]["image"];
    assert_eq!(image, "wicketgate:0.2.0");
    helm.uninstall();
}

#[tokio::test]
#[ignore = "needs an API server: cargo xtask test --only kubernetes"]
async fn the_charts_pods_are_admitted_under_the_strictest_profile_of_pods() {
    let namespace = Namespace::new(shared().await).await;
    let labels =
        json!({ "metadata": { "labels": { "pod-security.kubernetes.io/enforce": "restricted" } } });
    let namespaces: Api<k8s_openapi::api::core::v1::Namespace> = Api::all(namespace.client.clone());
    let parameters = PatchParams::default();
    namespaces.patch(&namespace.name, &parameters, &Patch::Merge(&labels)).await.unwrap();
    let dry = PostParams { dry_run: true, ..PostParams::default() };
    let objects = template(&values(&namespace.name, 2, "llama"), &namespace.name);
    let deployments = objects.iter().filter(|object| object["kind"] == "Deployment");
    let mut pods = 0;
    for deployment in deployments {
        let template = &deployment["spec"]["template"];
        let pod = |spec: Value| {
            let meta = json!({ "generateName": "pod-", "labels": template["metadata"]["labels"] });
            serde_json::from_value(json!({ "metadata": meta, "spec": spec })).unwrap()
        };
        let spec = template["spec"].clone();
        namespace.pods().create(&dry, &pod(spec.clone())).await.unwrap();
        // The profile is in force: a pod with more rights is refused.
        let mut more = spec;
        more["containers"][0]["securityContext"]["allowPrivilegeEscalation"] = json!(true);
        let refused = namespace.pods().create(&dry, &pod(more)).await.unwrap_err().to_string();
        assert!(refused.contains("violates PodSecurity"), "{refused}");
        pods += 1;
    }
    assert_eq!(pods, 2);
}

/// The chart with an older definition: a field and its help are not there yet.
fn older_chart(folder: &Path) -> std::path::PathBuf {
    let older = folder.join("wicketgate");
    let copied = std::process::Command::new("cp").arg("-R").arg(chart()).arg(&older).status();
    assert!(copied.unwrap().success());
    let path = older.join(format!("crds/{DEFINITION}.yaml"));
    let text = std::fs::read_to_string(&path).unwrap();
    let mut definition: Value = serde_saphyr::from_str(&text).unwrap();
    assert!(remove_field(&mut definition, "exposeDecision"));
    std::fs::write(&path, definition.to_string()).unwrap();
    older
}

fn properties(definition: &mut Value) -> &mut serde_json::Map<String, Value> {
    let schema = &mut definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    schema["properties"]["spec"]["properties"].as_object_mut().unwrap()
}

fn remove_field(definition: &mut Value, field: &str) -> bool {
    properties(definition).remove(field).is_some()
}

async fn knows_field(definitions: &Api<CustomResourceDefinition>) -> bool {
    let definition = definitions.get(DEFINITION).await.unwrap();
    properties(&mut serde_json::to_value(definition).unwrap()).contains_key("exposeDecision")
}

#[tokio::test]
#[ignore = "needs an API server: cargo xtask test --only kubernetes"]
async fn a_new_definition_comes_by_the_documented_command_and_no_gateway_is_lost() {
    // Of its own: the definition is one for the whole cluster.
    let plane = ControlPlane::start(&[]).await;
    let namespace = Namespace::new(&plane).await;
    let definitions: Api<CustomResourceDefinition> = Api::all(namespace.client.clone());
    let folder = tempfile::tempdir().unwrap();
    let helm = Helm::new(&namespace.name, &namespace.kubeconfig);
    let values = json!({ "controller": { "watchNamespace": namespace.name } });
    helm.put("install", &older_chart(folder.path()), &values);
    assert!(!knows_field(&definitions).await);
    let gateways = api(
        &namespace.client,
        &namespace.name,
        ("gateway.wicketgate.dev", "v1alpha1", "InferenceGatewayConfig"),
    );
    let gateway = json!({
        "apiVersion": "gateway.wicketgate.dev/v1alpha1",
        "kind": "InferenceGatewayConfig",
        "metadata": { "name": "lab" },
        "spec": { "schedulers": [{
            "name": "chat", "modelName": "m", "modelSelector": { "matchLabels": { "app": "m" } },
        }] },
    });
    let gateway = serde_json::from_value(gateway).unwrap();
    let made = gateways.create(&PostParams::default(), &gateway).await.unwrap();

    // Helm leaves definitions alone.
    helm.put("upgrade", &chart(), &values);
    assert!(!knows_field(&definitions).await);

    // kubectl apply --server-side --force-conflicts -f charts/wicketgate/crds/
    let path = chart().join(format!("crds/{DEFINITION}.yaml"));
    let text = std::fs::read_to_string(path).unwrap();
    let definition: Value = serde_saphyr::from_str(&text).unwrap();
    let parameters = PatchParams::apply("kubectl").force();
    definitions.patch(DEFINITION, &parameters, &Patch::Apply(&definition)).await.unwrap();
    assert!(knows_field(&definitions).await);
    let uid = |metadata: ObjectMeta| metadata.uid;
    assert_eq!(uid(gateways.get("lab").await.unwrap().metadata), uid(made.metadata.clone()));
    // The new field is served at once.
    let patch = Patch::Merge(json!({ "spec": { "exposeDecision": true } }));
    until("the new field is kept", async || {
        let patched = gateways.patch("lab", &PatchParams::default(), &patch).await.unwrap();
        patched.data["spec"]["exposeDecision"] == true
    })
    .await;

    // Gateways outlive the release that came with their definition, and nothing holds them back when they go.
    helm.uninstall();
    let lab = gateways.get("lab").await.unwrap();
    assert_eq!(lab.metadata.finalizers, None);
    definitions.delete(DEFINITION, &Default::default()).await.unwrap();
    until("the definition is gone", async || {
        definitions.get_opt(DEFINITION).await.unwrap().is_none()
    })
    .await;
}

#[tokio::test]
#[ignore = "needs an API server: cargo xtask test --only kubernetes"]
async fn who_may_nothing_installs_nothing_and_is_told_what_is_forbidden() {
    let plane = shared().await;
    let namespace = Namespace::new(plane).await;
    let access = Access { user: Some("nobody"), ..Access::default() };
    let helm = Helm::new(&namespace.name, &plane.kubeconfig(access, &namespace.name));
    let values = values(&namespace.name, 2, "llama");
    let refused = helm.try_put("install", &chart(), &values).unwrap_err();
    assert!(refused.contains("forbidden"), "{refused}");
    assert_eq!(present(&namespace).await, [""; 0]);
}
