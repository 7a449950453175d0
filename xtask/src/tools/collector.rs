//! OpenTelemetry's own collector, built from its published Go modules where Go is installed.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};

use crate::cache::{Cache, fingerprint};
use crate::run::must;
use crate::workspace::Workspace;

/// Path of the binary; `None` without Go.
pub(crate) fn binary(workspace: &Workspace, cache: &Cache) -> Result<Option<PathBuf>> {
    let Ok(version) = must("go version", Command::new("go").arg("version")) else {
        return Ok(None);
    };
    let sources = workspace.root.join("tests/otel/collector");
    let read = |name: &str| {
        let file = sources.join(name);
        std::fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))
    };
    let (main, sums) = (read("main.go")?, read("go.sum")?);
    let name = format!("otel-collector-{}", fingerprint([version.as_str(), &main, &sums]));
    let folder = cache.entry(&name, |folder| {
        // What Go keeps is larger than the collector, and nobody asks for it again.
        let scratch = folder.join("scratch");
        let flags = std::env::var("GOFLAGS").unwrap_or_default();
        let mut command = Command::new("go");
        command
            .current_dir(&sources)
            .args(["build", "-trimpath", "-mod=readonly", "-o"])
            .arg(folder.join("collector"))
            .arg(".")
            .env("GOFLAGS", format!("{flags} -modcacherw"))
            .env("GOCACHE", scratch.join("cache"))
            .env("GOMODCACHE", scratch.join("modules"));
        must("go build", &mut command)?;
        std::fs::remove_dir_all(&scratch).context("cannot remove what Go kept")
    })?;
    Ok(Some(folder.join("collector")))
}
