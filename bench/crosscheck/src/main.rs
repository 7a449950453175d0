//! Other routers' real programs, and Wicketgate, before the same simulated servers under the same
//! schedule, beside what the laboratory says about it. `bench/README.md` explains the columns.

#[path = "../../harness/src/clock.rs"]
#[allow(dead_code, reason = "the cost harness needs more of it")]
mod clock;
#[path = "../../harness/src/interrupt.rs"]
mod interrupt;
mod load;
#[path = "../../harness/src/machine.rs"]
mod machine;
mod measure;
mod predict;
#[path = "../../harness/src/process.rs"]
#[allow(dead_code, reason = "the cost harness needs more of it")]
mod process;
#[path = "../../harness/src/prompts.rs"]
#[allow(dead_code, reason = "the routers' configurations name its model and key")]
mod prompts;
mod report;
mod round;
mod scene;
mod servers;
mod sse;
mod subject;
mod text;

use std::collections::VecDeque;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, bail};
use clap::Parser;

use report::Row;
use round::{Conditions, Ready};
use scene::{SCENES, Stage};
use subject::{KINDS, Subject};

/// Why a program that belongs here is not among the subjects.
const ABSENT: &str = "\
reference picker (GAIE EPP) not run: the Go module proxy refuses sigs.k8s.io/gateway-api-inference-extension and \
github.com/llm-d/llm-d-inference-scheduler (403, \"This module version is not available\", tried on 2026-11-29); \
`wicketgate-reference` has its weights";

#[derive(Parser)]
#[command(about = "Other routers' programs before the same simulated servers")]
struct Args {
    /// Scenarios; without it all three.
    #[arg(long, value_delimiter = ',')]
    scenario: Vec<String>,
    /// Subjects; without it all but smg-least-load, which needs longer runs.
    #[arg(long, value_delimiter = ',')]
    subjects: Vec<String>,
    /// Rounds: each has a seed of its own and visits the subjects in another order.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Modelled seconds of arrivals in a run; the first fifth is not counted.
    #[arg(long, default_value_t = 4.5)]
    seconds: f64,
    /// Modelled seconds after these until open requests are cut off.
    #[arg(long, default_value_t = 1.5)]
    drain: f64,
    /// Real seconds that a router has at least between its first answer and the first request: smg,
    /// before it has read loads twice, may leave servers out. Passes while others are measured.
    #[arg(long, default_value_t = 12.0)]
    settle: f64,
    /// Real time for one modelled second: 2 is half speed, for a slow machine. Routers' own
    /// intervals are not stretched.
    #[arg(long, default_value_t = 1.0)]
    time_scale: f64,
    /// Wicketgate's executable.
    #[arg(long, env = "WICKETGATE_BIN", default_value = "target/release/wicketgate")]
    wicketgate: PathBuf,
    /// Print JSON lines instead of tables.
    #[arg(long)]
    json: bool,
    /// Also write the JSON lines to this file.
    #[arg(long)]
    out: Option<PathBuf>,
}

fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    interrupt::catch()?;
    if args.rounds == 0 || !(args.time_scale > 0.0 && args.time_scale.is_finite()) {
        bail!("--rounds is at least 1, --time-scale above 0");
    }
    let scenes: Vec<_> = chosen(&args.scenario, &SCENES, |scene| scene.name, |_| true)?;
    let kinds = chosen(&args.subjects, &KINDS, |kind| kind.name, |kind| kind.is_default)?;
    let cache = cache()?;
    let mut subjects = Vec::new();
    for kind in kinds {
        let subject = Subject::new(kind, &args.wicketgate, &cache);
        subjects.push((kind, subject.map_err(|error| format!("{error:#}"))));
    }
    let machine = machine::Machine::look();
    let mut text = String::new();
    let mut lines = String::new();
    let begun_ns = clock::now_ns();
    for scene in scenes {
        let stage = Stage::new(scene, args.seconds, args.time_scale)?;
        let rows = rows(&args, &stage, &subjects)?;
        text += &report::table(&stage, &rows);
        text.push('\n');
        lines += &report::lines(&stage, &rows);
    }
    let (load_after, seconds) = (machine::load(), (clock::now_ns() - begun_ns) / 1_000_000_000);
    let versions: Vec<String> = subjects
        .iter()
        .filter_map(|(kind, subject)| {
            let version = subject.as_ref().ok()?.version();
            Some(format!("{}: {} {}", kind.name, version.trim_end(), about(kind.about)))
        })
        .collect();
    let head = serde_json::json!({
        "machine": machine, "load_after": load_after, "rounds": args.rounds,
        "seconds": args.seconds, "time_scale": args.time_scale, "versions": versions,
        "not_run": ABSENT,
    });
    lines.insert_str(0, &format!("{head}\n"));
    if let Some(file) = &args.out {
        fs::write(file, &lines).with_context(|| format!("cannot write {}", file.display()))?;
    }
    if args.json {
        print!("{lines}");
        return Ok(());
    }
    println!(
        "{} cores of {}, Linux {}; load average {} before, {load_after} after; {seconds} s in all",
        machine.cores, machine.cpu, machine.kernel, machine.load
    );
    println!(
        "{} rounds of {} s (the first fifth not counted) and {} s more, time scale {}; engines are \
         simulated\n\n{}\n{ABSENT}\n\n{text}",
        args.rounds,
        args.seconds,
        args.drain,
        args.time_scale,
        versions.join("\n")
    );
    Ok(())
}

