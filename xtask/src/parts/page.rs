//! The live page in a real Chromium, in front of `serve` and `sim`.

use std::process::Command;

use anyhow::Result;

use crate::report::{Outcome, Tally};
use crate::run::{Show, run as run_command};
use crate::tools::debian;
use crate::totals;
use crate::workspace::Workspace;

pub(crate) fn run(workspace: &Workspace) -> Result<Outcome> {
    debian::ensure(&[debian::NODE, debian::CHROMIUM])?;
    let mut command = Command::new("node");
    command
        .args(["--test", "--test-reporter=spec", "--test-concurrency=1"])
        .arg("tests/page/page.test.mjs")
        .current_dir(&workspace.root)
        .env("WICKETGATE_TEST_BINARY", workspace.wicketgate());
    let log = workspace.logs()?.join("page.log");
    let finished = run_command("page", &mut command, Some(log), Show::All)?;
    let mut tally = totals::node(&finished.output);
    if !finished.success && tally.failed == 0 {
        tally += Tally::fail();
    }
    Ok(Outcome::new(tally))
}
