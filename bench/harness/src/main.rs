//! `wicketgate-bench`: what a gateway costs, measured beside nginx and other routers on the same
//! machine in the same minutes. `bench/README.md` explains each figure.

mod clock;
mod figure;
mod interrupt;
mod load;
mod machine;
mod metric;
mod mock;
mod process;
mod prompts;
mod report;
mod results;
mod subject;

use std::fs;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, bail};
use clap::{Parser, Subcommand};

use figure::{DEFAULT_FIGURES, EPP_FIGURES, Effort, Figure};
use subject::{
    DIRECT, ENVOY, ENVOY_EPP, Kind, NGINX, PICKER, Peer, Plan, WICKETGATE, WICKETGATE_GUARDED,
    WICKETGATE_LOG, WICKETGATE_TRACES,
};

/// nginx once more: how far its ratio is from 1 is the noise of the run.
const CONTROL: &str = "nginx-again";
/// Of the subject with tracing: the default of `observability.tracing.sampleRatio`.
const TRACED_SHARE: f64 = 0.01;

#[derive(Parser)]
#[command(version, about = "Measures the cost of a gateway beside nginx and other routers")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Measures and prints the table.
    Run(Run),
    /// Serves as the model server that the run measures against.
    Mock {
        /// Endpoints, each on a free loopback port.
        #[arg(long, default_value_t = 2)]
        ports: usize,
        #[arg(long, default_value = "127.0.0.1")]
        host: IpAddr,
    },
}

#[derive(clap::Args)]
struct Run {
    /// Figures to measure; without it all but the ones that must be asked for.
    #[arg(long, value_enum, value_delimiter = ',')]
    figure: Vec<Figure>,
    /// Interleaved rounds of the figures under load.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Measured seconds of each subject in each round.
    #[arg(long, default_value_t = 2.5)]
    seconds: f64,
    /// Subjects to measure; without it `direct`, `nginx` and Wicketgate's two modes.
    #[arg(long, value_delimiter = ',')]
    subjects: Vec<String>,
    /// Other routers to measure too; installed from PyPI on first use.
    #[arg(long, value_enum, value_delimiter = ',')]
    peers: Vec<Peer>,
    /// Wicketgate's executable.
    #[arg(long, env = "WICKETGATE_BIN", default_value = "target/release/wicketgate")]
    wicketgate: PathBuf,
    /// Further arguments of `serve`, for both modes; nginx has no access log here either.
    #[arg(long, default_value = "--access-log off", allow_hyphen_values = true)]
    serve_args: String,
    /// Further arguments of `epp`.
    #[arg(long, default_value = "--access-log off", allow_hyphen_values = true)]
    epp_args: String,
    /// Further arguments of `serve` that make it round robin.
    #[arg(long, default_value = "--policy round-robin", allow_hyphen_values = true)]
    round_robin_args: String,
    /// Print JSON lines instead of the table.
    #[arg(long)]
    json: bool,
    /// Also write the JSON lines to this file.
    #[arg(long)]
    out: Option<PathBuf>,
}

fn main() -> anyhow::Result<()> {
    match Cli::parse().command {
        Command::Mock { ports, host } => mock::serve(host, ports),
        Command::Run(run) => measure(&run),
    }
}

fn measure(run: &Run) -> anyhow::Result<()> {
    interrupt::catch()?;
    let plans = plans(run)?;
    let figures = if run.figure.is_empty() { DEFAULT_FIGURES } else { &run.figure };
    let measured = Duration::try_from_secs_f64(run.seconds).context("--seconds")?;
    if run.rounds == 0 || measured < Duration::from_millis(100) {
        bail!("nothing to measure: --rounds is at least 1, --seconds at least 0.1");
    }
    let machine = machine::Machine::look();
    let versions: Vec<(&str, String)> = plans
        .iter()
        .map(|plan| (plan.name, plan.version()))
        .filter(|(_, version)| !version.is_empty())
        .collect();
    let results = figure::run(&plans, figures, Effort { rounds: run.rounds, measured })?;
    let mut names: Vec<&'static str> = plans.iter().map(|plan| plan.name).collect();
    if figures.iter().any(|figure| matches!(figure, Figure::EppRaw | Figure::EppPools)) {
        names.push(PICKER);
    }
    let load_after = machine::load();
    let head = serde_json::json!({
        "machine": machine,
        "load_after": load_after,
        "rounds": run.rounds,
        "seconds": run.seconds,
        "versions": versions.iter().cloned().collect::<std::collections::BTreeMap<_, _>>(),
    });
    let lines = format!("{head}\n{}", report::lines(&results, &names));
    if let Some(file) = &run.out {
        fs::write(file, &lines).with_context(|| format!("cannot write {}", file.display()))?;
    }
    if run.json {
        print!("{lines}");
        return Ok(());
    }
    println!(
        "{} cores of {}, Linux {}; load average {} before, {load_after} after",
        machine.cores, machine.cpu, machine.kernel, machine.load
    );
    for (name, version) in &versions {
        println!("{name}: {version}");
    }
    println!("{} rounds of {} s; n: times nginx\n", run.rounds, run.seconds);
    println!("{}", report::table(&results, &names));
    print!("{}", report::verdicts(&results));
    Ok(())
}

