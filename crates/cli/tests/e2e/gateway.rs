//! The process under test.

use std::any::Any;
use std::cell::Cell;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use crate::http::{Answer, ask};

/// Longest that a test waits for anything.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);
/// Pause between two looks at something that cannot be waited for.
const LOOK_AGAIN: Duration = Duration::from_millis(5);

/// A running `wicketgate serve` or `epp`; ended when dropped.
pub(crate) struct Gateway {
    child: Child,
    pub(crate) traffic: SocketAddr,
    pub(crate) tls: Option<SocketAddr>,
    pub(crate) admin: SocketAddr,
    stdout: watch::Receiver<String>,
    stderr: watch::Receiver<String>,
    folder: TempDir,
    /// The proxy that it stands behind.
    _front: Option<Box<dyn Any>>,
}

/// Starts a proxy before the picker at this address: where that is, and what ends it when dropped.
pub(crate) type StartFront = fn(SocketAddr) -> (SocketAddr, Box<dyn Any>);

thread_local! {
    /// Set: gateways of this test are pickers behind a proxy. A test has a thread of its own.
    static FRONT: Cell<Option<StartFront>> = const { Cell::new(None) };
}

/// Has the gateways of this test stand behind a proxy.
pub(crate) fn stand_behind(front: StartFront) {
    FRONT.set(Some(front));
}

/// The path of the built binary.
pub(crate) const BINARY: &str = env!("CARGO_BIN_EXE_wicketgate");

/// A document with one pool `chat` for `llama-3.1-8b`; `extra` is merged over its `spec`.
///
/// Metrics are read often, so that a test need not wait for a scrape.
pub(crate) fn document(urls: &[String], extra: Value) -> Value {
    let endpoints: Vec<Value> = urls.iter().map(|url| json!({ "url": url })).collect();
    let mut document = json!({
        "apiVersion": "gateway.wicketgate.dev/v1alpha1",
        "kind": "InferenceGatewayConfig",
        "spec": {
            "schedulers": [{ "name": "chat", "modelName": "llama-3.1-8b", "endpoints": endpoints }],
            "listener": { "address": "127.0.0.1:0" },
            "admin": { "address": "127.0.0.1:0" },
            "scrape": { "busyInterval": "20ms", "idleInterval": "40ms" },
            "timeouts": { "drainDelay": "0s" },
        },
    });
    merge(&mut document["spec"], extra);
    document
}

/// Puts `extra` over `base`; mappings are merged, everything else is replaced.
fn merge(base: &mut Value, extra: Value) {
    match (base, extra) {
        (Value::Object(base), Value::Object(extra)) => {
            for (key, value) in extra {
                merge(base.entry(key).or_insert(Value::Null), value);
            }
        }
        (_, Value::Null) => {}
        (base, extra) => *base = extra,
    }
}

impl Gateway {
    /// Starts with a document, and further arguments.
    pub(crate) async fn with_document(document: &Value, arguments: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("gateway.json");
        std::fs::write(&file, document.to_string()).unwrap();
        let file = file.display().to_string();
        let own = ["-f", file.as_str()];
        let Some(start) = FRONT.get() else {
            return Self::start("serve", &[&own, arguments].concat(), folder).await;
        };
        let any = "127.0.0.1:0";
        let own = [own.as_slice(), &["--listen", any, "--health", any], arguments].concat();
        let mut gateway = Self::start("epp", &own, folder).await;
        let (address, front) = start(gateway.traffic);
        gateway.traffic = address;
        gateway._front = Some(front);
        gateway
    }

    /// Starts `wicketgate epp` from flags; its `traffic` speaks ext_proc.
    pub(crate) async fn picker(urls: &[String], arguments: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let any = "127.0.0.1:0";
        let mut all = vec!["--listen", any, "--health", any, "--admin", any];
        for url in urls {
            all.extend(["--endpoint", url]);
        }
        all.extend(arguments);
        let picker = Self::start("epp", &all, folder).await;
        picker.scraped(urls.len()).await;
        picker
    }

    /// Starts one pool over `urls` and waits until each endpoint's metrics were read.
    pub(crate) async fn over(urls: &[String], extra: Value) -> Self {
        let gateway = Self::with_document(&document(urls, extra), &[]).await;
        gateway.scraped(urls.len()).await;
        gateway
    }

    /// Starts from flags alone and waits until it is ready.
    pub(crate) async fn with_flags(urls: &[String], arguments: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut all = vec!["--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"];
        for url in urls {
            all.extend(["--endpoint", url]);
        }
        all.extend(arguments);
        let gateway = Self::start("serve", &all, folder).await;
        gateway.scraped(urls.len()).await;
        gateway
    }

    /// Starts from flags that need not make it ready.
    #[allow(dead_code, reason = "for tests with a cluster, which share this file")]
    pub(crate) async fn unready_with_flags(arguments: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let own = ["--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"];
        Self::start("serve", &[&own, arguments].concat(), folder).await
    }

