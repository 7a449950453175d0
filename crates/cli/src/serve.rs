//! `wicketgate serve`.

use std::rc::Rc;
use std::sync::Arc;

use anyhow::Context;
use config::{AccessLogTarget, Document};
use gateway::{Gateway, Policy};
use proxy::{Fetcher, Listeners, Options, Phase, Server, TlsFiles, listen};
use telemetry::{AccessLog, BuildInfo, Metrics, Target};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use crate::settings::Flags;
use crate::shutdown::Signals;
use crate::{reload, shutdown};

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    flags: Flags,

    /// How endpoints are chosen: by the document's weights, or plainly, for comparison
    #[arg(long, value_name = "POLICY", env = "WICKETGATE_POLICY", default_value = "weights")]
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

    /// What to log about ourselves: error, warn, info, debug, trace, or a filter such as `gateway=debug`
    #[arg(long, value_name = "FILTER", env = "WICKETGATE_LOG", default_value = "info")]
    log: String,

    /// Log as JSON lines
    #[arg(long, env = "WICKETGATE_LOG_JSON")]
    log_json: bool,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum PolicyName {
    Weights,
    RoundRobin,
    LeastRequest,
}

pub(crate) fn run(args: Args) -> anyhow::Result<()> {
    telemetry::logging::init(&args.log, args.log_json)?;
    let document = args.flags.document()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let local = tokio::task::LocalSet::new();
    local.block_on(&runtime, serve(args, document))
}

async fn serve(args: Args, document: Document) -> anyhow::Result<()> {
    for warning in &document.warnings {
        tracing::warn!("{warning}");
    }
    if document.spec.auth.is_some() {
        anyhow::bail!(
            "the document asks for authentication (spec.auth), which this version cannot enforce: \
             it will not serve openly what was meant to be closed. Remove `auth` to serve without it"
        );
    }
    let metrics = Metrics::new(BuildInfo { version: env!("CARGO_PKG_VERSION"), revision: "" });
    let access_log = open_access_log(&document, &metrics)?;
    let policy = match args.policy {
        PolicyName::Weights => Policy::Weights,
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
    };
    // Before anyone can know that this process runs: the default action of a signal is to kill it.
    let (stop, hangup) = (Signals::catch()?, signal(SignalKind::hangup())?);
    announce(&listeners)?;

    let gateway = Gateway::new(&document, policy, metrics, access_log);
    let (phase, phase_seen) = watch::channel(Phase::Serving);
    let fetcher = Rc::new(Fetcher::new(authorization.as_deref().map(Rc::from)));
    let watching = tokio::task::spawn_local(gateway::watch(gateway.clone(), fetcher));
    let reloading =
        tokio::task::spawn_local(reload::on_change(hangup, gateway.clone(), args.flags));
    let stopping = tokio::task::spawn_local(shutdown::on_signal(stop, gateway.clone(), phase));
    Server::new(gateway, options, listeners, phase_seen).run().await?;
    for task in [watching.abort_handle(), reloading.abort_handle(), stopping.abort_handle()] {
        task.abort();
    }
    tracing::info!("stopped");
    Ok(())
}

fn open_access_log(document: &Document, metrics: &Metrics) -> anyhow::Result<AccessLog> {
    let target = match &document.spec.access_log.target {
        AccessLogTarget::Stdout => Target::Stdout,
        AccessLogTarget::Stderr => Target::Stderr,
        AccessLogTarget::Off => Target::Off,
        AccessLogTarget::File(path) => Target::File(path.clone()),
    };
    let dropped = Arc::clone(&metrics.gateway().access_log_dropped_lines);
    AccessLog::open(target, dropped).context("cannot open the access log")
}

fn bind(document: &Document) -> anyhow::Result<Listeners> {
    let at = |address| listen(address).with_context(|| format!("cannot listen on {address}"));
    let listener = &document.spec.listener;
    let tls = match &listener.tls {
        None => None,
        Some(tls) => {
            let files = TlsFiles { cert: tls.cert_file.clone(), key: tls.key_file.clone() };
            Some((at(tls.address)?, files))
        }
    };
    Ok(Listeners { traffic: at(listener.address)?, tls, admin: at(document.spec.admin.address)? })
}

/// Says which doors are open.
fn announce(listeners: &Listeners) -> anyhow::Result<()> {
    let traffic = listeners.traffic.local_addr()?;
    tracing::info!(address = %traffic, "traffic: OpenAI-compatible API, HTTP/1.1 and HTTP/2");
    if let Some((listener, _)) = &listeners.tls {
        tracing::info!(address = %listener.local_addr()?, "traffic with TLS");
    }
    let admin = listeners.admin.local_addr()?;
    tracing::info!(address = %admin, "administration: /metrics /readyz /debug/decisions");
    if !traffic.ip().is_loopback() {
        tracing::warn!(
            "anyone who reaches {traffic} can use the models: there is no authentication yet"
        );
    }
    if !admin.ip().is_loopback() {
        tracing::warn!("anyone who reaches {admin} can read metrics and decisions");
    }
    Ok(())
}

/// How many files this process may have open.
fn descriptors() -> u64 {
    const USUAL: u64 = 1024;
    limit_of("/proc/self/limits", "Max open files").unwrap_or(USUAL)
}

fn limit_of(path: &str, name: &str) -> Option<u64> {
    let limits = std::fs::read_to_string(path).ok()?;
    let line = limits.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

/// Memory that this process may use: its cgroup's limit, if it has one.
fn memory() -> Option<u64> {
    /// Without a limit, version 1 tells the largest number of pages.
    const UNLIMITED: u64 = 1 << 60;
    ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"]
        .iter()
        .find_map(|path| std::fs::read_to_string(path).ok()?.trim().parse().ok())
        .filter(|bytes| *bytes < UNLIMITED)
}
