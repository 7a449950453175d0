//! What the product does in a cluster, on a real API server.

use anyhow::Result;

use crate::cache::Cache;
use crate::libtest::Tests;
use crate::report::Outcome;
use crate::run::Show;
use crate::tools::control_plane;
use crate::workspace::Workspace;

pub(crate) fn run(workspace: &Workspace) -> Result<Outcome> {
    let assets = control_plane::assets(workspace, &Cache::open()?)?;
    Tests {
        name: "kubernetes",
        targets: &["--test", "kubernetes"],
        arguments: &["--ignored", "--test-threads", "2"],
        filter: None,
        environment: vec![("KUBEBUILDER_ASSETS", assets.into())],
        show: Show::All,
    }
    .run(workspace)
}
