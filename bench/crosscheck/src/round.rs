//! One run: fresh servers, a fresh router, the schedule, and whether the machine kept up.

use std::path::Path;
use std::time::Duration;

use lab::Request;
use serde::Serialize;
use tokio::runtime::{self, Runtime};

use crate::clock;
use crate::interrupt::pause;
use crate::load::{self, Planned};
use crate::measure::{Summary, quantile};
use crate::scene::Stage;
use crate::servers::{Servers, State};
use crate::subject::{Running, Subject};

/// Latest at which a hundredth of the engines' steps may end, modelled milliseconds. One is what
/// was asked for; a timer of one millisecond is up to another one late by itself.
pub const STEP_LATE_MS_MAX: f64 = 2.0;
/// Latest at which a hundredth of the requests may leave, modelled milliseconds.
pub const CLIENT_LATE_MS_MAX: f64 = 5.0;
/// What two cores can carry with some room, events a second.
pub const CHUNKS_PER_SECOND_MAX: f64 = 8000.0;

/// What is the same for all runs.
pub struct Conditions<'a> {
    pub wicketgate: &'a Path,
    /// Real time for one unit of modelled time.
    pub scale: f64,
    /// Real, between a router's first answer and the first request.
    pub settle: Duration,
    /// Modelled, from the first arrival on; what is open then is cut off.
    pub cut_off: Duration,
}

/// A run of one subject in one round.
#[derive(Clone, Debug, Serialize)]
pub struct Measured {
    #[serde(flatten)]
    pub summary: Summary,
    /// Cached over asked tokens by the engines' own books, the warm-up and the probe included.
    pub engines_hit_ratio: f64,
    /// Share of the requests that each server got.
    pub shares: Vec<f64>,
    /// Modelled milliseconds, P99.
    pub client_late_ms: f64,
    /// Modelled milliseconds, P99 of the worst server, an upper bound.
    pub step_late_ms: f64,
    pub chunks_per_second: f64,
    /// Until the router's first answer, real seconds.
    pub start_seconds: f64,
    /// Why it does not count; empty: it does.
    pub invalid: Vec<String>,
    /// One failure, as an example.
    pub failure: Option<String>,
}

/// A router and servers of its own, started.
pub struct Ready {
    // Ends first.
    router: Running,
    servers: Servers,
    /// When the router gave its first answer.
    since_ns: u64,
    runtime: Runtime,
}

impl Ready {
    /// Starts them and waits for the first answer.
    pub fn start(
        conditions: &Conditions<'_>,
        stage: &Stage,
        subject: &Subject,
        seed: u64,
    ) -> anyhow::Result<Self> {
        // One for each, so that nothing of one run lives on in the next.
        let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
        let rows = &stage.plan.rows;
        let servers = Servers::start(conditions.wicketgate, rows, conditions.scale, seed)?;
        let router = runtime.block_on(subject.start(&servers.addresses, stage.model()?))?;
        Ok(Self { router, servers, since_ns: clock::now_ns(), runtime })
    }

    /// Waits until it has settled, sends `requests`, and ends it.
    pub fn play(
        self,
        conditions: &Conditions<'_>,
        stage: &Stage,
        requests: &[Request],
    ) -> anyhow::Result<Measured> {
        let scale = conditions.scale;
        let model = stage.model()?;
        let planned: Vec<Planned> = requests
            .iter()
            .map(|request| Planned::new(request, model, stage.settings.warm_up))
            .collect();
        let settled = Duration::from_nanos(clock::now_ns() - self.since_ns);
        pause(conditions.settle.saturating_sub(settled))?;
        let played = load::play(self.router.address, &planned, scale, conditions.cut_off);
        let outcome = self.runtime.block_on(played)?;
        let states = self.runtime.block_on(self.servers.states())?;
        let itl = (!outcome.gaps_ms.is_empty()).then(|| quantile(&outcome.gaps_ms, 0.99));
        let worst_step = states.iter().map(|state| state.step_lateness_ms_p99).fold(0.0, f64::max);
        let mut measured = Measured {
            summary: Summary::of(&outcome.seen, &stage.plan.scenario.slo, itl),
            engines_hit_ratio: engines_hit_ratio(&states),
            shares: shares(&states),
            client_late_ms: quantile(&outcome.late_ms, 0.99) / scale,
            step_late_ms: worst_step / scale,
            chunks_per_second: outcome.chunks_per_second,
            start_seconds: self.router.start_seconds,
            invalid: Vec::new(),
            failure: outcome.failure,
        };
        measured.invalid = measured.doubts();
        Ok(measured)
    }
}

impl Measured {
    fn doubts(&self) -> Vec<String> {
        let limits = [
            ("engine steps", self.step_late_ms, STEP_LATE_MS_MAX, "ms late"),
            ("requests", self.client_late_ms, CLIENT_LATE_MS_MAX, "ms late"),
            ("events", self.chunks_per_second, CHUNKS_PER_SECOND_MAX, "a second"),
        ];
        let broken = limits.iter().filter(|(_, value, most, _)| value > most);
        broken
            .map(|(what, value, most, unit)| format!("{what} {value:.1} {unit} (limit {most})"))
            .collect()
    }
}

fn engines_hit_ratio(states: &[State]) -> f64 {
    let sum = |of: fn(&State) -> u64| states.iter().map(of).sum::<u64>() as f64;
    sum(|state| state.prefix_hit_tokens) / sum(|state| state.prefix_query_tokens).max(1.0)
}

fn shares(states: &[State]) -> Vec<f64> {
    let requests = |state: &State| (state.finished + state.aborted + state.requests) as f64;
    let all: f64 = states.iter().map(requests).sum();
    states.iter().map(|state| requests(state) / all.max(1.0)).collect()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A run that counts.
    pub(crate) fn measured(p95: f64) -> Measured {
        Measured {
            summary: Summary {
                requests: 100,
                ttft_p50_ms: p95 / 2.0,
                ttft_p95_ms: p95,
                ttft_p99_ms: p95 * 2.0,
                itl_p99_ms: Some(12.0),
                goodput: 0.9,
                prefix_hit_ratio: Some(0.5),
                failed: 0,
                unfinished: 0,
            },
            engines_hit_ratio: 0.5,
            shares: vec![0.5, 0.5],
            client_late_ms: 1.0,
            step_late_ms: 1.0,
            chunks_per_second: 1000.0,
            start_seconds: 1.0,
            invalid: Vec::new(),
            failure: None,
        }
    }

    #[test]
    fn a_run_on_a_machine_that_was_late_does_not_count() {
        assert_eq!(measured(1.0).doubts(), [""; 0]);
        assert_eq!(Measured { step_late_ms: 4.0, ..measured(1.0) }.doubts().len(), 1);
        assert_eq!(Measured { client_late_ms: 5.1, ..measured(1.0) }.doubts().len(), 1);
        assert_eq!(Measured { chunks_per_second: 9e3, ..measured(1.0) }.doubts().len(), 1);
    }

    #[test]
    fn shares_count_requests_that_are_still_inside() {
        let state = |finished, requests| State {
            step_lateness_ms_p99: 0.0,
            finished,
            aborted: 0,
            requests,
            prefix_hit_tokens: 0,
            prefix_query_tokens: 0,
        };
        assert_eq!(shares(&[state(1, 2), state(1, 0)]), [0.75, 0.25]);
    }
}
