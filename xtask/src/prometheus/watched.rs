//! A gateway with every feature that has metrics, in front of two simulated models; a second cluster; a router of the
//! global tier before both.

mod documents;

use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};

use super::get;
use crate::children::Server;
use crate::parts::{ADAPTERS, MODEL};
use crate::run::must;
use crate::workspace::Workspace;
use test_ports::{consecutive_ports, free_address};

/// The model that a canary brings in, on an endpoint of its own.
pub(crate) const CANARY: &str = "llama-3.2-3b";
/// What clients ask for instead of either.
pub(crate) const ALIAS: &str = "assistant";
/// Its endpoints come first.
const STABLE_ENDPOINTS: u16 = 4;
/// Of the second cluster; they come last.
const ELSEWHERE_ENDPOINTS: u16 = 2;
const ENDPOINTS: u16 = STABLE_ENDPOINTS + 1 + ELSEWHERE_ENDPOINTS;
/// Requests that one endpoint runs at once: few, so that a small load fills the pool.
const RUNNING_MAX: u16 = 6;
const READY_LIMIT: Duration = Duration::from_secs(30);

/// Running servers; stopped when dropped, the router first.
#[derive(Debug)]
pub(crate) struct Watched {
    /// Where clients send requests: the first cluster's gateway, and the router.
    pub clients: [SocketAddr; 2],
    /// Whom Prometheus asks, the first cluster's gateway first.
    pub admins: [SocketAddr; 3],
    _servers: Vec<Server>,
}

impl Watched {
    pub(crate) fn start(workspace: &Workspace, name: &str) -> Result<Self> {
        let folder = workspace.logs()?.join(format!("{name}-watched"));
        fs::create_dir_all(&folder).context("cannot make a folder for the fleet")?;
        let first = consecutive_ports(ENDPOINTS)?;
        let sim = |model, first, count, adapters| Sim { model, first, count, adapters };
        let stable = sim(MODEL, first, STABLE_ENDPOINTS, ADAPTERS.as_slice());
        let canary = sim(CANARY, first + STABLE_ENDPOINTS, 1, &[]);
        let elsewhere = sim(MODEL, first + STABLE_ENDPOINTS + 1, ELSEWHERE_ENDPOINTS, &[]);
        let sims = [stable.start(workspace, &folder), canary.start(workspace, &folder)];
        let mut servers = sims.into_iter().collect::<Result<Vec<_>>>()?;
        servers.push(elsewhere.start(workspace, &folder)?);
        let store = free_address()?;
        servers.push(redis(store, &folder)?);

        let (here, there) = (Gate::somewhere()?, Gate::somewhere()?);
        let (router, heartbeats) = (Gate::somewhere()?, free_address()?);
        let text = documents::cluster(&here, &stable, &canary, &certificate(&folder)?, heartbeats)?;
        servers.push(here.start(workspace, &folder, "serve", "frankfurt", &text)?);
        let text = documents::other_cluster(&there, &elsewhere, heartbeats);
        servers.push(there.start(workspace, &folder, "serve", "oregon", &text)?);
        let text = documents::router(&router, [&here, &there], heartbeats, store);
        servers.push(router.start(workspace, &folder, "global", "router", &text)?);
        // Dropped in the order in which they stand: who asks goes before who is asked.
        servers.reverse();
        Ok(Self {
            clients: [here.traffic, router.traffic],
            admins: [here.admin, there.admin, router.admin],
            _servers: servers,
        })
    }
}

/// The two listeners of a gateway or a router.
pub(super) struct Gate {
    pub(super) traffic: SocketAddr,
    pub(super) admin: SocketAddr,
}

impl Gate {
    fn somewhere() -> Result<Self> {
        Ok(Self { traffic: free_address()?, admin: free_address()? })
    }

    fn start(
        &self,
        workspace: &Workspace,
        folder: &Path,
        command: &str,
        name: &str,
        document: &str,
    ) -> Result<Server> {
        let file = folder.join(format!("{name}.yaml"));
        fs::write(&file, document).context("cannot write the document")?;
        let mut process = Command::new(workspace.wicketgate());
        process.args([command, "-f"]).arg(&file);
        let log = folder.join(format!("{name}.log"));
        let mut server = Server::start(&format!("wicketgate {command}"), log, &mut process)?;
        server.wait_ready(READY_LIMIT, || get(self.admin, "/readyz").is_some())?;
        Ok(server)
    }
}

/// The store of global limits.
fn redis(address: SocketAddr, folder: &Path) -> Result<Server> {
    let mut command = Command::new("redis-server");
    command.args(["--bind", &address.ip().to_string(), "--port", &address.port().to_string()]);
    command.args(["--save", "", "--appendonly", "no"]).arg("--dir").arg(folder);
    let mut server = Server::start("redis-server", folder.join("redis.log"), &mut command)?;
    server.wait_ready(READY_LIMIT, || TcpStream::connect(address).is_ok())?;
    Ok(server)
}

/// Simulated servers of one model, on ports in a row.
pub(super) struct Sim {
    pub(super) model: &'static str,
    first: u16,
    count: u16,
    pub(super) adapters: &'static [&'static str],
}

impl Sim {
    fn start(&self, workspace: &Workspace, folder: &Path) -> Result<Server> {
        let mut command = Command::new(workspace.wicketgate());
        command.args(["sim", "--engine", "vllm", "--model", self.model]);
        command.args(["--port", &self.first.to_string(), "--count", &self.count.to_string()]);
        command.args(["--max-num-seqs", &RUNNING_MAX.to_string()]);
        command.args(self.adapters.iter().flat_map(|adapter| ["--lora", adapter]));
        let log = folder.join(format!("sim-{}.log", self.first));
        let mut sim = Server::start("wicketgate sim", log, &mut command)?;
        sim.wait_ready(READY_LIMIT, || {
            self.addresses().all(|address| get(address, "/health").is_some())
        })?;
        Ok(sim)
    }

    pub(super) fn addresses(&self) -> impl Iterator<Item = SocketAddr> {
        (self.first..self.first + self.count)
            .map(|port| SocketAddr::from((Ipv4Addr::LOCALHOST, port)))
    }
}

/// A certificate of our own making, so that there is one whose end can be watched.
fn certificate(folder: &Path) -> Result<[PathBuf; 2]> {
    let files = ["tls.crt", "tls.key"].map(|name| folder.join(name));
    let mut command = Command::new("openssl");
    command.args(["req", "-x509", "-nodes", "-days", "90", "-subj", "/CN=localhost"]);
    command.args(["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"]);
    command.arg("-out").arg(&files[0]).arg("-keyout").arg(&files[1]);
    must("openssl", &mut command)?;
    Ok(files)
}
