//! `cargo xtask pictures`: each dashboard and the terminal as pictures, for the documents.

use std::fs;
use std::time::Duration;

use anyhow::{Context, Result};

use super::{Load, Server, Watched, picture, terminal};
use crate::clock::{Stopwatch, wait_until};
use crate::run::must;
use crate::tools::debian;
use crate::workspace::Workspace;

/// What the pictures show.
const SECONDS: u64 = 240;
const STEP: u64 = 3;
/// Windows of rates.
const RATE_WINDOW: &str = "15s";
/// The dashboard that looks at all clusters.
const FLEET: &str = "wicketgate-fleet";
const FOLDER: &str = "docs/images";

/// Runs a fleet under load for a few minutes and draws what Prometheus saw.
pub(crate) fn run() -> Result<bool> {
    let workspace = Workspace::find()?;
    debian::ensure(&[debian::PROMETHEUS, debian::OPENSSL, debian::REDIS, debian::TMUX])?;
    must("cargo build", workspace.cargo().args(["build", "--bin", "wicketgate"]))?;
    let fleet = Watched::start(&workspace, "pictures")?;
    // A cluster has a Prometheus of its own; that of the fleet asks everybody.
    let of_cluster = Server::start(&workspace, "prometheus", &fleet.admins[..1])?;
    let of_fleet = Server::start(&workspace, "prometheus-fleet", &fleet.admins)?;
    let _load = Load::start(&fleet.clients);
    println!("    load for {SECONDS} s …");
    let watch = Stopwatch::start();
    let length = Duration::from_secs(SECONDS);
    wait_until(length + Duration::from_secs(1), || watch.elapsed() >= length);
    for dashboard in monitoring::dashboards::all() {
        let server = if dashboard.uid == FLEET { &of_fleet } else { &of_cluster };
        let page = picture::page(dashboard, SECONDS, |expr| {
            let expr = monitoring::queries::chosen(expr, RATE_WINDOW);
            server.range(&expr, SECONDS, STEP)
        })?;
        let name = dashboard.uid.trim_start_matches("wicketgate-");
        write(&workspace, &format!("{FOLDER}/dashboard-{name}.svg"), &page)?;
    }
    write(
        &workspace,
        &format!("{FOLDER}/top.svg"),
        &terminal::picture(&workspace, fleet.admins[0])?,
    )?;
    Ok(true)
}

fn write(workspace: &Workspace, path: &str, picture: &str) -> Result<()> {
    fs::write(workspace.root.join(path), picture).context("cannot write the picture")?;
    println!("wrote {path}");
    Ok(())
}
