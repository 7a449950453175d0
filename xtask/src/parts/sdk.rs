//! The official clients, unmodified, against `serve` in front of `sim`.

use std::process::Command;

use anyhow::Result;

use super::fleet::Fleet;
use crate::cache::Cache;
use crate::report::{Outcome, Tally};
use crate::run::{Show, run};
use crate::tools;
use crate::totals;
use crate::workspace::Workspace;

pub(crate) fn python(workspace: &Workspace) -> Result<Outcome> {
    let python = tools::python::sdk_environment(workspace, &Cache::open()?)?;
    let mut command = Command::new(python);
    command.args([
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "--color=no",
        "tests/sdk/python",
    ]);
    with_fleet(workspace, "sdk-python", &mut command, totals::pytest)
}

pub(crate) fn node(workspace: &Workspace) -> Result<Outcome> {
    tools::node::sdk_packages(workspace, &Cache::open()?)?;
    let mut command = Command::new("node");
    command.args([
        "--test",
        "--test-reporter=spec",
        "--test-concurrency=1",
        "tests/sdk/node/sdk.test.mjs",
    ]);
    with_fleet(workspace, "sdk-node", &mut command, totals::node)
}

fn with_fleet(
    workspace: &Workspace,
    name: &str,
    command: &mut Command,
    count: fn(&str) -> Tally,
) -> Result<Outcome> {
    let fleet = Fleet::start(workspace, name)?;
    fleet.describe_to(command);
    command.current_dir(&workspace.root).env("PYTHONDONTWRITEBYTECODE", "1");
    let log = workspace.logs()?.join(format!("{name}.log"));
    let finished = run(name, command, Some(log), Show::All)?;
    let mut tally = count(&finished.output);
    if !finished.success && tally.failed == 0 {
        tally += Tally::fail();
    }
    Ok(Outcome::new(tally))
}
