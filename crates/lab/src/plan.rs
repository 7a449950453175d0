//! From a scenario to runs: the fleet, what it can do, and the requests of a load and seed.

use std::num::NonZeroUsize;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use sched::Weights;
use sim::engine::{EngineSpec, Hardware, StepWork};
use types::{EngineKind, Timestamp};

use crate::capacity::{Mix, capacity_with_adapters};
use crate::measure::{Run, RunResult};
use crate::policy::Policy;
use crate::prompt::mix;
use crate::scenario::Scenario;
use crate::simulation::{Scene, Simulation};
use crate::workload::{Request, Workload, uncached_tokens};

/// How long a run is, the network in it, and what may be varied to see whether it matters.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Time before anything is counted: caches fill, queues find their length.
    pub warm_up: Duration,
    /// Time in which requests are counted. No request arrives later, but all are played to their end.
    pub duration: Duration,
    /// One way between gateway and endpoint. Default 0.25 ms, a network inside a data centre.
    pub network: Duration,
    /// Gateways that share the requests; each knows what went through it and what pages say. `None`,
    /// the default: the scenario's own number, one mostly.
    pub gateways: Option<usize>,
    /// Pause between two moments in which gateways tell each other what they have where and what they
    /// sent where, as `peers` does; ours only, rivals do not. `None`, the default: never.
    pub share_interval: Option<Duration>,
    /// Pause between two readings of a page while an endpoint is busy. `None`, the default: each
    /// policy's own, 100 ms ours, 50 ms the reference's, 10 s smg's.
    pub scrape_interval: Option<Duration>,
    /// Every time of an A10G is multiplied by it: its constants are the least certain ones. Default
    /// 1; see [`Plan::with_settings`].
    pub a10g_factor: f64,
    /// Relative standard deviation of each engine step's time. Default 0. See
    /// [`Plan::with_settings`].
    pub jitter: f64,
    /// Weights by which the policy `wicketgate` decides instead of its own. Default `None`.
    pub weights: Option<Weights>,
}

