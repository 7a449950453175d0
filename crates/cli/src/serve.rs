//! `wicketgate serve`.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;

use anyhow::Context;
use config::{AccessLogTarget, Document, Spec};
use gateway::{Gateway, Keys, Policy};
use proxy::{Fetcher, KeysFetcher, Listeners, Options, PROTOCOLS, Phase, Server, listen};
use telemetry::{AccessLog, BuildInfo, Metrics, Recorder, Target, clock, recording};
use tls::{ClientCertificates, Identity, ServerFiles};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use crate::cluster::{ClusterFlags, holds_in_cluster};
use crate::peers::PeerFlags;
use crate::settings::Flags;
use crate::shutdown::Signals;
use crate::{cloud_watch, global, reload, shutdown, traces, verbosity};

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    flags: Flags,

    /// How endpoints are chosen: as the document says, or in all pools the same way, for comparison
    #[arg(long, value_name = "POLICY", env = "WICKETGATE_POLICY", default_value = "document")]
    policy: PolicyName,

    /// Threads that serve traffic [default: one for each core]
    #[arg(
        long,
        value_name = "N",
        env = "WICKETGATE_WORKERS",
        default_value_t = 0,
        hide_default_value = true
    )]
    workers: usize,

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

    /// What to log about ourselves: error, warn, info, debug, trace, or a filter such as `gateway=debug`
    #[arg(long, value_name = "FILTER", env = "WICKETGATE_LOG", default_value = "info")]
    log: String,

    /// Log as JSON lines
    #[arg(long, env = "WICKETGATE_LOG_JSON")]
    log_json: bool,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum PolicyName {
    Document,
    Reference,
    RoundRobin,
    LeastRequest,
}

pub(crate) fn run(mut args: Args) -> anyhow::Result<()> {
    args.flags.may_be_empty = args.cluster.names_resources();
    telemetry::logging::init(&args.log, args.log_json)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let local = tokio::task::LocalSet::new();
    local.block_on(&runtime, serve(args))
}

async fn serve(mut args: Args) -> anyhow::Result<()> {
    let metrics = Metrics::new(BuildInfo { version: env!("CARGO_PKG_VERSION"), revision: "" });
    let resource = args.cluster.resource(&metrics).await?;
    args.flags.resource = resource.as_ref().map(|resource| resource.latest.clone());
    let document = args.flags.document()?;
    let pods = args.cluster.pods(&document).await?;
    for warning in &document.warnings {
        if pods.is_none() || holds_in_cluster(warning) {
            tracing::warn!("{warning}");
        }
    }
    let keys = Keys::load(&document.spec, None)?;
    let access_log = open_access_log(&document, &metrics)?;
    let recorder = open_recording(args.record.as_ref(), &document, &metrics)?;
    let policy = match args.policy {
        PolicyName::Document => Policy::Document,
        PolicyName::Reference => Policy::Reference,
        PolicyName::RoundRobin => Policy::RoundRobin,
        PolicyName::LeastRequest => Policy::LeastRequest,
    };
    let spec = &document.spec;
    let listeners = bind(&document)?;
    let authorization = args.endpoint_api_key.as_ref().map(|key| format!("Bearer {key}"));
    let options = Options {
        workers: args.workers,
        connections_max: spec.limits.connections(descriptors()),
        memory_bytes: memory(),
        endpoint_authorization: authorization.clone(),
        upstream_tls: None,
    };
    // Before anyone can know that this process runs: the default action of a signal is to kill it.
    let (stop, hangup) = (Signals::catch()?, signal(SignalKind::hangup())?);
    let verbosity = verbosity::Signals::catch()?;
    announce(&listeners, &document.spec)?;

    let gateway = Gateway::new(&document, policy, metrics, access_log);
    gateway.use_keys(keys);
    if let Some(recorder) = recorder {
        gateway.record_to(recorder, clock::now());
    }
    let _reporter = cloud_watch::report(&gateway)?;
    let exporter = traces::begin(&document, &gateway)?;
    let sharing = args.peers.share(spec, &gateway).await?;
    let reporting = global::report(spec, &gateway)?;
    let (phase, phase_seen) = watch::channel(Phase::Serving);
    let fetcher = Rc::new(Fetcher::new(authorization.as_deref().map(Rc::from)));
    let watching = tokio::task::spawn_local(gateway::watch(gateway.clone(), fetcher));
    let keeping = tokio::task::spawn_local(gateway::keep_keys(gateway.clone(), KeysFetcher));
    let recording = tokio::task::spawn_local(gateway::record_states(gateway.clone()));
    let cluster = tokio::task::spawn_local(gateway::watch_cluster(gateway.clone()));
    let accounting = tokio::task::spawn_local(gateway::watch_templates(gateway.clone()));
    let listening = tokio::task::spawn_local(verbosity::on_signal(verbosity));
    let following =
        pods.map(|pods| tokio::task::spawn_local(pods.follow(gateway.clone())).abort_handle());
    let reloading =
        tokio::task::spawn_local(reload::on_change(hangup, gateway.clone(), args.flags));
    let stopping = tokio::task::spawn_local(shutdown::on_signal(stop, gateway.clone(), phase));
    let served = Server::new(gateway, options, listeners, phase_seen).run().await;
    if let Some(sharing) = sharing {
        sharing.leave().await;
    }
    served?;
    for task in [
        watching.abort_handle(),
        keeping.abort_handle(),
        recording.abort_handle(),
        cluster.abort_handle(),
        accounting.abort_handle(),
        listening.abort_handle(),
        reloading.abort_handle(),
        stopping.abort_handle(),
    ]
    .into_iter()
    .chain(reporting.map(|task| task.abort_handle()))
    .chain(following)
    .chain(resource.map(|resource| resource.following))
    {
        task.abort();
    }
    drop(exporter);
    tracing::info!("stopped");
    Ok(())
}

