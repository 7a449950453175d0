//! Clusters behind networks that swallow packets: one network namespace for each, with a wire to the router.

use std::net::SocketAddr;
use std::process::Command;
use std::time::Duration;

use serde_json::json;
use tokio::time::Instant;

use crate::load::{Load, failed, prompt};
use crate::process::{BINARY, Process, address_in, until};
use crate::stand::MODEL;

/// A namespace with one address, which the test's own side reaches.
struct Namespace {
    name: String,
    /// Of the test's side.
    outside: String,
    inside: String,
}

fn ip(arguments: &str) {
    let status = Command::new("ip").args(arguments.split(' ')).status().unwrap();
    assert!(status.success(), "ip {arguments}");
}

impl Namespace {
    fn new(number: u8) -> Self {
        let tag = format!("wgt{}{number}", std::process::id() % 10_000);
        let space = Self {
            outside: format!("10.231.{number}.1"),
            inside: format!("10.231.{number}.2"),
            name: tag.clone(),
        };
        ip(&format!("netns add {tag}"));
        ip(&format!("link add {tag}o type veth peer name {tag}i netns {tag}"));
        ip(&format!("addr add {}/24 dev {tag}o", space.outside));
        ip(&format!("link set {tag}o up"));
        ip(&format!("-n {tag} addr add {}/24 dev {tag}i", space.inside));
        ip(&format!("-n {tag} link set {tag}i up"));
        ip(&format!("-n {tag} link set lo up"));
        space
    }

    fn run(&self, arguments: &[&str]) -> Process {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.name, BINARY]).args(arguments);
        Process::spawn(&mut command)
    }

    /// What comes in is read, what goes out is dropped: the other side sees silence.
    fn swallow(&self) {
        ip(&format!("-n {} route add blackhole {}/32", self.name, self.outside));
    }

    fn deliver(&self) {
        ip(&format!("-n {} route del blackhole {}/32", self.name, self.outside));
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        let _ = Command::new("ip").args(["netns", "del", &self.name]).status();
    }
}

#[tokio::test]
#[ignore = "needs network namespaces: cargo xtask test --only global"]
async fn a_cluster_whose_packets_are_swallowed_costs_no_request_and_is_out_within_12_seconds() {
    let spaces: Vec<Namespace> = (1..=3).map(Namespace::new).collect();
    let folder = tempfile::tempdir().unwrap();
    let reports = crate::stand::free_address().port();
    let mut running = Vec::new();
    let mut members = Vec::new();
    for (space, name) in spaces.iter().zip(["a", "b", "c"]) {
        let sim = space.run(&["sim", "--engine", "vllm", "--model", MODEL, "--port", "8000"]);
        let document = json!({
            "apiVersion": "gateway.wicketgate.dev/v1alpha1",
            "kind": "InferenceGatewayConfig",
            "spec": {
                "schedulers": [{ "name": "chat", "modelName": MODEL, "endpoints": [{ "url": "http://127.0.0.1:8000" }] }],
                "listener": { "address": "0.0.0.0:8080" },
                "global": {
                    "cluster": name, "routers": [format!("{}:{reports}", space.outside)],
                    "tls": tls(folder.path(), name),
                },
            },
        });
        let file = folder.path().join(format!("{name}.json"));
        std::fs::write(&file, document.to_string()).unwrap();
        let file = file.display().to_string();
        let serve = space.run(&["serve", "--workers", "1", "--access-log", "off", "-f", &file]);
        serve.said("administration:").await;
        running.push((sim, serve));
        members.push(json!({ "name": name, "url": format!("http://{}:8080", space.inside) }));
    }
    let document = json!({
        "apiVersion": "gateway.wicketgate.dev/v1alpha1",
        "kind": "GlobalInferenceGateway",
        "spec": {
            "members": members,
            "listener": { "address": "127.0.0.1:0" },
            "admin": { "address": "127.0.0.1:0" },
            "heartbeats": { "address": format!("0.0.0.0:{reports}"), "tls": tls(folder.path(), "router") },
            "exposeDecision": true,
        },
    });
    let file = folder.path().join("global.json");
    std::fs::write(&file, document.to_string()).unwrap();
    let mut command = Command::new(BINARY);
    command.args(["global", "--workers", "1", "--access-log", "off", "-f"]).arg(&file);
    let router = Process::spawn(&mut command);
    let said = router.said("administration:").await;
    let traffic = address_in(&said, "traffic: ").unwrap();
    let admin = address_in(&said, "administration: ").unwrap();
    for name in ["a", "b", "c"] {
        until("all are fresh", async || state(admin, name).await == "fresh").await;
    }

    let load = Load::start(traffic, 6, |n| prompt(&format!("Question {n}"), 4));
    until("`a` has served", async || member(admin, "a").await["sent"].as_u64() > Some(5)).await;
    spaces[0].swallow();
    let begun = Instant::now();
    until("it is out", async || matches!(state(admin, "a").await.as_str(), "ejected" | "dead"))
        .await;
    let took = begun.elapsed();
    assert!(took < Duration::from_secs(12), "{took:?}");
    until("nothing waits there", async || member(admin, "a").await["in_flight"] == 0).await;
    let sent = member(admin, "a").await["sent"].clone();
    let others = async || {
        member(admin, "b").await["sent"].as_u64().unwrap()
            + member(admin, "c").await["sent"].as_u64().unwrap()
    };
    let before = others().await;
    until("the others go on", async || others().await > before + 50).await;
    assert_eq!(member(admin, "a").await["sent"], sent, "nothing is sent to it any more");

    spaces[0].deliver();
    until("it is back", async || state(admin, "a").await == "fresh").await;
    let outcomes = load.end().await;
    assert!(failed(&outcomes).is_empty(), "{:?}", failed(&outcomes));
    drop(running);
}

