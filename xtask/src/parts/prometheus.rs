//! A real Prometheus in front of a live gateway: rules and alerts are sound, every query finds data.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};

use crate::clock::wait_until;
use crate::prometheus::{Load, Server, Watched};
use crate::report::{Outcome, Tally};
use crate::run::{Show, run as run_command};
use crate::tools::debian;
use crate::workspace::Workspace;

/// How long all queries together may take to find something; rates need two scrapes, rules a round each.
const LIMIT: Duration = Duration::from_secs(90);
const RATE_WINDOW: &str = "1m";

pub(crate) fn run(workspace: &Workspace) -> Result<Outcome> {
    debian::ensure(&[debian::PROMETHEUS, debian::OPENSSL, debian::REDIS])?;
    let folder = workspace.root.join("deploy/prometheus");
    let mut tally = Tally::default();
    for arguments in [
        ["check", "rules", "rules.yaml"].as_slice(),
        &["check", "rules", "alerts.yaml"],
        &["check", "config", "prometheus.yaml"],
        &["test", "rules", "alerts-test.yaml"],
    ] {
        tally += Tally::of(promtool(&folder, arguments)?);
    }
    let fleet = Watched::start(workspace, "prometheus")?;
    tally += Tally::of(page_is_clean(workspace, &fleet)?);
    let _load = Load::start(&fleet.clients);
    let server = Server::start(workspace, "prometheus", &fleet.admins)?;
    tally += ask_all(&server);
    Ok(Outcome::new(tally))
}

fn promtool(folder: &Path, arguments: &[&str]) -> Result<bool> {
    let mut command = Command::new("promtool");
    command.args(arguments).current_dir(folder);
    let finished = run_command("promtool", &mut command, None, Show::None)?;
    let passed = finished.success;
    println!("    {}  promtool {}", if passed { "ok    " } else { "FAILED" }, arguments.join(" "));
    if !passed {
        println!("{}", finished.output);
    }
    Ok(passed)
}

/// `promtool check metrics` on the live page.
fn page_is_clean(workspace: &Workspace, fleet: &Watched) -> Result<bool> {
    let page = crate::prometheus::get(fleet.admins[0], "/metrics").context("no page of metrics")?;
    let file = workspace.logs()?.join("metrics-page.txt");
    fs::write(&file, page).context("cannot keep the page")?;
    let mut command = Command::new("sh");
    command.args(["-c", "promtool check metrics < \"$0\""]).arg(&file);
    let finished = run_command("promtool check metrics", &mut command, None, Show::None)?;
    // Advice on names ends with 3 too; only what breaks the format counts, and names are held by tests.
    let broken =
        finished.output.contains("error while linting") || finished.output.contains("parse");
    println!("    {}  promtool check metrics", if broken { "FAILED" } else { "ok    " });
    if broken {
        println!("{}", finished.output);
    }
    Ok(!broken)
}

/// Asks until each query has found something, or the time is up.
fn ask_all(server: &Server) -> Tally {
    let asked = monitoring::queries::all(RATE_WINDOW);
    let mut missing: Vec<usize> = (0..asked.len()).collect();
    let mut errors = Vec::new();
    wait_until(LIMIT, || {
        missing.retain(|index| match server.finds(&asked[*index].expr) {
            Ok(found) => !found,
            Err(error) => {
                errors.push(format!("{}: {error:#}", asked[*index].whose));
                false
            }
        });
        missing.iter().all(|index| asked[*index].may_be_empty)
    });
    let mut tally = Tally::default();
    for (index, query) in asked.iter().enumerate() {
        let found = !missing.contains(&index) || query.may_be_empty;
        if !found {
            println!("    FAILED  {}: no data: {}", query.whose, query.expr);
        }
        tally += Tally::of(found);
    }
    for error in errors {
        println!("    FAILED  {error}");
        tally += Tally::fail();
    }
    tally
}
