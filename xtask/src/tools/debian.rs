//! Debian packages; only missing ones are installed, and only as root.

use std::process::{Command, Stdio};

use anyhow::{Result, bail};

use crate::run::must;

/// A program and the package that brings it.
pub(crate) struct Need {
    /// Command line that succeeds when the need is met.
    pub probe: &'static [&'static str],
    pub package: &'static str,
}

/// For `python3 -m venv`, which Debian ships apart from Python.
pub(crate) const VENV: Need =
    Need { probe: &["python3", "-c", "import ensurepip, venv"], package: "python3-venv" };
pub(crate) const NODE: Need = Need { probe: &["node", "--version"], package: "nodejs" };
pub(crate) const CHROMIUM: Need = Need { probe: &["chromium", "--version"], package: "chromium" };
pub(crate) const TMUX: Need = Need { probe: &["tmux", "-V"], package: "tmux" };
pub(crate) const PS: Need = Need { probe: &["ps", "--version"], package: "procps" };
pub(crate) const REDIS: Need =
    Need { probe: &["redis-server", "--version"], package: "redis-server" };
pub(crate) const IP: Need = Need { probe: &["ip", "-V"], package: "iproute2" };
pub(crate) const OPENSSL: Need = Need { probe: &["openssl", "version"], package: "openssl" };
pub(crate) const PROMETHEUS: Need =
    Need { probe: &["promtool", "--version"], package: "prometheus" };
pub(crate) const NPM: Need = Need { probe: &["npm", "--version"], package: "npm" };

/// Makes sure that all `needs` are met.
pub(crate) fn ensure(needs: &[Need]) -> Result<()> {
    let missing: Vec<&str> =
        needs.iter().filter(|need| !succeeds(need.probe)).map(|need| need.package).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let list = missing.join(" ");
    if !rustix::process::geteuid().is_root() {
        bail!("missing on this machine: {list}; install with `sudo apt-get install {list}`");
    }
    println!("    installing Debian packages: {list}");
    must("apt-get update", Command::new("apt-get").args(["-q", "update"]))?;
    let mut install = Command::new("apt-get");
    install.args(["-q", "-y", "--no-install-recommends", "install"]).args(&missing);
    must("apt-get install", install.env("DEBIAN_FRONTEND", "noninteractive"))?;
    Ok(())
}

fn succeeds(command: &[&str]) -> bool {
    let [program, arguments @ ..] = command else { return false };
    Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}
