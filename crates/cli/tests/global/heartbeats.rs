//! Reports over mutual TLS: each member for itself only.

use std::path::{Path, PathBuf};

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
};
use serde_json::{Value, json};

use crate::http::chat;
use crate::load::prompt;
use crate::process::{BINARY, Process, until};
use crate::stand::{MODEL, Plan, Stand};

/// An authority and what it signs, as files.
pub(crate) struct Authority {
    folder: tempfile::TempDir,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, "tests");
        let key = KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap();
        std::fs::write(folder.path().join("ca.pem"), certificate.pem()).unwrap();
        Self { folder, issuer: Issuer::new(params, key) }
    }

    fn path(&self, file: &str) -> PathBuf {
        self.folder.path().join(file)
    }

    /// A `tls` section with a certificate of these names.
    pub(crate) fn identity(&self, file: &str, names: &[&str]) -> Value {
        self.write(file, names);
        json!({
            "caFile": self.path("ca.pem"),
            "certFile": self.path(&format!("{file}.pem")),
            "keyFile": self.path(&format!("{file}.key")),
        })
    }

    fn write(&self, file: &str, names: &[&str]) {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(names).unwrap();
        params.extended_key_usages =
            vec![ExtendedKeyUsagePurpose::ClientAuth, ExtendedKeyUsagePurpose::ServerAuth];
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        write(&self.path(&format!("{file}.key")), &key.serialize_pem());
        write(&self.path(&format!("{file}.pem")), &certificate.pem());
    }
}

fn write(path: &Path, text: &str) {
    std::fs::write(path, text).unwrap();
}

#[tokio::test]
async fn members_report_over_mutual_tls_and_each_for_itself_only() {
    let authority = Authority::new();
    let member = |name: &str| json!({ "global": { "tls": authority.identity(name, &[name]) } });
    let plan = Plan {
        clusters: 2,
        router: json!({ "heartbeats": { "tls": authority.identity("router", &["localhost", "127.0.0.1"]) } }),
        of_clusters: vec![member("a"), member("b")],
        ..Plan::default()
    };
    let mut stand = Stand::start(plan).await;
    assert_eq!(chat(stand.router().traffic, &prompt("Hi", 3)).await.status, 200);

    // `b` with the certificate of `a`, and with one of another authority.
    authority.write("b", &["a"]);
    stand.clusters[1].process.kill();
    stand.clusters[1].restart().await;
    stand.clusters[1].process.said("a global router refuses reports").await;
    let said = stand.clusters[1].process.stderr();
    assert!(said.contains("with a certificate of `a`, this router expects `b`"), "{said}");
    let router = stand.router();
    until("it was counted", async || {
        let labels = ["member=\"b\"", "outcome=\"refused\""];
        router.metric("wicketgate_fleet_heartbeats_total", &labels).await > 0.0
    })
    .await;

    // A certificate that is changed while the process runs is used for the next connection.
    authority.write("b", &["b"]);
    stand.clusters[1].process.kill();
    stand.clusters[1].restart().await;
    stand.router().until_state("b", "fresh").await;
}

#[tokio::test]
async fn a_member_without_a_certificate_of_the_authority_is_not_heard() {
    let (authority, stranger) = (Authority::new(), Authority::new());
    let own = json!({ "global": { "tls": authority.identity("a", &["a"]) } });
    // It trusts the router, and shows what nobody here has signed.
    let mut foreign = stranger.identity("b", &["b"]);
    foreign["caFile"] = json!(authority.path("ca.pem"));
    let plan = Plan {
        clusters: 1,
        router: json!({ "heartbeats": { "tls": authority.identity("router", &["127.0.0.1"]) } }),
        of_clusters: vec![own],
        ..Plan::default()
    };
    let mut stand = Stand::start(plan).await;
    let heard = stand.router().metric("wicketgate_fleet_heartbeats_total", &["taken"]).await;
    assert!(heard > 0.0);
    stand.clusters[0].rewrite(&json!({ "global": { "tls": foreign } }));
    stand.clusters[0].process.kill();
    stand.clusters[0].restart().await;
    stand.clusters[0].process.said("no reports to a global router").await;
}

/// A cluster whose requests go through another proxy, which asks `epp` for endpoints.
#[tokio::test]
async fn an_endpoint_picker_reports_as_a_gateway_does() {
    let mut stand = Stand::start(Plan { clusters: 1, ..Plan::default() }).await;
    let said = stand.router().process.stderr();
    let reports = crate::process::address_in(&said, "heartbeats of members").unwrap();
    let engines = sim::Fleet::start(vec![sim::ServerSpec::default()]).await.unwrap();
    let document = json!({
        "apiVersion": "gateway.wicketgate.dev/v1alpha1",
        "kind": "InferenceGatewayConfig",
        "spec": {
            "schedulers": [{ "name": "chat", "modelName": MODEL, "endpoints": [{ "url": engines.urls()[0] }] }],
            "admin": { "address": "127.0.0.1:0" },
            "global": { "cluster": "picker", "routers": [reports.to_string()], "interval": "500ms" },
        },
    });
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("picker.json");
    std::fs::write(&file, document.to_string()).unwrap();
    let mut command = std::process::Command::new(BINARY);
    command.args(["epp", "--listen", "127.0.0.1:0", "--health", "127.0.0.1:0", "--workers", "1"]);
    let picker = Process::spawn(command.args(["--access-log", "off", "-f"]).arg(&file));
    picker.said("administration:").await;
    let members = json!([
        { "name": "a", "url": format!("http://{}", stand.clusters[0].traffic) },
        // Its proxy; nobody asks it here.
        { "name": "picker", "url": "http://127.0.0.1:9" },
    ]);
    stand.routers[0].rewrite(&json!({ "members": members }));
    let router = stand.router();
    until("it was heard", async || {
        let member = router.member("picker").await;
        !matches!(member["state"].as_str(), None | Some("unknown"))
            && member["models"][0]["endpoints_ready"] == 1
    })
    .await;
    // It drains with its process.
    picker.signal("TERM");
    until("it takes nothing new", async || {
        !matches!(router.state("picker").await.as_str(), "fresh" | "returning")
    })
    .await;
}

#[tokio::test]
async fn a_report_is_as_long_when_the_cluster_is_busy() {
    let stand = Stand::start(Plan { clusters: 1, ..Plan::default() }).await;
    let page = async || {
        let said = stand.clusters[0].process.stderr();
        let admin = crate::process::address_in(&said, "administration: ").unwrap();
        crate::http::ask(admin, "GET", "/metrics", &[], b"").await.text()
    };
    let bytes = |page: &str| {
        let line = page.lines().find(|line| line.starts_with("wicketgate_global_report_bytes "));
        line.unwrap().rsplit(' ').next().unwrap().parse::<f64>().unwrap()
    };
    let idle = bytes(&page().await);
    for n in 0..20 {
        chat(stand.router().traffic, &prompt(&format!("Question {n}"), 20)).await;
    }
    let router = stand.router();
    let reports = async || router.metric("wicketgate_fleet_heartbeats_total", &["taken"]).await;
    let before = reports().await;
    until("it has reported again", async || reports().await > before).await;
    assert_eq!(bytes(&page().await), idle);
}
