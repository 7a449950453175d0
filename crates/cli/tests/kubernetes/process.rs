//! A running `wicketgate controller`.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

use crate::gateway::BINARY;
use crate::kubelet::IMAGE;
use crate::namespace::{Namespace, until};

/// Ended when dropped.
pub(crate) struct Controller {
    child: Child,
    log: PathBuf,
    _folder: TempDir,
}

impl Controller {
    /// Acts upon one namespace, AWS's group included.
    pub(crate) fn start(namespace: &Namespace) -> Self {
        Self::start_with(&namespace.kubeconfig, &namespace.name, &[])
    }

    pub(crate) fn start_with(kubeconfig: &Path, namespace: &str, arguments: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("controller.log");
        let open = || File::options().create(true).append(true).open(&log).unwrap();
        let child = Command::new(BINARY)
            .args(["controller", "--watch-aws-group", "--health", "127.0.0.1:0"])
            .args(["--namespace", namespace, "--watch-namespace", namespace, "--image", IMAGE])
            .arg("--kubeconfig")
            .arg(kubeconfig)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(open())
            .stderr(open())
            .spawn()
            .unwrap();
        Self { child, log, _folder: folder }
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn said(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Waits until it has said something.
    pub(crate) async fn says(&self, what: &str) {
        until(&format!("the controller says `{what}`"), async || self.said().contains(what)).await;
    }

    /// Sends a signal by its name without `SIG`, and waits for the end.
    pub(crate) async fn end(&mut self, signal: &str) {
        let command = format!("kill -{signal} {}", self.child.id());
        assert!(Command::new("sh").args(["-c", &command]).status().unwrap().success());
        let child = &mut self.child;
        until("the controller ends", async || child.try_wait().unwrap().is_some()).await;
    }
}

#[expect(clippy::print_stderr, reason = "shown beside the test that fails of it")]
impl Drop for Controller {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            eprintln!("the controller said:\n{}", self.said());
        }
    }
}
