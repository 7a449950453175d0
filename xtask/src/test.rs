//! `cargo xtask test`: runs the parts one after the other and adds up what they found.

use anyhow::Result;
use clap::Args;

use crate::clock::Stopwatch;
use crate::disk;
use crate::parts::Part;
use crate::report::{Outcome, Report, Tally};
use crate::workspace::Workspace;

/// With more failures than these a part is not tried again: they are no accident.
const FAILED_MAX: u64 = 3;

#[derive(Args, Debug, Default)]
pub(crate) struct Options {
    /// Leave out what installs or compiles more: dependency checks, benchmarks, fuzz targets, SDKs.
    #[arg(long)]
    quick: bool,
    /// Also prove everything against a real vLLM on the CPU (installs 6.2 GB once).
    #[arg(long)]
    real_engine: bool,
    /// Run only this part (may be repeated).
    #[arg(long, value_name = "PART")]
    only: Vec<Part>,
}

impl Options {
    fn parts(&self) -> Vec<Part> {
        if !self.only.is_empty() {
            let asks_build = self.only.iter().any(|part| part.needs_build());
            let wanted =
                |part: &Part| self.only.contains(part) || (asks_build && *part == Part::Build);
            return Part::ALL.iter().copied().filter(wanted).collect();
        }
        let wanted = |part: &Part| match part {
            Part::RealEngine => self.real_engine,
            part => !(self.quick && part.is_slow()),
        };
        Part::ALL.iter().copied().filter(wanted).collect()
    }
}

/// Whether all parts passed.
pub(crate) fn run(options: &Options) -> Result<bool> {
    let workspace = Workspace::find()?;
    if let Some(warning) = disk::warning(&workspace.target()) {
        println!("{warning}");
    }
    let mut report = report(&workspace, &options.parts());
    if options.quick && options.only.is_empty() {
        let left_out =
            Part::ALL.iter().copied().filter(|part| part.is_slow() && !part.is_asked_for());
        for part in left_out {
            report.add(
                part.name(),
                Outcome::skipped("left out by --quick"),
                std::time::Duration::ZERO,
            );
        }
    }
    println!("\n{report}");
    Ok(report.passed())
}

pub(crate) fn tidy_only() -> Result<bool> {
    let report = report(&Workspace::find()?, &[Part::Tidy]);
    println!("\n{report}");
    Ok(report.passed())
}

fn report(workspace: &Workspace, parts: &[Part]) -> Report {
    let whole = Stopwatch::start();
    let mut report = Report::default();
    let mut built = true;
    for part in parts {
        let free = disk::free(&workspace.target()).map_or(f64::NAN, disk::gigabytes);
        println!(
            "\n== {} ({:.0} s into the run, {free:.1} GB free)",
            part.name(),
            whole.elapsed().as_secs_f64()
        );
        let stopwatch = Stopwatch::start();
        let outcome = if built || !part.needs_build() {
            let first = outcome(*part, workspace);
            if part.is_tried_again() && (1..=FAILED_MAX).contains(&first.tally.failed) {
                println!("    {}: once more", part.name());
                second(first.tally.failed, outcome(*part, workspace))
            } else {
                first
            }
        } else {
            Outcome::skipped("the build failed")
        };
        if *part == Part::Build {
            built = outcome.tally.failed == 0;
        }
        println!(
            "== {}: {} in {:.1} s",
            part.name(),
            outcome.tally,
            stopwatch.elapsed().as_secs_f64()
        );
        report.add(part.name(), outcome, stopwatch.elapsed());
    }
    report
}

fn outcome(part: Part, workspace: &Workspace) -> Outcome {
    part.run(workspace).unwrap_or_else(|error| {
        println!("    {error:#}");
        let first_line = format!("{error:#}").lines().next().unwrap_or_default().to_owned();
        Outcome::new(Tally::fail()).note(first_line)
    })
}

/// What is said of a part that ran again, since so many of its tests had failed.
fn second(failed: u64, outcome: Outcome) -> Outcome {
    let note = match outcome.tally.failed {
        0 => format!("{failed} of its tests passed at the second run only: see above"),
        _ => "did not pass twice".to_owned(),
    };
    outcome.note(note)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_real_engine_runs_only_when_asked_for() {
        let usual = Options::default().parts();
        assert!(!usual.iter().any(|part| part.is_asked_for()));
        assert!(
            Options { real_engine: true, ..Options::default() }.parts().contains(&Part::RealEngine)
        );
    }

    #[test]
    fn quick_installs_nothing() {
        let parts = Options { quick: true, ..Options::default() }.parts();
        assert!(parts.iter().all(|part| !part.is_slow()));
        assert!(parts.contains(&Part::Tests));
    }

    #[test]
    fn what_passes_at_the_second_run_is_said_and_what_fails_twice_has_failed() {
        let passed = second(2, Outcome::new(Tally::pass()));
        assert_eq!((passed.tally.failed, passed.notes.len()), (0, 1));
        assert!(passed.notes.iter().all(|note| note.starts_with("2 of its tests")));
        assert_eq!(second(1, Outcome::new(Tally::fail())).tally.failed, 1);
    }

    #[test]
    fn one_part_alone_brings_the_build_that_it_needs() {
        let only = |part| Options { only: vec![part], ..Options::default() }.parts();
        assert_eq!(only(Part::SdkNode), [Part::Build, Part::SdkNode]);
        assert_eq!(only(Part::Fmt), [Part::Fmt]);
    }
}
