//! `wicketgate controller`: resources become gateways that serve.

use std::net::SocketAddr;

use config::ApiGroup;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use crate::cable::Cable;
use crate::control_plane::{Access, root, shared};
use crate::http::ask;
use crate::igwc::{
    self, MADE, apply, change, condition, delete, gateways, has, objects, spec, versions,
};
use crate::kubelet::{IMAGE, Kubelet};
use crate::namespace::{Namespace, status, until};
use crate::process::Controller;

/// A pod with a simulated engine.
async fn engine(namespace: &Namespace, name: &str, app: &str, more: &[&str]) {
    let mut args = vec!["sim", "--host", "$(POD_IP)", "--port", "8000", "--time-scale", "0.01"];
    args.extend(more);
    let pod = json!({
        "metadata": { "name": name, "labels": { "app": app } },
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

/// Where the gateways' pods take requests.
async fn doors(namespace: &Namespace, gateway: &str) -> Vec<SocketAddr> {
    let label = format!("gateway.wicketgate.dev/gateway={gateway}");
    let pods = namespace.pods().list(&ListParams::default().labels(&label)).await.unwrap();
    let ready = pods.items.into_iter().filter_map(|pod| {
        let status = pod.status?;
        let conditions = status.conditions.unwrap_or_default();
        let is_ready = conditions.iter().any(|one| one.type_ == "Ready" && one.status == "True");
        is_ready.then(|| SocketAddr::new(status.pod_ip.unwrap().parse().unwrap(), 8080))
    });
    ready.collect()
}

async fn chat(at: SocketAddr, model: &str) -> (u16, String) {
    let body = json!({
        "model": model, "messages": [{ "role": "user", "content": "Hello" }], "max_tokens": 2,
    });
    let answer = ask(at, "POST", "/v1/chat/completions", &[], body.to_string().as_bytes()).await;
    (answer.status, answer.text())
}

/// Names that clients can ask for.
async fn models(at: SocketAddr) -> Vec<String> {
    let list = ask(at, "GET", "/v1/models", &[], b"").await.json();
    let models = list["data"].as_array().into_iter().flatten();
    models.filter_map(|model| Some(model["id"].as_str()?.to_owned())).collect()
}

/// Nothing of the gateway is there any more.
async fn is_gone(namespace: &Namespace, gateway: &str) {
    let name = format!("{gateway}-gateway");
    for (version, kind) in MADE {
        let api = objects(namespace, version, kind);
        until(&format!("{kind} {name} is gone"), async || {
            api.get_opt(&name).await.unwrap().is_none()
        })
        .await;
    }
    let label = format!("gateway.wicketgate.dev/gateway={gateway}");
    until("the gateway's pods are gone", async || {
        let pods = namespace.pods().list(&ListParams::default().labels(&label)).await.unwrap();
        pods.items.is_empty()
    })
    .await;
}

/// The reference's manifest, save `auth`: its identity provider is not there, and without its keys a gateway is not
/// ready, in AWS's as in ours.
fn aws_manifest() -> Value {
    let text = std::fs::read_to_string(root().join("docs/examples/aws-manifest.yaml")).unwrap();
    let mut manifest: Value = serde_saphyr::from_str(&text).unwrap();
    manifest["metadata"].as_object_mut().unwrap().remove("namespace");
    manifest["spec"].as_object_mut().unwrap().remove("auth");
    manifest["spec"]["bbr"]["replicas"] = json!(1);
    manifest
}

#[tokio::test]
#[ignore = "needs an API server: cargo xtask test --only kubernetes"]
async fn a_manifest_of_awss_becomes_a_gateway_that_answers_and_leaves_nothing_when_it_is_deleted() {
    let plane = shared().await;
    let namespace = Namespace::new(plane).await;
    let _kubelet = Kubelet::with_accounts(plane, &namespace);
    let _controller = Controller::start(&namespace);
    namespace
        .apply(json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "batch-epp" },
            "data": { "default-plugins.yaml": config::DEFAULT_PICKER_DOCUMENT },
        }))
        .await;
    namespace.apply(aws_manifest()).await;
    let resource = async || gateways(&namespace, ApiGroup::Aws).get("team-llm").await.unwrap();
    let status = async || resource().await.data["status"].clone();
    let scheduler = async |at: usize, kind: &str| igwc::of(&status().await["schedulers"][at], kind);
    until("it is accepted", async || igwc::of(&status().await, "Accepted") == "True/Accepted")
        .await;
    until("its pools are empty", async || {
        scheduler(0, "BackendsReady").await == "False/NoModelPods"
    })
    .await;
    assert!(igwc::of(&status().await, "Ready").starts_with("False/"));

    engine(&namespace, "chat", "chat-70b", &["--model", "org/chat-70b", "--lora", "support-de"])
        .await;
    engine(&namespace, "batch", "batch-a", &["--engine", "sglang", "--model", "org/batch-8b"])
        .await;
    until("it is ready", async || igwc::of(&status().await, "Ready") == "True/Ready").await;
    let told = status().await;
    assert_eq!(told["readyEndpoints"], 2);
    assert_eq!(told["observedGeneration"], json!(resource().await.metadata.generation));
    assert_eq!(told["schedulers"][0]["currentScheduler"], "llm-d");
    assert_eq!(told["schedulers"][1]["currentScheduler"], "epp");
    assert_eq!(told["address"], format!("http://team-llm-gateway.{}.svc", namespace.name));

    let doors = doors(&namespace, "team-llm").await;
    for model in ["org/chat-70b", "support-de", "org/batch-8b"] {
        let (code, body) = chat(doors[0], model).await;
        assert_eq!(code, 200, "{model}: {body}");
    }
    assert_eq!(chat(doors[0], "org/none").await.0, 404);

    delete(&namespace, ApiGroup::Aws, "team-llm").await;
    is_gone(&namespace, "team-llm").await;
    let left = namespace.pods().list(&ListParams::default()).await.unwrap();
    assert_eq!(left.items.len(), 2, "the models' own pods stay");
}

