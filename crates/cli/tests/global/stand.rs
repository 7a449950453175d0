//! Clusters and routers, wired.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;

use serde_json::{Value, json};
use sim::{Fleet, ServerSpec};
use tempfile::TempDir;

use crate::http::{Answer, ask};
use crate::process::{BINARY, Process, address_in, until};
use crate::relay::Relay;

pub(crate) const MODEL: &str = "llama-3.1-8b";

/// One cluster: a gateway before one simulated engine.
pub(crate) struct Cluster {
    pub(crate) name: String,
    pub(crate) process: Process,
    pub(crate) traffic: SocketAddr,
    document: Value,
    folder: TempDir,
    _engines: Fleet,
}

/// One router.
pub(crate) struct Router {
    pub(crate) process: Process,
    pub(crate) traffic: SocketAddr,
    pub(crate) admin: SocketAddr,
    document: Value,
    folder: TempDir,
}

/// Clusters called `a`, `b`, … behind routers.
pub(crate) struct Stand {
    pub(crate) clusters: Vec<Cluster>,
    pub(crate) routers: Vec<Router>,
    /// One for each router, where heartbeats go through relays.
    pub(crate) relays: Vec<Relay>,
}

/// How a stand is laid out.
pub(crate) struct Plan {
    pub(crate) clusters: usize,
    pub(crate) routers: usize,
    pub(crate) engine: ServerSpec,
    /// Merged over each router's `spec`.
    pub(crate) router: Value,
    /// Merged over each member of the routers' documents, by position.
    pub(crate) members: Vec<Value>,
    /// Merged over the `spec` of each cluster, by position.
    pub(crate) of_clusters: Vec<Value>,
    /// Heartbeats go through relays that can be stalled.
    pub(crate) relayed: bool,
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            clusters: 3,
            routers: 1,
            engine: ServerSpec { time_scale: 0.01, ..ServerSpec::default() },
            router: json!({}),
            members: Vec::new(),
            of_clusters: Vec::new(),
            relayed: false,
        }
    }
}

/// Puts `extra` over `base`; mappings are merged, everything else is replaced.
pub(crate) fn merge(base: &mut Value, extra: &Value) {
    match (base, extra) {
        (Value::Object(base), Value::Object(extra)) => {
            for (key, value) in extra {
                merge(base.entry(key.clone()).or_insert(Value::Null), value);
            }
        }
        (_, Value::Null) => {}
        (base, extra) => *base = extra.clone(),
    }
}

pub(crate) fn free_address() -> SocketAddr {
    test_ports::free_address().unwrap()
}

impl Stand {
    /// Starts everything and waits until each router has heard of all members.
    pub(crate) async fn start(plan: Plan) -> Self {
        let reports: Vec<SocketAddr> = (0..plan.routers).map(|_| free_address()).collect();
        let mut relays = Vec::new();
        if plan.relayed {
            for report in &reports {
                relays.push(Relay::start(*report).await);
            }
        }
        let reached = if plan.relayed {
            relays.iter().map(|relay| relay.address).collect()
        } else {
            reports.clone()
        };
        let routers: Vec<String> = reached.iter().map(SocketAddr::to_string).collect();
        let mut clusters = Vec::new();
        for (at, name) in ["a", "b", "c", "d"].into_iter().take(plan.clusters).enumerate() {
            let engine = ServerSpec { seed: at as u64, ..plan.engine.clone() };
            let extra = plan.of_clusters.get(at).cloned().unwrap_or_default();
            clusters.push(Cluster::start(name, engine, &routers, &extra).await);
        }
        let mut stand = Self { clusters, routers: Vec::new(), relays };
        for report in reports {
            let router = Router::start(&stand.clusters, report, &plan).await;
            stand.routers.push(router);
        }
        for router in &stand.routers {
            for cluster in &stand.clusters {
                router.until_state(&cluster.name, "fresh").await;
            }
        }
        stand
    }

    pub(crate) fn router(&self) -> &Router {
        &self.routers[0]
    }
}