fn about(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!("({text})") }
}

/// Those of `all` that are named, in `all`'s order; without a name the usual ones.
fn chosen<T: Copy>(
    names: &[String],
    all: &[T],
    name: fn(&T) -> &'static str,
    is_usual: fn(&T) -> bool,
) -> anyhow::Result<Vec<T>> {
    if let Some(unknown) = names.iter().find(|one| all.iter().all(|other| name(other) != *one)) {
        let known: Vec<&str> = all.iter().map(name).collect();
        bail!("there is no `{unknown}`: {}", known.join(", "));
    }
    let is_chosen = |one: &&T| {
        if names.is_empty() { is_usual(one) } else { names.iter().any(|other| other == name(one)) }
    };
    Ok(all.iter().filter(is_chosen).copied().collect())
}

fn cache() -> anyhow::Result<PathBuf> {
    let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache"));
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from).or_else(home);
    Ok(cache.context("neither HOME nor XDG_CACHE_HOME is set")?.join("wicketgate-bench"))
}

type Prepared = (subject::Kind, Result<Subject, String>);

/// Subjects that are started before their turn: they settle while others are measured.
const AHEAD: usize = 2;

/// All rounds of one scene.
fn rows(args: &Args, stage: &Stage, subjects: &[Prepared]) -> anyhow::Result<Vec<Row>> {
    let cut_off = Duration::try_from_secs_f64(args.seconds + args.drain).context("--drain")?;
    let conditions = Conditions {
        wicketgate: &args.wicketgate,
        scale: args.time_scale,
        settle: Duration::try_from_secs_f64(args.settle).context("--settle")?,
        cut_off,
    };
    let row = |(kind, subject): &Prepared| Row {
        kind: *kind,
        measured: Vec::new(),
        predicted: Vec::new(),
        excuse: subject.as_ref().err().cloned(),
    };
    let mut rows: Vec<Row> = subjects.iter().map(row).collect();
    let mut schedules = Vec::with_capacity(args.rounds);
    for round in 0..args.rounds {
        let traffic = stage.traffic(round as u64 + 1);
        let requests = stage.requests(&traffic);
        for row in &mut rows {
            let (polls, Some(policy)) = (row.kind.polls, row.kind.policy) else { continue };
            row.predicted
                .extend(predict::predict(stage, &traffic, &requests, policy, polls, cut_off));
        }
        schedules.push(requests);
    }
    // Another order in each round.
    let count = subjects.len();
    let turns = (0..args.rounds)
        .flat_map(|round| (0..count).map(move |turn| (round, (turn + round) % count)));
    let mut to_start = turns.clone();
    let mut started = VecDeque::new();
    for (round, at) in turns {
        while started.len() <= AHEAD
            && let Some((round, at)) = to_start.next()
        {
            let usable = subjects[at].1.as_ref().ok().filter(|_| rows[at].excuse.is_none());
            let seed = round as u64 + 1;
            started.push_back(usable.map(|one| Ready::start(&conditions, stage, one, seed)));
        }
        let Some(ready) = started.pop_front().flatten() else { continue };
        let (row, begun_ns) = (&mut rows[at], clock::now_ns());
        let played = ready.and_then(|ready| ready.play(&conditions, stage, &schedules[round]));
        match played {
            Ok(measured) => row.measured.push(measured),
            Err(error) => {
                interrupt::pause(Duration::ZERO)?;
                row.excuse = Some(format!("{error:#}"));
            }
        }
        let seconds = (clock::now_ns() - begun_ns) as f64 * 1e-9;
        eprintln!("{}, round {}: {}, {seconds:.1} s", stage.scene.name, round + 1, row.kind.name);
    }
    Ok(rows)
}
