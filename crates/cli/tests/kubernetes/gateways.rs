//! `wicketgate serve --gateway`: a Gateway of the Gateway API, whose routes lead to pools.

use kube::api::PostParams;
use serde_json::{Value, json};

use crate::control_plane::shared;
use crate::gateway::Gateway;
use crate::http::{Answer, ask};
use crate::kubelet::{IMAGE, Kubelet};
use crate::namespace::{Namespace, status, until};

const API: &str = "gateway.networking.k8s.io/v1";
const MODEL: &str = "llama-3.1-8b";

/// A Gateway `gate` with a class of its own, one listener for any host and routes of all namespaces.
async fn apply_gateway(namespace: &Namespace) -> Value {
    namespace
        .apply_to_cluster(json!({
            "apiVersion": API,
            "kind": "GatewayClass",
            "metadata": { "name": namespace.name },
            "spec": { "controllerName": "wicketgate.dev/gateway" },
        }))
        .await;
    let gateway = json!({
        "apiVersion": API,
        "kind": "Gateway",
        "metadata": { "name": "gate" },
        "spec": {
            "gatewayClassName": namespace.name,
            "listeners": [{
                "name": "http",
                "port": 80,
                "protocol": "HTTP",
                "allowedRoutes": { "namespaces": { "from": "All" } },
            }],
        },
    });
    namespace.apply(gateway.clone()).await;
    gateway
}

async fn serve(namespace: &Namespace) -> Gateway {
    let kubeconfig = namespace.kubeconfig.display().to_string();
    let flags = ["--kubeconfig", &kubeconfig, "--gateway", "gate", "--gateway-address", "10.9.9.9"];
    Gateway::unready_with_flags(&flags).await
}

fn pool(name: &str) -> Value {
    json!({
        "apiVersion": "inference.networking.k8s.io/v1",
        "kind": "InferencePool",
        "metadata": { "name": name },
        "spec": {
            "selector": { "matchLabels": { "app": name } },
            "targetPorts": [{ "number": 8000 }],
            // This version of the definition asks for one: the gateway's own.
            "endpointPickerRef": { "group": "gateway.wicketgate.dev", "kind": "Picker", "name": "built-in" },
        },
    })
}

fn route(name: &str, gateway: &Namespace, rules: Value) -> Value {
    json!({
        "apiVersion": API,
        "kind": "HTTPRoute",
        "metadata": { "name": name },
        "spec": { "parentRefs": [{ "name": "gate", "namespace": gateway.name }], "rules": rules },
    })
}

fn backend(pool: &str) -> Value {
    json!({ "group": "inference.networking.k8s.io", "kind": "InferencePool", "name": pool })
}

