//! Whether a template was edited, where, and what it costs.

use std::collections::HashMap;
use types::{PoolName, Timestamp};

use super::memory::{Fade, Pace, span};
use super::{Strangers, Templates};

/// What is usual must be known from so many prompts.
const KNOWN_BY: f64 = 20.0;
/// Prompts of the short memory without which nothing is concluded.
const EVIDENCE_MIN: f64 = 8.0;
/// A template has fallen when fewer than this share of its usual prompts follow it.
const FALLEN: f64 = 0.5;
/// Share of the missing prompts that must be found where they part now.
const EXPLAINED: f64 = 0.5;
/// Prompts of strangers must be as long as the template's, within this factor.
const ALIKE: f64 = 1.25;
/// A regression is over when so many prompts follow again, as a share of the usual.
const RECOVERED: f64 = 0.7;
/// Or when so few part as at its worst.
const CEASED: f64 = 0.1;

/// What became of the blocks behind the edit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// They differ from prompt to prompt: a time, a name, an id stands before them now.
    PerRequest,
    /// They were replaced by others, which prompts share again. It cost each endpoint one prefill.
    Replaced,
}

impl Cause {
    /// * `rate`: prompts per second; `lost`: blocks of each.
    fn lost_per_hour(self, rate: f64, lost: f64) -> f64 {
        match self {
            Self::PerRequest => 3600.0 * rate * lost.max(0.0),
            Self::Replaced => 0.0,
        }
    }
}

/// A template whose prompts share less than they did.
#[derive(Clone, Debug, PartialEq)]
pub struct Regression {
    pub cause: Cause,
    /// Index of the first block that differs: so many are still shared.
    pub block: u32,
    /// Blocks that were shared before.
    pub shared_before: u32,
    /// Mean of the blocks that prompts which part there share now.
    pub shared_after: f64,
    pub prompts_per_minute: f64,
    /// Blocks that are computed again in an hour at this rate.
    pub lost_blocks_per_hour: f64,
    pub since: Timestamp,
    /// Prompts per second that followed it before.
    pub(super) usual_rate: f64,
    /// Of those that part, the most so far.
    worst_rate: f64,
}

/// What a tick found.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    Began { template: u64, pool: PoolName, regression: Regression },
    Ended { template: u64, pool: PoolName, regression: Regression },
}

/// Prompts that part at one block.
#[derive(Clone, Copy, Debug, Default)]
struct Parting {
    short: f64,
    long: f64,
    /// Sum of the blocks that they share after all, weighted by the short memory.
    shared: f64,
}

impl Templates {
    /// Lets the memories fade and looks at each template. To be called every [`Self::tick_every`] or so.
    pub fn tick(&mut self, now: Timestamp) -> Vec<Event> {
        let elapsed = now.since(self.ticked);
        if elapsed.is_zero() {
            return Vec::new();
        }
        self.ticked = now;
        let fade = Fade::after(elapsed, self.pace);
        for spine in &mut self.spines {
            spine.fade(fade);
        }
        for strangers in self.pools.values_mut() {
            strangers.prompts.fade(fade);
            strangers.blocks.fade(fade);
        }
        self.pools.retain(|_, strangers| strangers.prompts.long > 1e-3);

        let partings = self.partings();
        let mut strangers: HashMap<PoolName, f64> = HashMap::new();
        let mut events = Vec::new();
        for at in 0..self.spines.len() {
            let empty = Vec::new();
            let partings = partings.get(&self.spines[at].id).unwrap_or(&empty);
            events.extend(self.judge(at, partings, &mut strangers, now));
        }
        events
    }

    /// By spine: where prompts part from it, those of its branches included.
    fn partings(&self) -> HashMap<u64, Vec<Parting>> {
        let mut all: HashMap<u64, Vec<Parting>> = HashMap::with_capacity(self.spines.len());
        for spine in &self.spines {
            let own = spine.parted.iter().enumerate().map(|(shared, parted)| Parting {
                short: parted.short,
                long: parted.long,
                shared: parted.short * shared as f64,
            });
            all.insert(spine.id, own.collect());
        }
        for spine in &self.spines {
            let Some(parent) = spine.parent.and_then(|parent| all.get_mut(&parent)) else {
                continue;
            };
            let Some(parting) = parent.get_mut(spine.branch) else { continue };
            parting.short += spine.prompts.short;
            parting.long += spine.prompts.long;
            let shared = spine.parted.iter().enumerate();
            parting.shared += shared.map(|(at, parted)| at as f64 * parted.short).sum::<f64>();
        }
        all
    }

