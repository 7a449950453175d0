//! `wicketgate bench global`: what befalls many clusters, and what must hold all the same, in virtual time.

mod page;
mod table;

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use anyhow::Context;
use clap::builder::PossibleValuesParser;
use lab::globe::{self, Outcome, Policy, SCENARIOS, Scenario, Settings, Verdict, World};
use serde::Serialize;

use super::progress::Progress;

const ALL: &str = "all";

/// What is run.
#[derive(Debug, clap::Args)]
#[command(after_help = help())]
pub(crate) struct Args {
    /// Scenarios, or `all`
    #[arg(long, value_name = "NAME,…", value_delimiter = ',', default_value = ALL, value_parser = names(SCENARIOS.iter().map(|scenario| scenario.name)), hide_possible_values = true)]
    scenario: Vec<String>,
    /// Policies, or `all`
    #[arg(long, value_name = "NAME,…", value_delimiter = ',', default_value = "wicketgate", value_parser = names(Policy::ALL.into_iter().map(Policy::name)), hide_possible_values = true)]
    policy: Vec<String>,
    /// Seeds: 1 to this number
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=100))]
    seeds: u64,
    /// Clusters
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u16).range(2..=100))]
    clusters: u16,
    /// Regions, of the twenty that are known; at most as many as clusters
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u16).range(1..=20))]
    regions: u16,
    /// Endpoints of a cluster
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    endpoints: u32,
    /// Real requests for each that is played; clusters have as many times fewer places. 1: all are played
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=1000))]
    scale: u32,
    /// Share of the clusters' capacity that is offered. Default: each scenario's own
    #[arg(long, value_name = "ρ", value_parser = load)]
    load: Option<f64>,
    /// A JSON object a line for each scenario, policy and seed
    #[arg(long)]
    json: bool,
    /// Also write DIR/index.html, one page that needs nothing else, and DIR/results.jsonl
    #[arg(long, value_name = "DIR")]
    report: Option<PathBuf>,
}

/// One play.
#[derive(Clone, Debug, Serialize)]
struct Line {
    scenario: &'static str,
    policy: &'static str,
    seed: u64,
    clusters: usize,
    regions: usize,
    endpoints: u32,
    scale: u32,
    load: f64,
    #[serde(flatten)]
    outcome: Outcome,
    /// What must hold; of our policy only.
    verdicts: Vec<Verdict>,
}

fn names(names: impl Iterator<Item = &'static str>) -> PossibleValuesParser {
    PossibleValuesParser::new(names.chain([ALL]))
}

fn help() -> String {
    let mut help = "Scenarios:\n".to_owned();
    for scenario in SCENARIOS {
        help.push_str(&format!("  {:<18} {}\n", scenario.name, scenario.about));
    }
    help.push_str("\nPolicies:\n");
    for policy in Policy::ALL {
        help.push_str(&format!("  {:<18} {}\n", policy.name(), policy.about()));
    }
    help.push_str(
        "\nThe exit code is 1 if something that must hold did not.\n\nExamples:\n  wicketgate bench global\n  \
         wicketgate bench global --scenario region-lost --policy all\n  \
         wicketgate bench global --policy all --seeds 3 --report report",
    );
    help
}

fn load(text: &str) -> Result<f64, String> {
    let load: f64 = text.parse().map_err(|_| format!("`{text}` is no number"))?;
    if load > 0.0 && load <= 3.0 { Ok(load) } else { Err("not above 0 and at most 3".to_owned()) }
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let world = World::new(args.clusters.into(), args.regions.into(), args.endpoints);
    let scenarios: Vec<&Scenario> =
        SCENARIOS.iter().filter(|scenario| is_asked(&args.scenario, scenario.name)).collect();
    let policies: Vec<Policy> =
        Policy::ALL.into_iter().filter(|policy| is_asked(&args.policy, policy.name())).collect();
    let seeds = usize::try_from(args.seeds)?;
    let progress = Progress::new(scenarios.len() * policies.len() * seeds);
    let mut all = Vec::new();
    for scenario in scenarios {
        let jobs: Vec<(Policy, u64)> = policies
            .iter()
            .flat_map(|policy| (1..=args.seeds).map(|seed| (*policy, seed)))
            .collect();
        let lines = play(args, &world, scenario, &jobs, &|| progress.done(scenario.name));
        if args.json {
            for line in &lines {
                progress.print(&serde_json::to_string(line)?);
            }
        } else {
            progress.print(&table::section(scenario, &lines));
        }
        all.extend(lines);
    }
    if !args.json {
        progress.print(table::LEGEND);
    }
    if let Some(dir) = &args.report {
        write_report(dir, &all)?;
        progress.note(&format!("report: {}", dir.join("index.html").display()));
    }
    let broken = all.iter().flat_map(|line| &line.verdicts).filter(|of| !of.holds).count();
    if broken > 0 {
        anyhow::bail!("{broken} of what must hold did not");
    }
    Ok(())
}

fn is_asked(asked: &[String], name: &str) -> bool {
    asked.iter().any(|asked| asked == ALL || asked == name)
}

/// Plays share nothing, so who plays which does not matter.
fn play(
    args: &Args,
    world: &World,
    scenario: &Scenario,
    jobs: &[(Policy, u64)],
    done: &(dyn Fn() + Sync),
) -> Vec<Line> {
    let next = AtomicUsize::new(0);
    let lines = Mutex::new(Vec::with_capacity(jobs.len()));
    let player = || {
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some((policy, seed)) = jobs.get(at) else { return };
            let settings = Settings { seed: *seed, scale: args.scale.into(), load: args.load };
            let outcome = globe::play(world, scenario, *policy, &settings);
            let is_ours = *policy == Policy::Wicketgate;
            let verdicts = if is_ours { globe::judge(scenario, &outcome) } else { Vec::new() };
            let line = Line {
                scenario: scenario.name,
                policy: policy.name(),
                seed: *seed,
                clusters: world.clusters(),
                regions: world.regions(),
                endpoints: args.endpoints,
                scale: args.scale,
                load: args.load.unwrap_or(scenario.load),
                outcome,
                verdicts,
            };
            lines.lock().unwrap_or_else(PoisonError::into_inner).push((at, line));
            done();
        }
    };
    let players = thread::available_parallelism().map_or(1, NonZeroUsize::get).min(jobs.len());
    thread::scope(|scope| (0..players).for_each(|_| drop(scope.spawn(player))));
    let mut lines = lines.into_inner().unwrap_or_else(PoisonError::into_inner);
    lines.sort_by_key(|(at, _)| *at);
    lines.into_iter().map(|(_, line)| line).collect()
}

fn write_report(dir: &Path, lines: &[Line]) -> anyhow::Result<()> {
    let cannot = |path: &Path| format!("cannot write {}", path.display());
    std::fs::create_dir_all(dir).with_context(|| cannot(dir))?;
    let mut raw = String::new();
    for line in lines {
        raw.push_str(&serde_json::to_string(line)?);
        raw.push('\n');
    }
    for (name, text) in [("results.jsonl", raw), ("index.html", page::page(lines))] {
        let path = dir.join(name);
        std::fs::write(&path, text).with_context(|| cannot(&path))?;
    }
    Ok(())
}
