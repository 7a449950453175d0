//! From what a gateway has counted to what it tells: rates, and shares of late.

use std::collections::HashMap;
use std::time::Duration;

use fleet::{Adapter, Heartbeat, ModelLoad};
use gateway::PoolCensus;
use types::{PoolName, Ratio, Timestamp};

/// How fast rates are forgotten: to a third in this time.
const FORGOTTEN: f32 = 6.0;
/// A change of what is free by more than this part of all is told at once.
const BIG_CHANGE: f32 = 0.2;

/// Makes heartbeats; remembers what was counted before.
#[derive(Debug)]
pub(crate) struct Pulse {
    epoch: u64,
    sequence: u64,
    born: Timestamp,
    before: HashMap<PoolName, Counted>,
    told: Option<Told>,
}

/// One pool's counters at the last heartbeat, and its rates.
#[derive(Clone, Copy, Debug, Default)]
struct Counted {
    at: Timestamp,
    arrived: u64,
    finished: u64,
    failed: u64,
    refused: u64,
    arrivals: f32,
    finishing: f32,
    failing: f32,
    refusing: f32,
}

/// What the last heartbeat said that is worth telling at once when it changes.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Told {
    is_draining: bool,
    ready: u32,
    free: f32,
    all: f32,
}

impl Pulse {
    /// * `epoch`: drawn once for this process.
    pub(crate) fn new(epoch: u64, now: Timestamp) -> Self {
        Self { epoch, sequence: 0, born: now, before: HashMap::new(), told: None }
    }

    /// The next heartbeat.
    pub(crate) fn beat(
        &mut self,
        census: &[PoolCensus],
        is_draining: bool,
        generation: u64,
        now: Timestamp,
    ) -> Heartbeat {
        self.sequence += 1;
        self.told = Some(Told::of(census, is_draining));
        self.before.retain(|pool, _| census.iter().any(|of| of.pool == *pool));
        let mut heartbeat = Heartbeat {
            epoch: self.epoch,
            sequence: self.sequence,
            uptime: now.since(self.born),
            generation,
            is_draining,
            carbon: None,
            price: None,
            models: census.iter().map(|pool| self.load(pool, now)).collect(),
        };
        keep_within_bounds(&mut heartbeat);
        heartbeat
    }

    /// Whether something has changed since the last heartbeat that routers should know at once.
    pub(crate) fn has_big_news(&self, census: &[PoolCensus], is_draining: bool) -> bool {
        let now = Told::of(census, is_draining);
        self.told.is_none_or(|told| {
            now.is_draining != told.is_draining
                || (now.ready == 0) != (told.ready == 0)
                || (now.free - told.free).abs() > BIG_CHANGE * now.all.max(told.all)
        })
    }

    fn load(&mut self, pool: &PoolCensus, now: Timestamp) -> ModelLoad {
        let before = self.before.entry(pool.pool.clone()).or_insert(Counted {
            at: now,
            arrived: pool.arrived,
            finished: pool.finished,
            failed: pool.failed,
            refused: pool.refused,
            ..Counted::default()
        });
        before.count(pool, now);
        let Counted { arrivals, finishing, failing, refusing, .. } = *before;
        let share = |part: f32, whole: f32| {
            let share = if whole > 0.0 { (part / whole).clamp(0.0, 1.0) } else { 0.0 };
            Ratio::new(f64::from(share)).unwrap_or(Ratio::ZERO)
        };
        let running = pool.in_flight.saturating_sub(pool.waiting);
        ModelLoad {
            name: pool.model.clone(),
            adapters: pool
                .adapters
                .iter()
                .map(|(name, is_resident)| Adapter {
                    name: name.clone(),
                    is_resident: *is_resident,
                })
                .collect(),
            endpoints_ready: pool.endpoints_ready,
            in_flight_max: running.saturating_add(pool.room),
            in_flight: pool.in_flight,
            waiting: pool.waiting,
            kv_capacity_tokens: pool.kv_capacity_tokens,
            kv_used: Ratio::new(f64::from(pool.kv_used)).unwrap_or(Ratio::ZERO),
            arrivals_per_second: arrivals,
            finished_per_second: finishing,
            // Only who is full shows how fast it can be.
            drain_per_second: if pool.waiting > 0 {
                pool.completions_per_second as f32
            } else {
                0.0
            },
            prefill_tokens_per_second: pool.prefill_tokens_per_second,
            ttft_base: pool.ttft_base.min(Duration::from_secs(600)),
            failed: share(failing, finishing),
            shed: share(refusing, arrivals.max(refusing)),
            context_max: u32::try_from(pool.context_max).unwrap_or(u32::MAX),
            prefixes: fleet::Sketch::default(),
        }
    }
}