/// The columns, in the table's order: without a gateway, nginx, Wicketgate, the rest.
fn plans(run: &Run) -> anyhow::Result<Vec<Plan>> {
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let wicketgate = |name, args: &str| {
        let args = [words(&run.serve_args), words(args)].concat();
        let program = run.wicketgate.clone();
        let traces = (name == WICKETGATE_TRACES).then_some(TRACED_SHARE);
        Plan { name, kind: Kind::Wicketgate { program, args, traces } }
    };
    let mut plans = vec![
        Plan { name: DIRECT, kind: Kind::Direct },
        Plan { name: NGINX, kind: Kind::Nginx },
        wicketgate("wicketgate-rr", &run.round_robin_args),
        wicketgate(WICKETGATE, ""),
        wicketgate(WICKETGATE_TRACES, ""),
        Plan {
            name: WICKETGATE_GUARDED,
            kind: Kind::Guarded { program: run.wicketgate.clone(), args: words(&run.serve_args) },
        },
        Plan { name: CONTROL, kind: Kind::Nginx },
        Plan {
            name: WICKETGATE_LOG,
            kind: Kind::Wicketgate {
                program: run.wicketgate.clone(),
                args: words("--access-log stdout"),
                traces: None,
            },
        },
    ];
    let (behind_envoy, plain): (Vec<Figure>, Vec<Figure>) =
        run.figure.iter().partition(|figure| EPP_FIGURES.contains(figure));
    let mut peers = run.peers.clone();
    if !behind_envoy.is_empty() {
        let venv = Peer::Envoy.install(&cache()?)?;
        let (program, args) = (run.wicketgate.clone(), words(&run.epp_args));
        plans.push(Plan { name: ENVOY_EPP, kind: Kind::EnvoyEpp { program, args, venv } });
        if !peers.contains(&Peer::Envoy) && run.subjects.is_empty() {
            peers.push(Peer::Envoy);
        }
    }
    if run.subjects.is_empty() {
        plans.retain(|plan| {
            ![CONTROL, WICKETGATE_LOG, WICKETGATE_TRACES, WICKETGATE_GUARDED].contains(&plan.name)
        });
        if plain.is_empty() && !behind_envoy.is_empty() {
            plans.retain(|plan| [DIRECT, WICKETGATE, ENVOY_EPP].contains(&plan.name));
        }
    } else {
        if run.subjects.iter().any(|name| name == ENVOY) && !peers.contains(&Peer::Envoy) {
            peers.push(Peer::Envoy);
        }
        let is_known = |name: &str| name == ENVOY || plans.iter().any(|plan| plan.name == name);
        if let Some(name) = run.subjects.iter().find(|name| !is_known(name)) {
            let known: Vec<&str> = plans.iter().map(|plan| plan.name).collect();
            bail!("no subject `{name}`: {}, or use --peers", known.join(", "));
        }
        plans.retain(|plan| run.subjects.iter().any(|name| name == plan.name));
    }
    for &peer in &peers {
        let venv = peer.install(&cache()?)?;
        plans.extend(peer.columns().iter().map(|&(name, policy)| Plan {
            name,
            kind: Kind::Peer { peer, policy, venv: venv.clone() },
        }));
    }
    Ok(plans)
}

/// Where peers are installed.
fn cache() -> anyhow::Result<PathBuf> {
    let folder = std::env::var_os("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .or_else(|| std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache")));
    let folder = folder.context("neither HOME nor XDG_CACHE_HOME is set")?;
    Ok(folder.join("wicketgate-bench"))
}
