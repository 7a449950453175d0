//! Virtual environments of tests: packages as they are published, at pinned versions.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::cache::{Cache, fingerprint};
use crate::run::must;
use crate::tools::debian;
use crate::workspace::Workspace;

/// Python of the official clients' environment.
pub(crate) fn sdk_environment(workspace: &Workspace, cache: &Cache) -> Result<PathBuf> {
    let requirements = workspace.root.join("tests/sdk/python/requirements.txt");
    environment("sdk-python", &requirements, cache)
}

/// Path of the Python of an environment with these packages, made on the first call.
pub(crate) fn environment(name: &str, requirements: &Path, cache: &Cache) -> Result<PathBuf> {
    debian::ensure(&[debian::VENV])?;
    let pins = std::fs::read_to_string(requirements)
        .with_context(|| format!("cannot read {}", requirements.display()))?;
    let version = must("python3 --version", Command::new("python3").arg("--version"))?;
    let name = format!("{name}-{}", fingerprint([version.as_str(), pins.as_str()]));
    let folder = cache.entry(&name, |folder| {
        let venv = folder.join("venv");
        must("python3 -m venv", Command::new("python3").args(["-m", "venv"]).arg(&venv))?;
        pip(&venv, &["install", "--requirement"], Some(requirements))
    })?;
    Ok(folder.join("venv/bin/python"))
}

/// Runs the environment's pip, quietly.
pub(crate) fn pip(venv: &Path, arguments: &[&str], path: Option<&Path>) -> Result<()> {
    let mut command = Command::new(venv.join("bin/python"));
    command
        .args(["-m", "pip", "--quiet", "--disable-pip-version-check"])
        .args(arguments)
        .args(path);
    must(&format!("pip {}", arguments.join(" ")), &mut command)?;
    Ok(())
}
