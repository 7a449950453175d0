//! The server under test.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use gateway::{Gateway, Policy};
use telemetry::{AccessLog, BuildInfo, Metrics, Target};
use tls::ServerFiles;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use wicketgate_extproc::{Listeners, Phase, Picker, ServeError, Settings, listen, serve};

/// Longest that a test waits for anything.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) struct Server {
    pub(crate) gateway: Arc<Gateway>,
    pub(crate) ext_proc: SocketAddr,
    pub(crate) health: SocketAddr,
    pub(crate) phase: watch::Sender<Phase>,
    pub(crate) serving: JoinHandle<Result<(), ServeError>>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

/// One pool `chat` for `llama`; `more` stands below `spec`.
pub(crate) fn gateway(more: &str) -> Arc<Gateway> {
    let text = format!(
        "apiVersion: gateway.wicketgate.dev/v1alpha1\nkind: InferenceGatewayConfig\nmetadata: {{ name: test }}\nspec:\n  \
         schedulers: [{{ name: chat, modelName: llama, endpoints: [{{ url: 'http://10.0.0.1:8000' }}] }}]\n{more}"
    );
    let document = config::parse(&text, "test").unwrap_or_else(|errors| panic!("{errors}"));
    let metrics = Metrics::new(BuildInfo { version: "test", revision: "" });
    let dropped = Arc::clone(&metrics.gateway().access_log_dropped_lines);
    let log = AccessLog::open(Target::Off, dropped).unwrap();
    Gateway::new(&document, Policy::Document, metrics, log)
}

impl Server {
    pub(crate) async fn start(more: &str, tls: Option<ServerFiles>) -> Self {
        let gateway = gateway(more);
        let picker = Picker::new(gateway.clone(), Settings::default());
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        let listeners =
            Listeners { ext_proc: listen(any).unwrap(), health: listen(any).unwrap(), tls };
        let ext_proc = listeners.ext_proc.local_addr().unwrap();
        let health = listeners.health.local_addr().unwrap();
        let (phase, seen) = watch::channel(Phase::Serving);
        let serving = tokio::spawn(serve(picker, listeners, seen));
        Self { gateway, ext_proc, health, phase, serving }
    }

    pub(crate) fn in_flight(&self) -> u32 {
        self.gateway.members().iter().map(|member| member.state.in_flight()).sum()
    }

    /// Waits for a condition that only looking can tell.
    pub(crate) async fn until(&self, what: &str, holds: impl Fn(&Self) -> bool) {
        let waiting = async {
            while !holds(self) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(PATIENCE, waiting).await.unwrap_or_else(|_| panic!("never: {what}"));
    }
}
