//! `wicketgate top` in a real terminal.

use anyhow::Result;

use super::cargo;
use crate::report::{Outcome, Tally};
use crate::run::{Show, run as run_command};
use crate::tools::debian;
use crate::totals;
use crate::workspace::Workspace;

pub(crate) fn run(workspace: &Workspace) -> Result<Outcome> {
    debian::ensure(&[debian::TMUX, debian::PS])?;
    let mut command = workspace.cargo();
    command.args(cargo::built_test("terminal")).args(["--", "--ignored", "--test-threads", "2"]);
    let log = workspace.logs()?.join("terminal.log");
    let finished = run_command("terminal", &mut command, Some(log), Show::All)?;
    let mut tally = totals::libtest(&finished.output);
    if !finished.success && tally.failed == 0 {
        tally += Tally::fail();
    }
    Ok(Outcome::new(tally))
}
