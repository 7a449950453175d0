//! `wicketgate bench routing`: every asked scenario, load, policy and seed, two at a time and more
//! where there are processors.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use clap::builder::PossibleValuesParser;
use lab::{Plan, Policy, RunResult, SCENARIOS, Scenario, Settings, Traffic};
use serde::Serialize;

use super::progress::Progress;
use super::table;

const ALL: &str = "all";

/// What is run.
#[derive(Debug, clap::Args)]
#[command(after_help = help())]
pub(crate) struct Args {
    /// Scenarios, or `all`
    #[arg(long, value_name = "NAME,…", value_delimiter = ',', default_value = "mixed-8b,prefix-8b,uniform", value_parser = names(scenario_names()), hide_possible_values = true)]
    scenario: Vec<String>,
    /// Load factors: shares of what the fleet can do at most. Default: each scenario's own
    #[arg(long, value_name = "ρ,…", value_delimiter = ',', value_parser = load)]
    load: Vec<f64>,
    /// Policies, or `all`
    #[arg(long, value_name = "NAME,…", value_delimiter = ',', default_value = ALL, value_parser = names(policy_names()), hide_possible_values = true)]
    policy: Vec<String>,
    /// Seeds: 1 to this number
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=1000))]
    seeds: u64,
    /// Simulated time that counts, after a quarter of it (a minute at most) to warm up
    #[arg(long, value_name = "D", default_value = "2m", value_parser = duration)]
    duration: Duration,
    /// Size of the fleet, in the scenario's proportions. Default: the scenario's own
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    endpoints: Option<u16>,
    /// A JSON object a line for each scenario, load, policy and seed
    #[arg(long)]
    json: bool,
}

fn scenario_names() -> impl Iterator<Item = &'static str> {
    SCENARIOS.iter().map(|scenario| scenario.name)
}

fn policy_names() -> impl Iterator<Item = &'static str> {
    Policy::ALL.into_iter().map(Policy::name)
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
        "\nExamples:\n  wicketgate bench routing --scenario mixed-8b --load 0.3,0.7\n  \
         wicketgate bench routing --scenario all --seeds 10 --duration 20m --json > results.jsonl",
    );
    help
}

fn load(text: &str) -> Result<f64, String> {
    let load: f64 = text.parse().map_err(|_| format!("`{text}` is no number"))?;
    if load > 0.0 && load <= 10.0 { Ok(load) } else { Err("not above 0 and at most 10".to_owned()) }
}

fn duration(text: &str) -> Result<Duration, String> {
    let duration = humantime::parse_duration(text).map_err(|error| error.to_string())?;
    let longest = Duration::from_secs(24 * 3600);
    if duration >= Duration::from_secs(1) && duration <= longest {
        Ok(duration)
    } else {
        Err("not between 1s and 24h".to_owned())
    }
}

/// One line of `--json`.
#[derive(Serialize)]
struct Line<'a> {
    scenario: &'static str,
    load: f64,
    policy: &'static str,
    seed: u64,
    #[serde(flatten)]
    result: &'a RunResult,
    /// What a cache without bounds would hold.
    prefix_hit_bound: f64,
    requests_per_second: f64,
    fleet_capacity_requests_per_second: f64,
    round_robin_knee_requests_per_second: f64,
    endpoints: usize,
    duration_seconds: f64,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let scenarios = chosen(&args.scenario, scenario_names(), Scenario::find)?;
    let policies = chosen(&args.policy, policy_names(), Policy::find)?;
    let settings = Settings::new(args.duration);
    let loads = |scenario: &'static Scenario| match args.load.as_slice() {
        [] => scenario.loads,
        asked => asked,
    };
    let seeds = usize::try_from(args.seeds)?;
    let cells: usize = scenarios.iter().map(|scenario| loads(scenario).len()).sum();
    let progress = Progress::new(cells * policies.len() * seeds);
    for scenario in scenarios {
        let plan = Plan::new(scenario, args.endpoints.map(usize::from))?;
        if !args.json {
            progress.print(&table::heading(&plan));
        }
        for load in loads(scenario) {
            let traffics: Vec<Traffic> =
                (1..=args.seeds).map(|seed| plan.traffic(*load, seed, &settings)).collect();
            let what = format!("{} at {load}", scenario.name);
            let results = play(&plan, &policies, &traffics, &settings, &|| progress.done(&what));
            if args.json {
                for (policy, results) in policies.iter().zip(&results) {
                    for (traffic, result) in traffics.iter().zip(results) {
                        let line = line(&plan, *load, *policy, traffic, result, &settings);
                        progress.print(&serde_json::to_string(&line)?);
                    }
                }
            } else {
                progress.print(&table::cell(*load, &policies, &traffics, &results));
            }
        }
    }
    if !args.json {
        progress.print(table::LEGEND);
    }
    Ok(())
}

fn line<'a>(
    plan: &Plan,
    load: f64,
    policy: Policy,
    traffic: &Traffic,
    result: &'a RunResult,
    settings: &Settings,
) -> Line<'a> {
    let rounded = |value: f64| (value * 1e4).round() / 1e4;
    Line {
        scenario: plan.scenario.name,
        load,
        policy: policy.name(),
        seed: traffic.seed,
        result,
        prefix_hit_bound: rounded(traffic.prefix_hit_bound),
        requests_per_second: rounded(traffic.rate),
        fleet_capacity_requests_per_second: rounded(plan.capacity()),
        round_robin_knee_requests_per_second: rounded(plan.round_robin_knee()),
        endpoints: plan.rows.len(),
        duration_seconds: settings.duration.as_secs_f64(),
    }
}

/// The results of each policy, by seed. Runs share nothing, so who plays which does not matter.
fn play(
    plan: &Plan,
    policies: &[Policy],
    traffics: &[Traffic],
    settings: &Settings,
    done: &(dyn Fn() + Sync),
) -> Vec<Vec<RunResult>> {
    let jobs: Vec<(Policy, &Traffic)> = policies
        .iter()
        .flat_map(|policy| traffics.iter().map(|traffic| (*policy, traffic)))
        .collect();
    let next = AtomicUsize::new(0);
    let results = Mutex::new(Vec::with_capacity(jobs.len()));
    let player = || {
        while let Some((policy, traffic)) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
            let result = plan.result(&plan.run(traffic, *policy, settings));
            let mut results = results.lock().unwrap_or_else(PoisonError::into_inner);
            results.push((*policy, traffic.seed, result));
            drop(results);
            done();
        }
    };
    let players = thread::available_parallelism().map_or(1, NonZeroUsize::get).min(jobs.len());
    thread::scope(|scope| (0..players).for_each(|_| drop(scope.spawn(player))));
    let mut results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    results.sort_by_key(|(_, seed, _)| *seed);
    let of = |policy: &Policy| {
        let mine = results.iter().filter(|(other, ..)| other == policy);
        mine.map(|(_, _, result)| result.clone()).collect()
    };
    policies.iter().map(of).collect()
}

/// What is named, each once and in the order of `all`.
fn chosen<T, E>(
    asked: &[String],
    all: impl Iterator<Item = &'static str>,
    find: impl Fn(&str) -> Result<T, E>,
) -> Result<Vec<T>, E> {
    let is_asked = |name: &&str| asked.iter().any(|asked| asked == ALL || asked == name);
    all.filter(is_asked).map(find).collect()
}
