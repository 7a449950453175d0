//! `wicketgate controller`.

mod health;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use telemetry::{BuildInfo, Metrics};
use tokio::net::TcpListener;
use wicketgate_kube::{ControllerSettings, Images, Timing, connect, control};

use crate::shutdown::Signals;

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Args {
    /// Cluster to act in [default: the one in which this runs]
    #[arg(long, value_name = "FILE", env = "WICKETGATE_KUBECONFIG")]
    kubeconfig: Option<PathBuf>,

    /// Namespace of the lease [default: our pod's, or the kubeconfig's]
    #[arg(long, value_name = "NAME", env = "WICKETGATE_NAMESPACE")]
    namespace: Option<String>,

    /// Act upon resources of this namespace only [default: all namespaces]
    #[arg(long, value_name = "NAME", env = "WICKETGATE_WATCH_NAMESPACE")]
    watch_namespace: Option<String>,

    /// Act upon AWS's group (inference.sagemaker.aws.amazon.com) too; its definition must be there
    #[arg(long, env = "WICKETGATE_WATCH_AWS_GROUP")]
    watch_aws_group: bool,

    /// Image of the gateways' pods
    #[arg(long, value_name = "IMAGE", env = "WICKETGATE_GATEWAY_IMAGE", default_value = IMAGE)]
    image: String,

    /// When that image is pulled
    #[arg(
        long,
        value_name = "POLICY",
        env = "WICKETGATE_GATEWAY_IMAGE_PULL_POLICY",
        default_value = "IfNotPresent",
        value_parser = ["Always", "IfNotPresent", "Never"]
    )]
    image_pull_policy: String,

    /// Tells this process from others that could lead [default: the host's name]
    #[arg(long, value_name = "NAME", env = "WICKETGATE_IDENTITY")]
    identity: Option<String>,

    /// Name of the lease
    #[arg(
        long,
        value_name = "NAME",
        env = "WICKETGATE_LEASE",
        default_value = "wicketgate-controller"
    )]
    lease: String,

    /// A leader that is not heard of for so long is replaced
    #[arg(
        long,
        value_name = "DURATION",
        env = "WICKETGATE_LEASE_DURATION",
        default_value = "15s",
        value_parser = lease_duration
    )]
    lease_duration: Duration,

    /// Health and metrics: /healthz, /readyz, /metrics
    #[arg(long, value_name = "ADDR", env = "WICKETGATE_HEALTH", default_value = "0.0.0.0:9091")]
    health: SocketAddr,

    /// What to log about ourselves: error, warn, info, debug, trace, or a filter such as `kube=debug`
    #[arg(long, value_name = "FILTER", env = "WICKETGATE_LOG", default_value = "info")]
    log: String,

    /// Log as JSON lines
    #[arg(long, env = "WICKETGATE_LOG_JSON")]
    log_json: bool,
}

const IMAGE: &str = concat!("wicketgate:", env!("CARGO_PKG_VERSION"));

fn lease_duration(text: &str) -> Result<Duration, String> {
    let duration = humantime::parse_duration(text).map_err(|error| error.to_string())?;
    if duration < Duration::from_secs(1) || duration.subsec_nanos() != 0 {
        return Err("whole seconds, at least one: Kubernetes counts a lease in them".to_owned());
    }
    Ok(duration)
}

pub(crate) fn run(args: Args) -> anyhow::Result<()> {
    telemetry::logging::init(&args.log, args.log_json)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(serve(args))
}

async fn serve(args: Args) -> anyhow::Result<()> {
    let signals = Signals::catch()?;
    let cluster = connect(args.kubeconfig.as_deref())
        .await
        .context("a controller needs a cluster: run it in a pod, or name one with --kubeconfig")?;
    let listener = TcpListener::bind(args.health)
        .await
        .with_context(|| format!("cannot listen on {}", args.health))?;
    tracing::info!(address = %listener.local_addr()?, "administration: /healthz /readyz /metrics");
    let metrics = Metrics::new(BuildInfo { version: env!("CARGO_PKG_VERSION"), revision: "" });
    let health = tokio::spawn(health::serve(listener, metrics.clone()));
    let settings = ControllerSettings {
        identity: args.identity.unwrap_or_else(host_name),
        lease_namespace: args.namespace.unwrap_or_else(|| cluster.namespace.clone()),
        lease_name: args.lease,
        timing: Timing::of(args.lease_duration),
        namespace: args.watch_namespace,
        is_for_aws: args.watch_aws_group,
        images: Images { image: args.image, pull_policy: args.image_pull_policy },
    };
    let controlled = control(cluster, settings, metrics, signals.first()).await;
    health.abort();
    controlled?;
    tracing::info!("stopped");
    Ok(())
}

/// A pod's name, inside one; with a number of our own, so that two processes of one host are two.
fn host_name() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    format!("{}-{}", name.trim(), std::process::id())
}
