//! What is measured: nothing in between, nginx, Wicketgate in its modes, and other routers.

mod collector;
mod configs;
pub mod epp;
mod guarded;
mod peers;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, bail};
use tempfile::TempDir;
use test_ports::free_address;

pub use peers::Peer;

use crate::clock;
use crate::interrupt::pause;
use crate::load::open;
use crate::process::Program;
use crate::prompts::{Kind as Prompts, Requests};

/// How long a subject may take until it answers its first request (LiteLLM needs 10 s).
const READY_MAX: Duration = Duration::from_secs(90);

/// Name of the column that all ratios refer to.
pub const NGINX: &str = "nginx";
/// Name of the column without a gateway.
pub const DIRECT: &str = "direct";
/// Wicketgate's own proxy, in its default mode.
pub const WICKETGATE: &str = "wicketgate";
/// The same with tracing.
pub const WICKETGATE_TRACES: &str = "wicketgate-traces";
/// The same with authentication, flow control and rate limits.
pub const WICKETGATE_GUARDED: &str = "wicketgate-guarded";
/// The same with its access log, a line of JSON for each request.
pub const WICKETGATE_LOG: &str = "wicketgate-log";
/// Envoy as a plain proxy.
pub const ENVOY: &str = "envoy";
/// `wicketgate epp` without a proxy in front.
pub const PICKER: &str = "epp";
/// Envoy that asks `wicketgate epp`.
pub const ENVOY_EPP: &str = "envoy-epp";

/// A column of the table: how to start it.
#[derive(Clone, Debug)]
pub struct Plan {
    pub name: &'static str,
    pub kind: Kind,
}

#[derive(Clone, Debug)]
pub enum Kind {
    Direct,
    Nginx,
    Wicketgate {
        program: PathBuf,
        args: Vec<String>,
        /// Share of its traces that it exports; `None`: it makes none.
        traces: Option<f64>,
    },
    /// Wicketgate with a document that asks all that can be asked of a request.
    Guarded {
        program: PathBuf,
        args: Vec<String>,
    },
    Peer {
        peer: Peer,
        policy: &'static str,
        venv: PathBuf,
    },
    /// Envoy from `venv`, asking `program epp` for each request.
    EnvoyEpp {
        program: PathBuf,
        args: Vec<String>,
        venv: PathBuf,
    },
}

/// A started column; dropping it ends its processes.
pub struct Subject {
    pub name: &'static str,
    /// Where the load goes; for `direct` the endpoints themselves.
    pub targets: Vec<SocketAddr>,
    /// `None` for `direct`, whose cost is the mock's own.
    pub program: Option<Program>,
    /// Envoy, where the subject is the picker behind one.
    pub front: Option<Program>,
    /// Where Wicketgate is administrated; of others nobody listens there.
    pub admin: SocketAddr,
    _dir: TempDir,
}

impl Plan {
    /// Starts the subject in front of `endpoints` and waits for its first good answer.
    pub fn start(&self, endpoints: &[SocketAddr]) -> anyhow::Result<Subject> {
        self.try_start(endpoints).with_context(|| format!("`{}` does not serve", self.name))
    }

