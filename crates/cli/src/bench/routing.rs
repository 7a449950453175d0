//! `wicketgate bench routing`: every asked scenario, load, policy and seed, two at a time and more
//! where there are processors.

#[cfg(test)]
mod tests;

use std::fs::File;
use std::io::Write;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use anyhow::Context;
use clap::builder::PossibleValuesParser;
use lab::{Plan, Policy, RunResult, SCENARIOS, Scenario, Settings, Traffic};
use serde::Serialize;

use super::measured::{Cell, Section};
use super::progress::Progress;
use super::report::Report;
use super::{report, table, text};

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
    /// Gateways that share the requests. Default: the scenario's own number
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=64))]
    gateways: Option<u16>,
    /// Pause between two reports of gateways to each other, for our policies. Default: they do not share
    #[arg(long, value_name = "D", value_parser = interval)]
    share_interval: Option<Duration>,
    /// Pause between two readings of a busy endpoint's metrics. Default: each policy's own
    #[arg(long, value_name = "D", value_parser = interval)]
    scrape_interval: Option<Duration>,
    /// One way between gateway and endpoint. Default: 250us
    #[arg(long, value_name = "D", value_parser = network)]
    network: Option<Duration>,
    /// Relative standard deviation of the time of each engine step
    #[arg(long, value_name = "SHARE", default_value_t = 0.0, value_parser = jitter)]
    jitter: f64,
    /// Multiplies every time of an A10G, whose constants are the least certain
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0, value_parser = factor)]
    a10g_factor: f64,
    /// In the table, also the changes of P99, goodput and tokens per second
    #[arg(long)]
    all_changes: bool,
    /// A JSON object a line for each scenario, load, policy and seed
    #[arg(long)]
    json: bool,
    /// Also write DIR/index.html, one page with plots that needs nothing else, and DIR/results.jsonl
    #[arg(long, value_name = "DIR")]
    report: Option<PathBuf>,
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
         wicketgate bench routing --scenario all --seeds 10 --duration 20m --json > results.jsonl\n  \
         wicketgate bench routing --scenario mixed-8b,uniform --seeds 10 --report report",
    );
    help
}

fn load(text: &str) -> Result<f64, String> {
    let load: f64 = text.parse().map_err(|_| format!("`{text}` is no number"))?;
    if load > 0.0 && load <= 10.0 { Ok(load) } else { Err("not above 0 and at most 10".to_owned()) }
}

/// A number between these two, both allowed.
fn between(text: &str, low: f64, high: f64) -> Result<f64, String> {
    let number: f64 = text.parse().map_err(|_| format!("`{text}` is no number"))?;
    let is_within = (low..=high).contains(&number);
    if is_within { Ok(number) } else { Err(format!("not between {low} and {high}")) }
}

fn jitter(text: &str) -> Result<f64, String> {
    between(text, 0.0, 1.0)
}

fn factor(text: &str) -> Result<f64, String> {
    between(text, 0.1, 10.0)
}

fn time_between(text: &str, low: Duration, high: Duration) -> Result<Duration, String> {
    let time = humantime::parse_duration(text).map_err(|error| error.to_string())?;
    let shown = humantime::format_duration;
    if (low..=high).contains(&time) {
        Ok(time)
    } else {
        Err(format!("not between {} and {}", shown(low), shown(high)))
    }
}

fn interval(text: &str) -> Result<Duration, String> {
    time_between(text, Duration::from_millis(1), Duration::from_secs(60))
}

