//! What the scenario does, and how it ends.

use std::time::Duration;

use rand::RngExt;

use super::{Event, Play};
use crate::globe::cluster::Health;
use crate::globe::router::Router;
use crate::globe::scenario::{BEGINS, Deed};

/// A cold cluster is slow for so long.
const COLD: Duration = Duration::from_secs(30);
/// Between restarts of two routers.
const RESTART: Duration = Duration::from_secs(5);
const SWING: f64 = 0.5;

impl Play<'_> {
    /// * `step`: 0 when it begins; counts up.
    pub(super) fn deed(&mut self, step: u32) {
        let is_over = self.now.as_duration() >= self.scenario.ends();
        let lasts = self.scenario.lasts;
        match self.scenario.deed {
            Deed::Nothing
            | Deed::LoseHeartbeats(_)
            | Deed::DelayHeartbeats(_)
            | Deed::Isolate
            | Deed::Crowd(_)
            | Deed::Retries(_)
            | Deed::Skew(_) => {}
            Deed::LoseRegion(health) => self.lose_region(step, health),
            Deed::StoreAndRegion => self.lose_region(step, Health::Blackhole),
            Deed::Degrade(times) => {
                for cluster in &mut self.clusters {
                    if cluster.site.region % 3 != 0 {
                        cluster.slow = if step == 0 { times } else { 1.0 };
                    }
                }
                self.once_more(step, lasts);
            }
            Deed::Lie(times) => {
                self.clusters[0].lies = step == 0;
                self.clusters[0].slow = if step == 0 { times } else { 1.0 };
                self.once_more(step, lasts);
            }
            Deed::Poison => {
                self.clusters[0].failing = if step == 0 { 1.0 } else { 0.0 };
                self.once_more(step, lasts);
            }
            Deed::Flap(pause) => {
                let health =
                    if step.is_multiple_of(2) && !is_over { Health::Reset } else { Health::Up };
                self.turn(0, health);
                if !is_over {
                    self.later(pause, Event::Deed(step + 1));
                }
            }
            Deed::Return => {
                let half = self.clusters.len() / 2;
                for at in 0..half {
                    match step {
                        0 => self.turn(at, Health::Reset),
                        1 => {
                            self.turn(at, Health::Up);
                            self.clusters[at].slow = 2.0;
                        }
                        _ => self.clusters[at].slow = 1.0,
                    }
                }
                if step < 2 {
                    self.later(if step == 0 { lasts } else { COLD }, Event::Deed(step + 1));
                }
            }
            Deed::Roll(away) => {
                // Two steps for each cluster: it goes, and is back.
                let (at, is_back) = ((step / 2) as usize, step % 2 == 1);
                if at < self.clusters.len() {
                    self.turn(at, if is_back { Health::Up } else { Health::Reset });
                    let turn = lasts.saturating_sub(away) / self.clusters.len() as u32;
                    let pause = if is_back { turn.saturating_sub(away) } else { away };
                    self.later(pause, Event::Deed(step + 1));
                }
            }
            Deed::Upgrade => {
                let router = step as usize;
                if router < self.routers.len().div_ceil(2) {
                    self.routers[router] = Router::new(self.world, router, self.policy, self.now);
                    self.later(RESTART, Event::Deed(step + 1));
                }
            }
            Deed::Prices(period) => {
                let passed = self.now.as_duration().saturating_sub(BEGINS).as_secs_f64();
                for (at, cluster) in self.clusters.iter_mut().enumerate() {
                    let phase = passed / period.as_secs_f64() + at as f64 / 7.0;
                    let swing = 1.0 + SWING * (phase * std::f64::consts::TAU).sin();
                    cluster.price = cluster.site.price * if is_over { 1.0 } else { swing };
                }
                if !is_over {
                    self.later(Duration::from_secs(1), Event::Deed(step + 1));
                }
            }
        }
    }

    fn once_more(&mut self, step: u32, after: Duration) {
        if step == 0 {
            self.later(after, Event::Deed(1));
        }
    }

    fn lose_region(&mut self, step: u32, health: Health) {
        let region = self.world.largest_region();
        for at in 0..self.clusters.len() {
            if self.clusters[at].site.region == region {
                self.turn(at, if step == 0 { health } else { Health::Up });
            }
        }
        self.once_more(step, self.scenario.lasts);
    }

    /// A cluster goes or comes back.
    fn turn(&mut self, at: usize, health: Health) {
        if self.clusters[at].health == health {
            return;
        }
        self.break_all(at, health != Health::Blackhole);
        let cluster = &mut self.clusters[at];
        (cluster.health, cluster.since) = (health, self.now);
        cluster.restart(self.now);
    }

    /// How much later a heartbeat comes; `None`: it does not.
    pub(super) fn hindrance(&mut self, router: usize, cluster: usize) -> Option<Duration> {
        if !self.is_on() {
            return Some(Duration::ZERO);
        }
        match self.scenario.deed {
            Deed::LoseHeartbeats(share) if self.rng.random_bool(share) => None,
            Deed::DelayHeartbeats(delay) if cluster.is_multiple_of(4) => Some(delay),
            Deed::Isolate if router == 0 => None,
            _ => Some(Duration::ZERO),
        }
    }
}
