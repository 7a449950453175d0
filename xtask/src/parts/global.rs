//! `wicketgate global` with what its tests need beyond the product: a Redis, and network namespaces.

use std::process::Command;

use anyhow::Result;

use crate::children::Server;
use crate::report::{Outcome, Tally};
use crate::run::{Show, run as run_command};
use crate::tools::debian;
use crate::totals;
use crate::workspace::Workspace;
use test_ports::free_address;

pub(crate) fn run(workspace: &Workspace) -> Result<Outcome> {
    debian::ensure(&[debian::REDIS, debian::IP])?;
    let port = free_address()?.port();
    // Lives as long as this.
    let log = workspace.logs()?.join("redis.log");
    let mut redis = Command::new("redis-server");
    redis.args(["--port", &port.to_string(), "--save", "", "--dir", "/tmp"]);
    let _redis = Server::start("redis-server", log, &mut redis)?;
    let address = format!("redis://127.0.0.1:{port}/0");
    let mut tally = Tally::default();
    for (name, target, filter) in [
        ("global", ["--test", "global"].as_slice(), None),
        // Only these: other crates keep measurements aside in the same way.
        ("global-store", &["--lib"], Some("store::tests::")),
    ] {
        let mut command = workspace.cargo();
        command.args(["test", "--workspace", "--locked", "--no-fail-fast"]).args(target);
        // One at a time: they measure rates and silences.
        command.args(["--", "--ignored", "--test-threads", "1"]).args(filter);
        command.env("WICKETGATE_TEST_REDIS", &address);
        let log = workspace.logs()?.join(format!("{name}.log"));
        let finished = run_command(name, &mut command, Some(log), Show::All)?;
        let mut tests = totals::libtest(&finished.output);
        if tests.passed == 0 || !finished.success && tests.failed == 0 {
            tests += Tally::fail();
        }
        tally += tests;
    }
    Ok(Outcome::new(tally))
}
