//! Chores of the repository: tests with everything they need, generated documents, benchmarks.
//!
//! `cargo xtask test` is the one test command, for people and for CI. It installs what the tests
//! need into the user's cache folder, runs every part, and ends with a line that adds them up.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command line tool talks to people"
)]

mod cache;
mod children;
mod clock;
mod disk;
mod docs;
mod libtest;
mod parts;
mod prometheus;
mod report;
mod run;
mod test;
mod tidy;
mod tools;
mod totals;
mod workspace;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

/// Chores of the Wicketgate repository.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Runs all tests and checks; installs what they need first.
    Test(test::Options),
    /// Runs the checks of our own that need no compilation of the product.
    Tidy,
    /// Writes the generated documents (docs/metrics.md and its like, docs/runbook.md, deploy/prometheus, deploy/grafana).
    Docs {
        /// Only compare; fail when a document on disk differs from the generated one.
        #[arg(long)]
        check: bool,
    },
    /// Paints each dashboard into docs/images, from a fleet under load.
    Pictures,
    /// Says how to run the benchmarks.
    Bench,
}

fn main() -> ExitCode {
    children::stop_all_on_signal();
    match carry_out(&Cli::parse().command) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Whether everything passed; an error is a failure of the chore itself.
fn carry_out(command: &Command) -> Result<bool> {
    match command {
        Command::Test(options) => test::run(options),
        Command::Tidy => test::tidy_only(),
        Command::Docs { check } => docs::run(*check),
        Command::Pictures => prometheus::pictures::run(),
        Command::Bench => {
            println!("{}", BENCH_HELP);
            Ok(true)
        }
    }
}

const BENCH_HELP: &str = "\
The benchmarks live in bench/ and compare with other gateways on this machine, side by side:

    cargo build --release
    bench/run --help

bench/README.md says what each figure means and which command prints it.";