fn network(text: &str) -> Result<Duration, String> {
    time_between(text, Duration::ZERO, Duration::from_secs(1))
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
    network_ms: f64,
    jitter: f64,
    a10g_factor: f64,
    /// Absent: the scenario's own number.
    #[serde(skip_serializing_if = "Option::is_none")]
    gateways: Option<usize>,
    /// Absent: gateways do not share.
    #[serde(skip_serializing_if = "Option::is_none")]
    share_interval_ms: Option<f64>,
    /// Absent: each policy's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    scrape_interval_ms: Option<f64>,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let scenarios = chosen(&args.scenario, scenario_names(), Scenario::find)?;
    let policies = chosen(&args.policy, policy_names(), Policy::find)?;
    let settings = args.settings();
    let loads = |scenario: &'static Scenario| match args.load.as_slice() {
        [] => scenario.loads,
        asked => asked,
    };
    let seeds = usize::try_from(args.seeds)?;
    let mut lines = args.report.as_deref().map(Lines::create).transpose()?;
    let mut sections = Vec::new();
    let cells: usize = scenarios.iter().map(|scenario| loads(scenario).len()).sum();
    let progress = Progress::new(cells * policies.len() * seeds);
    for scenario in scenarios {
        let plan = Plan::with_settings(scenario, args.endpoints.map(usize::from), &settings)?;
        if !args.json {
            progress.print(&table::heading(&plan));
        }
        let mut section = Section { plan, cells: Vec::new() };
        let plan = &section.plan;
        for load in loads(scenario) {
            let traffics: Vec<Traffic> =
                (1..=args.seeds).map(|seed| plan.traffic(*load, seed, &settings)).collect();
            let what = format!("{} at {load}", scenario.name);
            let results = play(plan, &policies, &traffics, &settings, &|| progress.done(&what));
            for (policy, results) in policies.iter().zip(&results) {
                for (traffic, result) in traffics.iter().zip(results) {
                    let line = line(plan, *load, *policy, traffic, result, &settings);
                    let line = serde_json::to_string(&line)?;
                    if args.json {
                        progress.print(&line);
                    }
                    if let Some(lines) = &mut lines {
                        lines.add(&line)?;
                    }
                }
            }
            let mean =
                |of: fn(&Traffic) -> f64| text::mean(&traffics.iter().map(of).collect::<Vec<_>>());
            let cell = Cell {
                load: *load,
                rate: mean(|traffic| traffic.rate),
                hit_bound: mean(|traffic| traffic.prefix_hit_bound),
                policies: policies.clone(),
                results,
            };
            if !args.json {
                progress.print(&table::cell(&cell, args.all_changes));
            }
            section.cells.push(cell);
        }
        sections.push(section);
    }
    if !args.json {
        progress.print(table::LEGEND);
    }
    if let Some(dir) = &args.report {
        let report = Report {
            sections,
            seeds: args.seeds,
            duration: args.duration,
            options: args.options(),
        };
        let page = dir.join("index.html");
        std::fs::write(&page, report::page(&report))
            .with_context(|| format!("cannot write {}", page.display()))?;
        progress.note(&format!("report: {}", page.display()));
    }
    Ok(())
}

impl Args {
    fn settings(&self) -> Settings {
        let usual = Settings::new(self.duration);
        Settings {
            network: self.network.unwrap_or(usual.network),
            gateways: self.gateways.map(usize::from),
            share_interval: self.share_interval,
            scrape_interval: self.scrape_interval,
            jitter: self.jitter,
            a10g_factor: self.a10g_factor,
            ..usual
        }
    }

    /// The options that make the same runs again, save the scenario and its loads.
    fn options(&self) -> String {
        let mut options = format!(
            "--policy {} --seeds {} --duration {}",
            self.policy.join(","),
            self.seeds,
            short(self.duration),
        );
        if let Some(endpoints) = self.endpoints {
            options.push_str(&format!(" --endpoints {endpoints}"));
        }
        if let Some(gateways) = self.gateways {
            options.push_str(&format!(" --gateways {gateways}"));
        }
        if let Some(interval) = self.share_interval {
            options.push_str(&format!(" --share-interval {}", short(interval)));
        }
        if let Some(interval) = self.scrape_interval {
            options.push_str(&format!(" --scrape-interval {}", short(interval)));
        }
        if let Some(network) = self.network {
            options.push_str(&format!(" --network {}", short(network)));
        }
        if self.jitter > 0.0 {
            options.push_str(&format!(" --jitter {}", self.jitter));
        }
        if self.a10g_factor.to_bits() != 1.0_f64.to_bits() {
            options.push_str(&format!(" --a10g-factor {}", self.a10g_factor));
        }
        options
    }
}

/// A duration as an option takes it.
fn short(duration: Duration) -> String {
    humantime::format_duration(duration).to_string().replace(' ', "")
}

/// The report's raw numbers, written as they come, so that a run that is stopped leaves them.
struct Lines {
    path: PathBuf,
    file: File,
}

impl Lines {
    fn create(dir: &Path) -> anyhow::Result<Self> {
        let cannot = |path: &Path| format!("cannot write {}", path.display());
        std::fs::create_dir_all(dir).with_context(|| cannot(dir))?;
        let path = dir.join("results.jsonl");
        let file = File::create(&path).with_context(|| cannot(&path))?;
        Ok(Self { path, file })
    }

    fn add(&mut self, line: &str) -> anyhow::Result<()> {
        let written = writeln!(self.file, "{line}");
        written.with_context(|| format!("cannot write {}", self.path.display()))
    }
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
    let ms = |time: Duration| rounded(time.as_secs_f64() * 1e3);
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
        duration_seconds: plan.settings(settings).duration.as_secs_f64(),
        network_ms: ms(settings.network),
        jitter: settings.jitter,
        a10g_factor: settings.a10g_factor,
        gateways: settings.gateways,
        share_interval_ms: settings.share_interval.map(ms),
        scrape_interval_ms: settings.scrape_interval.map(ms),
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