impl Counted {
    fn count(&mut self, pool: &PoolCensus, now: Timestamp) {
        let passed = now.since(self.at).as_secs_f32();
        if passed <= 0.0 {
            return;
        }
        let left = (-passed / FORGOTTEN).exp();
        let rate = |before: f32, then: u64, now: u64| {
            before * left + now.saturating_sub(then) as f32 / passed * (1.0 - left)
        };
        self.arrivals = rate(self.arrivals, self.arrived, pool.arrived);
        self.finishing = rate(self.finishing, self.finished, pool.finished);
        self.failing = rate(self.failing, self.failed, pool.failed);
        self.refusing = rate(self.refusing, self.refused, pool.refused);
        (self.arrived, self.finished) = (pool.arrived, pool.finished);
        (self.failed, self.refused) = (pool.failed, pool.refused);
        self.at = now;
    }
}

impl Told {
    fn of(census: &[PoolCensus], is_draining: bool) -> Self {
        let free: f32 = census.iter().map(|pool| pool.room as f32).sum();
        let there: f32 = census.iter().map(|pool| pool.in_flight as f32).sum();
        Self {
            is_draining,
            ready: census.iter().map(|pool| pool.endpoints_ready).sum(),
            free,
            all: free + there,
        }
    }
}

/// What does not fit is left out: the last adapters, then the last models.
fn keep_within_bounds(heartbeat: &mut Heartbeat) {
    heartbeat.models.truncate(Heartbeat::MODELS_MAX);
    let mut left = Heartbeat::ADAPTERS_MAX;
    for load in &mut heartbeat.models {
        load.adapters.truncate(left);
        left -= load.adapters.len();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pool() -> PoolCensus {
        PoolCensus {
            pool: "chat".into(),
            model: "llama".into(),
            adapters: vec![("sql".into(), true)],
            context_max: 8192,
            endpoints_ready: 2,
            room: 90,
            in_flight: 10,
            waiting: 0,
            kv_capacity_tokens: 1000,
            kv_used: 0.5,
            prefill_tokens_per_second: 10_000.0,
            ttft_base: Duration::from_millis(30),
            completions_per_second: 5.0,
            arrived: 0,
            finished: 0,
            failed: 0,
            refused: 0,
        }
    }

    fn second(n: u64) -> Timestamp {
        Timestamp::from_millis(n * 1000)
    }

    #[test]
    fn rates_are_those_of_late() {
        let mut pulse = Pulse::new(1, second(0));
        let mut census = pool();
        for n in 0..60 {
            census.arrived = n * 20;
            census.finished = n * 20;
            census.failed = n * 5;
            let beat = pulse.beat(std::slice::from_ref(&census), false, 0, second(2 * n));
            if n == 59 {
                let load = &beat.models[0];
                assert!((load.arrivals_per_second - 10.0).abs() < 0.1, "{load:?}");
                assert!((load.failed.get() - 0.25).abs() < 0.01, "{load:?}");
                assert_eq!((load.in_flight_max, load.in_flight), (100, 10));
                assert_eq!(beat.sequence, 60);
                assert!(beat.check().is_ok());
            }
        }
    }

    #[test]
    fn a_pool_that_comes_late_does_not_tell_its_whole_past_as_a_rate() {
        let mut pulse = Pulse::new(1, second(0));
        let census = PoolCensus { arrived: 1_000_000, ..pool() };
        let beat = pulse.beat(&[census], false, 0, second(100));
        assert_eq!(beat.models[0].arrivals_per_second, 0.0);
    }

    #[test]
    fn a_drain_and_a_big_change_are_news_and_a_small_one_is_not() {
        let mut pulse = Pulse::new(1, second(0));
        assert!(pulse.has_big_news(&[pool()], false), "nothing was told yet");
        pulse.beat(&[pool()], false, 0, second(0));
        assert!(!pulse.has_big_news(&[pool()], false));
        assert!(pulse.has_big_news(&[pool()], true));
        let with_room = |room| PoolCensus { room, in_flight: 100 - room, ..pool() };
        assert!(!pulse.has_big_news(&[with_room(75)], false));
        assert!(pulse.has_big_news(&[with_room(60)], false));
        assert!(pulse.has_big_news(&[PoolCensus { endpoints_ready: 0, ..pool() }], false));
    }

    #[test]
    fn more_models_than_a_heartbeat_holds_are_left_out() {
        let many = (0..400).map(|n| {
            let adapters = (0..20).map(|a| (format!("m{n}-{a}").as_str().into(), false)).collect();
            let name = format!("m{n}");
            PoolCensus {
                pool: name.as_str().into(),
                model: name.as_str().into(),
                adapters,
                ..pool()
            }
        });
        let many: Vec<_> = many.collect();
        let beat = Pulse::new(1, second(0)).beat(&many, false, 0, second(1));
        assert_eq!(beat.models.len(), Heartbeat::MODELS_MAX);
        assert!(beat.check().is_ok());
    }
}
