//! A Redis of the test's own.

use std::net::SocketAddr;
use std::process::Command;

use tokio::net::TcpStream;

use crate::process::{Process, until};
use crate::stand::free_address;

pub(crate) struct Redis {
    pub(crate) process: Process,
    address: SocketAddr,
}

impl Redis {
    pub(crate) async fn start() -> Self {
        let address = free_address();
        let process = run(address);
        until("Redis answers", async || TcpStream::connect(address).await.is_ok()).await;
        Self { process, address }
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://{}/0", self.address)
    }

    /// Starts it again, empty.
    pub(crate) async fn restart(&mut self) {
        self.process.kill();
        self.process = run(self.address);
        let address = self.address;
        until("Redis answers", async || TcpStream::connect(address).await.is_ok()).await;
    }
}

fn run(address: SocketAddr) -> Process {
    let mut command = Command::new("redis-server");
    command.args(["--bind", &address.ip().to_string(), "--port", &address.port().to_string()]);
    command.args(["--save", "", "--appendonly", "no", "--dir", "/tmp"]);
    Process::spawn(&mut command)
}
