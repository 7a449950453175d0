//! CPU per request: the operating system's accounting of the subject over the requests that
//! reached the mock in the same time.

use anyhow::ensure;

use super::{Bench, Window};
use crate::load::closed::Closed;
use crate::load::open::Open;
use crate::metric::{
    CORE_400K, CORE_400K_UNIQUE, CPU_32K, CPU_32K_CONVERSATIONS, CPU_400K, CPU_400K_UNIQUE,
    CPU_GUARDED, CPU_LOG, CPU_SMALL, CPU_TRACES, RATE_SMALL,
};
use crate::prompts::Kind;
use crate::results::Results;
use crate::subject::{WICKETGATE, WICKETGATE_GUARDED, WICKETGATE_LOG, WICKETGATE_TRACES};

pub(super) const CONNECTIONS: usize = 32;
pub(super) const LARGE_PER_SECOND: u64 = 50;

pub(super) fn small(mut bench: Bench<'_>, results: &mut Results) -> anyhow::Result<()> {
    let window = closed(&mut bench, Kind::Shared, 500, results)?;
    results.add(&CPU_SMALL, bench.subject.name, us_per_request(&window)?);
    results.add(&RATE_SMALL, bench.subject.name, window.requests / window.seconds);
    Ok(())
}

/// What the access log, tracing and being asked all that can be asked add, round by round, where both subjects ran.
pub(super) fn compare(results: &mut Results) {
    let rows = [
        (&CPU_LOG, WICKETGATE_LOG),
        (&CPU_TRACES, WICKETGATE_TRACES),
        (&CPU_GUARDED, WICKETGATE_GUARDED),
    ];
    for (row, subject) in rows {
        let pairs = results.rounds(&CPU_SMALL, subject).iter();
        let added: Vec<f64> = pairs
            .zip(results.rounds(&CPU_SMALL, WICKETGATE))
            .map(|(with, without)| with - without)
            .collect();
        added.into_iter().for_each(|us| results.add(row, subject, us));
    }
}

pub(super) fn medium(
    mut bench: Bench<'_>,
    kind: Kind,
    results: &mut Results,
) -> anyhow::Result<()> {
    let window = closed(&mut bench, kind, 32_000, results)?;
    let metric = if kind == Kind::Conversations { &CPU_32K_CONVERSATIONS } else { &CPU_32K };
    results.add(metric, bench.subject.name, us_per_request(&window)?);
    Ok(())
}

/// At a fixed rate, because a closed loop of such bodies would measure memory bandwidth.
pub(super) fn large(mut bench: Bench<'_>, kind: Kind, results: &mut Results) -> anyhow::Result<()> {
    let requests = bench.requests(kind, 400_000);
    let load = Open::start(&bench.subject.targets, CONNECTIONS / 4, LARGE_PER_SECOND, &requests)?;
    let window = bench.window(|_| {})?;
    bench.failed(results, load.stop()?.failed);
    let (cpu, core) = match kind {
        Kind::Unique => (&CPU_400K_UNIQUE, &CORE_400K_UNIQUE),
        _ => (&CPU_400K, &CORE_400K),
    };
    results.add(cpu, bench.subject.name, us_per_request(&window)?);
    results.add(core, bench.subject.name, window.cpu_ns / 1e7 / window.seconds);
    Ok(())
}

fn closed(
    bench: &mut Bench<'_>,
    kind: Kind,
    bytes: usize,
    results: &mut Results,
) -> anyhow::Result<Window> {
    let requests = bench.requests(kind, bytes);
    let load = Closed::start(&bench.subject.targets, CONNECTIONS, requests, i64::MAX)?;
    let window = bench.window(|_| {})?;
    bench.failed(results, load.stop()?.failed);
    Ok(window)
}

pub(super) fn us_per_request(window: &Window) -> anyhow::Result<f64> {
    ensure!(window.requests > 0.0, "no request reached the mock");
    Ok(window.cpu_ns / 1e3 / window.requests)
}
