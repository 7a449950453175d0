//! Helm's SDK, through the few commands of `tests/manifests/helm.py`.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

use crate::control_plane::root;

/// A release's life on an API server.
pub(crate) struct Helm {
    pub(crate) namespace: String,
    kubeconfig: PathBuf,
    folder: TempDir,
}

/// The chart as the repository has it.
pub(crate) fn chart() -> PathBuf {
    root().join("charts/wicketgate")
}

/// All objects of a release with these values.
pub(crate) fn template(values: &Value, namespace: &str) -> Vec<Value> {
    let folder = tempfile::tempdir().unwrap();
    let values = values_file(folder.path(), values);
    let chart = chart().display().to_string();
    let made = run(&["template", &chart, &values, "wicketgate", namespace]);
    made.unwrap().as_array().unwrap().clone()
}

impl Helm {
    pub(crate) fn new(namespace: &str, kubeconfig: &Path) -> Self {
        Self {
            namespace: namespace.to_owned(),
            kubeconfig: kubeconfig.to_owned(),
            folder: tempfile::tempdir().unwrap(),
        }
    }

    /// `install` or `upgrade`.
    pub(crate) fn put(&self, command: &str, chart: &Path, values: &Value) {
        self.try_put(command, chart, values).unwrap();
    }

    pub(crate) fn try_put(
        &self,
        command: &str,
        chart: &Path,
        values: &Value,
    ) -> Result<Value, String> {
        let values = values_file(self.folder.path(), values);
        let chart = chart.display().to_string();
        self.try_run(&[command, &chart, &values, "wicketgate", &self.namespace])
    }

    pub(crate) fn rollback(&self, revision: &str) {
        let kubeconfig = self.kubeconfig.display().to_string();
        run(&["rollback", "wicketgate", &self.namespace, &kubeconfig, revision]).unwrap();
    }

    pub(crate) fn uninstall(&self) {
        self.run(&["uninstall", "wicketgate", &self.namespace]);
    }

    /// Revisions, the oldest first.
    pub(crate) fn history(&self) -> Vec<Value> {
        let history = self.run(&["history", "wicketgate", &self.namespace]);
        history.as_array().unwrap().clone()
    }

    fn run(&self, arguments: &[&str]) -> Value {
        self.try_run(arguments).unwrap()
    }

    fn try_run(&self, arguments: &[&str]) -> Result<Value, String> {
        let kubeconfig = self.kubeconfig.display().to_string();
        let mut arguments = arguments.to_vec();
        arguments.push(&kubeconfig);
        run(&arguments)
    }
}

fn values_file(folder: &Path, values: &Value) -> String {
    let path = folder.join("values.yaml");
    std::fs::write(&path, values.to_string()).unwrap();
    path.display().to_string()
}

fn run(arguments: &[&str]) -> Result<Value, String> {
    let python = std::env::var_os("WICKETGATE_TEST_HELM").expect(
        "WICKETGATE_TEST_HELM names a Python with Helm's SDK; `cargo xtask test --only kubernetes` sets it",
    );
    let output = Command::new(python)
        .arg(root().join("tests/manifests/helm.py"))
        .args(arguments)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .output()
        .unwrap();
    if !output.status.success() {
        return Err(format!("helm {}: {}", arguments[0], String::from_utf8_lossy(&output.stderr)));
    }
    Ok(serde_json::from_slice(&output.stdout).unwrap())
}
