//! `wicketgate serve --pool` and `epp --pool`: resources of the Inference Extension say what is served.

use std::path::Path;

use kube::api::PostParams;
use serde_json::{Value, json};

use crate::cable::Cable;
use crate::control_plane::{Access, LEGACY_REWRITES, root, shared};
use crate::gateway::Gateway;
use crate::http::{Answer, ask};
use crate::kubelet::{IMAGE, Kubelet};
use crate::namespace::{Namespace, status, until};

const LLM_D: &str = "llm-d.ai/v1alpha2";
const LEGACY: &str = "inference.networking.x-k8s.io/v1alpha2";
const MODEL: &str = "llama-3.1-8b";

/// The pods with the label `app: NAME`, on these ports.
fn pool(name: &str, ports: &[u16]) -> Value {
    let ports: Vec<_> = ports.iter().map(|number| json!({ "number": number })).collect();
    json!({
        "apiVersion": "inference.networking.k8s.io/v1",
        "kind": "InferencePool",
        "metadata": { "name": name },
        "spec": {
            "selector": { "matchLabels": { "app": name } },
            "targetPorts": ports,
            // What serves the pool is its picker, whatever this says.
            "endpointPickerRef": { "name": "picker", "port": { "number": 9002 } },
        },
    })
}

fn objective(group: &str, name: &str, pool: &str, priority: i32) -> Value {
    json!({
        "apiVersion": group,
        "kind": "InferenceObjective",
        "metadata": { "name": name },
        "spec": { "priority": priority, "poolRef": { "name": pool } },
    })
}

/// All requests for `model` get the target.
fn rewrite(group: &str, name: &str, model: &str, target: &str) -> Value {
    json!({
        "apiVersion": group,
        "kind": "InferenceModelRewrite",
        "metadata": { "name": name },
        "spec": {
            "poolRef": { "name": "llama" },
            "rules": [{
                "matches": [{ "model": { "value": model } }],
                "targets": [{ "modelRewrite": target }],
            }],
        },
    })
}

/// A pod of the pool `llama` with a simulated engine that answers at once.
async fn run_engine(namespace: &Namespace, name: &str) {
    let args =
        ["sim", "--host", "$(POD_IP)", "--port", "8000", "--model", MODEL, "--time-scale", "0.01"];
    let pod = json!({
        "metadata": { "name": name, "labels": { "app": "llama" } },
        "spec": {
            "nodeName": "node",
            "terminationGracePeriodSeconds": 1,
            "containers": [{
                "name": "engine",
                "image": IMAGE,
                "args": args,
                "readinessProbe": { "httpGet": { "path": "/health", "port": 8000 } },
            }],
        },
    });
    let pod = serde_json::from_value(pod).unwrap();
    namespace.pods().create(&PostParams::default(), &pod).await.unwrap();
}

/// A gateway that has no document at all.
async fn serve(kubeconfig: &Path, pools: &[&str]) -> Gateway {
    let kubeconfig = kubeconfig.display().to_string();
    let mut arguments = vec!["--kubeconfig", &kubeconfig];
    for pool in pools {
        arguments.extend(["--pool", pool]);
    }
    Gateway::unready_with_flags(&arguments).await
}

async fn has(gateway: &Gateway, expected: &[&str]) {
    let what = format!("the endpoints are {expected:?}");
    let endpoints = async || {
        let endpoints = gateway.endpoints().await;
        let name = |endpoint: &Value| endpoint["endpoint"].as_str().unwrap().to_owned();
        let mut names: Vec<_> = endpoints.iter().map(name).collect();
        names.sort();
        names
    };
    gateway.until(&what, async || endpoints().await == expected).await;
}

async fn chat_with(gateway: &Gateway, model: &str, headers: &[(&str, &str)]) -> Answer {
    let body = json!({
        "model": model, "messages": [{ "role": "user", "content": "Hello" }], "max_tokens": 2,
    });
    let body = body.to_string();
    ask(gateway.traffic, "POST", "/v1/chat/completions", headers, body.as_bytes()).await
}

