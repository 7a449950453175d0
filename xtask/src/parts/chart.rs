//! Chart and manifests, without a cluster: Helm's own lint, golden files, kubeconform, kustomize.

use std::process::Command;

use anyhow::Result;

use crate::cache::Cache;
use crate::report::{Outcome, Tally};
use crate::run::{Show, run as run_command};
use crate::tools::manifests;
use crate::totals;
use crate::workspace::Workspace;

pub(crate) fn run(workspace: &Workspace) -> Result<Outcome> {
    let cache = Cache::open()?;
    let python = manifests::helm(workspace, &cache)?;
    let judges = manifests::judges(workspace, &cache)?;
    let mut command = Command::new(python);
    command
        .args(["-m", "pytest", "-q", "-p", "no:cacheprovider", "--color=no", "tests/manifests"])
        .current_dir(&workspace.root)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("WICKETGATE_TEST_BINARY", workspace.wicketgate())
        .env("WICKETGATE_TEST_KUBECONFORM", judges.kubeconform)
        .env("WICKETGATE_TEST_KUSTOMIZE", judges.kustomize)
        .env("WICKETGATE_TEST_DEFINITIONS", judges.definitions);
    let log = workspace.logs()?.join("chart.log");
    let finished = run_command("chart", &mut command, Some(log), Show::All)?;
    let mut tally = totals::pytest(&finished.output);
    if !finished.success && tally.failed == 0 {
        tally += Tally::fail();
    }
    Ok(Outcome::new(tally))
}
