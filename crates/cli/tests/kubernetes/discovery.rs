//! `wicketgate serve` with a `modelSelector`: pods are its endpoints.

use std::path::Path;
use std::time::Duration;

use kube::api::{Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::cable::Cable;
use crate::control_plane::{Access, ControlPlane, root, shared};
use crate::gateway::{Gateway, PATIENCE};
use crate::helm::template;
use crate::http::ask;
use crate::kubelet::{ADDRESS, IMAGE, Kubelet, next_address};
use crate::namespace::{Namespace, status, until};

/// One model, made of the pods with the label `app: llama`.
fn document() -> Value {
    json!({
        "apiVersion": "gateway.wicketgate.dev/v1alpha1",
        "kind": "InferenceGatewayConfig",
        "metadata": { "name": "test" },
        "spec": {
            "schedulers": [{
                "name": "chat", "modelName": "llama-3.1-8b", "modelSelector": { "matchLabels": { "app": "llama" } },
            }],
            "listener": { "address": "127.0.0.1:0" },
            "admin": { "address": "127.0.0.1:0" },
            "scrape": { "busyInterval": "20ms", "idleInterval": "40ms" },
            "timeouts": { "drainDelay": "0s" },
        },
    })
}

async fn gateway(namespace: &Namespace) -> Gateway {
    gateway_with(&namespace.kubeconfig).await
}

async fn gateway_with(kubeconfig: &Path) -> Gateway {
    let kubeconfig = kubeconfig.display().to_string();
    Gateway::with_document(&document(), &["--kubeconfig", &kubeconfig]).await
}

/// A gateway whose way to the API server can be cut.
async fn gateway_on_cable(plane: &ControlPlane, namespace: &Namespace) -> (Gateway, Cable) {
    let cable = Cable::to(plane.address()).await;
    let access = Access { address: Some(cable.address), ..Access::default() };
    (gateway_with(&plane.kubeconfig(access, &namespace.name)).await, cable)
}

/// `host:port` of each endpoint, sorted.
async fn endpoints(gateway: &Gateway) -> Vec<String> {
    let endpoints = gateway.endpoints().await;
    let name = |endpoint: &Value| endpoint["endpoint"].as_str().unwrap().to_owned();
    let mut names: Vec<_> = endpoints.iter().map(name).collect();
    names.sort();
    names
}

async fn has(gateway: &Gateway, expected: &[&str]) {
    let what = format!("the endpoints are {expected:?}");
    gateway.until(&what, async || endpoints(gateway).await == expected).await;
}

/// A pod with a simulated engine that answers at once.
fn engine(name: &str) -> Value {
    let args = [
        "sim",
        "--host",
        "$(POD_IP)",
        "--port",
        "8000",
        "--model",
        "llama-3.1-8b",
        "--time-scale",
        "0.01",
    ];
    json!({
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
    })
}

async fn run(namespace: &Namespace, pod: Value) {
    let pod = serde_json::from_value(pod).unwrap();
    namespace.pods().create(&PostParams::default(), &pod).await.unwrap();
}

/// An engine at this address that belongs to no pool: the pods that stand for it are made by hand.
async fn run_apart(namespace: &Namespace, address: &str) {
    let mut pod = engine(&format!("engine-{}", address.replace('.', "-")));
    pod["metadata"]["annotations"] = json!({ ADDRESS: address });
    pod["metadata"]["labels"] = json!({ "app": "none" });
    run(namespace, pod).await;
}

/// A chat's status, and the endpoint that answered it by the access log.
async fn chat(gateway: &Gateway, id: &str) -> (u16, String) {
    let body = json!({
        "model": "llama-3.1-8b", "messages": [{ "role": "user", "content": "Hello" }], "max_tokens": 2,
    });
    let headers = [("x-request-id", id)];
    let body = body.to_string();
    let answer =
        ask(gateway.traffic, "POST", "/v1/chat/completions", &headers, body.as_bytes()).await;
    let line = gateway.logged(id).await;
    (answer.status, line["endpoint"].as_str().unwrap_or_default().to_owned())
}

#[tokio::test]
#[ignore = "needs an API server: cargo xtask test --only kubernetes"]
async fn pods_that_match_and_are_ready_serve_and_no_others() {
    let namespace = Namespace::new(shared().await).await;
    namespace.make_pod("a", "llama", status("10.1.0.1", true)).await;
    namespace.make_pod("b", "llama", status("10.1.0.2", false)).await;
    namespace.make_pod("c", "qwen", status("10.1.0.3", true)).await;
    let gateway = gateway(&namespace).await;
    has(&gateway, &["10.1.0.1:8000"]).await;
    namespace.set_status("b", status("10.1.0.2", true)).await;
    has(&gateway, &["10.1.0.1:8000", "10.1.0.2:8000"]).await;
    namespace.set_status("a", status("10.1.0.1", false)).await;
    has(&gateway, &["10.1.0.2:8000"]).await;
    let labels = Patch::Merge(json!({ "metadata": { "labels": { "app": "llama" } } }));
    namespace.pods().patch("c", &PatchParams::default(), &labels).await.unwrap();
    has(&gateway, &["10.1.0.2:8000", "10.1.0.3:8000"]).await;
}

#[tokio::test]
#[ignore = "needs an API server: cargo xtask test --only kubernetes"]
async fn a_gateway_without_pods_is_not_ready_and_becomes_it_with_the_first() {
    let namespace = Namespace::new(shared().await).await;
    let gateway = gateway(&namespace).await;
    gateway.said("pods are endpoints").await;
    assert_eq!(gateway.admin("/readyz").await.status, 503);
    namespace.make_pod("a", "llama", status("10.1.0.1", true)).await;
    gateway.until("it is ready", async || gateway.admin("/readyz").await.status == 200).await;
}

#[tokio::test]
#[ignore = "needs an API server: cargo xtask test --only kubernetes"]
async fn requests_reach_pods_and_an_ending_one_gets_nothing_new() {
    let namespace = Namespace::new(shared().await).await;
    let _kubelet = Kubelet::start(&namespace);
    let [gone, stays] = [(); 2].map(|()| next_address().to_string());
    for (name, address) in [("a", &gone), ("b", &stays)] {
        // The engine is no part of the pod here, so it goes on answering when the pod ends.
        run_apart(&namespace, address).await;
        namespace.make_pod(name, "llama", status(address, true)).await;
    }
    let gateway = gateway(&namespace).await;
    gateway.scraped(2).await;
    assert_eq!(chat(&gateway, "before").await.0, 200);
    namespace.end_pod("a").await;
    has(&gateway, &[&format!("{stays}:8000")]).await;
    for n in 0..20 {
        let (status, endpoint) = chat(&gateway, &format!("after-{n}")).await;
        assert_eq!((status, endpoint), (200, format!("{stays}:8000")));
    }
    let ending = namespace.pods().get("a").await.unwrap();
    assert!(ending.metadata.deletion_timestamp.is_some(), "it was there all the while");
}

#[tokio::test]
#[ignore = "needs an API server: cargo xtask test --only kubernetes"]
async fn a_rolling_replacement_of_all_pods_loses_no_request() {
    let namespace = Namespace::new(shared().await).await;
    let _kubelet = Kubelet::start(&namespace);
    for name in ["old-1", "old-2"] {
        run(&namespace, engine(name)).await;
    }
    let gateway = gateway(&namespace).await;
    gateway.scraped(2).await;
    let rolling = async {
        for n in 1..=2 {
            let (old, new) = (format!("old-{n}"), format!("new-{n}"));
            run(&namespace, engine(&new)).await;
            until("the new pod is ready", async || {
                let pod = namespace.pods().get(&new).await.unwrap();
                let conditions =
                    pod.status.and_then(|status| status.conditions).unwrap_or_default();
                conditions.iter().any(|one| one.type_ == "Ready" && one.status == "True")
            })
            .await;
            namespace.end_pod(&old).await;
            let gone = async || namespace.pods().get_opt(&old).await.unwrap().is_none();
            until("the old pod is gone", gone).await;
        }
    };
    let asking = async {
        for n in 0_u32.. {
            assert_eq!(
                chat(&gateway, &format!("request-{n}")).await.0,
                200,
                "{}",
                gateway.stderr()
            );
        }
    };
    tokio::select! {
        () = rolling => {}
        () = asking => {}
    }
    assert_eq!(chat(&gateway, "last").await.0, 200);
}

#[tokio::test]
#[ignore = "needs an API server: cargo xtask test --only kubernetes"]
async fn a_pod_that_says_ready_before_its_engine_listens_heals_by_itself() {
    let namespace = Namespace::new(shared().await).await;
    let address = next_address().to_string();
    // Ready as soon as it has an address, as a pod without a probe is; nobody listens yet.
    namespace.make_pod("slow", "llama", status(&address, true)).await;
    let gateway = gateway(&namespace).await;
    has(&gateway, &[&format!("{address}:8000")]).await;
    let (status, _) = chat(&gateway, "too-early").await;
    assert!(matches!(status, 502 | 503), "{status}");
    let _kubelet = Kubelet::start(&namespace);
    run_apart(&namespace, &address).await;
    let mut n = 0;
    gateway
        .until("it serves", async || {
            n += 1;
            chat(&gateway, &format!("again-{n}")).await.0 == 200
        })
        .await;
}

#[tokio::test]
#[ignore = "needs an API server: cargo xtask test --only kubernetes"]
async fn another_pod_with_the_address_of_a_dead_one_is_a_new_endpoint() {
    let namespace = Namespace::new(shared().await).await;
    // Nobody listens there, so that its failures are counted.
    let address = next_address().to_string();
    namespace.make_pod("a", "llama", status(&address, true)).await;
    let gateway = gateway(&namespace).await;
    let failures = async || {
        let endpoints = gateway.endpoints().await;
        endpoints.first().and_then(|endpoint| endpoint["scrape_failures"].as_u64())
    };
    gateway.until("failures were counted", async || failures().await >= Some(5)).await;
    namespace.remove_pod("a").await;
    namespace.make_pod("a", "llama", status(&address, true)).await;
    // What was counted against the old one is not held against the new one.
    let is_new = async || failures().await.is_some_and(|count| count < 5);
    gateway.until("it begins with nothing", is_new).await;
}

#[tokio::test]
#[ignore = "needs an API server: cargo xtask test --only kubernetes"]
async fn traffic_goes_on_while_the_api_server_is_away_and_news_come_afterwards() {
    let plane = shared().await;
    let namespace = Namespace::new(plane).await;
    let _kubelet = Kubelet::start(&namespace);
    run(&namespace, engine("a")).await;
    let (gateway, cable) = gateway_on_cable(plane, &namespace).await;
    gateway.scraped(1).await;
    cable.cut();
    gateway.said("the Kubernetes API cannot be watched").await;
    namespace.make_pod("b", "llama", status("10.1.0.2", true)).await;
    for n in 0..5 {
        assert_eq!(chat(&gateway, &format!("away-{n}")).await.0, 200);
    }
    assert_eq!(endpoints(&gateway).await.len(), 1, "nobody could tell of the other");
    assert!(gateway.metric("wicketgate_kubernetes_watch_failures_total", &[]).await > 0.0);
    cable.mend();
    gateway.until("the new pod is seen", async || endpoints(&gateway).await.len() == 2).await;
}

#[tokio::test]
#[ignore = "needs an API server: cargo xtask test --only kubernetes"]
async fn a_watch_whose_version_is_gone_lists_anew() {
    // Without its cache the server answers from the store, which forgets what it is told to forget.
    let plane = ControlPlane::start(&["--watch-cache=false"]).await;
    let namespace = Namespace::new(&plane).await;
    namespace.make_pod("a", "llama", status("10.1.0.1", true)).await;
    namespace.make_pod("b", "llama", status("10.1.0.2", true)).await;
    let (gateway, cable) = gateway_on_cable(&plane, &namespace).await;
    has(&gateway, &["10.1.0.1:8000", "10.1.0.2:8000"]).await;
    cable.cut();
    namespace.remove_pod("a").await;
    let last = namespace.make_pod("c", "llama", status("10.1.0.3", true)).await;
    forget_history(&plane, last.metadata.resource_version.as_deref().unwrap()).await;
    cable.mend();
    has(&gateway, &["10.1.0.2:8000", "10.1.0.3:8000"]).await;
}

/// Has the store drop all versions before this one.
async fn forget_history(plane: &ControlPlane, version: &str) {
    let body = json!({ "revision": version, "physical": true }).to_string();
    let answer = ask(plane.etcd(), "POST", "/v3/kv/compaction", &[], body.as_bytes());
    assert_eq!(timeout(PATIENCE, answer).await.unwrap().status, 200);
}

#[tokio::test]
#[ignore = "needs an API server: cargo xtask test --only kubernetes"]
async fn a_changed_document_is_followed_with_the_pods_that_are_known() {
    let namespace = Namespace::new(shared().await).await;
    namespace.make_pod("a", "llama", status("10.1.0.1", true)).await;
    namespace.make_pod("b", "qwen", status("10.1.0.2", true)).await;
    let gateway = gateway(&namespace).await;
    has(&gateway, &["10.1.0.1:8000"]).await;
    let mut changed = document();
    changed["spec"]["schedulers"][0]["modelSelector"]["matchLabels"]["app"] = json!("qwen");
    changed["spec"]["schedulers"][0]["targetPort"] = json!(9000);
    gateway.rewrite(&changed.to_string());
    has(&gateway, &["10.1.0.2:9000"]).await;
}

#[tokio::test]
#[ignore = "needs an API server: cargo xtask test --only kubernetes"]
async fn a_selector_without_a_cluster_is_warned_of_and_with_one_is_not() {
    let namespace = Namespace::new(shared().await).await;
    let with = gateway(&namespace).await;
    with.said("pods are endpoints").await;
    assert!(!with.stderr().contains("a selector finds pods only"), "{}", with.stderr());
    let without = Gateway::with_document(&document(), &[]).await;
    without.said("a selector finds pods only").await;
}

#[tokio::test]
#[ignore = "needs an API server: cargo xtask test --only kubernetes"]
async fn the_rights_of_the_example_suffice_and_each_is_needed() {
    let text = std::fs::read_to_string(root().join("docs/examples/kubernetes/serve.yaml")).unwrap();
    each_right_is_needed(|_| serde_saphyr::from_multiple(&text).unwrap()).await;
}

#[tokio::test]
#[ignore = "needs an API server: cargo xtask test --only kubernetes"]
async fn the_rights_of_the_charts_gateway_suffice_and_each_is_needed() {
    let values = json!({
        "controller": { "enabled": false },
        "gateway": { "enabled": true, "spec": document()["spec"].as_object().map(|spec| json!({
            "schedulers": spec["schedulers"],
        })) },
    });
    each_right_is_needed(|namespace| template(&values, namespace)).await;
}

/// A gateway works with the role `wicketgate` of these objects, and with none that lacks one verb of one resource.
async fn each_right_is_needed(objects: impl FnOnce(&str) -> Vec<Value>) {
    let plane = shared().await;
    let namespace = Namespace::new(plane).await;
    let objects = objects(&namespace.name);
    for object in &objects {
        namespace.apply(object.clone()).await;
    }
    namespace.make_pod("a", "llama", status("10.1.0.1", true)).await;
    let user = format!("system:serviceaccount:{}:wicketgate", namespace.name);
    let access = Access { user: Some(&user), ..Access::default() };
    let kubeconfig = plane.kubeconfig(access, &namespace.name);
    let allowed = gateway_with(&kubeconfig).await;
    has(&allowed, &["10.1.0.1:8000"]).await;
    let [role] =
        *objects.iter().filter(|object| object["kind"] == "Role").collect::<Vec<_>>().as_slice()
    else {
        panic!("one role");
    };
    let lesser = without_one_right(role);
    assert!(!lesser.is_empty());
    for role in lesser {
        namespace.apply(role).await;
        let gateway = gateway_with(&kubeconfig).await;
        gateway.said("the Kubernetes API cannot be watched").await;
        gateway.said("forbidden").await;
    }
}

/// The role once without each verb of each resource.
fn without_one_right(role: &Value) -> Vec<Value> {
    let mut lesser = Vec::new();
    for (at, rule) in role["rules"].as_array().unwrap().iter().enumerate() {
        let list = |key: &str| rule[key].as_array().unwrap().clone();
        for resource in list("resources") {
            for verb in list("verbs") {
                let mut one = role.clone();
                let rules = one["rules"].as_array_mut().unwrap();
                let other = |all: Vec<Value>, gone: &Value| -> Vec<Value> {
                    all.into_iter().filter(|entry| entry != gone).collect()
                };
                // The resource with all other verbs, and all other resources as they were.
                let mut narrowed = rule.clone();
                narrowed["resources"] = json!([&resource]);
                narrowed["verbs"] = json!(other(list("verbs"), &verb));
                rules[at]["resources"] = json!(other(list("resources"), &resource));
                rules.push(narrowed);
                let is_whole =
                    |rule: &Value| ["resources", "verbs"].iter().all(|key| rule[key] != json!([]));
                rules.retain(is_whole);
                lesser.push(one);
            }
        }
    }
    lesser
}

/// Prints how long a pod that is told to end stays an endpoint: `--nocapture`, in a build for release.
#[tokio::test]
#[ignore = "a measurement: cargo test --release -p wicketgate --test kubernetes -- --ignored --nocapture measured"]
async fn measured_time_until_an_ending_pod_has_left() {
    let namespace = Namespace::new(shared().await).await;
    let gateway = gateway(&namespace).await;
    let mut times: Vec<Duration> = Vec::new();
    for n in 1..=50 {
        let (name, ip) = (format!("pod-{n}"), format!("10.1.0.{n}"));
        namespace.make_pod(&name, "llama", status(&ip, true)).await;
        has(&gateway, &[&format!("{ip}:8000")]).await;
        let told = tokio::time::Instant::now();
        namespace.end_pod(&name).await;
        has(&gateway, &[]).await;
        times.push(told.elapsed());
        namespace.remove_pod(&name).await;
    }
    times.sort();
    eprintln!("from the deletion to the catalog: median {:?}, longest {:?}", times[25], times[49]);
}
