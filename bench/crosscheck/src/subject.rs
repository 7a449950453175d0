//! Who stands before the servers: Wicketgate in its modes, and other routers' own programs.

#[path = "../../harness/src/subject/configs.rs"]
#[allow(dead_code, reason = "the cost harness needs more of it")]
mod configs;
#[path = "../../harness/src/subject/peers.rs"]
#[allow(dead_code, reason = "the cost harness needs more of it")]
mod peers;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::bail;
use lab::Policy;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tempfile::TempDir;
use test_ports::free_addresses;

pub use peers::Peer;

use crate::clock;
use crate::interrupt::pause;
use crate::load;
use crate::process::Program;

/// A column of the cost harness, which `peers` names.
const ENVOY: &str = "envoy";

/// How long a router may take until it answers its first request.
const READY_MAX: Duration = Duration::from_secs(40);

/// A row of the table.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    pub name: &'static str,
    pub start: Start,
    /// What the laboratory plays for it; `None`: it has no such policy.
    pub policy: Option<Policy>,
    /// How often it reads loads, where that is not the laboratory's default for the policy.
    pub polls: Option<Duration>,
    /// What a reader has to know about it.
    pub about: &'static str,
    /// Measured unless others are asked for.
    pub is_default: bool,
}

#[derive(Clone, Copy, Debug)]
pub enum Start {
    /// Further arguments of `wicketgate serve`.
    Wicketgate(&'static [&'static str]),
    /// Its policy, and further arguments.
    Peer(Peer, &'static str, &'static [&'static str]),
}

const fn ours(name: &'static str, args: &'static [&'static str], policy: Policy) -> Kind {
    let start = Start::Wicketgate(args);
    Kind { name, start, policy: Some(policy), polls: None, about: "", is_default: true }
}

const fn peer(
    name: &'static str,
    start: (Peer, &'static str),
    policy: Option<Policy>,
    about: &'static str,
) -> Kind {
    let start = Start::Peer(start.0, start.1, &[]);
    Kind { name, start, policy, polls: None, about, is_default: true }
}

/// Every row there is. All run with their defaults but for the policy, and one poll interval.
pub const KINDS: [Kind; 9] = [
    ours("wicketgate", &[], Policy::Wicketgate),
    ours("wicketgate-reference", &["--policy", "reference"], Policy::Reference),
    ours("wicketgate-rr", &["--policy", "round-robin"], Policy::RoundRobin),
    peer(
        "smg-cache",
        (Peer::Smg, "cache_aware"),
        None,
        "text tree with a spill gate against the fleet's mean; the laboratory has no such policy",
    ),
    Kind {
        start: Start::Peer(Peer::Smg, "least_load", &["--load-monitor-interval", "1"]),
        polls: Some(Duration::from_secs(1)),
        ..peer(
            "smg-least-load-1s",
            (Peer::Smg, "least_load"),
            Some(Policy::SmgLeastLoad),
            "reads loads every second instead of every ten: a run lasts a few",
        )
    },
    Kind {
        is_default: false,
        ..peer(
            "smg-least-load",
            (Peer::Smg, "least_load"),
            Some(Policy::SmgLeastLoad),
            "reads loads every 10 s, its default: in a run of seconds once or never",
        )
    },
    peer(
        "sglang-cache",
        (Peer::SglangRouter, "cache_aware"),
        Some(Policy::SglangCacheAware),
        "best match above 0.3 unless 64 requests and 1.5 times out of balance",
    ),
    peer(
        "vllm-cache",
        (Peer::VllmRouter, "cache_aware"),
        Some(Policy::SglangCacheAware),
        "its default; asks an endpoint to tokenise first, two more calls for each request",
    ),
    peer(
        "vllm-kv",
        (Peer::VllmRouter, "kv_aware"),
        Some(Policy::LMetric),
        "its cache index lives on KV events over ZMQ, which the simulated servers do not send: \
         load only here, while the laboratory's lmetric knows the caches",
    ),
];

/// A row that can be started.
#[derive(Clone, Debug)]
pub struct Subject {
    pub kind: Kind,
    /// The executable, or the folder of the virtual environment.
    place: PathBuf,
}

/// A started router; dropping it ends its processes.
pub struct Running {
    pub address: SocketAddr,
    /// Until its first answer.
    pub start_seconds: f64,
    program: Program,
    _dir: TempDir,
}

impl Drop for Running {
    /// A router that is asked once waits for clients to go elsewhere, Wicketgate ten seconds. There
    /// are none any more; whoever is asked twice, here and by [`Program`], does not wait.
    fn drop(&mut self) {
        let _ = kill(Pid::from_raw(self.program.pid()), Signal::SIGINT);
    }
}

impl Subject {
    /// * `cache`: where other routers are, or get installed.
    pub fn new(kind: Kind, wicketgate: &Path, cache: &Path) -> anyhow::Result<Self> {
        let place = match kind.start {
            Start::Wicketgate(_) => wicketgate.to_owned(),
            Start::Peer(peer, ..) => peer.install(cache)?,
        };
        Ok(Self { kind, place })
    }

    /// What it is, for the head of the output.
    pub fn version(&self) -> String {
        match self.kind.start {
            Start::Wicketgate(args) => format!("wicketgate serve {}", args.join(" ")),
            Start::Peer(peer, policy, args) => {
                format!("{} --policy {policy} {}", peer.requirement(), args.join(" "))
            }
        }
    }

    /// Starts it before `endpoints` and waits for its first answer.
    pub async fn start(&self, endpoints: &[SocketAddr], model: &str) -> anyhow::Result<Running> {
        let dir = tempfile::Builder::new().prefix("wicketgate-crosscheck-").tempdir()?;
        let [listen, admin] = free_addresses()?;
        let command = match self.kind.start {
            Start::Wicketgate(args) => {
                let mut command = Command::new(&self.place);
                command.args(["serve", "--listen", &listen.to_string()]);
                command.args(["--admin", &admin.to_string(), "--access-log", "off"]);
                for endpoint in endpoints {
                    command.args(["--endpoint", &format!("http://{endpoint}")]);
                }
                command.args(args);
                command
            }
            Start::Peer(peer, policy, args) => {
                let mut command =
                    peer.command(&self.place, policy, dir.path(), listen, admin, endpoints)?;
                command.args(args);
                if peer == Peer::Smg {
                    // It waits so long for clients when it is told to leave, however often.
                    command.args(["--shutdown-grace-period-secs", "1"]);
                }
                command
            }
        };
        let mut program = Program::start(command, dir.path().join("log"))?;
        let begun_ns = clock::now_ns();
        let deadline_ns = begun_ns + READY_MAX.as_nanos() as u64;
        while let Err(error) = load::probe(listen, model).await {
            program.still_runs()?;
            if clock::now_ns() > deadline_ns {
                bail!("no answer after {READY_MAX:?}: {error:#}");
            }
            pause(Duration::from_millis(50))?;
        }
        let start_seconds = (clock::now_ns() - begun_ns) as f64 * 1e-9;
        Ok(Running { address: listen, start_seconds, program, _dir: dir })
    }
}
