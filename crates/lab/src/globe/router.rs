//! A region's router: the production fleet, and what it remembers of its requests.

use std::sync::Arc;
use std::time::Duration;

use fleet::shaping::{Money, Price};
use fleet::{
    Aim, Choice, Fleet, Member, MemberId, Mode, Refusal, Request, Scratch, Settings, Weights,
};
use rand_pcg::Pcg64Mcg;
use sched::{RetryBudget, RetryConfig};
use types::{Ratio, Timestamp};

use super::policy::Policy;
use super::world::{MODELS, World};

pub(crate) struct Router {
    pub(crate) fleet: Fleet,
    region: usize,
    policy: Policy,
    scratch: Scratch,
    turn: u64,
    pub(crate) retries: Arc<RetryBudget>,
}

/// What a request wants.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wish {
    pub(crate) model: usize,
    pub(crate) prompt: u32,
    pub(crate) answer: u32,
    pub(crate) affinity: Option<u64>,
    pub(crate) aim: Aim,
}

impl Router {
    pub(crate) fn new(world: &World, region: usize, policy: Policy, now: Timestamp) -> Self {
        let mut settings = Settings::new(world.regions[region].name);
        if policy == Policy::Weights {
            let quarter = Ratio::new(0.25).unwrap_or_default();
            if let Ok(weights) = Weights::new(quarter, quarter, quarter, quarter) {
                settings.mode = Mode::Weights(weights);
            }
        }
        let members = world.clusters.iter().enumerate().map(|(at, site)| Member {
            round_trip: Some(world.round_trip(region, site.region)),
            ..Member::new(&format!("cluster-{at}"), world.regions[site.region].name)
        });
        let fleet = Fleet::new(settings, members.collect(), None, now);
        let retries = Arc::new(RetryBudget::new(RetryConfig::default()));
        Self { fleet, region, policy, scratch: Scratch::default(), turn: 0, retries }
    }

    pub(crate) fn choose(
        &mut self,
        world: &World,
        wish: Wish,
        tried: &[MemberId],
        rng: &mut Pcg64Mcg,
        now: Timestamp,
    ) -> Result<Choice, Refusal> {
        let request = Request {
            prompt_tokens: wish.prompt,
            output_tokens: wish.answer,
            affinity: wish.affinity,
            aim: wish.aim,
            tried,
            ..Request::new(MODELS[wish.model].0)
        };
        let (fleet, scratch) = (&self.fleet, &mut self.scratch);
        if matches!(self.policy, Policy::Wicketgate | Policy::Weights) {
            return fleet.choose(&request, scratch, rng, now);
        }
        let candidates = fleet.candidates(&request, scratch, now)?;
        self.turn += 1;
        let way = |id: MemberId| {
            let site = world.clusters[usize::from(id.0)];
            world.round_trip(self.region, site.region).as_micros() as u64
        };
        let member = self.policy.rival(fleet, request.model, &candidates, way, self.turn);
        // All others are as good as tried.
        let others: Vec<MemberId> =
            candidates.iter().map(|of| of.member).filter(|id| Some(*id) != member).collect();
        let others: Vec<MemberId> = others.into_iter().chain(tried.iter().copied()).collect();
        fleet.choose(&Request { tried: &others, ..request }, scratch, rng, now)
    }
}

/// What a request costs at this price for a million tokens.
pub(crate) fn price(units: f64, prompt: u32, answer: u32) -> Money {
    let money = Money::from_units(units).unwrap_or_default();
    Price { input: money, output: money }.of(prompt.into(), answer.into())
}

/// How long a router waits for a connection.
pub(crate) const CONNECT: Duration = Duration::from_secs(1);
