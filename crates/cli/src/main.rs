//! The `wicketgate` binary: compose settings, wire the parts, run.

mod admin_client;
mod bench;
mod check;
mod demo;
mod explain;
mod reload;
mod serve;
mod settings;
mod shutdown;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

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
      where a request would go now, and why";

#[derive(Debug, Subcommand)]
enum Command {
    /// See what it does: a simulated fleet of fast and slow GPUs, under three policies
    Demo(demo::Args),
    /// Benchmarks of routing, on simulated GPUs in virtual time
    Bench(bench::Args),
    /// The gateway with its built-in proxy
    Serve(serve::Args),
    /// Say where a document is wrong, and how to mend it
    Check(check::Args),
    /// Which endpoint a request would get, every score, and the age of every signal
    Explain(explain::Args),
    /// Print a generated page of the documentation
    #[command(hide = true)]
    Docs { page: Page },
    /// Simulated model servers: vLLM, SGLang, TGI or TensorRT-LLM as seen from outside
    Sim(sim::Args),
}

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Demo(args) => demo::run(args),
        Command::Bench(args) => bench::run(&args),
        Command::Serve(args) => serve::run(args),
        Command::Check(args) => return check::run(&args),
        Command::Explain(args) => explain::run(&args),
        Command::Docs { page } => {
            print_page(page);
            Ok(())
        }
        Command::Sim(args) => run_sim(args),
    };
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
}

#[expect(clippy::print_stdout, reason = "a command's output")]
fn print_page(page: Page) {
    match page {
        Page::Metrics => print!("{}", telemetry::names::markdown()),
        Page::Configuration => print!("{}", config::reference_markdown()),
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
