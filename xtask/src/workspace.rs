//! Where things are in the checkout, and which files belong to it.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

#[derive(Clone, Debug)]
pub(crate) struct Workspace {
    pub root: PathBuf,
}

impl Workspace {
    /// The checkout that this xtask was built from.
    pub(crate) fn find() -> Result<Self> {
        let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
        let root = manifest.parent().context("xtask/ lies in the workspace")?;
        if !root.join("Cargo.toml").is_file() {
            bail!("no Cargo.toml in {}: was the checkout moved after the build?", root.display());
        }
        Ok(Self { root: root.to_path_buf() })
    }

    /// Files that belong to the repository, relative to the root, sorted: tracked ones and new
    /// ones that are not ignored.
    pub(crate) fn files(&self) -> Result<Vec<PathBuf>> {
        let output = Command::new("git")
            .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
            .current_dir(&self.root)
            .output()
            .context("cannot run git")?;
        if !output.status.success() {
            bail!("git ls-files: {}", String::from_utf8_lossy(&output.stderr).trim());
        }
        let mut files: Vec<PathBuf> = output
            .stdout
            .split(|byte| *byte == 0)
            .filter(|name| !name.is_empty())
            .map(|name| PathBuf::from(String::from_utf8_lossy(name).into_owned()))
            .filter(|file| self.root.join(file).is_file())
            .collect();
        files.sort();
        files.dedup();
        Ok(files)
    }

    /// The folder that cargo builds into.
    pub(crate) fn target(&self) -> PathBuf {
        match std::env::var_os("CARGO_TARGET_DIR") {
            Some(folder) => self.root.join(folder),
            None => self.root.join("target"),
        }
    }

    /// The product as `cargo build` leaves it.
    pub(crate) fn wicketgate(&self) -> PathBuf {
        self.target().join("debug").join("wicketgate")
    }

    /// Whole output of parts and of started processes, for looking closer after a failure.
    pub(crate) fn logs(&self) -> Result<PathBuf> {
        let logs = self.target().join("xtask");
        std::fs::create_dir_all(&logs)
            .with_context(|| format!("cannot create {}", logs.display()))?;
        Ok(logs)
    }

    /// `cargo` in the root, as the one that runs us.
    pub(crate) fn cargo(&self) -> Command {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut command = Command::new(cargo);
        command.current_dir(&self.root);
        command
    }
}
