//! `kubectl wicketgate`: the binary under the plugin's name.
//!
//! There is no container runtime here, so a kubelet's part of port forwarding is a stand-in: it speaks what the API
//! server and a kubelet speak (WebSocket, `v4.channel.k8s.io`) and connects to a gateway of the test.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use futures_util::{SinkExt, StreamExt};
use k8s_openapi::api::core::v1::Node;
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use rcgen::CertifiedKey;
use rustls::pki_types::PrivatePkcs8KeyDer;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::server::{Request, Response};

use crate::control_plane::{Access, shared};
use crate::gateway::{BINARY, Gateway, document};
use crate::namespace::{Namespace, status};

const PROTOCOL: &str = "v4.channel.k8s.io";

/// Forwards each port of each pod of a node to one address, until dropped.
struct Forwarding {
    _task: JoinSet<()>,
}

impl Forwarding {
    /// Makes the node, whose kubelet this is.
    async fn start(namespace: &Namespace, node: &str, target: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let nodes: Api<Node> = Api::all(namespace.client.clone());
        let object = serde_json::from_value(json!({ "metadata": { "name": node } })).unwrap();
        nodes.create(&PostParams::default(), &object).await.unwrap();
        let reached = json!({ "status": {
            "addresses": [{ "type": "InternalIP", "address": "127.0.0.1" }],
            "daemonEndpoints": { "kubeletEndpoint": { "Port": port } },
        } });
        let parameters = PatchParams::default();
        nodes.patch_status(node, &parameters, &Patch::Merge(reached)).await.unwrap();
        let mut task = JoinSet::new();
        task.spawn(async move {
            let acceptor = acceptor();
            let mut connections = JoinSet::new();
            while let Ok((io, _)) = listener.accept().await {
                let acceptor = acceptor.clone();
                connections.spawn(async move {
                    if let Ok(io) = acceptor.accept(io).await {
                        forward(io, target).await;
                    }
                });
            }
        });
        Self { _task: task }
    }
}

fn acceptor() -> TlsAcceptor {
    let names = ["127.0.0.1".to_owned()];
    let CertifiedKey { cert, signing_key } = rcgen::generate_simple_self_signed(names).unwrap();
    let key = PrivatePkcs8KeyDer::from(signing_key.serialize_der());
    let config = rustls::ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(vec![cert.der().clone()], key.into());
    TlsAcceptor::from(Arc::new(config.unwrap()))
}

/// One connection to a port: channel 0 has its bytes, channel 1 errors; each begins with the port's number.
async fn forward(io: TlsStream<TcpStream>, target: SocketAddr) {
    let mut port = 0_u16;
    #[expect(clippy::result_large_err, reason = "the library's own type")]
    let agree = |request: &Request, mut response: Response| {
        let query = request.uri().query().unwrap_or_default();
        port = query.rsplit('=').next().and_then(|port| port.parse().ok()).unwrap_or_default();
        response.headers_mut().insert("sec-websocket-protocol", PROTOCOL.parse().unwrap());
        Ok(response)
    };
    let Ok(socket) = tokio_tungstenite::accept_hdr_async(io, agree).await else { return };
    let (mut to_caller, mut from_caller) = socket.split();
    for channel in [0_u8, 1] {
        let [low, high] = port.to_le_bytes();
        let first = Message::Binary(vec![channel, low, high].into());
        if to_caller.send(first).await.is_err() {
            return;
        }
    }
    let Ok(upstream) = TcpStream::connect(target).await else { return };
    let (mut from_pod, mut to_pod) = upstream.into_split();
    let upwards = async {
        while let Some(Ok(message)) = from_caller.next().await {
            if let Message::Binary(bytes) = message
                && bytes.first() == Some(&0)
                && to_pod.write_all(&bytes[1..]).await.is_err()
            {
                return;
            }
        }
    };
    let downwards = async {
        let mut buffer = vec![0; 16 << 10];
        while let Ok(read @ 1..) = from_pod.read(&mut buffer).await {
            let mut bytes = vec![0];
            bytes.extend_from_slice(&buffer[..read]);
            if to_caller.send(Message::Binary(bytes.into())).await.is_err() {
                return;
            }
        }
        let _ = to_caller.close().await;
    };
    tokio::select! {
        () = upwards => {}
        () = downwards => {}
    }
}

/// What the plugin printed: whether it succeeded, standard output, standard error.
async fn plugin(kubeconfig: &Path, arguments: &[&str]) -> (bool, String, String) {
    let folder = tempfile::tempdir().unwrap();
    // kubectl finds it under this name.
    let program = folder.path().join("kubectl-wicketgate");
    std::os::unix::fs::symlink(BINARY, &program).unwrap();
    let mut command = Command::new(program);
    command.args(arguments).arg("--kubeconfig").arg(kubeconfig);
    let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.success(), text(&output.stdout), text(&output.stderr))
}