#[tokio::test]
#[ignore = "needs an API server: cargo xtask test --only kubernetes"]
async fn a_changed_resource_reaches_running_gateways_and_a_broken_one_does_not() {
    let plane = shared().await;
    let namespace = Namespace::new(plane).await;
    let _kubelet = Kubelet::with_accounts(plane, &namespace);
    let _controller = Controller::start(&namespace);
    engine(&namespace, "a", "llama", &["--model", "llama-3.1-8b"]).await;
    apply(&namespace, "lab", spec()).await;
    has(&namespace, "lab", "Ready", "True/Ready").await;
    let door = doors(&namespace, "lab").await[0];
    let before = namespace.pods().list(&ListParams::default()).await.unwrap().items.len();

    let renamed = json!([{ "name": "chat", "modelName": "other", "modelSelector": { "matchLabels": { "app": "llama" } } }]);
    change(&namespace, "lab", json!({ "schedulers": renamed })).await;
    until("the new name is served", async || models(door).await == ["other"]).await;

    // The API server cannot know that these two collide.
    let colliding = json!([{
        "name": "chat", "modelName": "other", "loraAdapters": ["other"],
        "modelSelector": { "matchLabels": { "app": "llama" } },
    }]);
    change(&namespace, "lab", json!({ "schedulers": colliding })).await;
    has(&namespace, "lab", "Accepted", "False/InvalidLoraAdapters").await;
    assert_eq!(condition(&namespace, "lab", "Ready").await, "Unknown/NotAccepted");
    assert_eq!(models(door).await, ["other"], "what was valid last stays in force");
    let after = namespace.pods().list(&ListParams::default()).await.unwrap().items.len();
    assert_eq!(before, after, "no pod was replaced");

    // This is read once, at the start.
    let mended = json!({ "schedulers": renamed, "prefixIndex": { "blockTokens": 64 } });
    change(&namespace, "lab", mended).await;
    until("the pods were replaced", async || {
        let now = doors(&namespace, "lab").await;
        !now.contains(&door) && now.len() == 2
    })
    .await;
}

