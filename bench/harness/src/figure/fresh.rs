//! Figures that need a subject without a past: memory, and CPU without requests.

use std::time::Duration;

use anyhow::{Context, bail};

use super::{mib, sse};
use crate::clock;
use crate::interrupt::pause;
use crate::load::closed::Closed;
use crate::load::streams::Streams;
use crate::metric::{FAILED, IDLE_CORE, IDLE_SCRAPES, LEFT_ENDS, RSS_IDLE, RSS_STREAM, RSS_UNIQUE};
use crate::mock::handle::Mock;
use crate::process::Program;
use crate::prompts::{Kind, Requests, stream_request};
use crate::results::Results;
use crate::subject::{Plan, Subject};

const STREAMS: usize = 1_000;
/// A hundred streams for each: a gateway that knows its servers refuses what none of them could run.
const STREAM_ENDPOINTS: usize = 10;
/// No chunk but the first comes while a stream is idle.
const IDLE_GAP_US: u64 = 3_600_000_000;
/// How long clients that left may go unnoticed before it counts as for ever.
const LEFT_MAX: Duration = Duration::from_secs(20);

const PROMPTS: i64 = 33_000;
const PROMPT_BYTES: usize = 3_900;

const ENDPOINTS: usize = 100;
const IDLE_TIME: Duration = Duration::from_secs(10);

/// Time for a subject to finish what it does after a start or a load.
const SETTLE: Duration = Duration::from_secs(2);

pub(super) fn memory_idle(plans: &[Plan], results: &mut Results) -> anyhow::Result<()> {
    let mock = Mock::start(2)?;
    each(plans, &mock, |subject, program| {
        pause(SETTLE)?;
        results.add(&RSS_IDLE, subject.name, mib(program.rss_bytes()?));
        Ok(())
    })
}

pub(super) fn memory_streams(plans: &[Plan], results: &mut Results) -> anyhow::Result<()> {
    let mut mock = Mock::start(STREAM_ENDPOINTS)?;
    mock.set_gap_us(IDLE_GAP_US)?;
    for plan in plans {
        let subject = plan.start(&mock.addresses)?;
        let Some(program) = &subject.program else { continue };
        let host = subject.targets[0].to_string();
        // Threads and their buffers exist before the streams are counted.
        let warm = Requests::new(Kind::Shared, 500, &host, 1);
        Closed::start(&subject.targets, 32, warm, 2_000)?.wait()?;
        pause(SETTLE)?;
        let before = program.rss_bytes()?;
        let streams = Streams::start(&subject.targets, STREAMS, stream_request(&host, 1_000))?;
        sse::wait_open(&streams, STREAMS as u64)
            .with_context(|| format!("`{}` under {STREAMS} streams", subject.name))?;
        pause(SETTLE)?;
        let grown = program.rss_bytes()?.saturating_sub(before) as f64;
        results.add(&RSS_STREAM, subject.name, grown / 1024.0 / STREAMS as f64);
        let outcome = streams.leave()?;
        results.add_to_sum(&FAILED, subject.name, outcome.failed as f64);
        let ended_ns = wait_ended(&mut mock)?.unwrap_or_else(clock::now_ns);
        let seconds = ended_ns.saturating_sub(outcome.left_ns) as f64 / 1e9;
        results.add(&LEFT_ENDS, subject.name, seconds);
    }
    Ok(())
}

/// When the last stream ended; `None` if some never did.
fn wait_ended(mock: &mut Mock) -> anyhow::Result<Option<u64>> {
    let deadline_ns = clock::now_ns() + LEFT_MAX.as_nanos() as u64;
    while clock::now_ns() < deadline_ns {
        let stats = mock.stats()?;
        if stats.streams_begun == stats.streams_ended {
            return Ok(Some(stats.last_end_ns));
        }
        pause(Duration::from_millis(20))?;
    }
    Ok(None)
}

pub(super) fn memory_unique(plans: &[Plan], results: &mut Results) -> anyhow::Result<()> {
    let mock = Mock::start(2)?;
    each(plans, &mock, |subject, program| {
        let host = subject.targets[0].to_string();
        let send = |kind, count, seed| {
            let requests = Requests::new(kind, PROMPT_BYTES, &host, seed);
            Closed::start(&subject.targets, 32, requests, count)?.wait()
        };
        send(Kind::Shared, 3_000, 1)?;
        pause(SETTLE)?;
        let before = program.rss_bytes()?;
        let outcome = send(Kind::Unique, PROMPTS, 2)?;
        if outcome.completed < PROMPTS as u64 / 2 {
            bail!("`{}` failed {} of {PROMPTS} requests", subject.name, outcome.failed);
        }
        pause(SETTLE)?;
        let grown = program.rss_bytes()?.saturating_sub(before) as f64;
        let characters = outcome.completed as f64 * PROMPT_BYTES as f64;
        results.add(&RSS_UNIQUE, subject.name, grown / characters);
        results.add_to_sum(&FAILED, subject.name, outcome.failed as f64);
        Ok(())
    })
}

pub(super) fn idle(plans: &[Plan], results: &mut Results) -> anyhow::Result<()> {
    let mut mock = Mock::start(ENDPOINTS)?;
    for plan in plans {
        let subject = plan.start(&mock.addresses)?;
        let Some(program) = &subject.program else { continue };
        pause(SETTLE)?;
        let (scrapes, cpu, begin_ns) = (mock.stats()?.scrapes, program.cpu_ns()?, clock::now_ns());
        pause(IDLE_TIME)?;
        let (cpu_ns, ns) = (program.cpu_ns()? - cpu, clock::now_ns() - begin_ns);
        let scrapes = (mock.stats()?.scrapes - scrapes) as f64;
        results.add(&IDLE_CORE, subject.name, cpu_ns as f64 * 100.0 / ns as f64);
        let per_second = scrapes / ENDPOINTS as f64 / (ns as f64 / 1e9);
        results.add(&IDLE_SCRAPES, subject.name, per_second);
    }
    Ok(())
}

/// Starts and ends one subject after the other.
fn each(
    plans: &[Plan],
    mock: &Mock,
    mut measure: impl FnMut(&Subject, &Program) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    for plan in plans {
        let subject = plan.start(&mock.addresses)?;
        if let Some(program) = &subject.program {
            measure(&subject, program)?;
        }
    }
    Ok(())
}
