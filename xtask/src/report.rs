//! What the parts found, and the line that adds it up.

use std::fmt;
use std::ops::{Add, AddAssign};
use std::time::Duration;

/// Tests and checks counted by outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub passed: u64,
    pub failed: u64,
    pub skipped: u64,
}

impl Tally {
    pub(crate) fn pass() -> Self {
        Self { passed: 1, ..Self::default() }
    }

    pub(crate) fn fail() -> Self {
        Self { failed: 1, ..Self::default() }
    }

    pub(crate) fn skip() -> Self {
        Self { skipped: 1, ..Self::default() }
    }

    pub(crate) fn of(passed: bool) -> Self {
        if passed { Self::pass() } else { Self::fail() }
    }
}

impl Add for Tally {
    type Output = Self;

    fn add(mut self, other: Self) -> Self {
        self += other;
        self
    }
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed, {} skipped", self.passed, self.failed, self.skipped)
    }
}

/// One part's result.
#[derive(Clone, Debug)]
pub(crate) struct Outcome {
    pub tally: Tally,
    /// Why something was left out, or what to look at; one line each.
    pub notes: Vec<String>,
}

impl Outcome {
    pub(crate) fn new(tally: Tally) -> Self {
        Self { tally, notes: Vec::new() }
    }

    pub(crate) fn skipped(why: impl Into<String>) -> Self {
        Self::new(Tally::skip()).note(why)
    }

    pub(crate) fn note(mut self, text: impl Into<String>) -> Self {
        self.notes.push(text.into());
        self
    }
}

/// All parts of a run, in order.
#[derive(Debug, Default)]
pub(crate) struct Report {
    lines: Vec<(String, Outcome, Duration)>,
}

impl Report {
    pub(crate) fn add(&mut self, name: &str, outcome: Outcome, took: Duration) {
        self.lines.push((name.to_owned(), outcome, took));
    }

    pub(crate) fn total(&self) -> Tally {
        let mut total = Tally::default();
        for (_, outcome, _) in &self.lines {
            total += outcome.tally;
        }
        total
    }

    /// Whether nothing failed and at least something ran.
    pub(crate) fn passed(&self) -> bool {
        let total = self.total();
        total.failed == 0 && total.passed > 0
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, outcome, took) in &self.lines {
            let mark = match outcome.tally {
                Tally { failed: 1.., .. } => "FAILED",
                Tally { passed: 0, .. } => "skipped",
                _ => "ok",
            };
            writeln!(f, "{mark:>8}  {name:<14} {:>7.1} s  {}", took.as_secs_f64(), outcome.tally)?;
            for note in &outcome.notes {
                writeln!(f, "          {:<14} {note}", "")?;
            }
        }
        writeln!(f)?;
        write!(f, "{}", self.total())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_is_the_sum_of_all_parts_alone_on_its_line() {
        let mut report = Report::default();
        report.add(
            "tests",
            Outcome::new(Tally { passed: 7, failed: 1, skipped: 2 }),
            Duration::ZERO,
        );
        report.add("tidy", Outcome::new(Tally::pass()).note("said"), Duration::ZERO);
        assert_eq!(report.to_string().lines().last(), Some("8 passed, 1 failed, 2 skipped"));
        assert!(!report.passed());
    }

    #[test]
    fn a_run_in_which_nothing_ran_does_not_pass() {
        let mut report = Report::default();
        report.add("sdk", Outcome::skipped("no network"), Duration::ZERO);
        assert!(!report.passed());
    }
}
