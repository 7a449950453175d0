//! A real API server and its store.

use std::io::Write;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Patch, PatchParams};
use kube::runtime::wait::{await_condition, conditions};
use kube::{Api, Client, ResourceExt};
use rcgen::{CertifiedKey, KeyPair};
use serde_json::json;
use tempfile::TempDir;
use tokio::sync::OnceCell;
use tokio::time::{Instant, sleep};

use crate::leash::Leash;

/// Longest that the control plane may take to be there; five seconds where nothing else runs.
const START_PATIENCE: Duration = Duration::from_secs(120);
const LOOK_AGAIN: Duration = Duration::from_millis(50);
/// Whoever has this may do everything.
const ADMIN_TOKEN: &str = "admin-of-the-tests";

/// The definitions that tests need, as they are shipped.
const DEFINITIONS: [&str; 2] = [
    "charts/wicketgate/crds/inferencegatewayconfigs.gateway.wicketgate.dev.yaml",
    "deploy/aws/inferencegatewayconfigs.inference.sagemaker.aws.amazon.com.yaml",
];

/// Definitions of others: those of gateways, routes, pools, objectives and rewrites. The older group's rewrites are left out, so
/// that a gateway meets a kind that the cluster does not have.
const OTHERS: [&str; 8] = [
    "tests/kubernetes/definitions/gateway.networking.k8s.io_gatewayclasses.yaml",
    "tests/kubernetes/definitions/gateway.networking.k8s.io_gateways.yaml",
    "tests/kubernetes/definitions/gateway.networking.k8s.io_httproutes.yaml",
    "tests/kubernetes/definitions/gateway.networking.k8s.io_referencegrants.yaml",
    "tests/kubernetes/definitions/inference.networking.k8s.io_inferencepools.yaml",
    "tests/kubernetes/definitions/llm-d.ai_inferenceobjectives.yaml",
    "tests/kubernetes/definitions/llm-d.ai_inferencemodelrewrites.yaml",
    "tests/kubernetes/definitions/inference.networking.x-k8s.io_inferenceobjectives.yaml",
];

/// What is left out of [`OTHERS`].
pub(crate) const LEGACY_REWRITES: &str =
    "tests/kubernetes/definitions/inference.networking.x-k8s.io_inferencemodelrewrites.yaml";

pub(crate) struct ControlPlane {
    folder: TempDir,
    address: SocketAddr,
    etcd_address: SocketAddr,
    controllers: Option<Leash>,
    _api: Leash,
    _etcd: Leash,
}

/// Kubernetes' own controllers that run: those of Deployments, and the garbage collection. Nodes are none of theirs, since
/// there are none.
const CONTROLLERS: &str = "deployment-controller,replicaset-controller,garbage-collector-controller,\
                           endpointslice-controller,disruption-controller";

/// Who asks, and where.
#[derive(Clone, Copy, Default)]
pub(crate) struct Access<'a> {
    /// Instead of the administrator.
    pub(crate) user: Option<&'a str>,
    /// Instead of the API server itself.
    pub(crate) address: Option<SocketAddr>,
}

/// The one that tests share, with our definitions. The first test that asks starts it.
pub(crate) async fn shared() -> &'static ControlPlane {
    static SHARED: OnceCell<ControlPlane> = OnceCell::const_new();
    SHARED
        .get_or_init(async || {
            let plane = ControlPlane::start(&[]).await;
            plane.define().await;
            for path in OTHERS {
                plane.install(path).await;
            }
            plane.control()
        })
        .await
}

impl ControlPlane {
    /// One of a test's own, without our definitions. `flags`: further ones for the API server.
    pub(crate) async fn start(flags: &[&str]) -> Self {
        let assets = assets();
        let folder = tempfile::tempdir().unwrap();
        let [address, etcd_address, etcd_peers] = test_ports::free_addresses().unwrap();
        let etcd = Leash::start(
            &assets.join("etcd"),
            &[
                format!("--data-dir={}", folder.path().join("etcd").display()),
                format!("--listen-client-urls=http://{etcd_address}"),
                format!("--advertise-client-urls=http://{etcd_address}"),
                format!("--listen-peer-urls=http://{etcd_peers}"),
                "--unsafe-no-fsync".to_owned(),
            ],
            &folder.path().join("etcd.log"),
        );
        write_secrets(folder.path());
        let file = |name: &str| folder.path().join(name).display().to_string();
        let mut arguments = vec![
            format!("--etcd-servers=http://{etcd_address}"),
            "--bind-address=127.0.0.1".to_owned(),
            format!("--secure-port={}", address.port()),
            format!("--tls-cert-file={}", file("cert.pem")),
            format!("--tls-private-key-file={}", file("key.pem")),
            format!("--service-account-key-file={}", file("accounts.pub")),
            format!("--service-account-signing-key-file={}", file("accounts.pem")),
            "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
            format!("--token-auth-file={}", file("tokens.csv")),
            "--authorization-mode=RBAC".to_owned(),
            "--service-cluster-ip-range=10.96.0.0/16".to_owned(),
            "--endpoint-reconciler-type=none".to_owned(),
            // Nobody here makes the account `default` of each namespace.
            "--disable-admission-plugins=ServiceAccount".to_owned(),
        ];
        arguments.extend(flags.iter().map(|flag| (*flag).to_owned()));
        let program = assets.join("kube-apiserver");
        let api = Leash::start(&program, &arguments, &folder.path().join("api.log"));
        let plane =
            Self { folder, address, etcd_address, controllers: None, _api: api, _etcd: etcd };
        plane.is_ready().await;
        plane
    }

