//! What passing on a stream costs: CPU per chunk, and the time a chunk is late.

use std::time::Duration;

use anyhow::{bail, ensure};

use super::Bench;
use crate::interrupt::pause;
use crate::load::streams::Streams;
use crate::metric::{CHUNK_P50, CHUNK_P99, CPU_CHUNK};
use crate::prompts::stream_request;
use crate::results::Results;

const STREAMS: usize = 100;
const GAP_US: u64 = 10_000;

pub(super) fn visit(mut bench: Bench<'_>, results: &mut Results) -> anyhow::Result<()> {
    bench.mock.set_gap_us(GAP_US)?;
    let request = stream_request(&bench.subject.targets[0].to_string(), 1_000_000);
    let streams = Streams::start(&bench.subject.targets, STREAMS, request)?;
    wait_open(&streams, STREAMS as u64)?;
    let window = bench.window(|on| streams.measure(on))?;
    let outcome = streams.leave()?;
    wait_ended(&mut bench)?;
    ensure!(window.chunks > 0.0, "no chunk was sent");
    bench.failed(results, outcome.failed);
    results.add(&CPU_CHUNK, bench.subject.name, window.cpu_ns / 1e3 / window.chunks);
    let us = |quantile| outcome.delays.value_at_quantile(quantile) as f64 / 1e3;
    bench.added(results, &CHUNK_P50, us(0.50));
    bench.added(results, &CHUNK_P99, us(0.99));
    Ok(())
}

/// Waits until `count` streams have brought their first event.
pub(super) fn wait_open(streams: &Streams, count: u64) -> anyhow::Result<()> {
    for _ in 0..600 {
        if streams.opened() >= count {
            return Ok(());
        }
        if streams.failed() > 0 {
            break;
        }
        pause(Duration::from_millis(50))?;
    }
    bail!("{} of {count} streams opened, {} failed", streams.opened(), streams.failed())
}

/// Waits until the mock has no stream any more: the next visit begins with a quiet mock.
fn wait_ended(bench: &mut Bench<'_>) -> anyhow::Result<()> {
    for _ in 0..600 {
        let stats = bench.mock.stats()?;
        if stats.streams_begun == stats.streams_ended {
            return Ok(());
        }
        pause(Duration::from_millis(50))?;
    }
    bail!("`{}` keeps streams whose clients left 30 s ago", bench.subject.name)
}
