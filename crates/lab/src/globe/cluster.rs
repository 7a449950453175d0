//! A cluster as a router sees it: for each model places, and a queue before them.
//!
//! Assumptions. A request has a place from its start to its last token. Its first token takes a base, its prompt at
//! the endpoint's speed, and more the fuller the model is (a third as fast when full); each further token 12 ms on an
//! idle endpoint of the first generation and twice that on a full one; both vary by a fifth. When all places are taken
//! requests wait in order, at most four for each endpoint; beyond that the cluster refuses with 429. What a place
//! costs does not depend on which prompts are cached: there is no prefix cache here.

use std::collections::VecDeque;
use std::time::Duration;

use fleet::shaping::{Money, Price};
use fleet::{Heartbeat, ModelLoad};
use types::{Ratio, Timestamp};

use super::world::{ANSWER, MODELS, PROMPT, Site};

const BASE: f64 = 0.06;
const PREFILL: f64 = 12_000.0;
const TOKEN: f64 = 0.012;
const QUEUE: u32 = 4;
/// A gateway knows what it can do this well.
const KNOWN: f32 = 0.95;

/// What befalls a cluster.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Health {
    Up,
    /// Connections are refused or reset.
    Reset,
    /// Packets vanish.
    Blackhole,
}

#[derive(Debug)]
pub(crate) struct Cluster {
    pub(crate) site: Site,
    pub(crate) health: Health,
    pub(crate) since: Timestamp,
    epoch: u64,
    sequence: u64,
    started: Timestamp,
    /// Times take so many times as long.
    pub(crate) slow: f64,
    /// Share of requests that fail at once.
    pub(crate) failing: f64,
    pub(crate) lies: bool,
    pub(crate) price: f64,
    pub(crate) pools: Vec<Pool>,
    told: Timestamp,
}

/// One model.
#[derive(Debug)]
pub(crate) struct Pool {
    endpoints: u32,
    pub(crate) places: u32,
    pub(crate) busy: u32,
    pub(crate) queue: VecDeque<u32>,
    arrivals: u32,
    finished: u32,
    failed: u32,
}

/// Seconds from start to end of an average request on a full endpoint.
pub(crate) fn stay_full(speed: f32) -> f64 {
    ((BASE + PROMPT / PREFILL) * 3.0 + ANSWER * TOKEN * 2.0) / f64::from(speed)
}

impl Cluster {
    /// * `scale`: real requests for each that is played; places are as many times fewer.
    pub(crate) fn new(site: Site, endpoints: u32, scale: f64) -> Self {
        let pools = MODELS.iter().map(|(_, share)| {
            let real = f64::from(endpoints) * share;
            Pool {
                endpoints: ((real / scale).round() as u32).max(1),
                places: ((real * f64::from(site.places) / scale).round() as u32).max(1),
                busy: 0,
                queue: VecDeque::new(),
                arrivals: 0,
                finished: 0,
                failed: 0,
            }
        });
        Self {
            site,
            health: Health::Up,
            since: Timestamp::ZERO,
            epoch: 1,
            sequence: 0,
            started: Timestamp::ZERO,
            slow: 1.0,
            failing: 0.0,
            lies: false,
            price: site.price,
            pools: pools.collect(),
            told: Timestamp::ZERO,
        }
    }

    /// Another process, with nothing in it.
    pub(crate) fn restart(&mut self, now: Timestamp) {
        (self.epoch, self.sequence, self.started) = (self.epoch + 1, 0, now);
        for pool in &mut self.pools {
            (pool.busy, pool.arrivals, pool.finished) = (0, 0, 0);
            pool.queue.clear();
        }
    }

    /// Times to the first and to the last token, of a request that starts now.
    ///
    /// * `noise`: 0.8 to 1.2.
    pub(crate) fn times(
        &self,
        model: usize,
        prompt: u32,
        answer: u32,
        noise: f64,
    ) -> (Duration, Duration) {
        let pool = &self.pools[model];
        let load = f64::from(pool.busy) / f64::from(pool.places);
        let factor = self.slow * noise / f64::from(self.site.speed);
        let first = (BASE + f64::from(prompt) / PREFILL) * (1.0 + 2.0 * load * load) * factor;
        let stay = first + f64::from(answer) * TOKEN * (1.0 + load) * factor;
        (Duration::from_secs_f64(first), Duration::from_secs_f64(stay))
    }

    /// What it tells of itself.
    ///
    /// * `skew`: its clock runs apart by so much; only the time since its start is told, by the same clock.
    pub(crate) fn heartbeat(&mut self, skew: Duration, now: Timestamp) -> Heartbeat {
        self.sequence += 1;
        let passed = now.since(self.told).as_secs_f32().max(0.1);
        self.told = now;
        let (speed, lies) = (self.site.speed, self.lies);
        let models = self.pools.iter_mut().zip(MODELS).map(|(pool, (name, _))| {
            let waiting = pool.queue.len() as u32;
            let (arrivals, finished) =
                (std::mem::take(&mut pool.arrivals), std::mem::take(&mut pool.finished));
            let failed = std::mem::take(&mut pool.failed);
            let honest = !lies;
            let when = |number: u32| if honest { number } else { 0 };
            let used = f64::from(when(pool.busy)) / f64::from(pool.places);
            ModelLoad {
                endpoints_ready: pool.endpoints,
                in_flight_max: pool.places,
                in_flight: when(pool.busy + waiting),
                waiting: when(waiting),
                kv_used: Ratio::new(used.min(1.0)).unwrap_or_default(),
                arrivals_per_second: when(arrivals) as f32 / passed,
                finished_per_second: when(finished) as f32 / passed,
                drain_per_second: pool.places as f32 / stay_full(speed) as f32 * KNOWN,
                prefill_tokens_per_second: PREFILL as f32 * speed,
                ttft_base: Duration::from_secs_f64(BASE / f64::from(speed)),
                failed: Ratio::new(f64::from(failed) / f64::from(arrivals.max(1)).max(20.0))
                    .unwrap_or_default(),
                ..ModelLoad::new(name)
            }
        });
        let models = models.collect();
        let money = Money::from_units(self.price).unwrap_or_default();
        Heartbeat {
            epoch: self.epoch,
            sequence: self.sequence,
            uptime: now.since(self.started) + skew,
            carbon: Some(self.site.carbon),
            price: Some(Price { input: money, output: money }),
            models,
            ..Heartbeat::default()
        }
    }
}

impl Pool {
    pub(crate) fn count_arrival(&mut self) {
        self.arrivals += 1;
    }

    pub(crate) fn count_failed(&mut self) {
        self.failed += 1;
        self.finished += 1;
    }

    pub(crate) fn is_full(&self) -> bool {
        self.queue.len() as u32 >= QUEUE * self.endpoints.max(1)
    }

    /// A request has ended. The next one that waits.
    pub(crate) fn finish(&mut self) -> Option<u32> {
        self.busy = self.busy.saturating_sub(1);
        self.finished += 1;
        self.queue.pop_front()
    }
}
