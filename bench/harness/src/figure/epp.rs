//! The picker behind Envoy: what it costs in its own process, what it adds to Envoy, what a stream and
//! a pool take of its memory.

mod pools;
mod raw;
mod streams;

use super::{Bench, cpu};
use crate::load::closed::Closed;
use crate::load::open::Open;
use crate::metric::{
    ADDED_P50, ADDED_P99, EPP_CPU_400K, EPP_CPU_SMALL, EPP_ENVOY_400K, EPP_ENVOY_SMALL,
    EPP_FACTOR_P50, EPP_FACTOR_P99, EPP_OVER_P50, EPP_OVER_P99, Metric,
};
use crate::process::Program;
use crate::prompts::Kind;
use crate::results::Results;
use crate::subject::{DIRECT, ENVOY, ENVOY_EPP, WICKETGATE};

pub(super) use pools::pools;
pub(super) use raw::raw;
pub(super) use streams::streams;

pub(super) fn small(mut bench: Bench<'_>, results: &mut Results) -> anyhow::Result<()> {
    let requests = bench.requests(Kind::Shared, 500);
    let load = Closed::start(&bench.subject.targets, cpu::CONNECTIONS, requests, i64::MAX)?;
    let costs = Costs::of(&mut bench)?;
    bench.failed(results, load.stop()?.failed);
    costs.add(&bench, &EPP_CPU_SMALL, &EPP_ENVOY_SMALL, results);
    Ok(())
}

pub(super) fn large(mut bench: Bench<'_>, results: &mut Results) -> anyhow::Result<()> {
    let requests = bench.requests(Kind::Shared, 400_000);
    let load = Open::start(
        &bench.subject.targets,
        cpu::CONNECTIONS / 4,
        cpu::LARGE_PER_SECOND,
        &requests,
    )?;
    let costs = Costs::of(&mut bench)?;
    bench.failed(results, load.stop()?.failed);
    costs.add(&bench, &EPP_CPU_400K, &EPP_ENVOY_400K, results);
    Ok(())
}

/// CPU µs per request of the two processes.
struct Costs {
    own: f64,
    front: Option<f64>,
}

impl Costs {
    fn of(bench: &mut Bench<'_>) -> anyhow::Result<Self> {
        let front = bench.subject.front.as_ref();
        let read = || front.and_then(|front: &Program| front.cpu_ns().ok()).unwrap_or(0);
        let (mut begin, mut end) = (0, 0);
        let window = bench.window(|on| *(if on { &mut begin } else { &mut end }) = read())?;
        let front = front.map(|_| end.saturating_sub(begin) as f64 / 1e3 / window.requests);
        Ok(Self { own: cpu::us_per_request(&window)?, front })
    }

    /// The picker's row holds processes of ours, Envoy's row Envoy alone and in front of the picker.
    fn add(&self, bench: &Bench<'_>, own: &Metric, envoy: &Metric, results: &mut Results) {
        let name = bench.subject.name;
        if name != ENVOY && name != DIRECT {
            results.add(own, name, self.own);
        }
        match self.front {
            Some(front) => results.add(envoy, name, front),
            None if name == ENVOY => results.add(envoy, name, self.own),
            None => {}
        }
    }
}

/// What the rounds of added latency tell about the picker: beside Envoy alone, and beside doing without.
pub(super) fn compare_latencies(results: &mut Results) {
    for (added, over, factor) in
        [(&ADDED_P50, &EPP_OVER_P50, &EPP_FACTOR_P50), (&ADDED_P99, &EPP_OVER_P99, &EPP_FACTOR_P99)]
    {
        let of = |name| results.rounds(added, name).to_vec();
        let (behind, alone, built_in) = (of(ENVOY_EPP), of(ENVOY), of(WICKETGATE));
        for (behind, alone) in behind.iter().zip(&alone) {
            results.add(over, ENVOY_EPP, behind - alone);
        }
        for (behind, built_in) in behind.iter().zip(&built_in).filter(|(_, own)| **own > 0.0) {
            results.add(factor, ENVOY_EPP, behind / built_in);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latencies_are_compared_within_their_round() {
        let mut results = Results::default();
        for (alone, behind, built_in) in [(100.0, 400.0, 100.0), (900.0, 1_000.0, 500.0)] {
            results.add(&ADDED_P99, ENVOY, alone);
            results.add(&ADDED_P99, ENVOY_EPP, behind);
            results.add(&ADDED_P99, WICKETGATE, built_in);
        }
        compare_latencies(&mut results);
        assert_eq!(results.rounds(&EPP_OVER_P99, ENVOY_EPP), [300.0, 100.0]);
        assert_eq!(results.rounds(&EPP_FACTOR_P99, ENVOY_EPP), [4.0, 2.0]);
        assert!(results.rounds(&EPP_OVER_P50, ENVOY_EPP).is_empty());
    }
}
