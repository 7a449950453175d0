//! From a scenario to runs: the fleet, what it can do, and the requests of a load and seed.

use std::ops::Range;
use std::time::Duration;

use sim::engine::{EngineSpec, Hardware};
use types::{EngineKind, Timestamp};

use crate::capacity::{Mix, capacity};
use crate::measure::{Run, RunResult};
use crate::policy::Policy;
use crate::prompt::mix;
use crate::scenario::Scenario;
use crate::simulation::Simulation;
use crate::workload::{Request, uncached_tokens};

/// How long a run is, and the network in it.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Time before anything is counted: caches fill, queues find their length.
    pub warm_up: Duration,
    /// Time in which requests are counted. No request arrives later, but all are played to their end.
    pub duration: Duration,
    /// One way between gateway and endpoint. Default 0.25 ms, a network inside a data centre.
    pub network: Duration,
}

impl Settings {
    /// A quarter of `duration` before it, at most a minute, to warm up.
    pub fn new(duration: Duration) -> Self {
        Self {
            warm_up: (duration / 4).min(Duration::from_secs(60)),
            duration,
            network: Duration::from_micros(250),
        }
    }

    pub(crate) fn window(&self) -> Range<Timestamp> {
        let begin = Timestamp::from_duration(self.warm_up);
        begin..begin + self.duration
    }
}

/// Why a scenario cannot be run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    #[error("there is no hardware row `{0}`")]
    Hardware(&'static str),
    #[error("an engine `{0}` cannot hold one request of this traffic")]
    TooSmall(&'static str),
    #[error("more than 65,535 endpoints")]
    TooLarge,
}

/// A scenario with its fleet.
#[derive(Clone, Debug)]
pub struct Plan {
    pub scenario: &'static Scenario,
    /// The hardware row of each endpoint.
    pub rows: Vec<&'static str>,
    /// Of each endpoint, requests per second.
    pub capacities: Vec<f64>,
    specs: Vec<EngineSpec>,
}

/// The requests of one load and seed, the same for every policy.
#[derive(Clone, Debug)]
pub struct Traffic {
    pub requests: Vec<Request>,
    pub seed: u64,
    /// Requests per second, on average.
    pub rate: f64,
    /// Share of the prompt tokens in the window that one cache without bounds would hold.
    pub prefix_hit_bound: f64,
}

impl Plan {
    /// * `endpoints`: size of the fleet, in the scenario's proportions; `None`: its own size.
    pub fn new(scenario: &'static Scenario, endpoints: Option<usize>) -> Result<Self, PlanError> {
        let rows = scenario.rows(endpoints);
        if rows.len() > usize::from(u16::MAX) {
            return Err(PlanError::TooLarge);
        }
        let mix = scenario.workload.mix(rows.len());
        let mut plan = Self { scenario, rows, capacities: Vec::new(), specs: Vec::new() };
        for row in &plan.rows {
            let hardware = Hardware::find(row).ok_or(PlanError::Hardware(row))?;
            let spec = EngineSpec::new(EngineKind::Vllm, hardware, 0, 0);
            plan.capacities.push(Self::capacity_of(&spec, &mix, row)?);
            plan.specs.push(spec);
        }
        Ok(plan)
    }

    fn capacity_of(spec: &EngineSpec, mix: &Mix, row: &'static str) -> Result<f64, PlanError> {
        let found = capacity(spec, mix);
        if found > 0.0 { Ok(found) } else { Err(PlanError::TooSmall(row)) }
    }

    /// What the whole fleet can do at most, requests per second. Load factors are shares of it.
    pub fn capacity(&self) -> f64 {
        self.capacities.iter().sum()
    }

    /// The rate from which on equal shares overload the slowest endpoint.
    pub fn round_robin_knee(&self) -> f64 {
        let slowest = self.capacities.iter().copied().fold(f64::INFINITY, f64::min);
        slowest * self.capacities.len() as f64
    }

    /// The requests of `load` times the fleet's capacity.
    pub fn traffic(&self, load: f64, seed: u64, settings: &Settings) -> Traffic {
        const BLOCK: u32 = 16;
        let rate = load * self.capacity();
        let until = settings.warm_up + settings.duration;
        let requests = self.scenario.workload.requests(mix(seed, 0), rate, until);
        let uncached = uncached_tokens(&requests, BLOCK);
        let window = settings.window();
        let (mut all, mut missed) = (0, 0);
        for (request, uncached) in requests.iter().zip(uncached) {
            if window.contains(&request.at) {
                all += u64::from(request.prompt_tokens());
                missed += u64::from(uncached);
            }
        }
        let prefix_hit_bound = 1.0 - missed as f64 / (all as f64).max(1.0);
        Traffic { requests, seed, rate, prefix_hit_bound }
    }

    /// Plays the requests under one policy.
    pub fn run(&self, traffic: &Traffic, policy: Policy, settings: &Settings) -> Run {
        Simulation::new(&self.specs, &traffic.requests, policy, settings, traffic.seed).run()
    }

    /// The numbers of a run of this plan.
    pub fn result(&self, run: &Run) -> RunResult {
        run.result(&self.scenario.slo, &self.capacities)
    }
}
