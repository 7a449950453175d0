//! All subjects in one run, in turn from round to round.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

use crate::figures::{Spread, median};
use crate::lookups::{self, HELD, PROMPT_BLOCKS};
use crate::memory::allocated;
use crate::prompts::{Sent, replay};
use crate::subject::{Index, Subject, Write};

pub struct Plan<'a> {
    pub trace: &'a Path,
    pub subjects: &'a [Subject],
    pub endpoints: usize,
    pub rounds: usize,
    /// Prompts of 2,000 blocks in the index, beside the trace.
    pub prompts: u64,
    /// Lookups of one kind in one round.
    pub lookups: usize,
}

/// What one subject did in one round.
#[derive(Default)]
struct Round {
    trace_insert_ns: f64,
    trace_lookup: Spread,
    insert_ns: f64,
    /// Of the trace and the long prompts together: less would be lost in the allocator's caches.
    bytes: f64,
    /// Alone, then beside a writer, for each kind of match.
    cold: Vec<[Spread; 2]>,
    written_per_second: f64,
}

pub fn run(plan: &Plan<'_>) -> Result<()> {
    let sent = replay(plan.trace, plan.endpoints)?;
    let blocks: usize = sent.iter().map(|sent| sent.blocks.len()).sum();
    println!(
        "trace: {} prompts, {blocks} blocks of 64 tokens on {} endpoints; then {} prompts of \
         {PROMPT_BLOCKS} blocks; {} rounds",
        sent.len(),
        plan.endpoints,
        plan.prompts,
        plan.rounds,
    );
    let mut rounds: Vec<Vec<Round>> = plan.subjects.iter().map(|_| Vec::new()).collect();
    for round in 0..plan.rounds {
        for turn in 0..plan.subjects.len() {
            let at = (round + turn) % plan.subjects.len();
            rounds[at].push(measure(plan, plan.subjects[at], &sent, round as u64)?);
        }
    }
    report(plan, &rounds);
    Ok(())
}

fn measure(plan: &Plan<'_>, subject: Subject, sent: &[Sent], seed: u64) -> Result<Round> {
    let before = allocated()?;
    let index = subject.make(plan.endpoints)?;
    let mut writer = index.writer()?;
    let mut round = Round::default();
    let pairs = replay_into(&*index, &mut *writer, sent, subject, &mut round)?;

    let took = lookups::fill(&mut *writer, plan.prompts, (plan.endpoints, 1))?;
    let filled = plan.prompts as usize * PROMPT_BLOCKS;
    round.insert_ns = took.as_nanos() as f64 / filled as f64;
    round.bytes = (allocated()? - before) as f64 / (pairs + filled) as f64;

    let size = (plan.prompts, plan.endpoints);
    for (held, _) in HELD {
        let count = (plan.lookups, seed);
        let alone = lookups::measure(&*index, None, size, held, count)?;
        let beside = lookups::measure(&*index, Some(&mut *writer), size, held, count)?;
        round.cold.push([alone.spread, beside.spread]);
        round.written_per_second = beside.written_per_second;
    }
    Ok(round)
}

/// Looks up and records each prompt of the trace; gives the (block, holder) pairs.
fn replay_into(
    index: &dyn Index,
    writer: &mut (dyn Write + Send),
    sent: &[Sent],
    subject: Subject,
    round: &mut Round,
) -> Result<usize> {
    let mut reader = index.reader();
    let mut stored = Duration::ZERO;
    let mut lookups = Vec::new();
    let mut pairs = std::collections::HashSet::new();
    for prompt in sent {
        reader.prepare(&prompt.blocks);
        let begun = Instant::now();
        let best = reader.best();
        lookups.push(begun.elapsed());
        let found = best.map_or(0, |(_, blocks)| blocks);
        ensure!(
            found == prompt.held,
            "{} finds {found} blocks held, {} are",
            subject.name(),
            prompt.held
        );
        writer.prepare(prompt.endpoint, &prompt.blocks)?;
        let begun = Instant::now();
        writer.store()?;
        writer.settle()?;
        stored += begun.elapsed();
        pairs.extend(prompt.blocks.iter().map(|block| (*block, prompt.endpoint)));
    }
    let blocks: usize = sent.iter().map(|sent| sent.blocks.len()).sum();
    round.trace_insert_ns = stored.as_nanos() as f64 / blocks as f64;
    round.trace_lookup = Spread::of(lookups);
    Ok(pairs.len())
}

fn report(plan: &Plan<'_>, rounds: &[Vec<Round>]) {
    let row = |name: &str, pick: &dyn Fn(&Round) -> f64| {
        print!("{name:<44}");
        for rounds in rounds {
            print!(" {:>30.1}", median(rounds.iter().map(pick).collect()));
        }
        println!();
    };
    let spread_row = |name: &str, pick: &dyn Fn(&Round) -> Spread| {
        print!("{name:<44}");
        for rounds in rounds {
            let spreads: Vec<_> = rounds.iter().map(pick).collect();
            print!(" {:>30}", Spread::median(&spreads).to_string());
        }
        println!();
    };
    print!("{:<44}", "medians of rounds");
    for subject in plan.subjects {
        print!(" {:>30}", subject.name());
    }
    println!();
    row("trace: insert, ns per block", &|round| round.trace_insert_ns);
    spread_row("trace: lookup, µs  P50 P99 P99.9", &|round| round.trace_lookup);
    row("long prompts: insert, ns per block", &|round| round.insert_ns);
    row("all: bytes per (block, holder)", &|round| round.bytes);
    for (at, (_, name)) in HELD.iter().enumerate() {
        spread_row(&format!("{name}, alone, µs  P50 P99 P99.9"), &|round| round.cold[at][0]);
        let beside = format!("{name}, beside a writer, µs  P50 P99 P99.9");
        spread_row(&beside, &|round| round.cold[at][1]);
    }
    row("million blocks written per second meanwhile", &|round| round.written_per_second / 1e6);
}
