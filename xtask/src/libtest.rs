//! Rust tests: run, counted, and what failed is run a second time.
//!
//! Many of our tests play with real processes, clocks and connections on machines that do other things too.
//! A test that fails once and passes at the second time does not stop a change, but it is named in the
//! report, so that it gets mended. One that fails twice has failed.

use std::collections::BTreeSet;
use std::ffi::OsString;

use anyhow::Result;

use crate::report::{Outcome, Tally};
use crate::run::{Finished, Show, run};
use crate::totals;
use crate::workspace::Workspace;

/// More failures than these are no accident.
const AGAIN_MAX: usize = 5;

/// Tests that cargo runs.
#[derive(Debug)]
pub(crate) struct Tests<'a> {
    /// What they are called in logs and reports.
    pub(crate) name: &'a str,
    /// Arguments of `cargo test --workspace` that say which targets.
    pub(crate) targets: &'a [&'a str],
    /// Arguments of the test programs, but for the filter.
    pub(crate) arguments: &'a [&'a str],
    /// Only tests with this in their names.
    pub(crate) filter: Option<&'a str>,
    pub(crate) environment: Vec<(&'static str, OsString)>,
    pub(crate) show: Show,
}

impl Tests<'_> {
    /// All in one feature selection: with `--package`, cargo would choose other features for the dependencies
    /// and build all of them a second time.
    pub(crate) fn run(&self, workspace: &Workspace) -> Result<Outcome> {
        let first = self.once(workspace, self.name, self.filter.as_slice())?;
        let tally = totals::libtest(&first.output);
        let log = workspace.logs()?.join(format!("{}.log", self.name));
        let log = format!("all output: {}", log.display());
        if first.success {
            return Ok(Outcome::new(tally));
        }
        let failed = failed(&first.output);
        if failed.is_empty() && !first.has_hung {
            // It did not compile, or a test program died.
            return Ok(Outcome::new(tally + Tally::fail()).note(log));
        }
        if failed.len() > AGAIN_MAX || (first.has_hung && !failed.is_empty()) {
            return Ok(Outcome::new(tally + Tally::of(!first.has_hung)).note(log));
        }
        println!("    {}: once more what did not pass", self.name);
        let again = format!("{}-again", self.name);
        let (second, counted, names) = if first.has_hung {
            let second = self.once(workspace, &again, self.filter.as_slice())?;
            let counted = totals::libtest(&second.output);
            (second, counted, unfinished(&first.output))
        } else {
            let mut which = vec!["--exact"];
            which.extend(failed.iter().map(String::as_str));
            let second = self.once(workspace, &again, &which)?;
            let repeated = totals::libtest(&second.output);
            let counted = Tally { passed: tally.passed + tally.failed, failed: 0, ..tally };
            let all_passed = repeated.failed == 0 && repeated.passed >= tally.failed;
            (second, if all_passed { counted } else { tally }, failed)
        };
        let names = names.into_iter().collect::<Vec<_>>().join(", ");
        if second.success && counted.failed == 0 {
            return Ok(
                Outcome::new(counted).note(format!("passed at the second time only: {names}"))
            );
        }
        let counted = if counted.failed == 0 { counted + Tally::fail() } else { counted };
        Ok(Outcome::new(counted).note(format!("did not pass twice: {names}")).note(log))
    }

    fn once(&self, workspace: &Workspace, log: &str, which: &[&str]) -> Result<Finished> {
        let mut command = workspace.cargo();
        command.args(["test", "--workspace", "--locked", "--no-fail-fast"]).args(self.targets);
        command.arg("--").args(self.arguments).args(which);
        // A golden file that differs is a failure here, never a file to accept later.
        command.env("INSTA_UPDATE", "no");
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        let log = workspace.logs()?.join(format!("{log}.log"));
        run(self.name, &mut command, Some(log), self.show)
    }
}

/// Names of the tests that failed.
fn failed(output: &str) -> BTreeSet<String> {
    let named =
        |line: &str| Some(line.strip_prefix("test ")?.strip_suffix(" ... FAILED")?.to_owned());
    output.lines().filter_map(named).collect()
}

/// Names of the tests that were said to take long and did not end.
fn unfinished(output: &str) -> BTreeSet<String> {
    let slow = |line: &str| {
        let (name, _) = line.strip_prefix("test ")?.split_once(" has been running for over ")?;
        Some(name.to_owned())
    };
    let has_ended = |name: &String| output.contains(&format!("test {name} ... "));
    output.lines().filter_map(slow).filter(|name| !has_ended(name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTPUT: &str = "\
test money::a ... ok
test b has been running for over 60 seconds
test c has been running for over 60 seconds
test b ... FAILED
test src/lib.rs - Thing (line 3) ... FAILED
test result: FAILED. 1 passed; 2 failed; 0 ignored
";

    #[test]
    fn what_failed_is_known_by_name() {
        let names: Vec<_> = failed(OUTPUT).into_iter().collect();
        assert_eq!(names, ["b", "src/lib.rs - Thing (line 3)"]);
    }

    #[test]
    fn a_test_that_hangs_is_known_by_name() {
        assert_eq!(unfinished(OUTPUT).into_iter().collect::<Vec<_>>(), ["c"]);
    }
}
