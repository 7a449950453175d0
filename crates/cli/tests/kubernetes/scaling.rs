//! Autoscaling: the objects that `wicketgate autoscale` prints, and a pool that comes back from zero.

use std::process::Command;
use std::time::Duration;

use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use crate::control_plane::{root, shared};
use crate::gateway::{BINARY, Gateway};
use crate::http::ask;
use crate::igwc::{apply, objects, spec};
use crate::kubelet::{IMAGE, Kubelet};
use crate::namespace::Namespace;

#[tokio::test]
#[ignore = "needs an API server: cargo xtask test --only kubernetes"]
async fn an_autoscaler_that_is_printed_is_taken() {
    let namespace = Namespace::new(shared().await).await;
    let example = root().join("docs/examples/aws-manifest.yaml");
    let printed = Command::new(BINARY)
        .args(["autoscale", "--scheduler", "chat", "--scaler", "hpa", "--target", "llama", "-f"])
        .arg(example)
        .output()
        .unwrap();
    assert!(printed.status.success(), "{}", String::from_utf8_lossy(&printed.stderr));
    let mut object: Value =
        serde_saphyr::from_str(&String::from_utf8(printed.stdout).unwrap()).unwrap();
    object["metadata"].as_object_mut().unwrap().remove("namespace");
    let api = objects(&namespace, "autoscaling/v2", "HorizontalPodAutoscaler");
    let parameters = PatchParams::apply("tests").validation_strict().force();
    let taken = api.patch("llama", &parameters, &Patch::Apply(&object)).await.unwrap();
    assert_eq!(taken.data["spec"]["metrics"][0]["external"]["target"]["averageValue"], "700m");
}

#[tokio::test]
#[ignore = "needs an API server: cargo xtask test --only kubernetes"]
async fn a_request_for_a_pool_at_zero_waits_for_its_first_pod() {
    let plane = shared().await;
    let namespace = Namespace::new(plane).await;
    let _kubelet = Kubelet::start(&namespace);
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
    namespace
        .apply(json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "llama" },
            "spec": {
                "replicas": 0,
                "selector": { "matchLabels": { "app": "llama" } },
                "template": {
                    "metadata": { "labels": { "app": "llama" } },
                    "spec": {
                        "terminationGracePeriodSeconds": 1,
                        "containers": [{
                            "name": "engine", "image": IMAGE, "args": args,
                            "readinessProbe": { "httpGet": { "path": "/health", "port": 8000 } },
                        }],
                    },
                },
            },
        }))
        .await;
    let mut document = spec();
    document["flowControl"] = json!({});
    apply(&namespace, "lab", document).await;
    let kubeconfig = namespace.kubeconfig.display().to_string();
    let any = "127.0.0.1:0";
    let arguments =
        ["--resource", "lab", "--kubeconfig", &kubeconfig, "--listen", any, "--admin", any];
    let gateway = Gateway::start("serve", &arguments, tempfile::tempdir().unwrap()).await;
    // Ready without an endpoint, else no request could come in.
    gateway.until("it is ready", async || gateway.admin("/readyz").await.status == 200).await;
    let body = json!({
        "model": "llama-3.1-8b", "messages": [{ "role": "user", "content": "Hello" }], "max_tokens": 2,
    })
    .to_string();
    let asked = ask(gateway.traffic, "POST", "/v1/chat/completions", &[], body.as_bytes());
    let scaling = async {
        // The signal that an autoscaler sees.
        gateway
            .until("it waits", async || {
                gateway.metric("wicketgate_flow_queue_requests", &["pool=\"chat\""]).await >= 1.0
            })
            .await;
        let one = Patch::Merge(json!({ "spec": { "replicas": 1 } }));
        let deployments = objects(&namespace, "apps/v1", "Deployment");
        deployments.patch("llama", &PatchParams::default(), &one).await.unwrap();
    };
    let both = async { tokio::join!(asked, scaling) };
    let (answer, ()) = tokio::time::timeout(Duration::from_secs(50), both).await.unwrap();
    assert_eq!(answer.status, 200, "{}", answer.text());
}
