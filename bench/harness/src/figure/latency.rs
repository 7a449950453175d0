//! Latency that a gateway adds at a rate at which nobody is busy.

use super::Bench;
use crate::interrupt::pause;
use crate::load::open::Open;
use crate::metric::{ADDED_P50, ADDED_P99};
use crate::prompts::Kind;
use crate::results::Results;

const PER_SECOND: u64 = 500;
/// More than are ever needed at once: 16 answers of 30 ms each fit.
const CONNECTIONS: usize = 16;
/// Share of requests that may leave late before the round is called doubtful.
const LATE_SHARE_MAX: f64 = 0.01;

pub(super) fn visit(bench: &Bench<'_>, results: &mut Results) -> anyhow::Result<()> {
    let requests = bench.requests(Kind::Shared, 500);
    let load = Open::start(&bench.subject.targets, CONNECTIONS, PER_SECOND, &requests)?;
    pause(std::time::Duration::from_millis(500))?;
    load.measure();
    pause(bench.effort.measured)?;
    let outcome = load.stop()?;
    let late = outcome.late as f64 / outcome.latency.len().max(1) as f64;
    if late > LATE_SHARE_MAX {
        eprintln!(
            "  {}: {:.1} % of the requests left late; the machine is too busy for latencies",
            bench.subject.name,
            late * 100.0
        );
    }
    bench.failed(results, outcome.failed);
    let us = |quantile| outcome.latency.value_at_quantile(quantile) as f64 / 1e3;
    bench.added(results, &ADDED_P50, us(0.50));
    bench.added(results, &ADDED_P99, us(0.99));
    Ok(())
}
