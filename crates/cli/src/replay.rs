//! `wicketgate replay`: recorded traffic against another policy, in virtual time.

mod compare;
mod outcome;
mod read;
#[cfg(test)]
mod tests;
mod traffic;

use std::io::{self, Write};
use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use lab::{Policy, Replay, Weights};

use outcome::Outcome;
use traffic::Traffic;

/// What to play.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// A recording; all its files, if it was rotated
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// The policy to try
    #[arg(long, value_name = "NAME", default_value = "wicketgate", value_parser = policies(), hide_possible_values = true)]
    policy: String,
    /// Or scorers by weight, such as `queue=2,kv-cache=2,prefix=3`
    #[arg(long, value_name = "SCORER=WEIGHT,…", value_delimiter = ',', value_parser = weight, conflicts_with = "policy")]
    weights: Vec<(String, f32)>,
    /// The policy to compare with. Default: the one that was recorded
    #[arg(long, value_name = "NAME", value_parser = policies(), hide_possible_values = true)]
    against: Option<String>,
    /// The pool to replay. Default: the busiest
    #[arg(long, value_name = "NAME")]
    pool: Option<String>,
    /// Plays of each policy. They differ in ties and random choices only: the traffic is as recorded
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=100))]
    seeds: u64,
    /// One JSON object
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Engines are simulated with the speeds that the gateway had learned of them. How
well that holds is printed first: the recorded policy, simulated, beside what was
recorded. Intervals are 95 %, by a block bootstrap over 30 stretches of the
recording's time. Adapter loads and sessions are not replayed. Policies are those
of `wicketgate bench routing --help`.

Examples:
  wicketgate replay traffic.jsonl --weights queue=2,kv-cache=2,prefix=3
      what another policy would have made of it
  wicketgate replay traffic.jsonl --policy wicketgate --against round-robin --seeds 5
      two policies over the same traffic
  wicketgate replay traffic.jsonl traffic.jsonl.1 --pool llama --json
      one pool of a rotated recording, for a script";

fn weight(text: &str) -> Result<(String, f32), String> {
    let (name, weight) = text.split_once('=').ok_or("write SCORER=WEIGHT")?;
    let weight: f32 = weight.parse().map_err(|_| format!("`{weight}` is no number"))?;
    if !(0.0..=1e6).contains(&weight) {
        return Err("not between 0 and 1000000".to_owned());
    }
    weights(&[(name.to_owned(), weight)])?;
    Ok((name.to_owned(), weight))
}

/// Weights by the names of their scorers.
fn weights(all: &[(String, f32)]) -> Result<Weights, String> {
    let mut weights = Weights::ZERO;
    for (name, weight) in all {
        let of = match name.as_str() {
            "queue" => &mut weights.queue,
            "kv-cache" => &mut weights.kv_cache,
            "prefix" => &mut weights.prefix,
            "running-requests" => &mut weights.running_requests,
            "no-hit-lru" => &mut weights.no_hit_lru,
            "expected-time" => &mut weights.expected_time,
            _ => return Err(format!("there is no scorer `{name}` that can be replayed")),
        };
        *of = *weight;
    }
    Ok(weights)
}

fn policies() -> PossibleValuesParser {
    PossibleValuesParser::new(Policy::ALL.into_iter().map(Policy::name))
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let outcome = play(args)?;
    write_out(&if args.json { outcome.json().to_string() } else { outcome.text() })?;
    Ok(())
}

fn play(args: &Args) -> anyhow::Result<Outcome> {
    let recording = read::read(&args.files)?;
    let mut traffic = Traffic::of(&recording, args.pool.as_deref())?;
    let mut notes = recording.notes;
    notes.append(&mut traffic.notes);
    let recorded = lab::policy_of(&traffic.pool.policy, &traffic.pool.scorers);
    let tried = Policy::find(&args.policy)?;
    let base = match (&args.against, recorded) {
        (Some(name), _) => Policy::find(name)?,
        (None, Some(policy)) => policy,
        (None, None) => anyhow::bail!(
            "the laboratory cannot play the recorded policy ({}): name one to compare with (--against NAME)",
            outcome::shown(&traffic.pool)
        ),
    };
    let replay = Replay::new(&traffic.engines, traffic.requests.clone());
    let runs = |policy| (1..=args.seeds).map(|seed| replay.run(policy, seed)).collect::<Vec<_>>();
    let base_runs = runs(base);
    let tried_runs = if args.weights.is_empty() {
        runs(tried)
    } else {
        let own = weights(&args.weights).map_err(anyhow::Error::msg)?;
        let replay = replay.clone().with_weights(own);
        (1..=args.seeds).map(|seed| replay.run(Policy::Wicketgate, seed)).collect()
    };
    let tried_name = match args.weights.as_slice() {
        [] => tried.name().to_owned(),
        all => all
            .iter()
            .map(|(name, weight)| format!("{name}={weight}"))
            .collect::<Vec<_>>()
            .join(","),
    };
    // Only the recorded policy, simulated, can be held against what was recorded.
    let own_runs = match recorded {
        Some(policy) if policy == base => None,
        Some(policy) => Some(runs(policy)),
        None => Some(Vec::new()),
    };
    let trusted = own_runs.as_deref().unwrap_or(&base_runs);
    Ok(Outcome::new(&traffic, (base, &base_runs), (&tried_name, &tried_runs), trusted, notes))
}

/// A reader that has seen enough, such as `head`, is no fault.
fn write_out(text: &str) -> io::Result<()> {
    match writeln!(io::stdout(), "{text}") {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}
