//! The parts that are cargo's own: formatting, lints, the build, and the Rust tests.

use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;

use crate::libtest::Tests;
use crate::report::{Outcome, Tally};
use crate::run::{Show, run};
use crate::workspace::Workspace;

/// All workspaces.
pub(crate) fn fmt(workspace: &Workspace) -> Result<Outcome> {
    let mut outcome = Outcome::new(Tally::default());
    for manifest in manifests(workspace)? {
        let mut command = workspace.cargo();
        command.args(["fmt", "--all", "--check", "--manifest-path"]).arg(&manifest);
        command.args(["--", "--files-with-diff"]);
        let finished = run("cargo fmt", &mut command, None, Show::All)?;
        if !finished.success {
            println!("    not formatted: the files above; run `cargo fmt --all`");
        }
        outcome.tally += Tally::of(finished.success);
    }
    Ok(outcome)
}

/// The workspaces apart from the main one, built into the same folder to share what they can.
pub(crate) fn extras(workspace: &Workspace) -> Result<Outcome> {
    let mut outcome = Outcome::new(Tally::default());
    for manifest in manifests(workspace)?.into_iter().skip(1) {
        let mut command = workspace.cargo();
        command.args(["clippy", "--all-targets", "--manifest-path"]).arg(&manifest);
        if manifest.with_file_name("Cargo.lock").is_file() {
            command.arg("--locked");
        }
        command.args(["--", "-D", "warnings"]).env("CARGO_TARGET_DIR", workspace.target());
        let finished = run("cargo clippy", &mut command, None, Show::Except(is_noise))?;
        outcome.tally += Tally::of(finished.success);
    }
    Ok(outcome)
}

/// The main workspace's manifest, then those of the workspaces apart from it (benchmarks, fuzz
/// targets).
fn manifests(workspace: &Workspace) -> Result<Vec<PathBuf>> {
    let mut manifests = vec![workspace.root.join("Cargo.toml")];
    for file in workspace.files()? {
        let path = workspace.root.join(&file);
        if file.ends_with("Cargo.toml") && path != manifests[0] {
            let text = std::fs::read_to_string(&path).unwrap_or_default();
            if text.lines().any(|line| line.trim() == "[workspace]") {
                manifests.push(path);
            }
        }
    }
    Ok(manifests)
}

pub(crate) fn clippy(workspace: &Workspace) -> Result<Outcome> {
    let mut command = workspace.cargo();
    command.args(["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"]);
    one(workspace, "clippy", &mut command)
}

/// Product and tests in one invocation, so that all parts share one set of features.
pub(crate) fn build(workspace: &Workspace) -> Result<Outcome> {
    let mut command = workspace.cargo();
    command.args(["build", "--workspace", "--lib", "--bins", "--tests", "--locked"]);
    one(workspace, "build", &mut command)
}

pub(crate) fn tests(workspace: &Workspace) -> Result<Outcome> {
    Tests {
        name: "tests",
        targets: &[],
        arguments: &[],
        filter: None,
        environment: Vec::new(),
        show: Show::Except(is_noise),
    }
    .run(workspace)
}

/// A command that passes or fails as a whole.
fn one(workspace: &Workspace, name: &str, command: &mut Command) -> Result<Outcome> {
    let log = workspace.logs()?.join(format!("{name}.log"));
    let finished = run(name, command, Some(log), Show::Except(is_noise))?;
    Ok(Outcome::new(Tally::of(finished.success)))
}

/// Lines of which there are hundreds and that say that all is well.
fn is_noise(line: &str) -> bool {
    let text = line.trim_start();
    text.is_empty()
        || (text.starts_with("test ")
            && (text.ends_with("... ok") || text.ends_with("... ignored")))
        || (text.starts_with("running ") && text.ends_with(" tests"))
        || text == "running 1 test"
        || ["Compiling ", "Checking ", "Downloading ", "Downloaded ", "Locking ", "Adding "]
            .iter()
            .any(|start| text.starts_with(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_test_is_always_shown() {
        assert!(is_noise("test band::tests::full_band_sheds ... ok"));
        assert!(!is_noise("test band::tests::full_band_sheds ... FAILED"));
        assert!(!is_noise("test result: ok. 3 passed; 0 failed; 0 ignored"));
        assert!(!is_noise("thread 'main' panicked at src/lib.rs:3:5:"));
    }
}