async fn member(admin: SocketAddr, name: &str) -> serde_json::Value {
    let fleet = crate::http::ask(admin, "GET", "/debug/fleet", &[], b"").await.json();
    let members = fleet["members"].as_array().cloned().unwrap_or_default();
    members.into_iter().find(|member| member["member"] == name).unwrap_or_default()
}

async fn state(admin: SocketAddr, name: &str) -> String {
    member(admin, name).await["state"].as_str().unwrap_or("absent").to_owned()
}

/// A `tls` section with a certificate for this name and the wires' addresses, of one authority.
fn tls(folder: &std::path::Path, name: &str) -> serde_json::Value {
    let authority = folder.join("ca.pem");
    let (certificate, key) =
        (folder.join(format!("{name}.pem")), folder.join(format!("{name}.key")));
    let issuer = folder.join("ca.key");
    if !authority.exists() {
        openssl_free::authority(&authority, &issuer);
    }
    openssl_free::sign(&authority, &issuer, &certificate, &key, name);
    json!({ "caFile": authority, "certFile": certificate, "keyFile": key })
}

mod openssl_free {
    use std::path::Path;

    use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};

    fn authority_params() -> CertificateParams {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params
    }

    pub(super) fn authority(certificate: &Path, key_file: &Path) {
        let key = KeyPair::generate().unwrap();
        let signed = authority_params().self_signed(&key).unwrap();
        std::fs::write(certificate, signed.pem()).unwrap();
        std::fs::write(key_file, key.serialize_pem()).unwrap();
    }

    pub(super) fn sign(_: &Path, issuer: &Path, certificate: &Path, key_file: &Path, name: &str) {
        let issuer_key = KeyPair::from_pem(&std::fs::read_to_string(issuer).unwrap()).unwrap();
        let issuer = Issuer::new(authority_params(), issuer_key);
        let mut names = vec![name.to_owned()];
        names.extend((1..=3).map(|number| format!("10.231.{number}.1")));
        let key = KeyPair::generate().unwrap();
        let signed = CertificateParams::new(names).unwrap().signed_by(&key, &issuer).unwrap();
        std::fs::write(certificate, signed.pem()).unwrap();
        std::fs::write(key_file, key.serialize_pem()).unwrap();
    }
}
