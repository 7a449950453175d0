//! `wicketgate top` in a real terminal.

use anyhow::Result;

use crate::libtest::Tests;
use crate::report::Outcome;
use crate::run::Show;
use crate::tools::debian;
use crate::workspace::Workspace;

pub(crate) fn run(workspace: &Workspace) -> Result<Outcome> {
    debian::ensure(&[debian::TMUX, debian::PS])?;
    Tests {
        name: "terminal",
        targets: &["--test", "terminal"],
        arguments: &["--ignored", "--test-threads", "2"],
        filter: None,
        environment: Vec::new(),
        show: Show::All,
    }
    .run(workspace)
}
