//! What is kept of a bucket that nobody uses: of rates nothing, of a day's budgets a number each.

use std::time::Duration;

use super::{Bucket, Reading};
use crate::allowance::Share;
use crate::moment::Moment;
use crate::rule::{Kind, Period};
use crate::shards::{Entry, Rest};
use crate::standing::Gauge;
use crate::terms::{Measure, Terms};
use crate::window::Used;

/// How long a bucket that is at rest is kept whole.
const IDLE: Duration = Duration::from_secs(300);

/// What was used of a bucket's budgets, while nobody uses the bucket.
#[derive(Clone, Debug)]
pub(crate) struct Memory {
    day: u32,
    /// Of each budget, in the order of its terms.
    counts: Box<[u64]>,
}

impl Memory {
    /// The bucket's measures as they stand, for people to look at.
    pub(crate) fn gauges(&self, terms: &Terms, share: Share, moment: Moment) -> Vec<Gauge> {
        let budgets = terms.meters.iter().filter_map(|meter| match meter.measure {
            Measure::Day(budget) => Some((meter.kind, budget)),
            Measure::Rate(_) => None,
        });
        let gauge = |((kind, budget), count): ((Kind, u64), &u64)| {
            let limit = share.part(budget);
            let period = Some(Period::Day);
            let remaining = limit.saturating_sub(*count);
            Gauge { kind, period, limit, remaining, reset: moment.day_left() }
        };
        budgets.zip(&self.counts).map(gauge).collect()
    }
}

impl Entry for Bucket {
    type Memory = Memory;

    fn at_rest(&self, moment: Moment) -> Rest<Memory> {
        let mut state = self.lock();
        if state.in_flight > 0 || moment.now.since(state.touched) < IDLE {
            return Rest::No;
        }
        let touched = state.touched;
        state.touch(&self.terms, moment);
        state.touched = touched;
        let mut budgets = Vec::new();
        for reading in &state.readings {
            match reading {
                Reading::Level(level) if !level.is_empty() => return Rest::No,
                Reading::Level(_) => {}
                Reading::Used(used) => budgets.push(*used),
            }
        }
        match budgets.iter().find(|used| !used.is_empty()) {
            None => Rest::Gone,
            Some(used) => Rest::Keeps(Memory {
                day: used.day(),
                counts: budgets.iter().map(|used| used.count()).collect(),
            }),
        }
    }

    fn recall(&self, memory: Memory) {
        let mut state = self.lock();
        let budgets = state.readings.iter_mut().filter_map(|reading| match reading {
            Reading::Used(used) => Some(used),
            Reading::Level(_) => None,
        });
        for (used, count) in budgets.zip(memory.counts) {
            *used = Used::of(memory.day, count);
        }
    }

    fn still_counts(memory: &mut Memory, moment: Moment) -> bool {
        let day = moment.day();
        let is_today = day <= memory.day;
        // The wall clock was ahead: the next midnight ends it all the same.
        memory.day = memory.day.min(day);
        is_today
    }
}