    fn judge(
        &mut self,
        at: usize,
        partings: &[Parting],
        explained: &mut HashMap<PoolName, f64>,
        now: Timestamp,
    ) -> Option<Event> {
        let pace = self.pace;
        let strangers = self.pools.get(&self.spines[at].pool);
        let spine = &mut self.spines[at];
        let age = spine.age(now);
        let (short_span, long_span) = (span(pace.short, age), span(pace.long(), age));
        let deep_from = spine.deep_from();
        let deep = partings.get(deep_from..).unwrap_or_default();
        let following = deep.iter().map(|parting| parting.short).sum::<f64>() / short_span;

        if let Some(open) = &mut spine.regression {
            let parting = partings.get(open.block as usize).copied().unwrap_or_default();
            let rate = if open.block == 0 {
                strangers.map_or(0.0, |strangers| strangers.prompts.short) / short_span
            } else {
                parting.short / short_span
            };
            open.worst_rate = open.worst_rate.max(rate);
            open.prompts_per_minute = 60.0 * rate;
            if open.block > 0 && parting.short > 0.0 {
                open.shared_after = parting.shared / parting.short;
            }
            let lost = f64::from(open.shared_before) - open.shared_after;
            open.lost_blocks_per_hour = open.cause.lost_per_hour(rate, lost);
            let is_over = following >= RECOVERED * open.usual_rate
                || rate < CEASED * open.worst_rate
                || now.since(open.since) > pace.usual_after();
            if !is_over {
                return None;
            }
            let regression = spine.regression.take()?;
            // What follows is judged by what is usual from now on.
            spine.depth = spine.usual_depth().max(1);
            let (template, pool) = (spine.id, spine.pool.clone());
            return Some(Event::Ended { template, pool, regression });
        }

        let usual = deep.iter().map(|parting| parting.long).sum::<f64>() / long_span;
        let is_known = age >= pace.known_for() && usual * long_span >= KNOWN_BY;
        let missing = usual - following;
        let has_fallen = following < FALLEN * usual && usual * short_span >= EVIDENCE_MIN;
        if !(is_known && has_fallen) {
            spine.depth = spine.usual_depth().max(1);
            return None;
        }
        let rise = |parting: &Parting| parting.short / short_span - parting.long / long_span;
        let before = partings.get(1..deep_from).unwrap_or_default().iter().enumerate();
        let worst = before.max_by(|(_, a), (_, b)| rise(a).total_cmp(&rise(b)));
        let found = match worst {
            Some((index, parting))
                if rise(parting) >= EXPLAINED * missing && parting.short >= EVIDENCE_MIN =>
            {
                Some((index + 1, parting.shared / parting.short, parting.short / short_span))
            }
            _ => {
                let used = explained.entry(spine.pool.clone()).or_default();
                let rate = strangers.and_then(|strangers| {
                    strangers_like(strangers, spine, missing, *used, (pace, now))
                });
                *used += rate.map_or(0.0, |_| missing);
                rate.map(|rate| (0, 0.0, rate))
            }
        };
        let (block, shared_after, rate) = found?;
        let lost = (spine.depth as f64 - shared_after).max(0.0);
        let behind = (spine.depth - block.min(spine.depth)) as f64;
        let cause = if lost < 0.25 * behind { Cause::Replaced } else { Cause::PerRequest };
        let regression = Regression {
            cause,
            block: u32::try_from(block).unwrap_or(u32::MAX),
            shared_before: u32::try_from(spine.depth).unwrap_or(u32::MAX),
            shared_after,
            prompts_per_minute: 60.0 * rate,
            lost_blocks_per_hour: cause.lost_per_hour(rate, lost),
            since: now,
            usual_rate: usual,
            worst_rate: rate,
        };
        spine.regression = Some(regression.clone());
        Some(Event::Began { template: spine.id, pool: spine.pool.clone(), regression })
    }
}

/// The rate of a pool's strangers, where they can be the prompts that are missing: as long, as many, and
/// not there before.
///
/// * `used`: what other templates' missing prompts explain of them already, per second.
fn strangers_like(
    strangers: &Strangers,
    spine: &super::spine::Spine,
    missing: f64,
    used: f64,
    (pace, now): (Pace, Timestamp),
) -> Option<f64> {
    let age = now.since(strangers.begun);
    let (short, long) = (strangers.prompts.short, strangers.prompts.long);
    let (rate, before) =
        (short / span(pace.short, age), long / span(pace.long(), spine.age(now).max(age)));
    let blocks = |sum: f64, count: f64| if count > 0.0 { sum / count } else { 0.0 };
    let theirs = blocks(strangers.blocks.short, short);
    let usual = blocks(spine.blocks.long, spine.prompts.long);
    let is_alike = theirs <= usual * ALIKE && usual <= theirs * ALIKE;
    let is_new = rate >= 2.0 * before && rate - before - used >= EXPLAINED * missing;
    (short >= EVIDENCE_MIN && is_alike && is_new).then_some(rate)
}