    fn try_start(&self, endpoints: &[SocketAddr]) -> anyhow::Result<Subject> {
        let dir = tempfile::Builder::new().prefix("wicketgate-bench-").tempdir()?;
        let (listen, admin) = (free_address()?, free_address()?);
        if let Kind::EnvoyEpp { program, args, venv } = &self.kind {
            let picker = epp::command(program, args, endpoints, admin)?;
            let envoy = epp::envoy(venv, dir.path(), listen, picker.ext_proc)?;
            let mut program = Program::start(picker.command, dir.path().join("picker.log"))?;
            let mut front = Program::start(envoy, dir.path().join("envoy.log"))?;
            wait_ready(&mut [&mut program, &mut front], listen)?;
            let (program, front) = (Some(program), Some(front));
            return Ok(Subject {
                name: self.name,
                targets: vec![listen],
                program,
                front,
                admin,
                _dir: dir,
            });
        }
        let command = match &self.kind {
            Kind::Direct => None,
            Kind::Nginx => Some(nginx(dir.path(), listen, endpoints)?),
            Kind::Wicketgate { program, args, traces } => {
                let mut command = Command::new(program);
                command.arg("serve");
                command.args(["--listen", &listen.to_string(), "--admin", &admin.to_string()]);
                for endpoint in endpoints {
                    command.args(["--endpoint", &format!("http://{endpoint}")]);
                }
                command.args(args);
                if let Some(share) = traces {
                    let collector = format!("http://{}", collector::start()?);
                    command.env("OTEL_EXPORTER_OTLP_ENDPOINT", collector);
                    command.env("OTEL_TRACES_SAMPLER", "parentbased_traceidratio");
                    command.env("OTEL_TRACES_SAMPLER_ARG", share.to_string());
                }
                Some(command)
            }
            Kind::Guarded { program, args } => {
                let document = guarded::document(dir.path(), program, endpoints)?;
                let mut command = Command::new(program);
                command.arg("serve").arg("-f").arg(document);
                command.args(["--listen", &listen.to_string(), "--admin", &admin.to_string()]);
                command.args(args);
                Some(command)
            }
            Kind::Peer { peer, policy, venv } => {
                Some(peer.command(venv, policy, dir.path(), listen, admin, endpoints)?)
            }
            // Started above, as two programs.
            Kind::EnvoyEpp { .. } => None,
        };
        let Some(command) = command else {
            let targets = endpoints.to_vec();
            return Ok(Subject {
                name: self.name,
                targets,
                program: None,
                front: None,
                admin,
                _dir: dir,
            });
        };
        let mut program = Program::start(command, dir.path().join("log"))?;
        wait_ready(&mut [&mut program], listen)?;
        let (targets, program) = (vec![listen], Some(program));
        Ok(Subject { name: self.name, targets, program, front: None, admin, _dir: dir })
    }

    /// One line about the version, or why there is none.
    pub fn version(&self) -> String {
        let mut command = match &self.kind {
            Kind::Direct => return String::new(),
            Kind::Nginx => Command::new("nginx"),
            Kind::Wicketgate { program, .. }
            | Kind::Guarded { program, .. }
            | Kind::EnvoyEpp { program, .. } => Command::new(program),
            Kind::Peer { peer, .. } => return peer.requirement().to_owned(),
        };
        let flag = if matches!(self.kind, Kind::Nginx) { "-v" } else { "--version" };
        let Ok(output) = command.arg(flag).output() else { return "not found".to_owned() };
        let text = [output.stdout, output.stderr].concat();
        String::from_utf8_lossy(&text).lines().next().unwrap_or("says nothing").to_owned()
    }
}

fn wait_ready(programs: &mut [&mut Program], listen: SocketAddr) -> anyhow::Result<()> {
    let deadline_ns = clock::now_ns() + READY_MAX.as_nanos() as u64;
    let mut requests = Requests::new(Prompts::Shared, 500, &listen.to_string(), 0);
    let mut buffer = vec![0; 64 * 1024];
    let mut last = String::new();
    while clock::now_ns() < deadline_ns {
        for program in programs.iter_mut() {
            program.still_runs()?;
        }
        match open::one(&mut None, listen, requests.next(), &mut buffer) {
            Ok(200) => return Ok(()),
            Ok(status) => last = format!("status {status}"),
            Err(error) => last = error.to_string(),
        }
        pause(Duration::from_millis(50))?;
    }
    bail!("not ready after {READY_MAX:?}: {last}")
}

fn nginx(dir: &Path, listen: SocketAddr, endpoints: &[SocketAddr]) -> anyhow::Result<Command> {
    let file = dir.join("nginx.conf");
    std::fs::write(&file, configs::nginx(listen, endpoints, nix::unistd::geteuid().is_root()))?;
    let mut command = Command::new("nginx");
    command.arg("-p").arg(dir).arg("-c").arg(file).args(["-e", "stderr"]);
    Ok(command)
}
