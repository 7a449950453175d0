//! What judges manifests: Helm's SDK in a virtual environment, kubeconform and kustomize from their Go modules, and the
//! definitions of resources that other projects' controllers read.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::cache::{Cache, fingerprint};
use crate::run::must;
use crate::tools::{control_plane, python};
use crate::workspace::Workspace;

/// Where the module that pins the programs lies.
const MODULE: &str = "tests/manifests/tools";
/// Program and package that it is built from.
const PROGRAMS: [(&str, &str); 2] = [
    ("kubeconform", "github.com/yannh/kubeconform/cmd/kubeconform"),
    ("kustomize", "sigs.k8s.io/kustomize/kustomize/v5"),
];
/// A module, and the definition in it.
const DEFINITIONS: [(&str, &str); 3] = [
    (
        "github.com/prometheus-operator/prometheus-operator@v0.85.0",
        "example/prometheus-operator-crd/monitoring.coreos.com_servicemonitors.yaml",
    ),
    ("github.com/argoproj/argo-cd/v3@v3.3.0", "manifests/crds/application-crd.yaml"),
    (
        "github.com/fluxcd/source-controller@v1.8.0",
        "config/crd/bases/source.toolkit.fluxcd.io_gitrepositories.yaml",
    ),
];

pub(crate) struct Judges {
    pub kubeconform: PathBuf,
    pub kustomize: PathBuf,
    /// Folder with definitions, as YAML.
    pub definitions: PathBuf,
}

/// The Python that has Helm's SDK.
pub(crate) fn helm(workspace: &Workspace, cache: &Cache) -> Result<PathBuf> {
    let requirements = workspace.root.join("tests/manifests/requirements.txt");
    python::environment("manifests", &requirements, cache)
}

/// The programs and what they go by.
pub(crate) fn judges(workspace: &Workspace, cache: &Cache) -> Result<Judges> {
    let module = workspace.root.join(MODULE);
    let read = |name: &str| {
        let path = module.join(name);
        fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))
    };
    let mut pins = vec![read("go.mod")?, read("go.sum")?];
    pins.extend(DEFINITIONS.iter().map(|(module, path)| format!("{module}/{path}")));
    let name = format!("manifest-judges-{}", fingerprint(pins.iter().map(String::as_str)));
    let folder = cache.entry(&name, |folder| install(&module, folder))?;
    Ok(Judges {
        kubeconform: folder.join("kubeconform"),
        kustomize: folder.join("kustomize"),
        definitions: folder.join("definitions"),
    })
}

fn install(module: &Path, folder: &Path) -> Result<()> {
    // What Go keeps is larger than all else together, and is removed.
    let scratch = folder.join("scratch");
    fs::create_dir_all(scratch.join("tmp"))?;
    let go = control_plane::go(&scratch)?;
    let flags = std::env::var("GOFLAGS").unwrap_or_default();
    let command = || {
        let mut command = Command::new(&go);
        command
            .current_dir(module)
            .env("GOFLAGS", format!("{flags} -modcacherw -trimpath -buildvcs=false"))
            .env("GOCACHE", scratch.join("cache"))
            .env("GOMODCACHE", scratch.join("modules"))
            .env("GOTMPDIR", scratch.join("tmp"))
            .env("CGO_ENABLED", "0");
        command
    };
    for (program, package) in PROGRAMS {
        let mut build = command();
        build.args(["build", "-ldflags", "-s -w", "-o"]).arg(folder.join(program)).arg(package);
        must(&format!("go build {package}"), &mut build)?;
    }
    let definitions = folder.join("definitions");
    fs::create_dir_all(&definitions)?;
    for (source, path) in DEFINITIONS {
        let label = format!("go mod download {source}");
        let told = must(&label, command().args(["mod", "download", "-json", source]))?;
        // Before it Go may say what it downloads.
        let json = told.find('{').map_or("", |begin| &told[begin..]);
        let told: serde_json::Value =
            serde_json::from_str(json).with_context(|| format!("{label}: no JSON"))?;
        let unpacked = told["Dir"].as_str().with_context(|| format!("{label}: names no folder"))?;
        let file = Path::new(unpacked).join(path);
        let name = file.file_name().context("a definition is a file")?;
        fs::copy(&file, definitions.join(name))
            .with_context(|| format!("cannot copy {}", file.display()))?;
    }
    fs::remove_dir_all(&scratch).context("cannot remove what Go kept")
}