    /// Starts a command with these arguments alone; they must have it listen on port 0.
    pub(crate) async fn start(command: &str, arguments: &[&str], folder: TempDir) -> Self {
        let mut child = Command::new(BINARY)
            .arg(command)
            .args(arguments)
            .args(["--workers", "2"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let stdout = follow(child.stdout.take().unwrap());
        let stderr = follow(child.stderr.take().unwrap());
        let mut started = stderr.clone();
        let announced =
            timeout(PATIENCE, started.wait_for(|text| text.contains("administration:"))).await;
        let text = match announced {
            Ok(Ok(text)) => text.clone(),
            _ => {
                let _ = child.kill();
                panic!("the gateway did not start: {}", stderr.borrow().as_str());
            }
        };
        let address = |of: &str| -> Option<SocketAddr> {
            let line = text.lines().find(|line| line.contains(of))?;
            line.split("address=").nth(1)?.split_whitespace().next()?.parse().ok()
        };
        Self {
            child,
            traffic: address("traffic: ").or_else(|| address("endpoint picker: ")).unwrap(),
            tls: address("traffic with TLS"),
            admin: address("administration: ").unwrap(),
            stdout,
            stderr,
            folder,
            _front: None,
        }
    }

    /// Waits until `count` endpoints have told their metrics and the gateway is ready.
    pub(crate) async fn scraped(&self, count: usize) {
        self.until("the endpoints were scraped", async || {
            let ready = self.admin("/readyz").await.status == 200;
            ready
                && self
                    .endpoints()
                    .await
                    .iter()
                    .filter(|endpoint| endpoint["scrape_age_ms"].is_u64())
                    .count()
                    >= count
        })
        .await;
    }

    /// Waits for a condition that only looking can tell.
    pub(crate) async fn until(&self, what: &str, mut holds: impl AsyncFnMut() -> bool) {
        let waiting = async {
            while !holds().await {
                sleep(LOOK_AGAIN).await;
            }
        };
        if timeout(PATIENCE, waiting).await.is_err() {
            panic!("waited in vain until {what}; the gateway said:\n{}", self.stderr());
        }
    }

    /// `GET` on the administration listener.
    pub(crate) async fn admin(&self, path: &str) -> Answer {
        ask(self.admin, "GET", path, &[], b"").await
    }

    /// Every endpoint as `/debug/endpoints` shows it.
    pub(crate) async fn endpoints(&self) -> Vec<Value> {
        self.admin("/debug/endpoints").await.json()["endpoints"]
            .as_array()
            .cloned()
            .unwrap_or_default()
    }

    /// State of the endpoint at `url`, by the words of `/debug/endpoints`.
    pub(crate) async fn state_of(&self, url: &str) -> String {
        let authority = url.trim_start_matches("http://");
        let endpoints = self.endpoints().await;
        let endpoint = endpoints.iter().find(|endpoint| endpoint["endpoint"] == authority);
        endpoint.and_then(|endpoint| endpoint["state"].as_str()).unwrap_or("absent").to_owned()
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

    /// Writes the document anew.
    pub(crate) fn rewrite(&self, text: &str) {
        let file = self.document_file();
        let mut next = tempfile::NamedTempFile::new_in(self.folder.path()).unwrap();
        next.write_all(text.as_bytes()).unwrap();
        next.persist(file).unwrap();
    }

    pub(crate) fn document_file(&self) -> PathBuf {
        self.folder.path().join("gateway.json")
    }

    /// Sends a signal by its name without `SIG`.
    pub(crate) fn signal(&self, name: &str) {
        let command = format!("kill -{name} {}", self.child.id());
        assert!(Command::new("sh").args(["-c", &command]).status().unwrap().success());
    }

    /// Waits for the process to end by itself.
    pub(crate) async fn ended(&mut self) -> ExitStatus {
        let child = &mut self.child;
        let ending = async {
            loop {
                if let Some(status) = child.try_wait().unwrap() {
                    return status;
                }
                sleep(LOOK_AGAIN).await;
            }
        };
        timeout(PATIENCE, ending).await.expect("the gateway ends")
    }

    /// Waits until it has said something on standard error.
    pub(crate) async fn said(&self, what: &str) {
        let mut stderr = self.stderr.clone();
        let said = timeout(PATIENCE, stderr.wait_for(|text| text.contains(what))).await;
        assert!(matches!(said, Ok(Ok(_))), "it never said `{what}`:\n{}", self.stderr());
    }

    pub(crate) fn stderr(&self) -> String {
        self.stderr.borrow().clone()
    }

    /// The access log so far.
    pub(crate) fn stdout(&self) -> String {
        self.stdout.borrow().clone()
    }

    /// The access log's line about a request.
    pub(crate) async fn logged(&self, request_id: &str) -> Value {
        let mut stdout = self.stdout.clone();
        let find =
            |text: &str| text.lines().find(|line| line.contains(request_id)).map(str::to_owned);
        let text = timeout(PATIENCE, stdout.wait_for(|text| find(text).is_some())).await;
        let text = text.expect("a line in the access log").expect("the gateway lives").clone();
        serde_json::from_str(&find(&text).unwrap()).unwrap()
    }

    /// Its process.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Resident memory in bytes.
    pub(crate) fn resident_bytes(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.split_whitespace().next().unwrap().parse::<u64>().unwrap() * 1024
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Collects what a process writes, whole lines at a time.
fn follow(from: impl Read + Send + 'static) -> watch::Receiver<String> {
    let (sender, receiver) = watch::channel(String::new());
    std::thread::spawn(move || {
        for line in BufReader::new(from).lines().map_while(Result::ok) {
            sender.send_modify(|text| {
                text.push_str(&line);
                text.push('\n');
            });
        }
    });
    receiver
}
