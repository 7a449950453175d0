//! A play: events in order of time.

mod deeds;
mod requests;

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};
use std::time::Duration;

use fleet::{Heartbeat, MemberId};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use types::Timestamp;

use super::cluster::{Cluster, Health};
use super::leases::Limits;
use super::measure::{Books, Outcome};
use super::policy::Policy;
use super::router::{CONNECT, Router};
use super::scenario::{BEGINS, Deed, Scenario};
use super::world::{ANSWER, MODELS, PROMPT, World};
use requests::Query;

const TICK: Duration = Duration::from_millis(200);
const HEARTBEAT: Duration = Duration::from_secs(2);
/// Share of capacity in use whose change is told at once.
const TELLING: f64 = 0.2;
/// Of all tokens, those of the tenant with a limit; what it may have of that.
const LIMITED: f64 = 0.1;

/// How a play is run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    pub seed: u64,
    /// Real requests for each that is played: places of clusters are as many times fewer.
    pub scale: f64,
    /// Share of the clusters' capacity that is offered; `None`: the scenario's own.
    pub load: Option<f64>,
}

enum Event {
    Arrive(usize),
    /// A request reaches its cluster. Number and attempt, as in all that follow.
    Reach(u32, u32),
    /// Its first token reaches the router.
    First(u32, u32),
    Finish(u32, u32),
    Refused(u32, u32),
    Unreachable(u32, u32),
    Failed(u32, u32),
    Beat(usize),
    Heard(usize, usize, Box<Heartbeat>),
    Probe,
    Probed(usize, MemberId, Option<Duration>),
    Tick,
    Deed(u32),
}

struct Due {
    at: Timestamp,
    number: u64,
    event: Event,
}

pub(crate) struct Play<'a> {
    world: &'a World,
    scenario: &'a Scenario,
    policy: Policy,
    /// Requests a second, of all clients.
    rate: f64,
    clusters: Vec<Cluster>,
    /// Numbers of the requests inside each cluster or on their way.
    inside: Vec<BTreeSet<u32>>,
    /// Use that each cluster told last.
    told: Vec<f64>,
    skews: Vec<Duration>,
    routers: Vec<Router>,
    requests: Vec<Query>,
    limits: Option<Limits>,
    books: Books,
    events: BinaryHeap<Reverse<Due>>,
    number: u64,
    now: Timestamp,
    rng: Pcg64Mcg,
}

/// Plays a scenario. Equal arguments give equal outcomes.
pub fn play(world: &World, scenario: &Scenario, policy: Policy, settings: &Settings) -> Outcome {
    let mut play = Play::new(world, scenario, policy, settings);
    play.run();
    play.books.limit_most = play.limits.as_ref().map_or(0.0, Limits::most);
    play.books.outcome(scenario)
}

impl<'a> Play<'a> {
    fn new(world: &'a World, scenario: &'a Scenario, policy: Policy, settings: &Settings) -> Self {
        let load = settings.load.unwrap_or(scenario.load);
        let scale = settings.scale.max(1.0);
        let rate = load * world.capacity() / scale;
        let mut rng = Pcg64Mcg::seed_from_u64(settings.seed);
        let cluster = |site| Cluster::new(site, world.endpoints, scale);
        let clusters: Vec<_> = world.clusters.iter().copied().map(cluster).collect();
        let skew = match scenario.deed {
            Deed::Skew(most) => most,
            _ => Duration::ZERO,
        };
        let skews = clusters.iter().map(|_| skew.mul_f64(rng.random_range(0.0..=1.0))).collect();
        let limits = matches!(scenario.deed, Deed::StoreAndRegion).then(|| {
            let tokens = rate * LIMITED * (PROMPT + ANSWER) * 60.0;
            Limits::new(world.regions.len(), (tokens / 2.0) as u64)
        });
        let start = Timestamp::ZERO;
        let router = |region| Router::new(world, region, policy, start);
        Self {
            inside: vec![BTreeSet::new(); clusters.len()],
            told: vec![0.0; clusters.len()],
            skews,
            clusters,
            routers: (0..world.regions.len()).map(router).collect(),
            world,
            scenario,
            policy,
            rate,
            requests: Vec::new(),
            limits,
            books: Books::default(),
            events: BinaryHeap::new(),
            number: 0,
            now: start,
            rng,
        }
    }

    fn run(&mut self) {
        for region in 0..self.routers.len() {
            // After the first heartbeats.
            self.later(Duration::from_secs(3), Event::Arrive(region));
        }
        for cluster in 0..self.clusters.len() {
            let first = HEARTBEAT.mul_f64(self.rng.random_range(0.0..=1.0));
            self.later(first, Event::Beat(cluster));
        }
        self.later(TICK, Event::Tick);
        self.later(Duration::from_secs(1), Event::Probe);
        self.later(BEGINS, Event::Deed(0));
        let end = Timestamp::from_duration(self.scenario.whole());
        while let Some(Reverse(due)) = self.events.pop() {
            if due.at > end {
                break;
            }
            self.now = due.at;
            self.happen(due.event);
        }
    }