/// A pod as the chart and the controller make them, on this node.
async fn gateway_pod(namespace: &Namespace, name: &str, gateway: &str, node: &str) {
    let pod = json!({
        "metadata": { "name": name, "labels": {
            "app.kubernetes.io/name": "wicketgate",
            "app.kubernetes.io/component": "gateway",
            "app.kubernetes.io/instance": gateway,
        } },
        "spec": { "nodeName": node, "containers": [{
            "name": "gateway", "image": "wicketgate", "ports": [{ "name": "admin", "containerPort": 9191 }],
        }] },
    });
    let pod = serde_json::from_value(pod).unwrap();
    namespace.pods().create(&PostParams::default(), &pod).await.unwrap();
    namespace.set_status(name, status("10.1.0.1", true)).await;
}

/// A gateway with one endpoint, and a pod that stands for it.
async fn forwarded(namespace: &Namespace) -> (Gateway, Forwarding) {
    let gateway =
        Gateway::with_document(&document(&["http://127.0.0.1:9".to_owned()], Value::Null), &[])
            .await;
    let node = format!("node-{}", namespace.name);
    let forwarding = Forwarding::start(namespace, &node, gateway.admin).await;
    gateway_pod(namespace, "chat-1", "chat", &node).await;
    (gateway, forwarding)
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs an API server: cargo xtask test --only kubernetes"]
async fn the_plugin_explains_a_request_by_asking_a_gateways_pod_through_the_api_server() {
    let namespace = Namespace::new(shared().await).await;
    let (_gateway, _forwarding) = forwarded(&namespace).await;
    let question = ["explain", "--model", "llama-3.1-8b", "--prompt", "Hello"];
    let (is_well, printed, said) = plugin(&namespace.kubeconfig, &question).await;
    assert!(is_well, "{said}");
    assert!(said.contains("asking pod chat-1 of gateway chat"), "{said}");
    assert!(printed.contains("(pool chat)") && printed.contains("127.0.0.1:9"), "{printed}");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs an API server: cargo xtask test --only kubernetes"]
async fn the_plugin_shows_the_fleet_of_a_gateways_pod() {
    let namespace = Namespace::new(shared().await).await;
    let (_gateway, _forwarding) = forwarded(&namespace).await;
    let (is_well, printed, said) = plugin(&namespace.kubeconfig, &["top", "--once"]).await;
    assert!(is_well, "{said}");
    assert!(printed.contains("chat"), "{printed}");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs an API server: cargo xtask test --only kubernetes"]
async fn the_plugins_status_has_gateways_with_their_conditions_and_pods() {
    let namespace = Namespace::new(shared().await).await;
    let gateway = json!({
        "apiVersion": "gateway.wicketgate.dev/v1alpha1",
        "kind": "InferenceGatewayConfig",
        "metadata": { "name": "chat" },
        "spec": { "schedulers": [{
            "name": "chat", "modelName": "m", "modelSelector": { "matchLabels": { "app": "m" } },
        }] },
    });
    namespace.apply(gateway).await;
    gateway_pod(&namespace, "chat-1", "chat", "node").await;
    gateway_pod(&namespace, "release-1", "release", "node").await;
    let (is_well, printed, said) = plugin(&namespace.kubeconfig, &["status"]).await;
    assert!(is_well, "{said}");
    let line = |name: &str| printed.lines().find(|line| line.contains(name)).unwrap().to_owned();
    assert!(line(" chat").contains("no controller has seen it"), "{printed}");
    assert!(line(" chat").contains("1/1"), "{printed}");
    assert!(line(" release").contains("a release, no resource"), "{printed}");
    let (_, printed, _) = plugin(&namespace.kubeconfig, &["status", "--json"]).await;
    let told: Value = serde_json::from_str(&printed).unwrap();
    assert_eq!(told[0]["pods"][0]["name"], "chat-1");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs an API server: cargo xtask test --only kubernetes"]
async fn the_plugin_says_which_right_is_missing() {
    let plane = shared().await;
    let namespace = Namespace::new(plane).await;
    gateway_pod(&namespace, "chat-1", "chat", "node").await;
    for (kind, extra) in [
        (
            "Role",
            json!({ "rules": [{ "apiGroups": [""], "resources": ["pods"], "verbs": ["list"] }] }),
        ),
        (
            "RoleBinding",
            json!({
                "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader" },
                "subjects": [{ "apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "reader" }],
            }),
        ),
    ] {
        let mut object = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind, "metadata": { "name": "reader" },
        });
        object.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        namespace.apply(object).await;
    }
    let access = Access { user: Some("reader"), ..Access::default() };
    let kubeconfig = plane.kubeconfig(access, &namespace.name);
    let (is_well, _, said) = plugin(&kubeconfig, &["explain", "--model", "m"]).await;
    assert!(!is_well && said.contains("on pods/portforward"), "{said}");
}
