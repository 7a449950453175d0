//! moto, which answers as AWS does, in an environment of its own.

use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;

use crate::cache::Cache;
use crate::run::must;
use crate::tools::{debian, python};

const VERSION: &str = "5.2.5";

/// The environment's folder of programs: `moto_server`, and a `python` that has boto3.
pub(crate) fn programs(cache: &Cache) -> Result<PathBuf> {
    debian::ensure(&[debian::VENV])?;
    let folder = cache.entry(&format!("moto-{VERSION}"), |folder| {
        let venv = folder.join("venv");
        must("python3 -m venv", Command::new("python3").args(["-m", "venv"]).arg(&venv))?;
        python::pip(&venv, &["install", &format!("moto[server]=={VERSION}")], None)
    })?;
    Ok(folder.join("venv/bin"))
}
