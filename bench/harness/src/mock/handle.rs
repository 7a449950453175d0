//! The mock seen from the run: its process, its ports, its counters.

use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::process::{ChildStdin, ChildStdout, Command, Stdio};

use anyhow::Context;

use super::Stats;
use crate::process::Program;

/// A running mock; dropping it ends the process.
pub struct Mock {
    pub program: Program,
    pub addresses: Vec<SocketAddr>,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Mock {
    /// Starts this same executable as a mock with `ports` endpoints.
    pub fn start(ports: usize) -> anyhow::Result<Self> {
        let exe = std::env::current_exe().context("cannot find the own executable")?;
        Self::start_from(Command::new(exe), ports)
    }

    /// The same on every address of the machine, and so of the loopback network `127.0.0.0/8`:
    /// thousands of endpoints that answer, for one listener.
    pub fn start_on_all_loopback(ports: usize) -> anyhow::Result<Self> {
        let exe = std::env::current_exe().context("cannot find the own executable")?;
        let mut command = Command::new(exe);
        command.args(["mock", "--host", "0.0.0.0"]);
        Self::start_with(command, ports)
    }

    fn start_from(mut command: Command, ports: usize) -> anyhow::Result<Self> {
        command.arg("mock");
        Self::start_with(command, ports)
    }

    fn start_with(mut command: Command, ports: usize) -> anyhow::Result<Self> {
        command.args(["--ports", &ports.to_string()]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().context("cannot start the mock")?;
        let input = child.stdin.take().context("the mock has no input")?;
        let output = BufReader::new(child.stdout.take().context("the mock has no output")?);
        let program = Program::adopt(child);
        let mut mock = Self { program, addresses: Vec::new(), input, output };
        let ports: Vec<u16> = mock.line()?;
        mock.addresses =
            ports.iter().map(|port| SocketAddr::from(([127, 0, 0, 1], *port))).collect();
        Ok(mock)
    }

    pub fn stats(&mut self) -> anyhow::Result<Stats> {
        self.input.write_all(b"stats\n").context("the mock has left")?;
        self.line()
    }

    /// Sets the time between chunks for streams that begin after this.
    pub fn set_gap_us(&mut self, gap_us: u64) -> anyhow::Result<()> {
        writeln!(self.input, "gap_us {gap_us}").context("the mock has left")?;
        // An answer after the command: the next stream cannot overtake it.
        self.stats().map(drop)
    }

    fn line<T: serde::de::DeserializeOwned>(&mut self) -> anyhow::Result<T> {
        let mut line = String::new();
        self.output.read_line(&mut line).context("the mock has left")?;
        serde_json::from_str(&line).with_context(|| format!("the mock said {line:?}"))
    }
}
