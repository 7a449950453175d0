//! `wicketgate epp` behind a real Envoy, configured by the examples of `docs/envoy.md`.

use std::process::Command;

use anyhow::Result;

use crate::cache::Cache;
use crate::libtest::Tests;
use crate::report::{Outcome, Tally};
use crate::run::{Show, run as run_command};
use crate::tools::envoy;
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
    let mut outcome = Tests {
        name: "envoy",
        targets: &["--test", "envoy"],
        arguments: &["--ignored", "--test-threads", "2"],
        filter: None,
        environment: vec![("WICKETGATE_TEST_ENVOY", binary.into())],
        show: Show::All,
    }
    .run(workspace)?;
    outcome.tally += tally;
    Ok(outcome)
}
