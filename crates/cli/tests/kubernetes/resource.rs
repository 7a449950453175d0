//! `wicketgate serve --resource`: the document comes from the cluster.

use serde_json::{Value, json};

use crate::control_plane::shared;
use crate::gateway::Gateway;
use crate::http::ask;
use crate::igwc::{apply, change, delete, spec};
use crate::namespace::{Namespace, status};

async fn gateway(namespace: &Namespace) -> Gateway {
    let kubeconfig = namespace.kubeconfig.display().to_string();
    let any = "127.0.0.1:0";
    let arguments =
        ["--resource", "lab", "--kubeconfig", &kubeconfig, "--listen", any, "--admin", any];
    Gateway::start("serve", &arguments, tempfile::tempdir().unwrap()).await
}

/// Names that clients can ask for, sorted.
async fn models(gateway: &Gateway) -> Vec<String> {
    let answer = ask(gateway.traffic, "GET", "/v1/models", &[], b"").await;
    let list = answer.json();
    let names = list["data"].as_array().into_iter().flatten();
    let mut names: Vec<_> =
        names.filter_map(|model| Some(model["id"].as_str()?.to_owned())).collect();
    names.sort();
    names
}

async fn serves(gateway: &Gateway, expected: &[&str]) {
    let what = format!("the models are {expected:?}");
    gateway.until(&what, async || models(gateway).await == expected).await;
}

async fn adapters(namespace: &Namespace, name: &str, label: &str, list: &str) {
    namespace
        .apply(json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": { "name": name, "labels": { label: "true" } },
            "data": { "baseModel": "llama-3.1-8b", "adapters": list },
        }))
        .await;
}

fn scheduler(more: Value) -> Value {
    let mut scheduler = spec()["schedulers"][0].clone();
    for (key, value) in more.as_object().unwrap() {
        scheduler[key] = value.clone();
    }
    json!({ "schedulers": [scheduler] })
}

#[tokio::test]
#[ignore = "needs an API server: cargo xtask test --only kubernetes"]
async fn a_resource_is_the_document_and_its_changes_are_followed() {
    let namespace = Namespace::new(shared().await).await;
    namespace.make_pod("a", "llama", status("10.1.0.1", true)).await;
    apply(&namespace, "lab", spec()).await;
    let gateway = gateway(&namespace).await;
    serves(&gateway, &["llama-3.1-8b"]).await;
    gateway.until("its pod is found", async || gateway.endpoints().await.len() == 1).await;
    change(&namespace, "lab", scheduler(json!({ "loraAdapters": ["sql"] }))).await;
    serves(&gateway, &["llama-3.1-8b", "sql"]).await;
    // Deleted, its last document stays in force: the process is ended by whoever runs it.
    delete(&namespace, config::ApiGroup::Wicketgate, "lab").await;
    gateway.said("the resource is gone").await;
    serves(&gateway, &["llama-3.1-8b", "sql"]).await;
}

#[tokio::test]
#[ignore = "needs an API server: cargo xtask test --only kubernetes"]
async fn a_broken_resource_leaves_the_old_document_in_force_and_says_so() {
    let namespace = Namespace::new(shared().await).await;
    namespace.make_pod("a", "llama", status("10.1.0.1", true)).await;
    apply(&namespace, "lab", spec()).await;
    let gateway = gateway(&namespace).await;
    serves(&gateway, &["llama-3.1-8b"]).await;
    change(&namespace, "lab", scheduler(json!({ "loraAdapters": ["llama-3.1-8b"] }))).await;
    gateway.said("the changed document is not valid; the old one stays in force").await;
    gateway.said("InvalidLoraAdapters").await;
    serves(&gateway, &["llama-3.1-8b"]).await;
    let rejected = "wicketgate_config_reloads_total";
    assert!(gateway.metric(rejected, &["rejected"]).await >= 1.0);
    change(&namespace, "lab", scheduler(json!({ "loraAdapters": ["sql"] }))).await;
    serves(&gateway, &["llama-3.1-8b", "sql"]).await;
}

#[tokio::test]
#[ignore = "needs an API server: cargo xtask test --only kubernetes"]
async fn adapters_of_config_maps_come_and_go_with_them() {
    let namespace = Namespace::new(shared().await).await;
    namespace.make_pod("a", "llama", status("10.1.0.1", true)).await;
    apply(&namespace, "lab", spec()).await;
    adapters(&namespace, "old", "inference.networking.k8s.io/bbr-managed", "- de").await;
    let gateway = gateway(&namespace).await;
    serves(&gateway, &["de", "llama-3.1-8b"]).await;
    adapters(&namespace, "new", "inference.llm-d.ai/ipp-managed", "- fr\n- it").await;
    serves(&gateway, &["de", "fr", "it", "llama-3.1-8b"]).await;
    adapters(&namespace, "new", "inference.llm-d.ai/ipp-managed", "- fr").await;
    serves(&gateway, &["de", "fr", "llama-3.1-8b"]).await;
    let maps: kube::Api<k8s_openapi::api::core::v1::ConfigMap> =
        kube::Api::namespaced(namespace.client.clone(), &namespace.name);
    maps.delete("old", &kube::api::DeleteParams::default()).await.unwrap();
    serves(&gateway, &["fr", "llama-3.1-8b"]).await;
}

#[tokio::test]
#[ignore = "needs an API server: cargo xtask test --only kubernetes"]
async fn a_pickers_document_is_read_from_the_map_that_the_resource_names() {
    let namespace = Namespace::new(shared().await).await;
    namespace.make_pod("a", "llama", status("10.1.0.1", true)).await;
    apply(&namespace, "lab", spec()).await;
    let gateway = gateway(&namespace).await;
    serves(&gateway, &["llama-3.1-8b"]).await;
    let scorers = async || {
        let settings = gateway.admin("/debug/settings").await.json();
        let scorers = settings["pools"][0]["scorers"].as_array().cloned().unwrap_or_default();
        scorers.iter().filter_map(|one| one["name"].as_str().map(str::to_owned)).collect::<Vec<_>>()
    };
    assert_eq!(scorers().await, ["expected-time"]);
    // It names a map that is not there yet.
    change(&namespace, "lab", scheduler(json!({ "configMapRef": { "name": "own" } }))).await;
    gateway.said("there is no ConfigMap `own`").await;
    let document = "apiVersion: inference.networking.x-k8s.io/v1alpha1\nkind: EndpointPickerConfig\n\
                    plugins: [{ type: queue-scorer }, { type: max-score-picker }]\n\
                    schedulingProfiles: [{ name: default, plugins: [{ pluginRef: queue-scorer, weight: 1 }, { pluginRef: max-score-picker }] }]\n";
    namespace
        .apply(json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "own" },
            "data": { "default-plugins.yaml": document },
        }))
        .await;
    gateway.until("the map decides", async || scorers().await == ["queue"]).await;
}