    /// Runs Kubernetes' own controllers beside it.
    pub(crate) fn control(mut self) -> Self {
        let kubeconfig = self.kubeconfig(Access::default(), "default");
        let arguments = [
            format!("--kubeconfig={}", kubeconfig.display()),
            format!("--controllers={CONTROLLERS}"),
            "--leader-elect=false".to_owned(),
            "--secure-port=0".to_owned(),
        ];
        let log = self.folder.path().join("controllers.log");
        let program = assets().join("kube-controller-manager");
        self.controllers = Some(Leash::start(&program, &arguments, &log));
        self
    }

    async fn is_ready(&self) {
        let end = Instant::now() + START_PATIENCE;
        let client = self.client().await;
        loop {
            let question = ::http::Request::get("/readyz").body(Vec::new()).unwrap();
            match client.request_text(question).await {
                Ok(_) => return,
                Err(error) if Instant::now() > end => {
                    let log = std::fs::read_to_string(self.folder.path().join("api.log"));
                    panic!("the API server is not ready: {error}\n{}", log.unwrap_or_default());
                }
                Err(_) => sleep(LOOK_AGAIN).await,
            }
        }
    }

    /// Where the API server listens; HTTPS.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where the store listens; HTTP.
    pub(crate) fn etcd(&self) -> SocketAddr {
        self.etcd_address
    }

    /// A client that may do everything. It belongs to the runtime that asks.
    pub(crate) async fn client(&self) -> Client {
        let cluster =
            wicketgate_kube::connect(Some(&self.kubeconfig(Access::default(), "default"))).await;
        cluster.unwrap().client
    }

    /// A kubeconfig for the namespace.
    pub(crate) fn kubeconfig(&self, access: Access<'_>, namespace: &str) -> PathBuf {
        let mut identity = json!({ "token": ADMIN_TOKEN });
        if let Some(user) = access.user {
            identity["as"] = json!(user);
        }
        let address = access.address.unwrap_or(self.address);
        let server = format!("https://{address}");
        let authority = self.folder.path().join("cert.pem");
        let text = json!({
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "test",
            "clusters": [{ "name": "test", "cluster": { "server": server, "certificate-authority": authority } }],
            "users": [{ "name": "test", "user": identity }],
            "contexts": [{ "name": "test", "context": { "cluster": "test", "user": "test", "namespace": namespace } }],
        });
        let user = access.user.unwrap_or("admin").replace(':', "-");
        let name = format!("{namespace}-{user}-{}.kubeconfig", address.port());
        let path = self.folder.path().join(name);
        // Whole or not at all: another test may read the same one.
        let mut whole = tempfile::NamedTempFile::new_in(self.folder.path()).unwrap();
        whole.write_all(text.to_string().as_bytes()).unwrap();
        whole.persist(&path).unwrap();
        path
    }

    /// Applies our definitions and waits until they are served.
    pub(crate) async fn define(&self) {
        for path in DEFINITIONS {
            self.install(path).await;
        }
    }

    /// Applies one definition and waits until it is served. `path`: from the root of the repository.
    pub(crate) async fn install(&self, path: &str) {
        let definitions: Api<CustomResourceDefinition> = Api::all(self.client().await);
        let text = std::fs::read_to_string(root().join(path)).unwrap();
        let definition: CustomResourceDefinition = serde_saphyr::from_str(&text).unwrap();
        let name = definition.name_any();
        let parameters = PatchParams::apply("tests").force();
        definitions.patch(&name, &parameters, &Patch::Apply(&definition)).await.unwrap();
        let established =
            await_condition(definitions.clone(), &name, conditions::is_crd_established());
        tokio::time::timeout(START_PATIENCE, established).await.unwrap().unwrap();
    }
}

/// The folder with Kubernetes' programs.
fn assets() -> PathBuf {
    std::env::var_os("KUBEBUILDER_ASSETS").map(PathBuf::from).expect(
        "KUBEBUILDER_ASSETS names the folder with kube-apiserver, kube-controller-manager and etcd; `cargo xtask test --only kubernetes` sets it",
    )
}

/// The root of the repository.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn write_secrets(folder: &Path) {
    let names = ["127.0.0.1".to_owned(), "localhost".to_owned()];
    let CertifiedKey { cert, signing_key } = rcgen::generate_simple_self_signed(names).unwrap();
    let write = |name: &str, text: String| std::fs::write(folder.join(name), text).unwrap();
    write("cert.pem", cert.pem());
    write("key.pem", signing_key.serialize_pem());
    let accounts = KeyPair::generate().unwrap();
    write("accounts.pem", accounts.serialize_pem());
    // The server finds no public key in a private one of this form.
    write("accounts.pub", accounts.public_key_pem());
    write("tokens.csv", format!("{ADMIN_TOKEN},admin,admin,system:masters\n"));
}
