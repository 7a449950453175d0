//! `wicketgate bench`: benchmarks that anyone can run again.

mod flow;
mod global;
mod losses;
mod measured;
mod progress;
mod report;
mod routing;
mod table;
pub(crate) mod text;

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
    /// What is claimed of flow control, on simulated GPUs in virtual time
    Flow(flow::Args),
    /// What befalls many clusters, and what must hold all the same, in virtual time
    Global(global::Args),
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    match &args.what {
        What::Routing(args) => routing::run(args),
        What::Flow(args) => flow::run(args),
        What::Global(args) => global::run(args),
    }
}
