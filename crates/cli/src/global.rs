//! `wicketgate global`: the router over clusters; and a gateway's part as a member.

mod command;
mod reload;
mod run;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use clap::Subcommand;
use config::{AccessLogTarget, GlobalDocument, Overrides, Spec};
use gateway::Gateway;
use global::Reporter;
use tokio::task::JoinHandle;

#[derive(Clone, Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true, after_help = NOTE)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Option<Command>,

    #[command(flatten)]
    flags: Flags,
}

const NOTE: &str = "\
Examples:
  wicketgate global -f global.yaml
      the router
  wicketgate global status
      members, states, shares
  wicketgate global drain oregon && wicketgate global undrain oregon
      send a cluster nothing new; take it back";

#[derive(Clone, Debug, Subcommand)]
enum Command {
    /// Members with their states and shares, as one router sees them
    Status(command::Of),
    /// Send a member nothing new; what it has goes on
    Drain(command::OfMember),
    /// Take a drained member back
    Undrain(command::OfMember),
}

/// How the router runs. Each is also a `WICKETGATE_…` variable.
#[derive(Clone, Debug, clap::Args)]
struct Flags {
    /// The document (GlobalInferenceGateway, YAML or JSON); read again when it changes
    #[arg(short = 'f', long = "file", value_name = "FILE", env = "WICKETGATE_FILE")]
    file: Option<PathBuf>,

    /// Where clients connect [default: the document's, else 0.0.0.0:8080]
    #[arg(long, value_name = "ADDR", env = "WICKETGATE_LISTEN")]
    listen: Option<SocketAddr>,

    /// Metrics, health and members [default: the document's, else 127.0.0.1:9090]
    #[arg(long, value_name = "ADDR", env = "WICKETGATE_ADMIN")]
    admin: Option<SocketAddr>,

    /// Where members report [default: the document's, else 0.0.0.0:9005]
    #[arg(long, value_name = "ADDR", env = "WICKETGATE_HEARTBEATS")]
    heartbeats: Option<SocketAddr>,

    /// One JSON line for each request: stdout, stderr, off, or a file [default: the document's, else stdout]
    #[arg(long, value_name = "TARGET", env = "WICKETGATE_ACCESS_LOG", value_parser = crate::settings::access_log)]
    access_log: Option<AccessLogTarget>,

    /// Threads that serve traffic [default: one for each core]
    #[arg(
        long,
        value_name = "N",
        env = "WICKETGATE_WORKERS",
        default_value_t = 0,
        hide_default_value = true
    )]
    workers: usize,

    /// What to log about ourselves: error, warn, info, debug, trace, or a filter such as `gateway=debug`
    #[arg(long, value_name = "FILTER", env = "WICKETGATE_LOG", default_value = "info")]
    log: String,

    /// Log as JSON lines
    #[arg(long, env = "WICKETGATE_LOG_JSON")]
    log_json: bool,
}

impl Flags {
    /// The document in force now, under what the flags say.
    fn document(&self) -> anyhow::Result<GlobalDocument> {
        let Some(file) = &self.file else {
            anyhow::bail!("name the router's document: wicketgate global -f global.yaml");
        };
        let mut document = GlobalDocument::load(file)
            .map_err(|errors| anyhow::anyhow!("{}\n{errors}", file.display()))?;
        document.gateway.apply(&Overrides {
            listen: self.listen,
            admin: self.admin,
            access_log: self.access_log.clone(),
            endpoints: Vec::new(),
        });
        if let Some(address) = self.heartbeats {
            if document.global.heartbeats.tls.is_none() && !address.ip().is_loopback() {
                anyhow::bail!(
                    "--heartbeats {address}: without `heartbeats.tls` members report on the loopback only"
                );
            }
            document.global.heartbeats.address = address;
        }
        Ok(document)
    }
}

pub(crate) fn run(args: Args) -> anyhow::Result<()> {
    match &args.command {
        None => run::run(args.flags),
        Some(Command::Status(of)) => command::status(of),
        Some(Command::Drain(of)) => command::drain(of, true),
        Some(Command::Undrain(of)) => command::drain(of, false),
    }
}

/// Begins to report to the global routers, where the document says so.
pub(crate) fn report(
    spec: &Spec,
    gateway: &Arc<Gateway>,
) -> anyhow::Result<Option<JoinHandle<()>>> {
    let Some(membership) = &spec.global else { return Ok(None) };
    let reporter = Reporter::new(gateway.clone(), membership.clone())?;
    let (cluster, routers) = (&membership.cluster, &membership.routers);
    tracing::info!(cluster, ?routers, "a member of the global tier: reports to its routers");
    Ok(Some(tokio::task::spawn_local(reporter.run())))
}