impl Settings {
    /// A quarter of `duration` before it, at most a minute, to warm up.
    pub fn new(duration: Duration) -> Self {
        Self {
            warm_up: (duration / 4).min(Duration::from_secs(60)),
            duration,
            network: Duration::from_micros(250),
            gateways: None,
            share_interval: None,
            scrape_interval: None,
            a10g_factor: 1.0,
            jitter: 0.0,
            weights: None,
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
    /// The hardware row of each endpoint, pool after pool.
    pub rows: Vec<&'static str>,
    /// Of each endpoint, requests per second.
    pub capacities: Vec<f64>,
    pools: Vec<PoolPlan>,
}

/// Endpoints that share their requests with no others.
#[derive(Clone, Debug)]
struct PoolPlan {
    workload: Workload,
    /// Its place in [`Plan::rows`].
    endpoints: Range<usize>,
    specs: Vec<EngineSpec>,
}

/// The requests of one load and seed, the same for every policy.
#[derive(Clone, Debug)]
pub struct Traffic {
    pub seed: u64,
    /// Requests per second, on average.
    pub rate: f64,
    /// Share of the prompt tokens in the window that one cache without bounds would hold.
    pub prefix_hit_bound: f64,
    pools: Vec<PoolTraffic>,
}

#[derive(Clone, Debug)]
struct PoolTraffic {
    requests: Vec<Request>,
    /// Of each request, the least time to a first token.
    floors: Vec<Duration>,
}

impl Traffic {
    /// All requests, in order of time within each pool.
    pub fn requests(&self) -> impl Iterator<Item = &Request> {
        self.pools.iter().flat_map(|pool| &pool.requests)
    }
}

impl Plan {
    /// * `endpoints`: size of the fleet, in the scenario's proportions; `None`: its own size.
    pub fn new(scenario: &'static Scenario, endpoints: Option<usize>) -> Result<Self, PlanError> {
        Self::with_settings(scenario, endpoints, &Settings::new(Duration::ZERO))
    }

    /// The same with engines as these settings want them. Capacity, and with it every rate, follows.
    pub fn with_settings(
        scenario: &'static Scenario,
        endpoints: Option<usize>,
        settings: &Settings,
    ) -> Result<Self, PlanError> {
        let mut plan =
            Self { scenario, rows: Vec::new(), capacities: Vec::new(), pools: Vec::new() };
        for (pool, count) in scenario.kinds() {
            let rows = pool.rows(endpoints.map(|all| all.div_ceil(scenario.pool_count())));
            let mix = pool.workload.mix(rows.len());
            let mut kinds: Vec<(&str, EngineSpec, f64)> = Vec::new();
            for row in &rows {
                if kinds.iter().all(|(other, ..)| other != row) {
                    let spec = spec_of(scenario, row, settings)?;
                    let capacity = capacity_of(&spec, &pool.workload, &mix, row)?;
                    kinds.push((row, spec, capacity));
                }
            }
            let each = || rows.iter().filter_map(|row| kinds.iter().find(|(kind, ..)| kind == row));
            for _ in 0..count {
                let begin = plan.rows.len();
                plan.rows.extend(&rows);
                plan.capacities.extend(each().map(|(.., capacity)| *capacity));
                let specs = each().map(|(_, spec, _)| spec.clone()).collect();
                let endpoints = begin..plan.rows.len();
                plan.pools.push(PoolPlan { workload: pool.workload, endpoints, specs });
            }
        }
        if plan.rows.len() > usize::from(u16::MAX) { Err(PlanError::TooLarge) } else { Ok(plan) }
    }

    /// What the whole fleet can do at most, requests per second. Load factors are shares of it.
    pub fn capacity(&self) -> f64 {
        self.capacities.iter().sum()
    }

    /// The rate from which on equal shares overload the slowest endpoint, of the first pool where
    /// that happens.
    pub fn round_robin_knee(&self) -> f64 {
        let loads = self.pools.iter().map(|pool| {
            let capacities = &self.capacities[pool.endpoints.clone()];
            let slowest = capacities.iter().copied().fold(f64::INFINITY, f64::min);
            slowest * capacities.len() as f64 / capacities.iter().sum::<f64>()
        });
        loads.fold(f64::INFINITY, f64::min) * self.capacity()
    }

    /// These settings, with the time that the scenario needs at least.
    pub fn settings(&self, asked: &Settings) -> Settings {
        let duration = asked.duration.max(self.scenario.duration_min);
        Settings { duration, ..asked.clone() }
    }

    /// The requests of `load` times the fleet's capacity; each pool gets the same share of its own.
    pub fn traffic(&self, load: f64, seed: u64, settings: &Settings) -> Traffic {
        let settings = self.settings(settings);
        let (window, until) = (settings.window(), settings.warm_up + settings.duration);
        let (mut all, mut missed) = (0, 0);
        let mut pools = Vec::with_capacity(self.pools.len());
        for (at, pool) in self.pools.iter().enumerate() {
            let rate = load * self.capacities[pool.endpoints.clone()].iter().sum::<f64>();
            let requests = pool.workload.requests(mix(seed, at as u64), rate, until);
            let uncached = uncached_tokens(&requests, UNCACHED_BLOCK);
            for (request, uncached) in requests.iter().zip(&uncached) {
                if window.contains(&request.at) {
                    all += u64::from(request.prompt_tokens());
                    missed += u64::from(*uncached);
                }
            }
            let both = requests.iter().zip(&uncached);
            let floors = both
                .map(|(request, uncached)| pool.floor(request, *uncached, settings.network))
                .collect();
            pools.push(PoolTraffic { requests, floors });
        }
        let prefix_hit_bound = 1.0 - missed as f64 / (all as f64).max(1.0);
        Traffic { seed, rate: load * self.capacity(), prefix_hit_bound, pools }
    }

    /// Plays the requests under one policy. Pools share nothing, so several are played at once.
    pub fn run(&self, traffic: &Traffic, policy: Policy, settings: &Settings) -> Run {
        self.play(traffic, policy, settings, false)
    }

    /// * `is_stepwise`: every engine step is an event of its own.
    pub(crate) fn play(
        &self,
        traffic: &Traffic,
        policy: Policy,
        settings: &Settings,
        is_stepwise: bool,
    ) -> Run {
        let settings = self.settings(settings);
        let count = self.pools.len();
        let next = AtomicUsize::new(0);
        let runs = Mutex::new(Vec::with_capacity(count));
        let player = || {
            loop {
                let at = next.fetch_add(1, Ordering::Relaxed);
                if at >= count {
                    return;
                }
                let run = self.play_pool(at, traffic, policy, &settings, is_stepwise);
                runs.lock().unwrap_or_else(PoisonError::into_inner).push((at, run));
            }
        };
        match thread::available_parallelism().map_or(1, NonZeroUsize::get).min(count) {
            0 | 1 => player(),
            players => thread::scope(|scope| (0..players).for_each(|_| drop(scope.spawn(player)))),
        }
        let mut runs = runs.into_inner().unwrap_or_else(PoisonError::into_inner);
        runs.sort_unstable_by_key(|(at, _)| *at);
        let mut whole = Run::empty(settings.window());
        for (_, run) in runs {
            whole.add(run);
        }
        whole
    }

    fn play_pool(
        &self,
        at: usize,
        traffic: &Traffic,
        policy: Policy,
        settings: &Settings,
        is_stepwise: bool,
    ) -> Run {
        let PoolTraffic { requests, floors } = &traffic.pools[at];
        let seed = if at == 0 { traffic.seed } else { mix(traffic.seed, at as u64) };
        let scene = Scene {
            specs: &self.pools[at].specs,
            requests,
            faults: self.scenario.faults,
            gateways: settings.gateways.unwrap_or(self.scenario.gateways),
            settings,
            seed,
            guests: None,
            is_stepwise,
        };
        let mut run = Simulation::new(&scene, policy).run();
        for (record, floor) in run.records.iter_mut().zip(floors) {
            record.floor = *floor;
        }
        run
    }

    /// The numbers of a run of this plan.
    pub fn result(&self, run: &Run) -> RunResult {
        run.result(self.scenario, &self.capacities)
    }
}

/// Tokens of the blocks in which a cache without bounds counts.
const UNCACHED_BLOCK: u32 = 16;

impl PoolPlan {
    /// The least time to a first token: on an idle engine that is the fastest for it and holds all
    /// that was ever said.
    fn floor(&self, request: &Request, uncached: u32, network: Duration) -> Duration {
        let mut least = f64::INFINITY;
        let mut before: Option<&EngineSpec> = None;
        for spec in &self.specs {
            // Engines of a kind stand side by side.
            if before.is_some_and(|before| before.costs == spec.costs) {
                continue;
            }
            before = Some(spec);
            let (mut left, mut done, mut ms) =
                (uncached, request.prompt_tokens().saturating_sub(uncached), 0.0);
            while left > 0 {
                let chunk = left.min(spec.batched_tokens_max);
                let mut work = StepWork::default();
                work.prefill(chunk, done);
                ms += spec.costs.step_ms(&work, 0.0);
                (left, done) = (left - chunk, done + chunk);
            }
            least = least.min(ms * 1e-3 + spec.api_delay.as_secs_f64());
        }
        network * 2 + Duration::try_from_secs_f64(least).unwrap_or_default()
    }
}

fn spec_of(
    scenario: &Scenario,
    row: &'static str,
    settings: &Settings,
) -> Result<EngineSpec, PlanError> {
    let hardware = Hardware::find(row).ok_or(PlanError::Hardware(row))?;
    let (gpu_slots, host_slots) = scenario.lora.map_or((0, 0), |l| (l.gpu_slots, l.host_slots));
    let mut spec = EngineSpec::new(EngineKind::Vllm, hardware, gpu_slots, host_slots);
    if let Some(tokens) = scenario.context_tokens {
        spec.model_len_max = tokens.min(spec.block_count * spec.block_size);
    }
    spec.jitter = settings.jitter;
    if row.contains("a10g") {
        spec.costs = spec.costs.slower(settings.a10g_factor);
    }
    Ok(spec)
}

fn capacity_of(
    spec: &EngineSpec,
    workload: &Workload,
    mix: &Mix,
    row: &'static str,
) -> Result<f64, PlanError> {
    let adapters = workload.adapters.map_or(0, |adapters| adapters.count);
    let found = capacity_with_adapters(spec, mix, adapters);
    if found > 0.0 { Ok(found) } else { Err(PlanError::TooSmall(row)) }
}