async fn chat(gateway: &Gateway, model: &str) -> Answer {
    chat_with(gateway, model, &[]).await
}

/// The condition `Accepted` of a resource: its status and its reason; empty while there is none.
async fn accepted(namespace: &Namespace, object: &Value) -> [String; 2] {
    let now = namespace.read(object).await;
    let conditions = now["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let found = conditions.iter().find(|one| one["type"] == "Accepted");
    if let Some(condition) = found {
        assert_eq!(condition["observedGeneration"], now["metadata"]["generation"]);
    }
    ["status", "reason"]
        .map(|field| found.and_then(|one| one[field].as_str()).unwrap_or_default().to_owned())
}

async fn is_told(namespace: &Namespace, object: &Value, expected: [&str; 2]) {
    let what = format!("{} is {expected:?}", object["metadata"]["name"]);
    until(&what, async || accepted(namespace, object).await == expected).await;
}

#[tokio::test]
#[ignore = "needs an API server: cargo xtask test --only kubernetes"]
async fn a_pool_with_its_rewrites_is_served_without_a_document_and_while_the_api_server_is_away() {
    let plane = shared().await;
    let namespace = Namespace::new(plane).await;
    let _kubelet = Kubelet::start(&namespace);
    namespace.apply(pool("llama", &[8000])).await;
    run_engine(&namespace, "a").await;
    let cable = Cable::to(plane.address()).await;
    let access = Access { address: Some(cable.address), ..Access::default() };
    let gateway = serve(&plane.kubeconfig(access, &namespace.name), &["llama"]).await;
    gateway.scraped(1).await;
    gateway.until("the model is known", async || chat(&gateway, MODEL).await.status == 200).await;
    // What the endpoint does not know is for it to say, as behind the field's picker.
    assert_ne!(chat(&gateway, "food-review").await.status, 200);
    namespace.apply(rewrite(LLM_D, "canary", "food-review", MODEL)).await;
    let is_served = async || chat(&gateway, "food-review").await.status == 200;
    gateway.until("the alias is served", is_served).await;
    let answer = chat(&gateway, "food-review").await;
    assert_eq!(answer.json()["model"], "food-review", "clients see the name that they wrote");
    cable.cut();
    gateway.said("the Kubernetes API cannot be watched").await;
    for model in [MODEL, "food-review"] {
        assert_eq!(chat(&gateway, model).await.status, 200, "{}", gateway.stderr());
    }
}

#[tokio::test]
#[ignore = "needs an API server: cargo xtask test --only kubernetes"]
async fn a_pool_is_followed_when_it_comes_changes_and_goes() {
    let namespace = Namespace::new(shared().await).await;
    namespace.make_pod("a", "llama", status("10.1.0.1", true)).await;
    namespace.make_pod("b", "qwen", status("10.1.0.2", true)).await;
    let gateway = serve(&namespace.kubeconfig, &["llama"]).await;
    gateway.said("pods are endpoints").await;
    assert_eq!(gateway.admin("/readyz").await.status, 503, "there is no such pool yet");
    namespace.apply(pool("qwen", &[8000])).await;
    namespace.apply(pool("llama", &[8000, 8001])).await;
    // Of the pool that was named and no other; each port is an endpoint.
    has(&gateway, &["10.1.0.1:8000", "10.1.0.1:8001"]).await;
    assert_eq!(gateway.admin("/readyz").await.status, 200);
    let mut changed = pool("llama", &[9000]);
    changed["spec"]["selector"]["matchLabels"]["app"] = json!("qwen");
    namespace.apply(changed.clone()).await;
    has(&gateway, &["10.1.0.2:9000"]).await;
    namespace.delete(&changed).await;
    has(&gateway, &[]).await;
}

#[tokio::test]
#[ignore = "needs an API server: cargo xtask test --only kubernetes"]
async fn pools_of_two_namespaces_are_served_side_by_side() {
    let plane = shared().await;
    let (near, far) = (Namespace::new(plane).await, Namespace::new(plane).await);
    near.apply(pool("llama", &[8000])).await;
    far.apply(pool("llama", &[9000])).await;
    near.make_pod("a", "llama", status("10.1.0.1", true)).await;
    far.make_pod("a", "llama", status("10.1.0.2", true)).await;
    let other = format!("{}/llama", far.name);
    let gateway = serve(&near.kubeconfig, &["llama", &other]).await;
    has(&gateway, &["10.1.0.1:8000", "10.1.0.2:9000"]).await;
    let pools: Vec<String> = gateway
        .endpoints()
        .await
        .iter()
        .filter_map(|endpoint| endpoint["pool"].as_str().map(str::to_owned))
        .collect();
    assert_eq!(pools, ["llama".to_owned(), other]);
    far.end_pod("a").await;
    has(&gateway, &["10.1.0.1:8000"]).await;
}

#[tokio::test]
#[ignore = "needs an API server: cargo xtask test --only kubernetes"]
async fn objectives_of_both_groups_hold_and_are_told_so() {
    let namespace = Namespace::new(shared().await).await;
    let _kubelet = Kubelet::start(&namespace);
    run_engine(&namespace, "a").await;
    namespace.apply(pool("llama", &[8000])).await;
    let document = json!({
        "apiVersion": "gateway.wicketgate.dev/v1alpha1",
        "kind": "InferenceGatewayConfig",
        "metadata": { "name": "test" },
        "spec": {
            "flowControl": {},
            "listener": { "address": "127.0.0.1:0" },
            "admin": { "address": "127.0.0.1:0" },
            "scrape": { "busyInterval": "20ms", "idleInterval": "40ms" },
        },
    });
    let kubeconfig = namespace.kubeconfig.display().to_string();
    let flags = ["--kubeconfig", &kubeconfig, "--pool", "llama"];
    let gateway = Gateway::with_document(&document, &flags).await;
    gateway.scraped(1).await;
    // The gateway says so in its answer where a request names an objective that it does not have.
    let is_known = async |name: &str| {
        let answer = chat_with(&gateway, MODEL, &[("x-llm-d-inference-objective", name)]).await;
        answer.status == 200 && answer.header("x-wicketgate-warning").is_none()
    };
    gateway.until("chats are answered", async || chat(&gateway, MODEL).await.status == 200).await;
    assert!(!is_known("fast").await && !is_known("batch").await);
    let [fast, batch] =
        [objective(LLM_D, "fast", "llama", 100), objective(LEGACY, "batch", "llama", -10)];
    let twin = objective(LEGACY, "fast", "llama", 1);
    let other = objective(LLM_D, "other", "qwen", 1);
    for object in [&fast, &batch, &twin, &other] {
        namespace.apply(object.clone()).await;
    }
    gateway.until("both hold", async || is_known("fast").await && is_known("batch").await).await;
    is_told(&namespace, &fast, ["True", "Accepted"]).await;
    is_told(&namespace, &batch, ["True", "Accepted"]).await;
    is_told(&namespace, &twin, ["False", "Conflicted"]).await;
    assert!(!is_known("other").await);
    // Whoever serves the other pool tells it.
    assert_eq!(accepted(&namespace, &other).await, ["", ""]);
    let version = namespace.read(&fast).await["metadata"]["resourceVersion"].clone();
    namespace.delete(&twin).await;
    let stray = objective(LLM_D, "stray", "llama", 1);
    namespace.apply(stray.clone()).await;
    is_told(&namespace, &stray, ["True", "Accepted"]).await;
    let now = namespace.read(&fast).await["metadata"]["resourceVersion"].clone();
    assert_eq!(now, version, "nothing is written where nothing changes");
    namespace.delete(&pool("llama", &[8000])).await;
    is_told(&namespace, &fast, ["False", "PoolNotFound"]).await;
}

#[tokio::test]
#[ignore = "needs an API server: cargo xtask test --only kubernetes"]
async fn a_kind_that_the_cluster_gets_later_counts_from_then_on() {
    let plane = shared().await;
    let namespace = Namespace::new(plane).await;
    let _kubelet = Kubelet::start(&namespace);
    run_engine(&namespace, "a").await;
    namespace.apply(pool("llama", &[8000])).await;
    let gateway = serve(&namespace.kubeconfig, &["llama"]).await;
    gateway.scraped(1).await;
    plane.install(LEGACY_REWRITES).await;
    let old = rewrite(LEGACY, "old", "alias", MODEL);
    namespace.apply(old.clone()).await;
    let is_served = async || chat(&gateway, "alias").await.status == 200;
    gateway.until("the alias is served", is_served).await;
    is_told(&namespace, &old, ["True", "Accepted"]).await;
}

#[tokio::test]
#[ignore = "needs an API server: cargo xtask test --only kubernetes"]
async fn the_endpoint_picker_serves_a_pool_by_the_fields_own_flags() {
    let namespace = Namespace::new(shared().await).await;
    namespace.apply(pool("llama", &[8000])).await;
    namespace.make_pod("a", "llama", status("10.1.0.1", true)).await;
    let kubeconfig = namespace.kubeconfig.display().to_string();
    let flags = ["--kubeconfig", &kubeconfig, "--pool-name", "llama"];
    let flags = [&flags[..], &["--pool-namespace", &namespace.name]].concat();
    let picker = Gateway::picker(&[], &flags).await;
    has(&picker, &["10.1.0.1:8000"]).await;
}

#[tokio::test]
#[ignore = "needs an API server: cargo xtask test --only kubernetes"]
async fn the_rights_of_the_pool_example_suffice_and_statuses_are_a_right_of_their_own() {
    let plane = shared().await;
    let namespace = Namespace::new(plane).await;
    let text = std::fs::read_to_string(root().join("docs/examples/kubernetes/pool.yaml")).unwrap();
    let objects: Vec<Value> = serde_saphyr::from_multiple(&text).unwrap();
    for object in &objects {
        namespace.apply(object.clone()).await;
    }
    let fast = objects.iter().find(|object| object["kind"] == "InferenceObjective").unwrap();
    namespace.make_pod("a", "llama-3-1-8b", status("10.1.0.1", true)).await;
    let user = format!("system:serviceaccount:{}:wicketgate", namespace.name);
    let access = Access { user: Some(&user), ..Access::default() };
    let kubeconfig = plane.kubeconfig(access, &namespace.name);
    let gateway = serve(&kubeconfig, &["llama"]).await;
    has(&gateway, &["10.1.0.1:8000"]).await;
    is_told(&namespace, fast, ["True", "Accepted"]).await;
    assert!(!gateway.stderr().contains("forbidden"), "{}", gateway.stderr());
    // Without the right to write statuses everything else goes on.
    let role = objects.iter().find(|object| object["kind"] == "Role").unwrap();
    let mut narrow = role.clone();
    let rules = narrow["rules"].as_array_mut().unwrap();
    rules.retain(|rule| rule["verbs"] != json!(["patch"]));
    assert!(rules.len() < role["rules"].as_array().unwrap().len());
    namespace.apply(narrow).await;
    let mut changed = fast.clone();
    changed["spec"]["priority"] = json!(7);
    namespace.apply(changed).await;
    gateway.said("statuses of resources are not written").await;
    namespace.make_pod("b", "llama-3-1-8b", status("10.1.0.2", true)).await;
    has(&gateway, &["10.1.0.1:8000", "10.1.0.2:8000"]).await;
}
