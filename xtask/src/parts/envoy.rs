//! `wicketgate epp` behind a real Envoy, configured by the examples of `docs/envoy.md`.

use std::process::Command;

use anyhow::Result;

use super::cargo;
use crate::cache::Cache;
use crate::report::{Outcome, Tally};
use crate::run::{Show, run as run_command};
use crate::tools::envoy;
use crate::totals;
use crate::workspace::Workspace;

/// The examples, each valid as it stands.
const EXAMPLES: [&str; 2] = ["original-dst.yaml", "override-host.yaml"];

pub(crate) fn run(workspace: &Workspace) -> Result<Outcome> {
    let binary = envoy::binary(&Cache::open()?)?;
    let mut tally = Tally::default();
    for example in EXAMPLES {
        let mut command = Command::new(&binary);
        command.args(["--mode", "validate", "-l", "warn", "-c"]);
        command.arg(workspace.root.join("docs/examples/envoy").join(example));
        tally += Tally::of(run_command(example, &mut command, None, Show::All)?.success);
    }
    let mut command = workspace.cargo();
    command
        .args(cargo::built_test("envoy"))
        .args(["--", "--ignored", "--test-threads", "2"])
        .env("WICKETGATE_TEST_ENVOY", binary);
    let log = workspace.logs()?.join("envoy.log");
    let finished = run_command("envoy", &mut command, Some(log), Show::All)?;
    let mut tests = totals::libtest(&finished.output);
    if !finished.success && tests.failed == 0 {
        tests += Tally::fail();
    }
    tally += tests;
    Ok(Outcome::new(tally))
}
