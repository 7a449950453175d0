//! The picker without a proxy in front: what a request costs it when nothing else shapes the traffic.

use std::time::Duration;

use anyhow::{Context, bail, ensure};
use test_ports::free_address;

use crate::clock;
use crate::figure::Effort;
use crate::interrupt::pause;
use crate::load::ext_proc::Asking;
use crate::load::open;
use crate::metric::{EPP_RAW_400K, EPP_RAW_RATE, EPP_RAW_SMALL, FAILED};
use crate::mock::handle::Mock;
use crate::process::Program;
use crate::prompts::{Kind as Prompts, Requests};
use crate::results::Results;
use crate::subject::{Kind, PICKER, Plan, epp};

const AT_ONCE: usize = 32;
/// As many of the long ones as one server of 400 KB prompts could have.
const AT_ONCE_LONG: usize = 8;
const READY_MAX: Duration = Duration::from_secs(30);

pub(in crate::figure) fn raw(
    plans: &[Plan],
    effort: Effort,
    results: &mut Results,
) -> anyhow::Result<()> {
    let found = plans.iter().find_map(|plan| match &plan.kind {
        Kind::EnvoyEpp { program, args, .. } => Some((program, args)),
        _ => None,
    });
    let Some((program, args)) = found else { return Ok(()) };
    let mock = Mock::start(2)?;
    let dir = tempfile::Builder::new().prefix("wicketgate-bench-").tempdir()?;
    let picker = epp::command(program, args, &mock.addresses, free_address()?)?;
    let mut process = Program::start(picker.command, dir.path().join("picker.log"))?;
    wait_ready(&mut process, picker.admin)?;
    for round in 0..effort.rounds {
        for (bytes, at_once) in [(500, AT_ONCE), (400_000, AT_ONCE_LONG)] {
            let requests = Requests::new(Prompts::Shared, bytes, "bench", round as u64);
            let load = Asking::start(picker.ext_proc, at_once, &requests)?;
            pause(Duration::from_millis(500))?;
            let (done, cpu, begin_ns) = (load.completed(), process.cpu_ns()?, clock::now_ns());
            pause(effort.measured)?;
            let (done, cpu) = (load.completed() - done, process.cpu_ns()? - cpu);
            let seconds = (clock::now_ns() - begin_ns) as f64 / 1e9;
            let failed = load.stop()?;
            ensure!(done > 0, "no request was answered, {failed} failed");
            results.add_to_sum(&FAILED, PICKER, failed as f64);
            let metric = if bytes == 500 { &EPP_RAW_SMALL } else { &EPP_RAW_400K };
            results.add(metric, PICKER, cpu as f64 / 1e3 / done as f64);
            if bytes == 500 {
                results.add(&EPP_RAW_RATE, PICKER, done as f64 / seconds);
            }
        }
    }
    Ok(())
}

fn wait_ready(process: &mut Program, admin: std::net::SocketAddr) -> anyhow::Result<()> {
    let request = format!("GET /readyz HTTP/1.1\r\nhost: {admin}\r\n\r\n");
    let deadline_ns = clock::now_ns() + READY_MAX.as_nanos() as u64;
    let mut buffer = vec![0; 64 * 1024];
    while clock::now_ns() < deadline_ns {
        process.still_runs().context("the picker")?;
        if matches!(open::one(&mut None, admin, request.as_bytes(), &mut buffer), Ok(200)) {
            return Ok(());
        }
        pause(Duration::from_millis(50))?;
    }
    bail!("the picker is not ready after {READY_MAX:?}")
}
