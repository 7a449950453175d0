//! Memory of many long answers that pass at the same time.

use std::time::Duration;

use anyhow::Context;

use crate::figure::{Effort, sse};
use crate::interrupt::pause;
use crate::load::closed::Closed;
use crate::load::streams::Streams;
use crate::metric::{EPP_STREAM_CPU, EPP_STREAM_LATE, EPP_STREAM_OPEN, EPP_STREAM_TOKENS, FAILED};
use crate::mock::handle::Mock;
use crate::prompts::{Kind, Requests, stream_request};
use crate::results::Results;
use crate::subject::{ENVOY_EPP, Plan, WICKETGATE};

const STREAMS: usize = 2_000;
/// A hundred streams for each, as many as one server runs.
const ENDPOINTS: usize = 20;
/// 5,000 events a second over all streams: what two cores pass on through Envoy with room to spare.
const GAP_US: u64 = 400_000;
/// An answer of 10,000 tokens; at this pace none ends while it is watched.
const TOKENS: u32 = 10_000;
const SETTLE: Duration = Duration::from_secs(2);

/// Opens the streams and reads memory when all are open and after all rounds' time.
pub(in crate::figure) fn streams(
    plans: &[Plan],
    effort: Effort,
    results: &mut Results,
) -> anyhow::Result<()> {
    let mut mock = Mock::start(ENDPOINTS)?;
    mock.set_gap_us(GAP_US)?;
    for plan in plans.iter().filter(|plan| [ENVOY_EPP, WICKETGATE].contains(&plan.name)) {
        let subject = plan.start(&mock.addresses)?;
        let Some(program) = &subject.program else { continue };
        let host = subject.targets[0].to_string();
        let warm = Requests::new(Kind::Shared, 500, &host, 1);
        Closed::start(&subject.targets, 32, warm, 2_000)?.wait()?;
        pause(SETTLE)?;
        let before = program.rss_bytes()?;
        let per_stream = |bytes: u64| bytes.saturating_sub(before) as f64 / 1024.0 / STREAMS as f64;
        let chunks_before = mock.stats()?.chunks;
        let streams = Streams::start(&subject.targets, STREAMS, stream_request(&host, TOKENS))?;
        sse::wait_open(&streams, STREAMS as u64)
            .with_context(|| format!("`{}` under {STREAMS} streams", subject.name))?;
        pause(SETTLE)?;
        results.add(&EPP_STREAM_OPEN, subject.name, per_stream(program.rss_bytes()?));
        let (chunks, cpu_ns) = (mock.stats()?.chunks, program.cpu_ns()?);
        for _ in 0..effort.rounds {
            pause(effort.measured)?;
            eprintln!("  {}: {:.1} KiB per stream", subject.name, per_stream(program.rss_bytes()?));
        }
        let (all_chunks, cpu_ns) = (mock.stats()?.chunks, program.cpu_ns()? - cpu_ns);
        results.add(&EPP_STREAM_LATE, subject.name, per_stream(program.rss_bytes()?));
        let events = (all_chunks - chunks_before) as f64 / STREAMS as f64;
        results.add(&EPP_STREAM_TOKENS, subject.name, events);
        let us = cpu_ns as f64 / 1e3 / (all_chunks - chunks).max(1) as f64;
        results.add(&EPP_STREAM_CPU, subject.name, us);
        results.add_to_sum(&FAILED, subject.name, streams.leave()?.failed as f64);
    }
    Ok(())
}
