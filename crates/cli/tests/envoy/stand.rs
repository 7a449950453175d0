//! Envoy, the picker and the endpoints of one test.

mod tls;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::time::{sleep, timeout};

use crate::http::{Answer, ask};
use crate::upstream::{Act, Upstream};

/// Longest that a test waits for anything.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);
/// Pause between two looks at something that cannot be waited for.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// The two configurations of `docs/envoy.md`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Example {
    OriginalDst,
    OverrideHost,
}

pub(crate) struct Stand {
    pub(crate) traffic: SocketAddr,
    pub(crate) picker: Picker,
    pub(crate) upstreams: Vec<Upstream>,
    envoy: Child,
    envoy_admin: SocketAddr,
    folder: TempDir,
    _router: Option<Picker>,
}

/// How `wicketgate epp` is started, again and again.
pub(crate) struct Picker {
    arguments: Vec<String>,
    ext_proc: SocketAddr,
    pub(crate) admin: SocketAddr,
    log: PathBuf,
    child: Option<Child>,
}

impl Picker {
    fn new(document: &Path, log: &Path, arguments: &[String]) -> Self {
        let [ext_proc, health, admin] = test_ports::free_addresses().unwrap();
        let own = [
            "epp".to_owned(),
            format!("--file={}", document.display()),
            format!("--listen={ext_proc}"),
            format!("--health={health}"),
            format!("--admin={admin}"),
            "--workers=2".to_owned(),
        ];
        let arguments = own.into_iter().chain(arguments.iter().cloned()).collect();
        Self { arguments, ext_proc, admin, log: log.to_owned(), child: None }
    }

    pub(crate) fn start(&mut self) {
        let open = || {
            let file = std::fs::OpenOptions::new().create(true).append(true).open(&self.log);
            Stdio::from(file.unwrap())
        };
        let child = Command::new(env!("CARGO_BIN_EXE_wicketgate"))
            .args(&self.arguments)
            .stdin(Stdio::null())
            .stdout(open())
            .stderr(open())
            .spawn()
            .unwrap();
        self.child = Some(child);
    }

    /// Ends it without a word.
    pub(crate) fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// Asks it to end.
    pub(crate) fn terminate(&self) {
        let id = self.child.as_ref().unwrap().id();
        let status = Command::new("sh").args(["-c", &format!("kill -TERM {id}")]).status();
        assert!(status.unwrap().success());
    }

    /// Waits for it to end by itself.
    pub(crate) async fn ended(&mut self) {
        let child = self.child.as_mut().unwrap();
        until("the picker ends", async || child.try_wait().unwrap().is_some()).await;
    }

    pub(crate) fn said(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// The access log, once it has this many lines.
    pub(crate) async fn logged(&self, count: usize) -> Vec<Value> {
        let lines = || -> Vec<Value> {
            let text = self.said();
            let lines = text.lines().filter(|line| line.starts_with('{'));
            lines.map_while(|line| serde_json::from_str(line).ok()).collect()
        };
        until("the access log is written", async || lines().len() >= count).await;
        lines()
    }

    /// Requests that all endpoints have by the picker's account.
    pub(crate) async fn in_flight(&self) -> u64 {
        let endpoints = ask(self.admin, "GET", "/debug/endpoints", &[], b"").await.json();
        let endpoints = endpoints["endpoints"].as_array().unwrap();
        endpoints.iter().map(|endpoint| endpoint["in_flight"].as_u64().unwrap()).sum()
    }
}

impl Drop for Picker {
    fn drop(&mut self) {
        self.kill();
    }
}

impl Drop for Stand {
    fn drop(&mut self) {
        let _ = self.envoy.kill();
        let _ = self.envoy.wait();
    }
}

/// What a stand is made of.
pub(crate) struct Setup {
    example: Example,
    act: Act,
    arguments: Vec<&'static str>,
    waiting: u32,
    host: &'static str,
    has_router: bool,
    has_tls: bool,
    edits: Vec<(&'static str, &'static str)>,
    /// Further settings below `spec`.
    more: Value,
    /// Requests that an endpoint may have at once.
    concurrency: Option<u32>,
}

impl Setup {
    pub(crate) fn new(example: Example, act: Act) -> Self {
        Self {
            example,
            act,
            arguments: Vec::new(),
            waiting: 0,
            host: "127.0.0.1",
            has_router: false,
            has_tls: false,
            edits: Vec::new(),
            more: json!({}),
            concurrency: None,
        }
    }

