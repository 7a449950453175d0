//! A fleet and those who want something of it.

use std::time::Duration;

use flow::{Config, FlowKey};
use sched::saturation;
use sim::engine::{EngineSpec, Hardware};
use types::{EngineKind, Priority, Timestamp};

use super::guests::{Guest, Guests, Patience};
use crate::arrivals::Arrivals;
use crate::capacity::capacity;
use crate::lengths::Lengths;
use crate::measure::{Percentiles, Record, Run};
use crate::plan::{PlanError, Settings};
use crate::policy::Policy;
use crate::prompt::mix;
use crate::simulation::{Scene, Simulation};
use crate::workload::{Request, Sharing, Workload};

/// Requests of one kind.
#[derive(Clone, Copy, Debug)]
pub struct Class {
    /// Tenants of this kind, each a flow of its own, called `flow`, `flow-1`, …
    pub flow: &'static str,
    pub flows: u32,
    pub priority: Priority,
    /// Of all its tenants together: share of the fleet's capacity for this kind of request.
    pub load: f64,
    pub deadline: Option<Duration>,
    pub(crate) prompt: Lengths,
    pub(crate) answer: Lengths,
    pub(crate) arrivals: Arrivals,
    pub(crate) patience: Patience,
}

/// A fleet of equal engines and the classes that come to it.
#[derive(Clone, Debug)]
pub struct Crowd {
    /// A row of `sim::engine::TABLE`.
    pub hardware: &'static str,
    pub endpoints: usize,
    pub classes: Vec<Class>,
    pub config: Config,
    pub saturation: saturation::Config,
    pub duration: Duration,
}

/// One run of a crowd.
#[derive(Clone, Debug)]
pub struct Played {
    pub run: Run,
    /// Of each request, its class and its tenant within it.
    pub who: Vec<(usize, u32)>,
    pub seconds: f64,
}

impl Crowd {
    /// Plays it under the default policy.
    pub fn play(&self, seed: u64) -> Result<Played, PlanError> {
        let hardware = Hardware::find(self.hardware).ok_or(PlanError::Hardware(self.hardware))?;
        let spec = EngineSpec::new(EngineKind::Vllm, hardware, 0, 0);
        let settings = Settings::new(self.duration);
        let until = settings.warm_up + settings.duration;
        let mut all: Vec<(Request, Guest, (usize, u32))> = Vec::new();
        for (at, class) in self.classes.iter().enumerate() {
            let workload = class.workload();
            let rate = capacity(&spec, &workload.mix(self.endpoints)) * self.endpoints as f64;
            if rate <= 0.0 {
                return Err(PlanError::TooSmall(self.hardware));
            }
            for tenant in 0..class.flows {
                let seed = mix(seed, (at as u64) << 32 | u64::from(tenant));
                let rate = rate * class.load / f64::from(class.flows);
                let requests = workload.requests(seed, rate, until);
                let guest = class.guest(tenant);
                all.extend(requests.into_iter().map(|one| (one, guest.clone(), (at, tenant))));
            }
        }
        all.sort_by_key(|(request, _, who)| (request.at, *who));
        let mut guests = Vec::with_capacity(all.len());
        let (mut requests, mut who) = (Vec::with_capacity(all.len()), Vec::new());
        for (request, guest, of) in all {
            requests.push(request);
            guests.push(guest);
            who.push(of);
        }
        let guests = Guests {
            config: self.config.clone(),
            saturation: self.saturation,
            guests,
            returns_until: Timestamp::from_duration(until),
        };
        let specs = vec![spec; self.endpoints];
        let scene = Scene {
            specs: &specs,
            requests: &requests,
            faults: &[],
            gateways: 1,
            settings: &settings,
            seed,
            guests: Some(&guests),
            is_stepwise: false,
        };
        let run = Simulation::new(&scene, Policy::Wicketgate).run();
        Ok(Played { run, who, seconds: settings.duration.as_secs_f64() })
    }
}

impl Class {
    fn workload(&self) -> Workload {
        let sharing = Sharing::Separate { prompt: self.prompt, answer: self.answer };
        Workload::new(self.arrivals, sharing)
    }

    fn guest(&self, tenant: u32) -> Guest {
        let id =
            if tenant == 0 { self.flow.into() } else { format!("{}-{tenant}", self.flow).into() };
        let answer_tokens = self.workload().mix(1).output as u32;
        Guest {
            flow: FlowKey { id, priority: self.priority },
            answer_tokens,
            deadline: self.deadline,
            patience: self.patience,
        }
    }
}

impl Played {
    /// Requests of a class that came in the time that counts, each with its number.
    pub fn of_class(&self, class: usize) -> impl Iterator<Item = (usize, &Record)> {
        let all = self.run.records.iter().enumerate();
        all.filter(move |(at, record)| {
            self.who[*at].0 == class && self.run.window.contains(&record.at)
        })
    }

    pub fn ttft(&self, class: usize) -> Percentiles {
        Percentiles::of(self.of_class(class).filter_map(|(_, record)| record.ttft()))
    }

    /// Tokens per second of prompts and answers that a class was served, by when each request ended.
    pub fn tokens_per_second(&self, class: usize) -> f64 {
        let all = self.run.records.iter().enumerate();
        let ended = all.filter(|(at, record)| {
            self.who[*at].0 == class
                && record.finished.is_some_and(|end| self.run.window.contains(&end))
        });
        let tokens =
            ended.map(|(_, one)| f64::from(one.prompt_tokens) + f64::from(one.output_tokens));
        tokens.sum::<f64>() / self.seconds
    }

    /// Tokens of answers per second, of all.
    pub fn output_tokens_per_second(&self) -> f64 {
        self.run.window_tokens as f64 / self.seconds
    }

    /// Those who came when they were told to, and how many of them were let in then.
    pub fn returns(&self) -> (u64, u64) {
        let waits = self.run.waits.iter().flat_map(|waits| &waits.by_request);
        waits.fold((0, 0), |(returns, kept), wait| {
            (returns + u64::from(wait.returns), kept + u64::from(wait.kept))
        })
    }
}
