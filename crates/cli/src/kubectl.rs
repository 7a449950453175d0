//! `kubectl wicketgate`: the same binary under the name `kubectl-wicketgate`, for gateways in a cluster.
//!
//! `explain` and `top` are those of `wicketgate`; they ask a gateway's pod through the API server.

mod choose;
mod status;

use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::{Parser, Subcommand};
use wicketgate_kube::gateways::{self, GatewayPod};
use wicketgate_kube::{Cluster, Tunnel, connect_as_user};

use crate::explain;

/// kubectl runs programs of this form of name.
const NAME: &str = "kubectl-wicketgate";

/// The gateways of a cluster: how they are, and why they do what they do.
#[derive(Debug, Parser)]
#[command(name = "kubectl wicketgate", bin_name = "kubectl wicketgate", version)]
struct Plugin {
    #[command(flatten)]
    place: Place,

    #[command(subcommand)]
    command: Command,
}

#[derive(Clone, Debug, clap::Args)]
struct Place {
    /// A kubeconfig [default: $KUBECONFIG, or ~/.kube/config]
    #[arg(long, global = true, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,

    /// A context of it [default: the current one]
    #[arg(long, global = true, value_name = "NAME")]
    context: Option<String>,

    /// Namespace of the gateway [default: the context's]
    #[arg(short = 'n', long, global = true, value_name = "NAME")]
    namespace: Option<String>,
}

#[derive(Clone, Debug, clap::Args)]
struct Which {
    /// The gateway: its resource's name, or its release's [default: the only one]
    #[arg(long, value_name = "NAME")]
    gateway: Option<String>,

    /// One of its pods [default: the first that is ready]
    #[arg(long, value_name = "NAME")]
    pod: Option<String>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Gateways, their conditions and their pods
    Status(status::Args),
    /// Which endpoint a request would get, every score, and the age of every signal
    #[command(mut_arg("admin", |flag| flag.hide(true)))]
    Explain {
        #[command(flatten)]
        which: Which,
        #[command(flatten)]
        args: Box<explain::Args>,
    },
    /// The fleet, live, in a terminal
    #[command(mut_arg("admin", |flag| flag.hide(true)))]
    Top {
        #[command(flatten)]
        which: Which,
        #[command(flatten)]
        args: Box<console::top::Args>,
    },
}

/// Whether this process was started under the plugin's name.
pub(crate) fn is_called_for() -> bool {
    let name = std::env::args_os().next().unwrap_or_default();
    Path::new(&name).file_stem().is_some_and(|stem| stem == NAME)
}

pub(crate) fn run() -> anyhow::Result<()> {
    let plugin = Plugin::parse();
    let place = plugin.place;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let connected = connect_as_user(place.kubeconfig.as_deref(), place.context.as_deref());
    let cluster = runtime.block_on(connected)?;
    let namespace = place.namespace.unwrap_or_else(|| cluster.namespace.clone());
    match plugin.command {
        Command::Status(args) => runtime.block_on(status::run(&args, &cluster, &namespace)),
        Command::Explain { which, args } => {
            let tunnel = runtime.block_on(tunnel(&cluster, &namespace, &which))?;
            explain::run(&args.at(tunnel.address))
        }
        Command::Top { which, args } => {
            let tunnel = runtime.block_on(tunnel(&cluster, &namespace, &which))?;
            let admin = format!("http://{}", tunnel.address).parse();
            console::top::run(&args.at(admin.context("the tunnel has no address")?))
        }
    }
}

/// A way to the administration listener of the pod that is meant.
#[expect(clippy::print_stderr, reason = "says whom it asks, where results do not go")]
async fn tunnel(cluster: &Cluster, namespace: &str, which: &Which) -> anyhow::Result<Tunnel> {
    let pods = gateways::pods(&cluster.client, Some(namespace))
        .await
        .with_context(|| format!("cannot list the pods of {namespace}"))?;
    let GatewayPod { name, admin_port, gateway, .. } =
        choose::pod(&pods, namespace, which.gateway.as_deref(), which.pod.as_deref())?;
    eprintln!("asking pod {name} of gateway {gateway}");
    Ok(Tunnel::open(cluster.client.clone(), namespace, name, *admin_port).await?)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_plugins_commands_make_sense_and_name_no_address() {
        let mut command = Plugin::command();
        command.build();
        for name in ["explain", "top"] {
            let command = command.find_subcommand_mut(name).expect("a command");
            let help = command.render_help().to_string();
            assert!(help.contains("--gateway") && !help.contains("--admin "), "{help}");
        }
    }
}
