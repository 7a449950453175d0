//! The simulated servers: one `wicketgate sim` process, started afresh for every run, so that no
//! router finds what another left in their caches.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, bail};
use bytes::Bytes;
use http_body_util::{BodyExt, Empty};
use hyper::Request;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use serde::Deserialize;
use tempfile::TempDir;
use test_ports::free_address;
use tokio::net::TcpStream;

use crate::clock;
use crate::interrupt::pause;
use crate::process::Program;

/// How long they may take to listen.
const READY_MAX: Duration = Duration::from_secs(20);
/// Longer than any answer, so that only `max_tokens` ends one, also where a router drops
/// `ignore_eos`.
const ANSWER_TOKENS: &str = "1000000";

/// Running servers; dropping them ends the process.
pub struct Servers {
    pub addresses: Vec<SocketAddr>,
    program: Program,
    _dir: TempDir,
}

/// What a server says about itself.
#[derive(Clone, Debug, Deserialize)]
pub struct State {
    /// Real milliseconds that a hundredth of the steps ended late, at least; an upper bound out of
    /// 0.25, 0.5, 1, 1.5, 2, 4, 8, …
    pub step_lateness_ms_p99: f64,
    pub finished: u64,
    pub aborted: u64,
    /// Inside now.
    pub requests: u64,
    pub prefix_hit_tokens: u64,
    pub prefix_query_tokens: u64,
}

impl Servers {
    /// One server for each hardware row, listening when this returns.
    pub fn start(wicketgate: &Path, rows: &[&str], scale: f64, seed: u64) -> anyhow::Result<Self> {
        let dir = tempfile::Builder::new().prefix("wicketgate-crosscheck-").tempdir()?;
        let addresses = rows.iter().map(|_| free_address()).collect::<Result<Vec<_>, _>>()?;
        let mut command = Command::new(wicketgate);
        command.args(["sim", "--seed", &seed.to_string(), "--time-scale", &scale.to_string()]);
        command.args(["--answer-tokens", ANSWER_TOKENS]);
        for (row, address) in rows.iter().zip(&addresses) {
            let server = format!("hardware={row},count=1,port={}", address.port());
            command.args(["--server", &server]);
        }
        let program = Program::start(command, dir.path().join("log"))?;
        let mut servers = Self { addresses, program, _dir: dir };
        let deadline_ns = clock::now_ns() + READY_MAX.as_nanos() as u64;
        let listens = |address: &SocketAddr| std::net::TcpStream::connect(address).is_ok();
        while !servers.addresses.iter().all(listens) {
            servers.program.still_runs()?;
            if clock::now_ns() > deadline_ns {
                bail!("the simulated servers do not listen after {READY_MAX:?}");
            }
            pause(Duration::from_millis(20))?;
        }
        Ok(servers)
    }

    /// Of each server, in the order of the rows.
    pub async fn states(&self) -> anyhow::Result<Vec<State>> {
        let mut states = Vec::with_capacity(self.addresses.len());
        for address in &self.addresses {
            states.push(state(*address).await.context("no state from a simulated server")?);
        }
        Ok(states)
    }
}

async fn state(address: SocketAddr) -> anyhow::Result<State> {
    let stream = TcpStream::connect(address).await?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    let connection = tokio::spawn(connection);
    let request = Request::get("/admin/state")
        .header("host", address.to_string())
        .body(Empty::<Bytes>::new())?;
    let body = sender.send_request(request).await?.into_body().collect().await?.to_bytes();
    connection.abort();
    Ok(serde_json::from_slice(&body)?)
}
