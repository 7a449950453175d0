//! What the product does in a cluster, on a real API server.

use anyhow::Result;

use crate::cache::Cache;
use crate::libtest::Tests;
use crate::report::Outcome;
use crate::run::Show;
use crate::tools::{control_plane, manifests};
use crate::workspace::Workspace;

pub(crate) fn run(workspace: &Workspace) -> Result<Outcome> {
    let cache = Cache::open()?;
    let assets = control_plane::assets(workspace, &cache)?;
    let helm = manifests::helm(workspace, &cache)?;
    drop(cache);
    Tests {
        name: "kubernetes",
        targets: &["--test", "kubernetes"],
        // Figures are for whoever asks for them, on a machine that does nothing else.
        arguments: &["--ignored", "--test-threads", "2", "--skip", "measured_"],
        filter: None,
        environment: vec![
            ("KUBEBUILDER_ASSETS", assets.into()),
            ("WICKETGATE_TEST_HELM", helm.into()),
        ],
        show: Show::All,
    }
    .run(workspace)
}
