//! Thousands of pools in one process, and nothing to do.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, bail};
use serde_json::json;

use crate::clock;
use crate::interrupt::pause;
use crate::load::open;
use crate::metric::{
    Metric, POOL_EMPTY, POOL_EMPTY_CORE, POOL_ONE, POOL_ONE_CORE, POOL_ONE_SCRAPES,
};
use crate::mock::handle::Mock;
use crate::process::Program;
use crate::results::Results;
use crate::subject::{Kind, PICKER, Plan, epp};

/// What the reference needs ten thousand processes for.
const POOLS: usize = 10_000;
/// The process with one pool: what 9,999 more of them add is what is counted.
const FEW: usize = 1;
/// The processes read and check their document first.
const READY_MAX: Duration = Duration::from_secs(60);
/// Endpoints that answer are scraped a few times before memory is read.
const SETTLE: Duration = Duration::from_secs(10);
const MEASURED: Duration = Duration::from_secs(10);

/// Resident memory per pool, and what the process does while nobody asks for anything.
pub(in crate::figure) fn pools(plans: &[Plan], results: &mut Results) -> anyhow::Result<()> {
    let found = plans.iter().find_map(|plan| match &plan.kind {
        Kind::EnvoyEpp { program, args, .. } => Some((program, args)),
        _ => None,
    });
    let Some((program, args)) = found else { return Ok(()) };
    let mut mock = Mock::start_on_all_loopback(1)?;
    let port = mock.addresses[0].port();
    for (endpoint_port, memory, core) in
        [(None, &POOL_EMPTY, &POOL_EMPTY_CORE), (Some(port), &POOL_ONE, &POOL_ONE_CORE)]
    {
        let few = Idle::measure(program, args, FEW, endpoint_port)?;
        let scrapes = mock.stats()?.scrapes;
        let begin_ns = clock::now_ns();
        let many = Idle::measure(program, args, POOLS, endpoint_port)?;
        let seconds = (clock::now_ns() - begin_ns) as f64 / 1e9;
        let grown = many.rss_bytes.saturating_sub(few.rss_bytes) as f64;
        add(results, memory, grown / 1024.0 / (POOLS - FEW) as f64);
        add(results, core, many.core_percent);
        if endpoint_port.is_some() {
            let scrapes = (mock.stats()?.scrapes - scrapes) as f64;
            add(results, &POOL_ONE_SCRAPES, scrapes / POOLS as f64 / seconds);
        }
    }
    Ok(())
}

fn add(results: &mut Results, metric: &Metric, value: f64) {
    results.add(metric, PICKER, value);
}

/// A picker with nothing to do.
struct Idle {
    rss_bytes: u64,
    core_percent: f64,
}

impl Idle {
    fn measure(
        program: &Path,
        args: &[String],
        pools: usize,
        endpoint_port: Option<u16>,
    ) -> anyhow::Result<Self> {
        let dir = tempfile::Builder::new().prefix("wicketgate-bench-").tempdir()?;
        let file = dir.path().join("pools.json");
        std::fs::write(&file, document(pools, endpoint_port))?;
        let picker = epp::with_document(program, args, &file)?;
        let mut process = Program::start(picker.command, dir.path().join("picker.log"))?;
        wait_alive(&mut process, picker.admin)?;
        pause(SETTLE)?;
        let (cpu, begin_ns) = (process.cpu_ns()?, clock::now_ns());
        pause(MEASURED)?;
        let (cpu_ns, ns) = (process.cpu_ns()? - cpu, clock::now_ns() - begin_ns);
        let rss_bytes = process.rss_bytes()?;
        Ok(Self { rss_bytes, core_percent: cpu_ns as f64 * 100.0 / ns as f64 })
    }
}

/// Pools with one endpoint each, all at different addresses of the loopback network, or with none.
fn document(pools: usize, endpoint_port: Option<u16>) -> String {
    let pool = |number: usize| {
        let (third, fourth) = (1 + number / 250, 1 + number % 250);
        let url = endpoint_port.map(|port| format!("http://127.0.{third}.{fourth}:{port}"));
        let endpoints: Vec<_> = url.iter().map(|url| json!({ "url": url })).collect();
        let name = format!("pool-{number}");
        json!({ "name": name, "modelName": format!("model-{number}"), "endpoints": endpoints })
    };
    let pools: Vec<_> = (0..pools).map(pool).collect();
    json!({
        "apiVersion": "gateway.wicketgate.dev/v1alpha1",
        "kind": "InferenceGatewayConfig",
        "spec": { "schedulers": pools },
    })
    .to_string()
}

fn wait_alive(process: &mut Program, admin: SocketAddr) -> anyhow::Result<()> {
    let request = format!("GET /healthz HTTP/1.1\r\nhost: {admin}\r\n\r\n");
    let deadline_ns = clock::now_ns() + READY_MAX.as_nanos() as u64;
    let mut buffer = vec![0; 64 * 1024];
    while clock::now_ns() < deadline_ns {
        process.still_runs().context("the picker")?;
        if matches!(open::one(&mut None, admin, request.as_bytes(), &mut buffer), Ok(200)) {
            return Ok(());
        }
        pause(Duration::from_millis(50))?;
    }
    bail!("the picker is not alive after {READY_MAX:?}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_pools_share_an_address() {
        let text = document(1_000, Some(9));
        let urls: std::collections::BTreeSet<_> =
            text.split('"').filter(|part| part.starts_with("http://")).collect();
        assert_eq!(urls.len(), 1_000);
        assert!(!document(3, None).contains("http://"));
    }
}
