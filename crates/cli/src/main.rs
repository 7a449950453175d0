//! The `wicketgate` binary: compose settings, wire the parts, run.

mod admin_client;
mod autoscale;
mod bench;
mod check;
mod cloud_watch;
mod cluster;
mod controller;
mod demo;
mod epp;
mod explain;
mod global;
mod keys;
mod kubectl;
mod peers;
mod reload;
mod replay;
mod rollout;
mod serve;
mod settings;
mod shutdown;
mod traces;
mod verbosity;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use wicketgate_kube::crd;

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// A GPU-aware gateway for LLM inference: every request goes to the GPU that will answer it first.
#[derive(Debug, Parser)]
#[command(name = "wicketgate", version, propagate_version = true, after_help = EXAMPLES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "\
Examples:
  wicketgate demo
      see what it does, on simulated GPUs
  wicketgate serve --endpoint http://127.0.0.1:8000 --endpoint http://127.0.0.1:8001
      one OpenAI-compatible endpoint on port 8080 for two model servers
  wicketgate check -f gateway.yaml && wicketgate serve -f gateway.yaml
      the same from a document
  wicketgate explain --model llama-3.1-8b --prompt 'Hello'
      where a request would go now, and why
  wicketgate top
      the fleet, live
  wicketgate doctor
      what to change";

#[derive(Debug, Subcommand)]
enum Command {
    /// See what it does: a simulated fleet of fast and slow GPUs, under three policies
    Demo(demo::Args),
    /// Benchmarks of routing, on simulated GPUs in virtual time
    Bench(bench::Args),
    /// What another policy would have made of recorded traffic
    Replay(replay::Args),
    /// The gateway with its built-in proxy
    Serve(serve::Args),
    /// The endpoint picker and body-based router for Envoy, Istio and other proxies (ext_proc)
    Epp(epp::Args),
    /// One endpoint over the gateways of many clusters
    Global(global::Args),
    /// Makes gateways of a cluster's InferenceGatewayConfigs, and tells how they are
    Controller(controller::Args),
    /// An autoscaler's object for a model's deployment, by the load that the gateway sees
    Autoscale(autoscale::Args),
    /// Say where a document is wrong, and how to mend it
    Check(check::Args),
    /// Which endpoint a request would get, every score, and the age of every signal
    Explain(explain::Args),
    /// See and steer how traffic is split between models: canaries, step by step
    Rollout(rollout::Args),
    /// The fleet, live, in a terminal
    Top(console::top::Args),
    /// What to change at a running gateway and its engines, or at the endpoints of a document
    Doctor(console::doctor::Args),
    /// Make, list, revoke and check API keys
    Keys(keys::Args),
    /// Print a generated page of the documentation
    #[command(hide = true)]
    Docs { page: Page },
    /// Simulated model servers: vLLM, SGLang, TGI or TensorRT-LLM as seen from outside
    Sim(sim::Args),
}

fn main() -> ExitCode {
    if kubectl::is_called_for() {
        return finish(kubectl::run());
    }
    let result = match Cli::parse().command {
        Command::Demo(args) => demo::run(args),
        Command::Bench(args) => bench::run(&args),
        Command::Replay(args) => replay::run(&args),
        Command::Serve(args) => serve::run(args),
        Command::Epp(args) => epp::run(args),
        Command::Global(args) => global::run(args),
        Command::Controller(args) => controller::run(args),
        Command::Autoscale(args) => autoscale::run(&args),
        Command::Check(args) => return check::run(&args),
        Command::Explain(args) => explain::run(&args),
        Command::Rollout(args) => rollout::run(&args),
        Command::Top(args) => console::top::run(&args),
        Command::Doctor(args) => return console::doctor::run(&args),
        Command::Keys(args) => keys::run(&args),
        Command::Docs { page } => {
            print_page(page);
            Ok(())
        }
        Command::Sim(args) => run_sim(args),
    };
    finish(result)
}

fn finish(result: anyhow::Result<()>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            report(&error);
            ExitCode::FAILURE
        }
    }
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Page {
    /// `docs/metrics.md`
    Metrics,
    /// `docs/configuration.md`
    Configuration,
    /// `docs/picker-config.md`
    PickerConfig,
    /// `docs/global-config.md`
    GlobalConfig,
    /// `docs/doctor.md`
    Doctor,
    /// `docs/access-log.md`
    AccessLog,
    /// The resource, for an API server
    Crd,
    /// The same in AWS's group
    CrdAws,
}

#[expect(clippy::print_stdout, reason = "a command's output")]
fn print_page(page: Page) {
    match page {
        Page::Metrics => print!("{}", telemetry::names::markdown()),
        Page::Configuration => print!("{}", config::reference_markdown()),
        Page::PickerConfig => print!("{}", config::picker_markdown()),
        Page::GlobalConfig => print!("{}", config::global_markdown()),
        Page::Doctor => print!("{}", console::doctor::markdown()),
        Page::AccessLog => print!("{}", telemetry::access_log::markdown()),
        Page::Crd => print!("{}", crd::manifest(config::ApiGroup::Wicketgate)),
        Page::CrdAws => print!("{}", crd::manifest(config::ApiGroup::Aws)),
    }
}

fn run_sim(args: sim::Args) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(sim::run(args))?;
    Ok(())
}

/// Writes an error and what led to it.
#[expect(clippy::print_stderr, reason = "the last words of a command line program")]
fn report(error: &anyhow::Error) {
    eprintln!("error: {error}");
    for cause in error.chain().skip(1) {
        eprintln!("  because: {cause}");
    }
}
