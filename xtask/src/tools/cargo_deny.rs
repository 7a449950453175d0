//! cargo-deny, built once (about two and a half minutes on two cores).

use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::cache::Cache;
use crate::run::must;
use crate::workspace::Workspace;

const VERSION: &str = "0.20.2";

pub(crate) fn binary(workspace: &Workspace, cache: &Cache) -> Result<PathBuf> {
    let folder =
        cache.entry(&format!("cargo-deny-{VERSION}"), |folder| install(workspace, folder))?;
    Ok(folder.join("bin/cargo-deny"))
}

fn install(workspace: &Workspace, folder: &Path) -> Result<()> {
    let build = folder.join("build");
    let mut command = workspace.cargo();
    command
        .args(["install", "cargo-deny", "--locked", "--version", VERSION, "--root"])
        .arg(folder)
        .env("CARGO_TARGET_DIR", &build);
    must("cargo install cargo-deny", &mut command)?;
    std::fs::remove_dir_all(&build)?;
    Ok(())
}