#[tokio::test]
#[ignore = "needs an API server: cargo xtask test --only kubernetes"]
async fn pods_that_come_and_go_are_told_in_the_status_and_in_events() {
    let plane = shared().await;
    let namespace = Namespace::new(plane).await;
    let _kubelet = Kubelet::with_accounts(plane, &namespace);
    let _controller = Controller::start(&namespace);
    apply(&namespace, "lab", spec()).await;
    let scheduler = async |kind: &str| {
        let resource = gateways(&namespace, ApiGroup::Wicketgate).get("lab").await.unwrap();
        igwc::of(&resource.data["status"]["schedulers"][0], kind)
    };
    let backends = async |expected: &str| {
        until(expected, async || scheduler("BackendsReady").await == expected).await;
    };
    backends("False/NoModelPods").await;
    namespace.make_pod("b", "llama", status("10.1.0.1", false)).await;
    backends("False/NoReadyModelPods").await;
    namespace.set_status("b", status("10.1.0.1", true)).await;
    backends("True/Ready").await;
    has(&namespace, "lab", "Ready", "True/Ready").await;
    namespace.end_pod("b").await;
    backends("False/NoReadyModelPods").await;
    namespace.remove_pod("b").await;
    backends("False/NoModelPods").await;
    let events = objects(&namespace, "events.k8s.io/v1", "Event");
    until("events tell of it", async || {
        let events = events.list(&ListParams::default()).await.unwrap();
        let of_gateway = events.items.iter().filter(|one| one.data["regarding"]["name"] == "lab");
        let reasons: Vec<_> = of_gateway.map(|one| one.data["reason"].clone()).collect();
        ["Accepted", "Ready"].iter().all(|reason| reasons.contains(&json!(reason)))
    })
    .await;
}

#[tokio::test]
#[ignore = "needs an API server: cargo xtask test --only kubernetes"]
async fn of_two_controllers_one_acts_and_the_other_takes_over() {
    let namespace = Namespace::new(shared().await).await;
    let start = || {
        Controller::start_with(&namespace.kubeconfig, &namespace.name, &["--lease-duration", "6s"])
    };
    let mut first = start();
    first.says("leading").await;
    let mut second = start();
    second.says("waiting to lead").await;
    apply(&namespace, "one", spec()).await;
    has(&namespace, "one", "Accepted", "True/Accepted").await;
    assert!(!second.said().contains("leading"), "{}", second.said());

    // Killed, it cannot give the lease back.
    first.end("KILL").await;
    apply(&namespace, "two", spec()).await;
    has(&namespace, "two", "Accepted", "True/Accepted").await;
    assert!(second.said().contains("leading"), "{}", second.said());

    let third = start();
    third.says("waiting to lead").await;
    second.end("TERM").await;
    third.says("leading").await;
    let leases = objects(&namespace, "coordination.k8s.io/v1", "Lease");
    let lease = leases.get("wicketgate-controller").await.unwrap();
    assert_eq!(lease.data["spec"]["leaseTransitions"], 2);
}

#[tokio::test]
#[ignore = "needs an API server: cargo xtask test --only kubernetes"]
async fn nothing_is_written_when_nothing_changes() {
    let namespace = Namespace::new(shared().await).await;
    namespace.make_pod("a", "llama", status("10.1.0.1", true)).await;
    let mut controller = Controller::start(&namespace);
    apply(&namespace, "lab", spec()).await;
    // Nobody runs the gateway's pods, so nothing goes on by itself.
    until("its pods are seen", async || {
        let resource = gateways(&namespace, ApiGroup::Wicketgate).get("lab").await.unwrap();
        let scheduler = &resource.data["status"]["schedulers"][0];
        igwc::of(scheduler, "EPPReady") == "False/Progressing"
            && scheduler["rolloutState"] == "Progressing"
    })
    .await;
    let before = versions(&namespace, "lab").await;
    // News that change nothing for this gateway; the last of them is answered, so all were taken in.
    namespace.make_pod("stranger", "qwen", status("10.1.0.2", true)).await;
    namespace.set_status("a", status("10.1.0.1", true)).await;
    apply(&namespace, "marker-1", spec()).await;
    has(&namespace, "marker-1", "Accepted", "True/Accepted").await;
    assert_eq!(versions(&namespace, "lab").await, before);
    // Another leader writes everything once, and that changes nothing either.
    controller.end("TERM").await;
    let _again = Controller::start(&namespace);
    apply(&namespace, "marker-2", spec()).await;
    has(&namespace, "marker-2", "Accepted", "True/Accepted").await;
    assert_eq!(versions(&namespace, "lab").await, before);
}

