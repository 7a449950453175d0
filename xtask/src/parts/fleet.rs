//! A small simulated fleet with the gateway in front, as the SDK tests see it.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::process::Command;
use std::time::Duration;

use anyhow::Result;
use test_ports::{consecutive_ports, free_address};

use crate::children::Server;
use crate::workspace::Workspace;

/// Names that the tests ask for; the adapters are LoRA adapters of the model.
pub(crate) const MODEL: &str = "llama-3.1-8b";
pub(crate) const ADAPTERS: [&str; 2] = ["sql-helper", "support-tone"];

const ENDPOINTS: u16 = 2;
/// Requests that one endpoint runs at once: few, so that a test can fill the whole pool.
const RUNNING_MAX: u16 = 8;
const READY_LIMIT: Duration = Duration::from_secs(30);

/// Running servers; stopped when dropped, the gateway first.
#[derive(Debug)]
pub(crate) struct Fleet {
    pub gateway: SocketAddr,
    pub admin: SocketAddr,
    pub endpoints: Vec<SocketAddr>,
    _gateway: Server,
    _sim: Server,
}

impl Fleet {
    pub(crate) fn start(workspace: &Workspace, name: &str) -> Result<Self> {
        let logs = workspace.logs()?;
        let first = consecutive_ports(ENDPOINTS)?;
        let endpoints: Vec<SocketAddr> = (first..first + ENDPOINTS)
            .map(|port| SocketAddr::from((Ipv4Addr::LOCALHOST, port)))
            .collect();
        let mut command = Command::new(workspace.wicketgate());
        command.args(["sim", "--engine", "vllm", "--model", MODEL]);
        command.args(["--port", &first.to_string(), "--count", &ENDPOINTS.to_string()]);
        command.args(["--max-num-seqs", &RUNNING_MAX.to_string()]);
        command.args(ADAPTERS.iter().flat_map(|adapter| ["--lora", adapter]));
        let mut sim =
            Server::start("wicketgate sim", logs.join(format!("{name}-sim.log")), &mut command)?;
        sim.wait_ready(READY_LIMIT, || {
            endpoints.iter().all(|endpoint| answers(*endpoint, "/health"))
        })?;

        let (gateway, admin) = (free_address()?, free_address()?);
        let mut command = Command::new(workspace.wicketgate());
        command.args(["serve", "--listen", &gateway.to_string(), "--admin", &admin.to_string()]);
        for endpoint in &endpoints {
            command.args(["--endpoint", &format!("http://{endpoint}")]);
        }
        let log = logs.join(format!("{name}-serve.log"));
        let mut serve = Server::start("wicketgate serve", log, &mut command)?;
        serve.wait_ready(READY_LIMIT, || answers(admin, "/readyz"))?;
        Ok(Self { gateway, admin, endpoints, _gateway: serve, _sim: sim })
    }

    /// Tells a test runner where everything is.
    pub(crate) fn describe_to(&self, command: &mut Command) {
        let endpoints: Vec<String> =
            self.endpoints.iter().map(|endpoint| format!("http://{endpoint}")).collect();
        command
            .env("WICKETGATE_TEST_URL", format!("http://{}", self.gateway))
            .env("WICKETGATE_TEST_ADMIN", format!("http://{}", self.admin))
            .env("WICKETGATE_TEST_ENDPOINTS", endpoints.join(","))
            .env("WICKETGATE_TEST_MODEL", MODEL)
            .env("WICKETGATE_TEST_ADAPTERS", ADAPTERS.join(","));
    }
}

/// Whether `GET path` is answered by 200.
fn answers(address: SocketAddr, path: &str) -> bool {
    status(address, path).is_some_and(|line| line.starts_with("HTTP/1.1 200"))
}

fn status(address: SocketAddr, path: &str) -> Option<String> {
    let limit = Duration::from_secs(2);
    let mut stream = TcpStream::connect_timeout(&address, limit).ok()?;
    stream.set_read_timeout(Some(limit)).ok()?;
    let request = format!("GET {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).ok()?;
    let mut start = [0; 12];
    stream.read_exact(&mut start).ok()?;
    Some(String::from_utf8_lossy(&start).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_closed_port_is_not_ready() {
        assert!(!answers(free_address().expect("a port"), "/readyz"));
    }
}