/// A pod of the pool `app` with a simulated engine that answers at once.
async fn run_engine(namespace: &Namespace, app: &str) {
    let args =
        ["sim", "--host", "$(POD_IP)", "--port", "8000", "--model", MODEL, "--time-scale", "0.01"];
    let pod = json!({
        "metadata": { "name": app, "labels": { "app": app } },
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

async fn chat(gateway: &Gateway, headers: &[(&str, &str)]) -> Answer {
    let body = json!({
        "model": MODEL, "messages": [{ "role": "user", "content": "Hello" }], "max_tokens": 2,
    });
    let body = body.to_string();
    ask(gateway.traffic, "POST", "/v1/chat/completions", headers, body.as_bytes()).await
}

async fn get(gateway: &Gateway, path: &str) -> Answer {
    ask(gateway.traffic, "GET", path, &[], b"").await
}

/// `TYPE=STATUS REASON` of the conditions at each of its parents.
async fn parents(namespace: &Namespace, object: &Value) -> Vec<Vec<String>> {
    let now = namespace.read(object).await;
    let parents = now["status"]["parents"].as_array().cloned().unwrap_or_default();
    let ours = parents.iter().filter(|one| one["controllerName"] == "wicketgate.dev/gateway");
    ours.map(|parent| text(&parent["conditions"])).collect()
}

fn text(conditions: &Value) -> Vec<String> {
    let text = |one: &Value| {
        let part = |field: &str| one[field].as_str().unwrap().to_owned();
        format!("{}={} {}", part("type"), part("status"), part("reason"))
    };
    conditions.as_array().into_iter().flatten().map(text).collect()
}

async fn have_parents(namespace: &Namespace, object: &Value, expected: &[[&str; 2]]) {
    let what = format!("{} has the parents {expected:?}", object["metadata"]["name"]);
    until(&what, async || parents(namespace, object).await == expected).await;
}

const ACCEPTED: [&str; 2] = ["Accepted=True Accepted", "ResolvedRefs=True ResolvedRefs"];

#[tokio::test]
#[ignore = "needs an API server: cargo xtask test --only kubernetes"]
async fn requests_follow_routes_to_pools() {
    let namespace = Namespace::new(shared().await).await;
    let _kubelet = Kubelet::start(&namespace);
    apply_gateway(&namespace).await;
    for name in ["one", "two"] {
        run_engine(&namespace, name).await;
        namespace.apply(pool(name)).await;
    }
    let rules = json!([
        { "matches": [{ "path": { "type": "PathPrefix", "value": "/v1" } }], "backendRefs": [backend("one")] },
        {
            "matches": [{
                "path": { "type": "PathPrefix", "value": "/v1" },
                "headers": [{ "name": "X-Team", "value": "red" }],
            }],
            "backendRefs": [backend("two")],
        },
        { "matches": [{ "path": { "type": "Exact", "value": "/health" } }], "backendRefs": [backend("two")] },
    ]);
    let gateway = serve(&namespace).await;
    gateway.said("pods are endpoints").await;
    assert_eq!(get(&gateway, "/health").await.status, 404, "no route leads anywhere yet");
    namespace.apply(route("r", &namespace, rules)).await;
    gateway.until("it is served", async || chat(&gateway, &[]).await.status == 200).await;
    let endpoint_of = async |name: &str| {
        let pod = namespace.pods().get(name).await.unwrap();
        format!("{}:8000", pod.status.unwrap().pod_ip.unwrap())
    };
    for (id, headers, pool) in [("first", None, "one"), ("second", Some(("x-team", "red")), "two")]
    {
        let headers: Vec<_> = headers.into_iter().chain([("x-request-id", id)]).collect();
        assert_eq!(chat(&gateway, &headers).await.status, 200);
        assert_eq!(gateway.logged(id).await["endpoint"], endpoint_of(pool).await);
    }
    // A path of no API that we know passes as well, without a body.
    assert_eq!(get(&gateway, "/health").await.status, 200);
    let nowhere = get(&gateway, "/metrics").await;
    assert_eq!((nowhere.status, nowhere.code()), (404, "route_not_found".to_owned()));
}

#[tokio::test]
#[ignore = "needs an API server: cargo xtask test --only kubernetes"]
async fn gateways_routes_and_pools_are_told_how_they_stand() {
    let namespace = Namespace::new(shared().await).await;
    let object = apply_gateway(&namespace).await;
    namespace.apply(pool("one")).await;
    namespace.make_pod("a", "one", status("10.1.0.1", true)).await;
    let _gateway = serve(&namespace).await;
    let read = async || namespace.read(&object).await["status"].clone();
    let conditions = ["Accepted=True Accepted", "Programmed=True Programmed"];
    until("the gateway is programmed", async || text(&read().await["conditions"]) == conditions)
        .await;
    assert_eq!(read().await["addresses"], json!([{ "type": "IPAddress", "value": "10.9.9.9" }]));
    let good = route("good", &namespace, json!([{ "backendRefs": [backend("one")] }]));
    let lost = route("lost", &namespace, json!([{ "backendRefs": [backend("gone")] }]));
    for route in [&good, &lost] {
        namespace.apply(route.clone()).await;
    }
    have_parents(&namespace, &good, &[ACCEPTED]).await;
    have_parents(&namespace, &pool("one"), &[ACCEPTED]).await;
    let unresolved = ["Accepted=True Accepted", "ResolvedRefs=False BackendNotFound"];
    have_parents(&namespace, &lost, &[unresolved]).await;
    until("both are attached", async || read().await["listeners"][0]["attachedRoutes"] == 2).await;
    let mut foreign = pool("foreign");
    foreign["spec"]["endpointPickerRef"] = json!({ "name": "epp", "port": { "number": 9002 } });
    namespace.apply(foreign.clone()).await;
    let theirs = route("theirs", &namespace, json!([{ "backendRefs": [backend("foreign")] }]));
    namespace.apply(theirs.clone()).await;
    let unsupported =
        ["Accepted=False NotSupportedByParent", "ResolvedRefs=False InvalidExtensionRef"];
    have_parents(&namespace, &foreign, &[unsupported]).await;
    namespace.delete(&theirs).await;
    let version = namespace.read(&good).await["metadata"]["resourceVersion"].clone();
    namespace.delete(&lost).await;
    until("one is attached", async || read().await["listeners"][0]["attachedRoutes"] == 1).await;
    let now = namespace.read(&good).await["metadata"]["resourceVersion"].clone();
    assert_eq!(now, version, "nothing is written where nothing changes");
    namespace.delete(&good).await;
    have_parents(&namespace, &pool("one"), &[]).await;
}

#[tokio::test]
#[ignore = "needs an API server: cargo xtask test --only kubernetes"]
async fn a_pool_of_another_namespace_is_used_only_where_a_grant_says_so() {
    let plane = shared().await;
    let (gate, models) = (Namespace::new(plane).await, Namespace::new(plane).await);
    let _kubelet = Kubelet::start(&models);
    apply_gateway(&gate).await;
    run_engine(&models, "one").await;
    models.apply(pool("one")).await;
    let gateway = serve(&gate).await;
    let mut backend = backend("one");
    backend["namespace"] = json!(models.name);
    let route = route("r", &gate, json!([{ "backendRefs": [backend] }]));
    gate.apply(route.clone()).await;
    let refused = ["Accepted=True Accepted", "ResolvedRefs=False RefNotPermitted"];
    have_parents(&gate, &route, &[refused]).await;
    gateway.until("the route is known", async || chat(&gateway, &[]).await.status == 500).await;
    let grant = json!({
        "apiVersion": "gateway.networking.k8s.io/v1beta1",
        "kind": "ReferenceGrant",
        "metadata": { "name": "grant" },
        "spec": {
            "from": [{ "group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "namespace": gate.name }],
            "to": [{ "group": "inference.networking.k8s.io", "kind": "InferencePool" }],
        },
    });
    models.apply(grant.clone()).await;
    gateway.until("it is served", async || chat(&gateway, &[]).await.status == 200).await;
    have_parents(&gate, &route, &[ACCEPTED]).await;
    models.delete(&grant).await;
    gateway.until("it is refused", async || chat(&gateway, &[]).await.status == 500).await;
}
