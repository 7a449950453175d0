//! `wicketgate bench`: benchmarks that anyone can run again.

mod progress;
mod routing;
mod table;

/// What to measure.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    /// Routing policies against each other, on simulated GPUs in virtual time
    Routing(routing::Args),
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    match &args.what {
        What::Routing(args) => routing::run(args),
    }
}