#[tokio::test]
#[ignore = "needs an API server: cargo xtask test --only kubernetes"]
async fn what_somebody_changes_or_removes_is_put_right() {
    let namespace = Namespace::new(shared().await).await;
    let _controller = Controller::start(&namespace);
    apply(&namespace, "lab", spec()).await;
    for (version, kind) in MADE {
        let api = objects(&namespace, version, kind);
        until(kind, async || api.get_opt("lab-gateway").await.unwrap().is_some()).await;
    }
    let roles = objects(&namespace, "rbac.authorization.k8s.io/v1", "Role");
    let rules = roles.get("lab-gateway").await.unwrap().data["rules"].clone();
    let none = Patch::Merge(json!({ "rules": [] }));
    roles.patch("lab-gateway", &PatchParams::default(), &none).await.unwrap();
    until("the rules are back", async || {
        roles.get("lab-gateway").await.unwrap().data["rules"] == rules
    })
    .await;
    let services = objects(&namespace, "v1", "Service");
    services.delete("lab-gateway", &DeleteParams::default()).await.unwrap();
    until("the Service is back", async || services.get_opt("lab-gateway").await.unwrap().is_some())
        .await;
    // What others add to objects of ours stays.
    let label = Patch::Merge(json!({ "metadata": { "labels": { "team": "llm" } } }));
    services.patch("lab-gateway", &PatchParams::default(), &label).await.unwrap();
    change(&namespace, "lab", json!({ "bbr": { "replicas": 3 } })).await;
    let deployments = objects(&namespace, "apps/v1", "Deployment");
    until("the change is there", async || {
        deployments.get("lab-gateway").await.unwrap().data["spec"]["replicas"] == 3
    })
    .await;
    let labels = services.get("lab-gateway").await.unwrap().metadata.labels.unwrap();
    assert_eq!(labels["team"], "llm");
}

#[tokio::test]
#[ignore = "needs an API server: cargo xtask test --only kubernetes"]
async fn an_object_of_somebody_elses_is_left_alone_and_told() {
    let namespace = Namespace::new(shared().await).await;
    namespace
        .apply(json!({
            "apiVersion": "v1", "kind": "Service", "metadata": { "name": "lab-gateway" },
            "spec": { "ports": [{ "port": 1234 }] },
        }))
        .await;
    let _controller = Controller::start(&namespace);
    apply(&namespace, "lab", spec()).await;
    has(&namespace, "lab", "GatewayProgrammed", "False/NotApplied").await;
    let services = objects(&namespace, "v1", "Service");
    assert_eq!(services.get("lab-gateway").await.unwrap().data["spec"]["ports"][0]["port"], 1234);
    services.delete("lab-gateway", &DeleteParams::default()).await.unwrap();
    until("it is made once there is room", async || {
        let service = services.get_opt("lab-gateway").await.unwrap();
        service.is_some_and(|service| service.data["spec"]["ports"][0]["port"] == 80)
    })
    .await;
}

#[tokio::test]
#[ignore = "needs an API server: cargo xtask test --only kubernetes"]
async fn what_happened_while_the_api_server_was_away_is_made_up_for() {
    let plane = shared().await;
    let namespace = Namespace::new(plane).await;
    let cable = Cable::to(plane.address()).await;
    let access = Access { address: Some(cable.address), ..Access::default() };
    let kubeconfig = plane.kubeconfig(access, &namespace.name);
    // A lease that outlives the outage: without one it would end, and be started again by its cluster.
    let controller =
        Controller::start_with(&kubeconfig, &namespace.name, &["--lease-duration", "600s"]);
    apply(&namespace, "gone", spec()).await;
    has(&namespace, "gone", "Accepted", "True/Accepted").await;
    cable.cut();
    controller.says("cannot be watched").await;
    delete(&namespace, ApiGroup::Wicketgate, "gone").await;
    apply(&namespace, "new", spec()).await;
    cable.mend();
    has(&namespace, "new", "Accepted", "True/Accepted").await;
    is_gone(&namespace, "gone").await;
}

#[tokio::test]
#[ignore = "needs an API server: cargo xtask test --only kubernetes"]
async fn two_groups_with_one_name_do_not_fight_over_objects() {
    let namespace = Namespace::new(shared().await).await;
    let _controller = Controller::start(&namespace);
    apply(&namespace, "team-llm", spec()).await;
    namespace.apply(aws_manifest()).await;
    let of_aws = async |kind: &str| {
        let resource = gateways(&namespace, ApiGroup::Aws).get("team-llm").await.unwrap();
        igwc::of(&resource.data["status"], kind)
    };
    until("the second is refused", async || {
        of_aws("Accepted").await == "False/ResourceNamingViolation"
    })
    .await;
    has(&namespace, "team-llm", "Accepted", "True/Accepted").await;
    delete(&namespace, ApiGroup::Wicketgate, "team-llm").await;
    until("the second has room", async || of_aws("Accepted").await == "True/Accepted").await;
}
