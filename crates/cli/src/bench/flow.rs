//! `wicketgate bench flow`: what is claimed of flow control, shown on simulated GPUs.

use std::time::Duration;

use clap::builder::PossibleValuesParser;
use comfy_table::{CellAlignment, Table, presets};
use lab::crowd::ceilings::{self, CEILINGS, Ceiling, CeilingRow, TRAFFIC};
use lab::crowd::claims::{CLAIMS, Claim, Trial};
use serde::Serialize;

use super::progress::Progress;

const ALL: &str = "all";
/// The part that is no claim but a comparison.
const COMPARISON: &str = "ceilings";

/// What is run.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Claims, `ceilings`, or `all`
    #[arg(long, value_name = "NAME,…", value_delimiter = ',', default_value = ALL, value_parser = names())]
    only: Vec<String>,
    /// Seeds: 1 to this number
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=100))]
    seeds: u64,
    /// Simulated time that counts, after a quarter of it (a minute at most) to warm up
    #[arg(long, value_name = "D", default_value = "2m", value_parser = duration)]
    duration: Duration,
    /// A JSON object a line for each claim or ceiling and seed
    #[arg(long)]
    json: bool,
}

fn names() -> PossibleValuesParser {
    let claims = CLAIMS.iter().map(|(name, _)| *name);
    PossibleValuesParser::new(claims.chain([COMPARISON, ALL]))
}

fn duration(text: &str) -> Result<Duration, String> {
    let duration = humantime::parse_duration(text).map_err(|error| error.to_string())?;
    let range = Duration::from_secs(10)..=Duration::from_secs(3600);
    if range.contains(&duration) { Ok(duration) } else { Err("not between 10s and 1h".to_owned()) }
}

/// When an endpoint is full, in the runs of the claims: by default, with twice as much left free, by its
/// queue alone, which costs no throughput, and by what it has in flight.
const FULL: [Ceiling; 4] =
    [Ceiling::Reserve(200), Ceiling::Reserve(150), Ceiling::Waiting(2), Ceiling::InFlight(128)];

/// One line of `--json`.
#[derive(Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
enum Line<'a> {
    Claim {
        seed: u64,
        full: String,
        #[serde(flatten)]
        claim: &'a Claim,
    },
    Ceiling {
        seed: u64,
        #[serde(flatten)]
        row: &'a CeilingRow,
    },
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let is_asked = |name: &str| args.only.iter().any(|only| only == name || only == ALL);
    let claims: Vec<_> = CLAIMS.iter().filter(|(name, _)| is_asked(name)).collect();
    let compared = if is_asked(COMPARISON) { TRAFFIC.len() * CEILINGS.len() } else { 0 };
    let seeds = usize::try_from(args.seeds)?;
    let progress = Progress::new((claims.len() * FULL.len() + compared) * seeds);
    for seed in 1..=args.seeds {
        for (name, play) in &claims {
            let mut results = Vec::new();
            for ceiling in FULL {
                results.push(play(&Trial { duration: args.duration, ceiling, seed })?);
                progress.done(name);
            }
            if args.json {
                for (ceiling, claim) in FULL.iter().zip(&results) {
                    let line = Line::Claim { seed, full: ceiling.to_string(), claim };
                    progress.print(&serde_json::to_string(&line)?);
                }
            } else {
                progress.print(&claim_table(seed, &results));
            }
        }
        if compared > 0 {
            compare(args, seed, &progress)?;
        }
    }
    if !args.json {
        progress.print(LEGEND);
    }
    Ok(())
}

const LEGEND: &str = "
Engines are simulated (docs/benchmarks.md says how well): four with Llama 3.1 8B on an H100 each, which run at most 256 requests
at once. Loads are shares of what they can do. Columns: when an endpoint counts as full; `2 waiting, reserve 2.00` is the gateway's
default. docs/flow-control.md explains the claims.";

fn compare(args: &Args, seed: u64, progress: &Progress) -> anyhow::Result<()> {
    for traffic in TRAFFIC {
        let mut rows = Vec::new();
        for ceiling in CEILINGS {
            let row = ceilings::row(traffic, ceiling, args.duration, seed)?;
            if args.json {
                progress.print(&serde_json::to_string(&Line::Ceiling { seed, row: &row })?);
            }
            rows.push(row);
            progress.done(traffic);
        }
        if !args.json {
            progress.print(&ceiling_table(traffic, seed, &rows));
        }
    }
    Ok(())
}

/// * `results`: one for each of [`FULL`].
fn claim_table(seed: u64, results: &[Claim]) -> String {
    let Some(first) = results.first() else { return String::new() };
    let mut header = vec![format!("seed {seed}")];
    header.extend(FULL.map(|ceiling| ceiling.to_string()));
    let mut table = new_table(header);
    for (at, line) in first.measured.iter().enumerate() {
        let mut row = vec![line.what.to_owned()];
        for claim in results {
            row.push(format!("{} {}", short(claim.measured[at].value), line.unit));
        }
        table.add_row(row);
    }
    let mut met = vec!["claim met".to_owned()];
    met.extend(results.iter().map(|claim| if claim.is_met { "yes" } else { "no" }.to_owned()));
    table.add_row(met);
    format!("\n{}: {}\n{table}", first.name, first.says)
}

fn ceiling_table(traffic: &str, seed: u64, rows: &[CeilingRow]) -> String {
    let header = [
        "full at",
        "answer tok/s",
        "goodput",
        "Critical TTFT P50 ms",
        "P99 ms",
        "in engine's queue P50",
        "P99.9",
    ];
    let mut table = new_table(header.map(str::to_owned).into());
    for row in rows {
        table.add_row([
            row.ceiling.clone(),
            short(row.output_tokens_per_second),
            format!("{:.3}", row.goodput),
            short(row.critical_ttft_p50_ms),
            short(row.critical_ttft_p99_ms),
            row.engine_queue_p50.to_string(),
            row.engine_queue_p999.to_string(),
        ]);
    }
    format!(
        "\nceilings: {traffic} at 1.2 times what the fleet can do, a sixth of it Critical; seed {seed}\n{table}"
    )
}

fn new_table(header: Vec<String>) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING).set_header(header);
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

fn short(value: f64) -> String {
    if value.abs() >= 100.0 { format!("{value:.0}") } else { format!("{value:.2}") }
}
