//! `wicketgate global` with what its tests need beyond the product: a Redis, and network namespaces.

use std::process::Command;

use anyhow::Result;
use test_ports::free_address;

use crate::children::Server;
use crate::libtest::Tests;
use crate::report::{Outcome, Tally};
use crate::run::Show;
use crate::tools::debian;
use crate::workspace::Workspace;

pub(crate) fn run(workspace: &Workspace) -> Result<Outcome> {
    debian::ensure(&[debian::REDIS, debian::IP])?;
    let port = free_address()?.port();
    // Lives as long as this.
    let log = workspace.logs()?.join("redis.log");
    let mut redis = Command::new("redis-server");
    redis.args(["--port", &port.to_string(), "--save", "", "--dir", "/tmp"]);
    let _redis = Server::start("redis-server", log, &mut redis)?;
    let address = format!("redis://127.0.0.1:{port}/0");
    let mut whole = Outcome::new(Tally::default());
    for (name, targets, filter) in [
        ("global", ["--test", "global"].as_slice(), None),
        // Only these: other crates keep measurements aside in the same way.
        ("global-store", &["--lib"], Some("store::tests::")),
    ] {
        let mut outcome = Tests {
            name,
            targets,
            // One at a time: they measure rates and silences.
            arguments: &["--ignored", "--test-threads", "1"],
            filter,
            environment: vec![("WICKETGATE_TEST_REDIS", address.clone().into())],
            show: Show::All,
        }
        .run(workspace)?;
        if outcome.tally.passed == 0 {
            outcome.tally += Tally::fail();
        }
        whole.tally += outcome.tally;
        whole.notes.extend(outcome.notes);
    }
    Ok(whole)
}
