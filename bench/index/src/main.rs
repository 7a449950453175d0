//! The prefix index beside those of other routers, on the same trace in the same run.
//!
//! `cargo run --release --manifest-path bench/index/Cargo.toml`

mod compare;
mod figures;
mod lookups;
mod memory;
mod prompts;
mod scale;
mod subject;

use std::path::PathBuf;

use anyhow::Result;
use clap::Parser;

use subject::{ALL, Subject};

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// Measures the prefix index beside kv-index (smg, SGLang) and dynamo-kv-router (NVIDIA).
#[derive(Parser)]
struct Arguments {
    /// A trace in Mooncake's format: JSON lines with `hash_ids`.
    #[arg(long, default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/testdata/mooncake_conversation_400.jsonl"))]
    trace: PathBuf,
    #[arg(long, value_delimiter = ',')]
    subjects: Vec<Subject>,
    #[arg(long, default_value_t = 64)]
    endpoints: usize,
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Prompts of 2,000 blocks in the index: 2,000 are 4 million pairs.
    #[arg(long, default_value_t = 2000)]
    prompts: u64,
    /// Lookups of one kind in one round.
    #[arg(long, default_value_t = 2000)]
    lookups: usize,
    /// Instead: ours alone, bytes and lookups from 10^4 to 10^7 pairs and 1 to 1,000 holders.
    #[arg(long)]
    scale: bool,
    /// With `--scale`: holders of a block.
    #[arg(long, value_delimiter = ',', default_values_t = [1, 2, 4, 5, 8, 16, 40, 150, 400, 1000])]
    holders: Vec<usize>,
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    if arguments.scale {
        return scale::run(&arguments.holders, arguments.lookups);
    }
    let subjects = if arguments.subjects.is_empty() { &ALL[..] } else { &arguments.subjects };
    compare::run(&compare::Plan {
        trace: &arguments.trace,
        subjects,
        endpoints: arguments.endpoints,
        rounds: arguments.rounds,
        prompts: arguments.prompts,
        lookups: arguments.lookups,
    })
}
