//! The npm packages of the SDK tests, exactly as the lock file pins them.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;

use anyhow::{Context, Result};

use crate::cache::{Cache, fingerprint};
use crate::run::must;
use crate::tools::debian;
use crate::workspace::Workspace;

const PINS: [&str; 2] = ["package.json", "package-lock.json"];

/// Installs the packages and links them beside the tests, where Node looks for them.
pub(crate) fn sdk_packages(workspace: &Workspace, cache: &Cache) -> Result<()> {
    debian::ensure(&[debian::NODE, debian::NPM])?;
    let tests = workspace.root.join("tests/sdk/node");
    let mut contents = vec![must("node --version", Command::new("node").arg("--version"))?];
    for name in PINS {
        let path = tests.join(name);
        contents.push(
            fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?,
        );
    }
    let name = format!("sdk-node-{}", fingerprint(contents.iter().map(String::as_str)));
    let folder = cache.entry(&name, |folder| {
        for name in PINS {
            fs::copy(tests.join(name), folder.join(name))
                .with_context(|| format!("cannot copy {name}"))?;
        }
        let mut install = Command::new("npm");
        install.args(["ci", "--no-audit", "--no-fund", "--ignore-scripts"]).current_dir(folder);
        must("npm ci", &mut install)?;
        Ok(())
    })?;
    let link = tests.join("node_modules");
    let packages = folder.join("node_modules");
    if fs::read_link(&link).is_ok_and(|target| target == packages) {
        return Ok(());
    }
    match fs::symlink_metadata(&link) {
        Ok(found) if found.is_dir() => return Ok(()), // a developer's own `npm ci`
        Ok(_) => fs::remove_file(&link).context("cannot replace the link to the npm packages")?,
        Err(_) => {}
    }
    symlink(&packages, &link).context("cannot link the npm packages beside the tests")
}
