//! `wicketgate epp`.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;

use anyhow::Context;
use config::{AccessLogTarget, Document, SchedulerSpec};
use extproc::{DESTINATIONS_MAX, PROTOCOLS, Paths, Picker, Role, Settings};
use gateway::{Gateway, Keys, Policy};
use proxy::{Fetcher, KeysFetcher, Phase, administer};
use telemetry::{BuildInfo, Metrics, clock};
use tls::{ClientCertificates, Identity, ServerFiles};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use crate::cluster::{ClusterFlags, holds_in_cluster};
use crate::peers::PeerFlags;
use crate::serve::{memory, open_access_log, open_recording, page_url, warn_of_open_admin};
use crate::settings::{Flags, PickerSource, access_log};
use crate::shutdown::Signals;
use crate::{cloud_watch, global, reload, shutdown, traces, verbosity};

const LISTEN: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::UNSPECIFIED), 9002);
const HEALTH: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::UNSPECIFIED), 9003);

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Args {
    /// The document (InferenceGatewayConfig, YAML or JSON); read again when it changes
    #[arg(short = 'f', long = "file", value_name = "FILE", env = "WICKETGATE_FILE")]
    file: Option<PathBuf>,

    /// A model server; repeatable. Its models and its engine are found out from itself
    #[arg(
        long = "endpoint",
        value_name = "URL",
        env = "WICKETGATE_ENDPOINTS",
        value_delimiter = ','
    )]
    endpoints: Vec<String>,

    /// Where proxies ask: ext_proc over gRPC
    #[arg(long, value_name = "ADDR", env = "WICKETGATE_EPP_LISTEN", default_value_t = LISTEN)]
    listen: SocketAddr,

    /// Where probes ask: gRPC health without TLS
    #[arg(long, value_name = "ADDR", env = "WICKETGATE_EPP_HEALTH", default_value_t = HEALTH)]
    health: SocketAddr,

    /// Metrics, health and decisions over HTTP [default: the document's, else 127.0.0.1:9090]
    #[arg(long, value_name = "ADDR", env = "WICKETGATE_ADMIN")]
    admin: Option<SocketAddr>,

    /// Name the model in header fields for routes, choose endpoints, or both
    #[arg(long, value_name = "ROLE", env = "WICKETGATE_EPP_ROLE", default_value = "both")]
    role: RoleName,

    /// An EndpointPickerConfig for every pool, as the field's pickers read it (docs/picker-config.md)
    #[arg(
        long,
        value_name = "FILE",
        env = "WICKETGATE_EPP_CONFIG_FILE",
        conflicts_with = "config_text"
    )]
    config_file: Option<PathBuf>,

    /// The same, written out; empty for the field's default
    #[arg(long, value_name = "YAML", env = "WICKETGATE_EPP_CONFIG_TEXT")]
    config_text: Option<String>,

    /// Endpoints in one pick, the best first; more than one where the proxy retries along the list
    /// [default: the picker config's maxNumOfEndpoints, else 1]
    #[arg(
        long,
        value_name = "N",
        env = "WICKETGATE_EPP_DESTINATIONS",
        value_parser = clap::value_parser!(u8).range(1..=DESTINATIONS_MAX as i64)
    )]
    destinations: Option<u8>,

    /// Which paths get an endpoint: those of the inference APIs, or whatever the proxy's routes lead here
    #[arg(long, value_name = "PATHS", env = "WICKETGATE_EPP_PATHS", default_value = "known")]
    paths: PathsName,

    /// Obey x-llm-d-model-name-rewrite; only behind a proxy that removes a client's own
    #[arg(long, env = "WICKETGATE_EPP_TRUST_REWRITE")]
    trust_rewrite: bool,

    #[command(flatten)]
    tls: Tls,

    /// One JSON line for each request: stdout, stderr, off, or a file [default: the document's, else stdout]
    #[arg(long, value_name = "TARGET", env = "WICKETGATE_ACCESS_LOG", value_parser = access_log)]
    access_log: Option<AccessLogTarget>,

    /// Key that endpoints ask for, sent to them as `Authorization: Bearer KEY`
    #[arg(long, value_name = "KEY", env = "WICKETGATE_ENDPOINT_API_KEY", hide_env_values = true)]
    endpoint_api_key: Option<String>,

    /// Record traffic for `wicketgate replay` into a file: times, lengths and numbered prompt blocks,
    /// never text [default: the document's, else none]
    #[arg(long, value_name = "FILE", env = "WICKETGATE_RECORD")]
    record: Option<PathBuf>,

    #[command(flatten)]
    peers: PeerFlags,

    #[command(flatten)]
    cluster: ClusterFlags,

    /// Threads that serve proxies [default: one for each core]
    #[arg(long, value_name = "N", env = "WICKETGATE_WORKERS")]
    workers: Option<usize>,

    /// What to log about ourselves: error, warn, info, debug, trace, or a filter such as `gateway=debug`
    #[arg(long, value_name = "FILTER", env = "WICKETGATE_LOG", default_value = "info")]
    log: String,

    /// Log as JSON lines
    #[arg(long, env = "WICKETGATE_LOG_JSON")]
    log_json: bool,
}

