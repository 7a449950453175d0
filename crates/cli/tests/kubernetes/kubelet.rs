//! A small kubelet: pods become processes of the built binary on loopback addresses of their own.
//!
//! A pod without a node is bound to one first, as a scheduler would. A container's `args` are those of `wicketgate`, with
//! `$(POD_IP)` replaced; `0.0.0.0` is the pod's address too, since all pods share this machine's network. A pod with a service
//! account gets a kubeconfig that acts as it. A pod is ready when its readiness
//! probe (HTTP) succeeds, without one as soon as it runs. When it is deleted, its process gets SIGTERM, then
//! its grace period, then SIGKILL, and only then is the pod gone, as in a cluster.

use std::collections::HashMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::pin::pin;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use futures_util::StreamExt;
use k8s_openapi::api::core::v1::{Container, Pod};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions};
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Event};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::control_plane::{Access, ControlPlane};
use crate::gateway::BINARY;
use crate::namespace::{Namespace, status};

/// Pause between two looks at a process, and between two probes.
const LOOK_AGAIN: Duration = Duration::from_millis(20);
/// Pause between two probes of a pod that is ready.
const PROBE_AGAIN: Duration = Duration::from_millis(200);
/// Pods of other images are left to the test.
pub(crate) const IMAGE: &str = "wicketgate";
/// A pod that names an address here gets it, so that two can have the same, one after the other.
pub(crate) const ADDRESS: &str = "tests/address";

/// Runs the pods of one namespace until dropped.
pub(crate) struct Kubelet {
    _task: JoinSet<()>,
}

impl Kubelet {
    pub(crate) fn start(namespace: &Namespace) -> Self {
        let mut task = JoinSet::new();
        task.spawn(run(namespace.pods(), None));
        Self { _task: task }
    }

    /// One whose pods can speak to the API server.
    pub(crate) fn with_accounts(plane: &'static ControlPlane, namespace: &Namespace) -> Self {
        let mut task = JoinSet::new();
        task.spawn(run(namespace.pods(), Some(plane)));
        Self { _task: task }
    }
}

/// What a scheduler does.
async fn bind(pods: &Api<Pod>, name: &str) {
    let binding = json!({
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": { "name": name },
        "target": { "apiVersion": "v1", "kind": "Node", "name": "node" },
    });
    // It may have been deleted meanwhile.
    let parameters = PostParams::default();
    let _ = pods.create_subresource::<Value, Value>("binding", name, &parameters, &binding).await;
}

async fn run(pods: Api<Pod>, plane: Option<&'static ControlPlane>) {
    let events = watcher::watcher(pods.clone(), watcher::Config::default()).default_backoff();
    let mut events = pin!(events);
    let mut running = JoinSet::new();
    let mut ends: HashMap<String, Arc<Notify>> = HashMap::new();
    while let Some(event) = events.next().await {
        let (Ok(Event::Apply(pod)) | Ok(Event::InitApply(pod))) = event else { continue };
        if pod.spec.as_ref().unwrap().containers[0].image.as_deref() != Some(IMAGE) {
            continue;
        }
        if pod.spec.as_ref().unwrap().node_name.is_none() {
            bind(&pods, pod.metadata.name.as_deref().unwrap()).await;
            continue;
        }
        let uid = pod.metadata.uid.clone().unwrap();
        let is_ending = pod.metadata.deletion_timestamp.is_some();
        let end = ends.entry(uid).or_insert_with(|| {
            let end = Arc::new(Notify::new());
            running.spawn(live(pods.clone(), pod, end.clone(), plane));
            end
        });
        if is_ending {
            end.notify_one();
        }
    }
}

