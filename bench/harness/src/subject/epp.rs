//! `wicketgate epp`, alone and behind an Envoy that is configured as `docs/envoy.md` says.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

use anyhow::ensure;
use test_ports::free_address;

use super::configs;

/// The document's own example: what is measured is what is recommended.
const EXAMPLE: &str = include_str!("../../../../docs/examples/envoy/original-dst.yaml");

/// How to start a picker, and where it will listen.
pub struct Picker {
    pub command: Command,
    pub ext_proc: SocketAddr,
    pub admin: SocketAddr,
}

/// A picker over `endpoints`, whose models it finds out.
pub fn command(
    program: &Path,
    args: &[String],
    endpoints: &[SocketAddr],
    admin: SocketAddr,
) -> anyhow::Result<Picker> {
    let mut picker = bare(program, args, admin)?;
    for endpoint in endpoints {
        picker.command.args(["--endpoint", &format!("http://{endpoint}")]);
    }
    Ok(picker)
}

/// A picker with the pools of a document.
pub fn with_document(program: &Path, args: &[String], document: &Path) -> anyhow::Result<Picker> {
    let mut picker = bare(program, args, free_address()?)?;
    picker.command.arg("-f").arg(document);
    Ok(picker)
}

fn bare(program: &Path, args: &[String], admin: SocketAddr) -> anyhow::Result<Picker> {
    let (ext_proc, health) = (free_address()?, free_address()?);
    let mut command = Command::new(program);
    command.arg("epp");
    command.args(["--listen", &ext_proc.to_string(), "--health", &health.to_string()]);
    command.args(["--admin", &admin.to_string()]);
    command.args(args);
    Ok(Picker { command, ext_proc, admin })
}

/// Envoy on `listen`, which asks the picker at `ext_proc`.
pub(super) fn envoy(
    venv: &Path,
    dir: &Path,
    listen: SocketAddr,
    ext_proc: SocketAddr,
) -> anyhow::Result<Command> {
    let file = dir.join("envoy.yaml");
    std::fs::write(&file, example(listen, free_address()?, ext_proc)?)?;
    let mut command = Command::new(venv.join("bin/envoy"));
    command.arg("-c").arg(file).args(["-l", "warn", "--base-id", &listen.port().to_string()]);
    command.args(["--concurrency", &configs::PROXY_WORKERS.to_string()]);
    Ok(command)
}

/// The example with these addresses.
fn example(listen: SocketAddr, admin: SocketAddr, ext_proc: SocketAddr) -> anyhow::Result<String> {
    let mut text = EXAMPLE.to_owned();
    for (from, to) in [
        ("address: 0.0.0.0, port_value: 8080", listen),
        ("address: 127.0.0.1, port_value: 9901", admin),
        ("address: 127.0.0.1, port_value: 9002", ext_proc),
    ] {
        ensure!(text.matches(from).count() == 1, "the example has no longer one `{from}`");
        text = text.replace(from, &format!("address: {}, port_value: {}", to.ip(), to.port()));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documented_example_takes_the_addresses_of_a_run() {
        let address = |port| SocketAddr::from(([127, 0, 0, 1], port));
        let text = example(address(1), address(2), address(3)).unwrap();
        for port in 1..=3 {
            assert!(text.contains(&format!("port_value: {port} ")), "{port}");
        }
    }
}