/// TLS on the ext_proc listener.
#[derive(Clone, Debug, clap::Args)]
struct Tls {
    /// Speak TLS with this certificate (PEM, leaf first); read again when it changes
    #[arg(long, value_name = "FILE", env = "WICKETGATE_EPP_TLS_CERT", requires = "tls_key")]
    tls_cert: Option<PathBuf>,

    /// Its key (PEM)
    #[arg(long, value_name = "FILE", env = "WICKETGATE_EPP_TLS_KEY", requires = "tls_cert")]
    tls_key: Option<PathBuf>,

    /// Speak TLS with a certificate made at the start: encrypted, but clients cannot verify it
    #[arg(long, env = "WICKETGATE_EPP_TLS_SELF_SIGNED", conflicts_with = "tls_cert")]
    tls_self_signed: bool,

    /// Ask proxies for a certificate that one of these authorities has signed (PEM)
    #[arg(long, value_name = "FILE", env = "WICKETGATE_EPP_TLS_CLIENT_CA")]
    tls_client_ca: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum RoleName {
    Router,
    Picker,
    Both,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum PathsName {
    Known,
    Any,
}

impl Args {
    fn flags(&self) -> Flags {
        Flags {
            file: self.file.clone(),
            endpoints: self.endpoints.clone(),
            listen: None,
            admin: self.admin,
            access_log: self.access_log.clone(),
            may_be_empty: self.cluster.names_resources(),
            picker: self.picker(),
            resource: None,
        }
    }

    fn picker(&self) -> Option<PickerSource> {
        let file = self.config_file.clone().map(PickerSource::File);
        file.or_else(|| self.config_text.clone().map(PickerSource::Text))
    }

    /// Endpoints in one pick: by flag, else the most that a pool's picker config asks for.
    fn destinations(&self, document: &Document) -> usize {
        let asked =
            |scheduler: &SchedulerSpec| scheduler.picker_config.as_ref().map(|p| p.destinations);
        let configured = document.spec.schedulers.iter().filter_map(asked);
        let discovered = document.spec.discover_picker.as_ref().map(|picker| picker.destinations);
        let configured = configured.chain(discovered).max().unwrap_or(1);
        self.destinations.map_or(configured, usize::from)
    }

    fn settings(&self, document: &Document) -> Settings {
        let authorization = self.endpoint_api_key.as_ref().map(|key| format!("Bearer {key}"));
        Settings {
            role: match self.role {
                RoleName::Router => Role::Router,
                RoleName::Picker => Role::Picker,
                RoleName::Both => Role::Both,
            },
            paths: match self.paths {
                PathsName::Known => Paths::Known,
                PathsName::Any => Paths::Any,
            },
            destinations: self.destinations(document),
            trust_rewrite: self.trust_rewrite,
            endpoint_authorization: authorization.map(Into::into),
            memory_bytes: memory(),
        }
    }
}

impl Tls {
    fn settings(&self) -> anyhow::Result<Option<ServerFiles>> {
        let identity = match (&self.tls_cert, &self.tls_key) {
            (Some(cert), Some(key)) => Identity::Files { cert: cert.clone(), key: key.clone() },
            _ if self.tls_self_signed => Identity::SelfSigned("wicketgate-epp"),
            _ if self.tls_client_ca.is_some() => {
                anyhow::bail!(
                    "--tls-client-ca needs TLS: add --tls-cert and --tls-key, or --tls-self-signed"
                )
            }
            _ => return Ok(None),
        };
        let clients = match &self.tls_client_ca {
            None => ClientCertificates::NotAsked,
            Some(ca) => ClientCertificates::Required(ca.clone()),
        };
        Ok(Some(ServerFiles { identity, clients, protocols: PROTOCOLS }))
    }
}

pub(crate) fn run(args: Args) -> anyhow::Result<()> {
    telemetry::logging::init(&args.log, args.log_json)?;
    anyhow::ensure!(
        !args.cluster.is_gateway(),
        "--gateway is for `wicketgate serve`: behind a proxy, name the pools that its routes lead to (--pool NAME)"
    );
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    if let Some(workers) = args.workers {
        builder.worker_threads(workers.max(1));
    }
    let runtime = builder.enable_all().build()?;
    // Administration, scrapes and reloads stay on this thread; proxies are served on the others.
    tokio::task::LocalSet::new().block_on(&runtime, serve(args))
}

async fn serve(args: Args) -> anyhow::Result<()> {
    let metrics = Metrics::new(BuildInfo { version: env!("CARGO_PKG_VERSION"), revision: "" });
    let resource = args.cluster.resource(&metrics).await?;
    let mut flags = args.flags();
    flags.resource = resource.as_ref().map(|resource| resource.latest.clone());
    let document = flags.document()?;
    let pods = args.cluster.pods(&document).await?;
    for warning in &document.warnings {
        if pods.is_none() || holds_in_cluster(warning) {
            tracing::warn!("{warning}");
        }
    }
    let rules = document.spec.model_rewrites.iter().flat_map(|rewrite| &rewrite.rules);
    if rules.clone().any(|rule| rule.mirror.is_some()) {
        tracing::warn!(
            "`mirror` of modelRewrites has no effect here: have the proxy mirror (docs/canary.md)"
        );
    }
    let keys = Keys::load(&document.spec, None)?;
    let access_log = open_access_log(&document, &metrics)?;
    let recorder = open_recording(args.record.as_ref(), &document, &metrics)?;
    let listen =
        |address| extproc::listen(address).with_context(|| format!("cannot listen on {address}"));
    let listeners = extproc::Listeners {
        ext_proc: listen(args.listen)?,
        health: listen(args.health)?,
        tls: args.tls.settings()?,
    };
    let admin = listen(document.spec.admin.address)?;
    let (stop, hangup) = (Signals::catch()?, signal(SignalKind::hangup())?);
    let verbosity = verbosity::Signals::catch()?;
    tracing::info!(address = %listeners.ext_proc.local_addr()?, tls = listeners.tls.is_some(), role = ?args.role, "endpoint picker: ext_proc over gRPC");
    tracing::info!(address = %listeners.health.local_addr()?, "gRPC health");
    tracing::info!(address = %admin.local_addr()?, "administration: /metrics /readyz /debug/decisions");
    tracing::info!("live page: {}", page_url(admin.local_addr()?));
    warn_of_open_admin(admin.local_addr()?, &document.spec);

    let settings = args.settings(&document);
    let authorization = settings.endpoint_authorization.clone();
    let gateway = Gateway::new(&document, Policy::Document, metrics, access_log);
    gateway.use_keys(keys);
    if let Some(recorder) = recorder {
        gateway.record_to(recorder, clock::now());
    }
    let _reporter = cloud_watch::report(&gateway)?;
    let reporting = global::report(&document.spec, &gateway)?;
    let exporter = traces::begin(&document, &gateway)?;
    let sharing = args.peers.share(&document.spec, &gateway).await?;
    let picker = Picker::new(gateway.clone(), settings);
    let (phase, phase_seen) = watch::channel(Phase::Serving);
    let (extproc_phase, extproc_phase_seen) = watch::channel(extproc::Phase::Serving);
    let fetcher = Rc::new(Fetcher::new(authorization.map(|value| Rc::from(&*value))));
    let tasks = [
        tokio::task::spawn_local(administer(admin, gateway.clone())),
        tokio::task::spawn_local(gateway::watch(gateway.clone(), fetcher)),
        tokio::task::spawn_local(gateway::keep_keys(gateway.clone(), KeysFetcher)),
        tokio::task::spawn_local(gateway::record_states(gateway.clone())),
        tokio::task::spawn_local(gateway::watch_cluster(gateway.clone())),
        tokio::task::spawn_local(gateway::watch_templates(gateway.clone())),
        tokio::task::spawn_local(verbosity::on_signal(verbosity)),
        tokio::task::spawn_local(shutdown::on_signal(stop, gateway.clone(), phase)),
        tokio::task::spawn_local(translate(phase_seen, extproc_phase)),
    ];
    let following = pods.map(|pods| tokio::task::spawn_local(pods.follow(gateway.clone())));
    let reloading = tokio::task::spawn_local(reload::on_change(hangup, gateway.clone(), flags));
    let served =
        tokio::spawn(extproc::serve(Arc::clone(&picker), listeners, extproc_phase_seen)).await;
    if let Some(sharing) = sharing {
        sharing.leave().await;
    }
    reloading.abort();
    for task in tasks.iter().chain(&following).chain(&reporting) {
        task.abort();
    }
    if let Some(resource) = resource {
        resource.following.abort();
    }
    served.context("serving proxies ended unexpectedly")??;
    drop(exporter);
    tracing::info!("stopped");
    Ok(())
}

/// Passes the order to stop on to the crate that serves proxies.
async fn translate(mut from: watch::Receiver<Phase>, to: watch::Sender<extproc::Phase>) {
    while from.changed().await.is_ok() {
        to.send_replace(match *from.borrow_and_update() {
            Phase::Serving => extproc::Phase::Serving,
            Phase::Draining => extproc::Phase::Draining,
            Phase::Closed => extproc::Phase::Closed,
            Phase::Over => extproc::Phase::Over,
        });
    }
    // The last word was said; whoever waits for it still holds the other end.
    std::future::pending::<()>().await;
}