/// A pod's life.
async fn live(pods: Api<Pod>, pod: Pod, end: Arc<Notify>, plane: Option<&'static ControlPlane>) {
    let name = pod.metadata.name.clone().unwrap();
    let given = pod.metadata.annotations.as_ref().and_then(|all| all.get(ADDRESS));
    let ip = given.map_or_else(next_address, |text| text.parse().unwrap());
    let spec = pod.spec.as_ref().unwrap();
    let container = spec.containers[0].clone();
    let grace = u64::try_from(spec.termination_grace_period_seconds.unwrap_or(30)).unwrap();
    let grace = Duration::from_secs(grace);
    let account = spec.service_account_name.as_deref().zip(plane).map(|(account, plane)| {
        let namespace = pod.metadata.namespace.as_deref().unwrap();
        let user = format!("system:serviceaccount:{namespace}:{account}");
        plane.kubeconfig(Access { user: Some(&user), ..Access::default() }, namespace)
    });
    let say = async |ready: bool| {
        let patch = Patch::Merge(json!({ "status": status(&ip.to_string(), ready) }));
        let _ = pods.patch_status(&name, &PatchParams::default(), &patch).await;
    };
    loop {
        let mut process = Process::start(&container, ip, account.as_deref());
        let probe = probe(&container, ip);
        say(probe.is_none()).await;
        let serving = async {
            if let Some((address, path)) = &probe {
                let mut was_ready = false;
                loop {
                    let is_ready = answers(*address, path).await;
                    if is_ready != was_ready {
                        say(is_ready).await;
                        was_ready = is_ready;
                    }
                    sleep(if is_ready { PROBE_AGAIN } else { LOOK_AGAIN }).await;
                }
            }
            std::future::pending::<()>().await;
        };
        let is_over = tokio::select! {
            () = serving => false,
            () = end.notified() => true,
            () = process.ended() => false,
        };
        if is_over {
            process.stop(grace).await;
            break;
        }
        // It ended by itself: begun anew, as `restartPolicy: Always` says.
        say(false).await;
    }
    let mut at_once = DeleteParams::default().grace_period(0);
    at_once.preconditions =
        Some(Preconditions { uid: pod.metadata.uid.clone(), ..Preconditions::default() });
    let _ = pods.delete(&name, &at_once).await;
}

/// A container's process; killed when dropped.
struct Process(Child);

impl Process {
    fn start(container: &Container, ip: Ipv4Addr, account: Option<&Path>) -> Self {
        let ip = ip.to_string();
        let arguments = container
            .args
            .iter()
            .flatten()
            .map(|text| text.replace("$(POD_IP)", &ip).replace("0.0.0.0", &ip));
        let variables = container.env.iter().flatten();
        let child = Command::new(BINARY)
            .envs(account.map(|path| ("WICKETGATE_KUBECONFIG", path)))
            .args(arguments)
            .envs(variables.filter_map(|one| Some((one.name.clone(), one.value.clone()?))))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        Self(child.unwrap())
    }

    async fn ended(&mut self) {
        while self.0.try_wait().unwrap().is_none() {
            sleep(LOOK_AGAIN).await;
        }
    }

    /// SIGTERM; what still runs after the grace period is killed when this is dropped.
    async fn stop(mut self, grace: Duration) {
        let terminate = format!("kill -TERM {}", self.0.id());
        let _ = Command::new("sh").args(["-c", &terminate]).status();
        let _ = timeout(grace, self.ended()).await;
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Where and for what the readiness probe asks.
fn probe(container: &Container, ip: Ipv4Addr) -> Option<(SocketAddr, String)> {
    let get = container.readiness_probe.as_ref()?.http_get.as_ref()?;
    let IntOrString::Int(port) = get.port else { panic!("a probe's port is a number") };
    let path = get.path.clone().unwrap_or_else(|| "/".to_owned());
    Some((SocketAddr::from((ip, u16::try_from(port).unwrap())), path))
}

async fn answers(address: SocketAddr, path: &str) -> bool {
    let ask = async {
        let mut io = TcpStream::connect(address).await.ok()?;
        let request = format!("GET {path} HTTP/1.1\r\nHost: probe\r\nConnection: close\r\n\r\n");
        io.write_all(request.as_bytes()).await.ok()?;
        let mut head = [0; 12];
        io.read_exact(&mut head).await.ok()?;
        Some(head == *b"HTTP/1.1 200")
    };
    timeout(Duration::from_secs(1), ask).await.ok().flatten().unwrap_or(false)
}

/// Addresses that no other run of tests on this machine is likely to use.
pub(crate) fn next_address() -> Ipv4Addr {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let n = NEXT.fetch_add(1, Ordering::Relaxed);
    let [high, low] = u16::try_from(std::process::id() % 0x1_0000).unwrap().to_be_bytes();
    let host = u8::try_from(n % 200 + 10).unwrap();
    // Of 127.0.0.0/8, the upper half.
    Ipv4Addr::new(127, 128 | high, low.wrapping_add(u8::try_from(n / 200).unwrap()), host)
}