pub(crate) fn open_access_log(document: &Document, metrics: &Metrics) -> anyhow::Result<AccessLog> {
    let target = match &document.spec.access_log.target {
        AccessLogTarget::Stdout => Target::Stdout,
        AccessLogTarget::Stderr => Target::Stderr,
        AccessLogTarget::Off => Target::Off,
        AccessLogTarget::File(path) => Target::File(path.clone()),
    };
    let dropped = Arc::clone(&metrics.gateway().access_log_dropped_lines);
    AccessLog::open(target, dropped).context("cannot open the access log")
}

/// * `flag`: goes before the document's file.
pub(crate) fn open_recording(
    flag: Option<&PathBuf>,
    document: &Document,
    metrics: &Metrics,
) -> anyhow::Result<Option<Recorder>> {
    let spec = &document.spec;
    let Some(file) = flag.or(spec.recording.file.as_ref()) else { return Ok(None) };
    let settings = recording::Settings {
        path: file.clone(),
        rotate_bytes: spec.recording.rotate_bytes,
        files_max: spec.recording.files_max.get(),
        block_tokens: spec.prefix_index.block_tokens.get(),
        software: concat!("wicketgate ", env!("CARGO_PKG_VERSION")).to_owned(),
    };
    let dropped = Arc::clone(&metrics.gateway().recording_dropped_lines);
    let recorder = Recorder::open(settings, dropped)
        .with_context(|| format!("cannot record to {}", file.display()))?;
    tracing::info!(file = %file.display(), "recording: times, lengths and numbered prompt blocks, no text");
    Ok(Some(recorder))
}

pub(crate) fn bind(document: &Document) -> anyhow::Result<Listeners> {
    let at = |address| listen(address).with_context(|| format!("cannot listen on {address}"));
    let listener = &document.spec.listener;
    let tls = match &listener.tls {
        None => None,
        Some(tls) => {
            let clients = match &tls.client_ca {
                None => ClientCertificates::NotAsked,
                Some(ca) if ca.required => ClientCertificates::Required(ca.file.clone()),
                Some(ca) => ClientCertificates::Optional(ca.file.clone()),
            };
            let identity =
                Identity::Files { cert: tls.cert_file.clone(), key: tls.key_file.clone() };
            Some((at(tls.address)?, ServerFiles { identity, clients, protocols: PROTOCOLS }))
        }
    };
    Ok(Listeners { traffic: at(listener.address)?, tls, admin: at(document.spec.admin.address)? })
}

/// Says which doors are open.
pub(crate) fn announce(listeners: &Listeners, spec: &Spec) -> anyhow::Result<()> {
    let traffic = listeners.traffic.local_addr()?;
    tracing::info!(address = %traffic, "traffic: OpenAI-compatible API, HTTP/1.1 and HTTP/2");
    if let Some((listener, _)) = &listeners.tls {
        tracing::info!(address = %listener.local_addr()?, "traffic with TLS");
    }
    let admin = listeners.admin.local_addr()?;
    tracing::info!(address = %admin, "administration: /metrics /readyz /debug/decisions");
    tracing::info!("live page: {}", page_url(admin));
    if !traffic.ip().is_loopback() && spec.serves_strangers() {
        let why = crate::check::open_by(spec);
        tracing::warn!(
            "anyone who reaches {traffic} can use the models: {why} (docs/authentication.md)"
        );
    }
    warn_of_open_admin(admin, spec);
    Ok(())
}

/// Where a browser on this machine finds the live page.
pub(crate) fn page_url(admin: SocketAddr) -> String {
    let ip = match admin.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    format!("http://{}/", SocketAddr::new(ip, admin.port()))
}

pub(crate) fn warn_of_open_admin(admin: std::net::SocketAddr, spec: &Spec) {
    if !admin.ip().is_loopback() && spec.admin.token.is_none() {
        tracing::warn!(
            "anyone who reaches {admin} can read metrics and decisions: set `admin.token`, or listen on 127.0.0.1"
        );
    }
}

/// How many files this process may have open.
pub(crate) fn descriptors() -> u64 {
    const USUAL: u64 = 1024;
    limit_of("/proc/self/limits", "Max open files").unwrap_or(USUAL)
}

fn limit_of(path: &str, name: &str) -> Option<u64> {
    let limits = std::fs::read_to_string(path).ok()?;
    let line = limits.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

/// Memory that this process may use: its cgroup's limit, if it has one.
pub(crate) fn memory() -> Option<u64> {
    /// Without a limit, version 1 tells the largest number of pages.
    const UNLIMITED: u64 = 1 << 60;
    ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"]
        .iter()
        .find_map(|path| std::fs::read_to_string(path).ok()?.trim().parse().ok())
        .filter(|bytes| *bytes < UNLIMITED)
}
