//! What the product does in a cluster, on a real API server.

use anyhow::Result;

use super::cargo;
use crate::cache::Cache;
use crate::report::{Outcome, Tally};
use crate::run::{Show, run as run_command};
use crate::tools::control_plane;
use crate::totals;
use crate::workspace::Workspace;

pub(crate) fn run(workspace: &Workspace) -> Result<Outcome> {
    let assets = control_plane::assets(workspace, &Cache::open()?)?;
    let mut command = workspace.cargo();
    command
        .args(cargo::built_test("kubernetes"))
        .args(["--", "--ignored", "--test-threads", "2"])
        .env("KUBEBUILDER_ASSETS", assets);
    let log = workspace.logs()?.join("kubernetes.log");
    let finished = run_command("kubernetes", &mut command, Some(log), Show::All)?;
    let mut tally = totals::libtest(&finished.output);
    if !finished.success && tally.failed == 0 {
        tally += Tally::fail();
    }
    Ok(Outcome::new(tally))
}