impl Cluster {
    async fn start(name: &str, engine: ServerSpec, routers: &[String], extra: &Value) -> Self {
        let engines = Fleet::start(vec![engine]).await.unwrap();
        let urls: Vec<Value> = engines.urls().iter().map(|url| json!({ "url": url })).collect();
        let mut document = json!({
            "apiVersion": "gateway.wicketgate.dev/v1alpha1",
            "kind": "InferenceGatewayConfig",
            "spec": {
                "schedulers": [{ "name": "chat", "modelName": MODEL, "endpoints": urls }],
                "listener": { "address": free_address().to_string() },
                "admin": { "address": "127.0.0.1:0" },
                "scrape": { "busyInterval": "20ms", "idleInterval": "40ms" },
                "timeouts": { "drainDelay": "1s" },
                "global": { "cluster": name, "routers": routers, "interval": "500ms" },
            },
        });
        merge(&mut document["spec"], extra);
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("cluster.json"), document.to_string()).unwrap();
        let process = serve(&folder.path().join("cluster.json"));
        let said = process.said("administration:").await;
        let traffic = address_in(&said, "traffic: ").unwrap();
        let name = name.to_owned();
        Self { name, process, traffic, document, folder, _engines: engines }
    }

    /// Starts the gateway anew at the same address, once the former process has ended.
    pub(crate) async fn restart(&mut self) {
        self.process = serve(&self.folder.path().join("cluster.json"));
        self.process.said("administration:").await;
    }

    /// What its document says, changed, for [`Self::restart`].
    pub(crate) fn rewrite(&mut self, extra: &Value) {
        merge(&mut self.document["spec"], extra);
        let file = self.folder.path().join("cluster.json");
        std::fs::write(file, self.document.to_string()).unwrap();
    }
}

fn serve(file: &std::path::Path) -> Process {
    let mut command = Command::new(BINARY);
    command.args(["serve", "--workers", "1", "--access-log", "off", "-f"]).arg(file);
    Process::spawn(&mut command)
}

impl Router {
    async fn start(clusters: &[Cluster], report: SocketAddr, plan: &Plan) -> Self {
        let members = clusters.iter().enumerate().map(|(at, cluster)| {
            let url = format!("http://{}", cluster.traffic);
            let mut member = json!({ "name": cluster.name, "url": url });
            merge(&mut member, plan.members.get(at).unwrap_or(&Value::Null));
            member
        });
        let mut document = json!({
            "apiVersion": "gateway.wicketgate.dev/v1alpha1",
            "kind": "GlobalInferenceGateway",
            "spec": {
                "members": members.collect::<Vec<_>>(),
                "listener": { "address": "127.0.0.1:0" },
                "admin": { "address": "127.0.0.1:0" },
                "heartbeats": { "address": report.to_string() },
                "timeouts": { "drainDelay": "0s" },
                "exposeDecision": true,
            },
        });
        merge(&mut document["spec"], &plan.router);
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("global.json");
        std::fs::write(&file, document.to_string()).unwrap();
        let mut command = Command::new(BINARY);
        command.args(["global", "--workers", "1", "--access-log", "off", "-f"]).arg(&file);
        let process = Process::spawn(&mut command);
        let said = process.said("administration:").await;
        let traffic = address_in(&said, "traffic: ").unwrap();
        let admin = address_in(&said, "administration: ").unwrap();
        Self { process, traffic, admin, document, folder }
    }

    pub(crate) fn file(&self) -> PathBuf {
        self.folder.path().join("global.json")
    }

    /// Writes the document anew with `extra` merged over its `spec`.
    pub(crate) fn rewrite(&mut self, extra: &Value) {
        merge(&mut self.document["spec"], extra);
        let next = self.folder.path().join("next.json");
        std::fs::write(&next, self.document.to_string()).unwrap();
        std::fs::rename(next, self.file()).unwrap();
    }

    /// `GET` on the administration listener.
    pub(crate) async fn admin(&self, path: &str) -> Answer {
        ask(self.admin, "GET", path, &[], b"").await
    }

    /// A member as `/debug/fleet` shows it.
    pub(crate) async fn member(&self, name: &str) -> Value {
        let fleet = self.admin("/debug/fleet").await.json();
        let members = fleet["members"].as_array().cloned().unwrap_or_default();
        members.into_iter().find(|member| member["member"] == name).unwrap_or_default()
    }

    pub(crate) async fn state(&self, name: &str) -> String {
        self.member(name).await["state"].as_str().unwrap_or("absent").to_owned()
    }

    pub(crate) async fn until_state(&self, name: &str, state: &str) {
        until(&format!("`{name}` is {state}"), async || self.state(name).await == state).await;
    }

    /// The sum of all series of a metric whose line holds each of `labels`.
    pub(crate) async fn metric(&self, name: &str, labels: &[&str]) -> f64 {
        let page = self.admin("/metrics").await.text();
        page.lines()
            .filter(|line| line.strip_prefix(name).is_some_and(|rest| rest.starts_with(['{', ' '])))
            .filter(|line| labels.iter().all(|label| line.contains(label)))
            .filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok())
            .sum()
    }

    /// `wicketgate global …` against this router; what it printed.
    pub(crate) fn command(&self, arguments: &[&str]) -> (bool, String) {
        let admin = self.admin.to_string();
        let mut command = Command::new(BINARY);
        let output = command.arg("global").args(arguments).args(["--admin", &admin]).output();
        let output = output.unwrap();
        let text = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8_lossy(&text).into_owned())
    }
}