    /// Further arguments of the picker.
    pub(crate) fn arguments(mut self, arguments: &[&'static str]) -> Self {
        self.arguments.extend(arguments);
        self
    }

    /// Requests that the endpoints' metrics tell to be queued.
    pub(crate) fn waiting(mut self, waiting: u32) -> Self {
        self.waiting = waiting;
        self
    }

    /// Where the endpoints listen.
    pub(crate) fn host(mut self, host: &'static str) -> Self {
        self.host = host;
        self
    }

    /// Body-based routing in a filter and a process of its own, before the picker's.
    pub(crate) fn router(mut self) -> Self {
        self.has_router = true;
        self.arguments(&["--role", "picker"])
    }

    /// Envoy and the picker show each other certificates, and verify them.
    pub(crate) fn tls(mut self) -> Self {
        self.has_tls = true;
        self
    }

    /// Replaces a part of the example; `ENDPOINT` in it stands for the second endpoint's address.
    pub(crate) fn edit(mut self, from: &'static str, to: &'static str) -> Self {
        self.edits.push((from, to));
        self
    }

    /// Further settings of the document, and how many requests an endpoint may have at once.
    pub(crate) fn document(mut self, more: Value, concurrency: u32) -> Self {
        self.more = more;
        self.concurrency = Some(concurrency);
        self
    }

    /// Starts everything and waits until Envoy finds the picker healthy.
    pub(crate) async fn start(self) -> Stand {
        let mut upstreams = Vec::new();
        for _ in 0..3 {
            upstreams.push(Upstream::start(self.host, self.act.clone(), self.waiting).await);
        }
        let addresses: Vec<_> = upstreams.iter().map(|upstream| upstream.address).collect();
        let folder = tempfile::tempdir().unwrap();
        let document = folder.path().join("gateway.json");
        let mut written = spec(&addresses);
        for (key, value) in self.more.as_object().unwrap() {
            written["spec"][key] = value.clone();
        }
        if let Some(concurrency) = self.concurrency {
            written["spec"]["schedulers"][0]["saturation"] = json!({ "concurrency": concurrency });
        }
        std::fs::write(&document, written.to_string()).unwrap();

        let mut arguments: Vec<String> =
            self.arguments.iter().map(|argument| (*argument).to_owned()).collect();
        let tls = self.has_tls.then(|| tls::make(folder.path()));
        arguments.extend(tls.iter().flat_map(|tls| tls.arguments.clone()));
        let mut picker = Picker::new(&document, &folder.path().join("picker.log"), &arguments);
        picker.start();
        let mut router = None;
        let [traffic, envoy_admin] = test_ports::free_addresses().unwrap();
        let mut text =
            configuration(self.example, traffic, envoy_admin, picker.ext_proc, &addresses);
        if self.has_router {
            let log = folder.path().join("router.log");
            let mut process = Picker::new(&document, &log, &["--role=router".to_owned()]);
            process.start();
            text = with_router(&text, picker.ext_proc, process.ext_proc);
            router = Some(process);
        }
        if let Some(tls) = tls {
            let cluster = "  - name: picker\n    type: STATIC\n";
            assert_eq!(text.matches(cluster).count(), 1);
            text = text.replace(cluster, &format!("{cluster}{}", tls.transport_socket));
        }
        for (from, to) in self.edits {
            assert_eq!(text.matches(from).count(), 1, "{from}");
            text = text.replace(from, &to.replace("ENDPOINT", &addresses[1].to_string()));
        }
        let config = folder.path().join("envoy.yaml");
        std::fs::write(&config, text).unwrap();
        let envoy = start_envoy(&config, &folder.path().join("envoy.log"));
        let stand =
            Stand { traffic, picker, upstreams, envoy, envoy_admin, folder, _router: router };
        stand.healthy().await;
        let admin = stand.picker.admin;
        let scraped = async || {
            let page = ask(admin, "GET", "/debug/endpoints", &[], b"").await.json();
            let endpoints = page["endpoints"].as_array().cloned().unwrap_or_default();
            endpoints.iter().filter(|endpoint| endpoint["scrape_age_ms"].is_u64()).count() == 3
        };
        until("the endpoints are scraped", scraped).await;
        stand
    }
}

impl Stand {
    /// Waits until Envoy believes in the picker.
    pub(crate) async fn healthy(&self) {
        self.until_picker_is("healthy").await;
    }

    /// Waits until Envoy has noticed that the picker is gone.
    pub(crate) async fn unhealthy(&self) {
        self.until_picker_is("/failed_active_hc").await;
    }

    async fn until_picker_is(&self, flags: &str) {
        let wanted = format!("::health_flags::{flags}");
        let holds = async || {
            // Envoy opens its traffic listener last.
            let is_open = |address| std::net::TcpStream::connect(address).is_ok();
            if !is_open(self.envoy_admin) || !is_open(self.traffic) {
                return false;
            }
            let page = ask(self.envoy_admin, "GET", "/clusters", &[], b"").await.text();
            page.lines().any(|line| line.starts_with("picker::") && line.ends_with(&wanted))
        };
        let held = timeout(PATIENCE, async {
            while !holds().await {
                sleep(LOOK_AGAIN).await;
            }
        });
        if held.await.is_err() {
            let envoy = std::fs::read_to_string(self.folder.path().join("envoy.log"));
            panic!("never {flags}: {envoy:?}\n{}", self.picker.said());
        }
    }

