//! Documents that the product writes about itself: one source, never edited by hand.

use std::fs;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::report::{Outcome, Tally};
use crate::run::must;
use crate::workspace::Workspace;

/// What `wicketgate docs NAME` prints, and where it is kept.
const DOCUMENTS: &[(&str, &str)] = &[
    ("metrics", "docs/metrics.md"),
    ("configuration", "docs/configuration.md"),
    ("picker-config", "docs/picker-config.md"),
    ("global-config", "docs/global-config.md"),
    ("doctor", "docs/doctor.md"),
    ("access-log", "docs/access-log.md"),
    ("crd", "charts/wicketgate/crds/inferencegatewayconfigs.gateway.wicketgate.dev.yaml"),
    ("crd", "deploy/kustomize/crds/inferencegatewayconfigs.gateway.wicketgate.dev.yaml"),
    ("crd-aws", "deploy/aws/inferencegatewayconfigs.inference.sagemaker.aws.amazon.com.yaml"),
];

/// `cargo xtask docs [--check]`: builds the product, then writes or compares.
pub(crate) fn run(only_check: bool) -> Result<bool> {
    let workspace = Workspace::find()?;
    must("cargo build", workspace.cargo().args(["build", "--bin", "wicketgate"]))?;
    if only_check {
        let outcome = check(&workspace)?;
        return Ok(outcome.tally.failed == 0);
    }
    for (path, text) in documents(&workspace)? {
        let file = workspace.root.join(&path);
        if let Some(folder) = file.parent() {
            fs::create_dir_all(folder).with_context(|| format!("cannot make {path}'s folder"))?;
        }
        fs::write(&file, text).with_context(|| format!("cannot write {}", file.display()))?;
        println!("wrote {path}");
    }
    Ok(true)
}

/// Compares the documents on disk with what the built product says now.
pub(crate) fn check(workspace: &Workspace) -> Result<Outcome> {
    let mut tally = Tally::default();
    for (path, text) in documents(workspace)? {
        let kept = fs::read_to_string(workspace.root.join(&path)).unwrap_or_default();
        let current = text == kept;
        if !current {
            println!("    {path} is out of date: run `cargo xtask docs`");
        }
        tally += Tally::of(current);
    }
    Ok(Outcome::new(tally))
}

/// Path and text of each: what the product prints, and what watches it from outside.
fn documents(workspace: &Workspace) -> Result<Vec<(String, String)>> {
    let mut documents = Vec::new();
    for &(name, path) in DOCUMENTS {
        documents.push((path.to_owned(), generate(workspace, name)?));
    }
    documents.extend(monitoring::files().into_iter().map(|file| (file.path, file.text)));
    Ok(documents)
}

fn generate(workspace: &Workspace, name: &str) -> Result<String> {
    let output = Command::new(workspace.wicketgate())
        .args(["docs", name])
        .output()
        .with_context(|| format!("cannot run {}", workspace.wicketgate().display()))?;
    if !output.status.success() {
        bail!("wicketgate docs {name}: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    String::from_utf8(output.stdout).with_context(|| format!("wicketgate docs {name}: not UTF-8"))
}