    fn later(&mut self, wait: Duration, event: Event) {
        self.number += 1;
        let due = Due { at: self.now + wait, number: self.number, event };
        self.events.push(Reverse(due));
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Arrive(region) => self.arrive(region),
            Event::Reach(id, attempt) => self.reach(id, attempt),
            Event::First(id, attempt) => self.first(id, attempt),
            Event::Finish(id, attempt) => self.finish(id, attempt),
            Event::Refused(id, attempt) => {
                self.fail(id, attempt, fleet::Outcome::Refused { retry_after: None });
            }
            Event::Unreachable(id, attempt) => self.fail(id, attempt, fleet::Outcome::Unreachable),
            Event::Failed(id, attempt) => self.fail(id, attempt, fleet::Outcome::Failed),
            Event::Beat(cluster) => {
                self.beat(cluster);
                let wait = HEARTBEAT.mul_f64(self.rng.random_range(0.9..=1.1));
                self.later(wait, Event::Beat(cluster));
            }
            Event::Heard(router, cluster, heartbeat) => {
                let id = MemberId(cluster as u16);
                // Old ones are refused, as in life.
                let heard = self.routers[router].fleet.heard(id, *heartbeat, self.now);
                self.note(router, heard.ok().flatten());
            }
            Event::Probe => {
                self.probe();
                self.later(Duration::from_secs(1), Event::Probe);
            }
            Event::Probed(router, member, way) => {
                let event = self.routers[router].fleet.probed(member, way, self.now);
                self.note(router, event);
            }
            Event::Tick => {
                self.tick();
                self.later(TICK, Event::Tick);
            }
            Event::Deed(step) => self.deed(step),
        }
    }

    /// Sends a heartbeat to all routers.
    fn beat(&mut self, cluster: usize) {
        if self.clusters[cluster].health != Health::Up {
            return;
        }
        self.told[cluster] = self.used(cluster);
        let heartbeat = self.clusters[cluster].heartbeat(self.skews[cluster], self.now);
        for router in 0..self.routers.len() {
            let Some(delay) = self.hindrance(router, cluster) else { continue };
            let way = self.world.round_trip(router, self.clusters[cluster].site.region) / 2;
            let event = Event::Heard(router, cluster, Box::new(heartbeat.clone()));
            self.later(way + delay, event);
        }
    }

    fn used(&self, cluster: usize) -> f64 {
        let pools = &self.clusters[cluster].pools;
        let (busy, places) = pools
            .iter()
            .fold((0, 0), |(busy, places), pool| (busy + pool.busy, places + pool.places));
        f64::from(busy) / f64::from(places.max(1))
    }

    /// Asks members that the router wants to reach.
    fn probe(&mut self) {
        for router in 0..self.routers.len() {
            for member in self.routers[router].fleet.wants_probe(self.now) {
                let cluster = &self.clusters[usize::from(member.0)];
                let way = self.world.round_trip(router, cluster.site.region);
                let (wait, way) = match cluster.health {
                    Health::Up => (way, Some(way)),
                    Health::Reset => (way, None),
                    Health::Blackhole => (CONNECT, None),
                };
                self.later(wait, Event::Probed(router, member, way));
            }
        }
    }

    fn tick(&mut self) {
        for router in 0..self.routers.len() {
            for event in self.routers[router].fleet.tick(self.now) {
                self.note(router, Some(event));
            }
        }
        for cluster in 0..self.clusters.len() {
            if (self.used(cluster) - self.told[cluster]).abs() > TELLING {
                self.beat(cluster);
            }
        }
        let is_away = self.is_on() && matches!(self.scenario.deed, Deed::StoreAndRegion);
        let world = self.world;
        if let Some(limits) = &mut self.limits {
            let way = |router| (!is_away).then(|| world.round_trip(router, 0));
            limits.tick(way, self.now);
        }
    }

    /// Whether what the scenario tells of is happening now.
    fn is_on(&self) -> bool {
        (BEGINS..self.scenario.ends()).contains(&self.now.as_duration())
    }

    /// Clients of a region, requests a second, by model.
    fn rates(&self, region: usize) -> [f64; MODELS.len()] {
        let all = self.rate * self.world.regions[region].clients;
        let factor = match self.scenario.deed {
            Deed::Retries(factor) if self.is_on() => factor,
            _ => 1.0,
        };
        let mut rates = MODELS.map(|(_, share)| all * share * factor);
        if let (Deed::Crowd(times), true) = (self.scenario.deed, self.is_on()) {
            rates[MODELS.len() - 1] *= times;
        }
        rates
    }
}

impl PartialEq for Due {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number
    }
}

impl Eq for Due {}

impl PartialOrd for Due {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Due {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.number).cmp(&(other.at, other.number))
    }
}