    pub(crate) async fn chat(&self, model: &str, headers: &[(&str, &str)]) -> Answer {
        let body = chat_body(model).to_string();
        ask(self.traffic, "POST", "/v1/chat/completions", headers, body.as_bytes()).await
    }

    /// Requests that each endpoint has got.
    pub(crate) fn counts(&self) -> Vec<usize> {
        self.upstreams.iter().map(|upstream| upstream.seen().len()).collect()
    }
}

pub(crate) fn chat_body(model: &str) -> Value {
    json!({ "model": model, "messages": [{ "role": "user", "content": "hi" }] })
}

/// Waits for a condition that only looking can tell.
pub(crate) async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let waiting = async {
        while !holds().await {
            sleep(LOOK_AGAIN).await;
        }
    };
    timeout(PATIENCE, waiting).await.unwrap_or_else(|_| panic!("never: {what}"));
}

fn spec(endpoints: &[SocketAddr]) -> Value {
    let endpoints: Vec<_> =
        endpoints.iter().map(|address| json!({ "url": format!("http://{address}") })).collect();
    json!({
        "apiVersion": "gateway.wicketgate.dev/v1alpha1",
        "kind": "InferenceGatewayConfig",
        "spec": {
            "schedulers": [{ "name": "chat", "modelName": "llama", "loraAdapters": ["sql"], "endpoints": endpoints }],
            "allowedPaths": [{ "path": "/raw", "methods": ["GET", "POST"], "scheduler": "chat" }],
            "scrape": { "busyInterval": "20ms", "idleInterval": "40ms" },
            "timeouts": { "drainDelay": "0s" },
        },
    })
}

/// The example as it is, save for its addresses.
fn configuration(
    example: Example,
    traffic: SocketAddr,
    admin: SocketAddr,
    ext_proc: SocketAddr,
    endpoints: &[SocketAddr],
) -> String {
    let name = match example {
        Example::OriginalDst => "original-dst.yaml",
        Example::OverrideHost => "override-host.yaml",
    };
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/examples/envoy");
    let mut text = std::fs::read_to_string(folder.join(name)).unwrap();
    let mut replace = |from: &str, to: SocketAddr| {
        assert_eq!(text.matches(from).count(), 1, "{from} in {name}");
        text = text.replace(from, &format!("address: {}, port_value: {}", to.ip(), to.port()));
    };
    replace("address: 0.0.0.0, port_value: 8080", traffic);
    replace("address: 127.0.0.1, port_value: 9901", admin);
    replace("address: 127.0.0.1, port_value: 9002", ext_proc);
    if example == Example::OverrideHost {
        for (number, endpoint) in endpoints.iter().enumerate() {
            replace(&format!("address: 10.0.0.1{}, port_value: 8000", number + 1), *endpoint);
        }
    }
    text
}

/// The configuration with a second filter of the same kind before the picker's.
fn with_router(text: &str, picker: SocketAddr, router: SocketAddr) -> String {
    let between = |from: &str, to: &str| {
        let start = text.find(from).unwrap();
        let end = if to.is_empty() { text.len() } else { text.find(to).unwrap() };
        text[start..end].to_owned()
    };
    let filter = between(
        "          - name: envoy.filters.http.ext_proc",
        "          - name: envoy.filters.http.router",
    );
    let cluster = between("  - name: picker", "");
    let routing = filter
        .replacen("envoy.filters.http.ext_proc", "router", 1)
        .replace("cluster_name: picker", "cluster_name: router")
        .replace("response_header_mode: SEND", "response_header_mode: SKIP")
        .replace("response_body_mode: FULL_DUPLEX_STREAMED", "response_body_mode: NONE")
        .replace("response_trailer_mode: SEND", "response_trailer_mode: SKIP");
    let second = cluster.replace("picker", "router").replace(
        &format!("port_value: {}", picker.port()),
        &format!("port_value: {}", router.port()),
    );
    format!("{}{second}", text.replace(&filter, &format!("{routing}{filter}")))
}

fn start_envoy(config: &Path, log: &Path) -> Child {
    let program = std::env::var_os("WICKETGATE_TEST_ENVOY")
        .expect("WICKETGATE_TEST_ENVOY names Envoy; `cargo xtask test --only envoy` sets it");
    let log = std::fs::File::create(log).unwrap();
    Command::new(program)
        .arg("-c")
        .arg(config)
        .args(["--use-dynamic-base-id", "--concurrency", "1", "-l", "warn"])
        .stdin(Stdio::null())
        .stdout(log.try_clone().unwrap())
        .stderr(log)
        .spawn()
        .unwrap()
}
