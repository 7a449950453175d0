//! A rate with a burst: the generic cell rate algorithm, exact, in whole numbers.
//!
//! The level is what was taken and has not drained yet. It rises by `unit` for each one taken and sinks by
//! `drain` each nanosecond, where `unit / drain` is the period over the amount in lowest terms; so
//! nothing is ever rounded. Source: ITU-T I.371, GCRA(T, τ), with T = period / amount and τ = burst.

use std::num::NonZeroU64;
use std::time::Duration;

use types::Timestamp;

use crate::allowance::{Allowance, Share};
use crate::rule::Period;

/// Of a part of a limit, so much of its rate may be used at once, however small the burst: with a minute's rate this is
/// a twentieth more than the limit, of the 8 % that several gateways together may be above it.
const LEAST: Duration = Duration::from_secs(3);

/// An amount for a period, and what may be used at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rate {
    pub(crate) amount: NonZeroU64,
    pub(crate) burst: NonZeroU64,
    pub(crate) period: Period,
    /// Level of one, before shares.
    unit: u128,
    /// Level that drains in a nanosecond, before shares.
    drain: u128,
}

/// What has been taken of a rate.
#[derive(Clone, Debug, Default)]
pub(crate) struct Level {
    level: u128,
    at: Timestamp,
    /// When nothing was left of what had been taken until then.
    emptied: Timestamp,
}

impl Rate {
    pub(crate) fn new(amount: NonZeroU64, period: Period, burst: NonZeroU64) -> Self {
        let common = common_divisor(amount.get(), period.nanos());
        let unit = u128::from(period.nanos() / common) * Share::ALL.units();
        Self { amount, burst, period, unit, drain: u128::from(amount.get() / common) }
    }

    fn cost(&self, count: u64) -> u128 {
        self.unit.saturating_mul(u128::from(count))
    }

    /// The highest level that a request may leave behind, times [`Share::ALL`] as levels are.
    ///
    /// Of a part at least what it gives in [`LEAST`]: a burst that is cut into small parts would be less than the
    /// requests that come by chance, and what one gateway does not use no other one gets.
    fn capacity(&self, share: Share) -> u128 {
        let burst = (self.unit / Share::ALL.units()).saturating_mul(u128::from(self.burst.get()));
        let least = if share < Share::ALL { self.drain * LEAST.as_nanos() } else { 0 };
        burst.max(least).saturating_mul(share.units())
    }

    /// How long this much level takes to drain, rounded up.
    fn time(&self, level: u128, share: Share) -> Duration {
        let drain = self.drain * share.units();
        if drain == 0 {
            return Duration::from_nanos(self.period.nanos());
        }
        Duration::from_nanos(u64::try_from(level.div_ceil(drain)).unwrap_or(u64::MAX))
    }
}

impl Level {
    /// Lets drain what has drained until now.
    pub(crate) fn touch(&mut self, rate: &Rate, allowance: &Allowance, now: Timestamp) {
        if now <= self.at {
            return;
        }
        let nanos = |from: Timestamp, to: Timestamp| u128::from(to.0.saturating_sub(from.0));
        let turn = allowance.until.clamp(self.at, now);
        self.drain(rate, nanos(self.at, turn), allowance.share);
        if self.at < allowance.until && allowance.until <= now {
            self.shift(rate, allowance.share, allowance.after);
        }
        self.drain(rate, nanos(turn, now), allowance.after);
        self.at = now;
        if self.level == 0 {
            self.emptied = now;
        }
    }

    fn drain(&mut self, rate: &Rate, nanos: u128, share: Share) {
        let drained = (nanos * share.units()).saturating_mul(rate.drain);
        self.level = self.level.saturating_sub(drained);
    }

    /// Another share holds: what may be used at once stays what it was. A burst that one gateway has used up does
    /// not come back because another one is granted the share.
    pub(crate) fn shift(&mut self, rate: &Rate, from: Share, to: Share) {
        let (before, after) = (rate.capacity(from), rate.capacity(to));
        self.level = self.level.saturating_add(after).saturating_sub(before);
    }

    /// Whether `count` can be taken; else how long to wait. To be asked right after [`Self::touch`].
    ///
    /// More than the burst passes when nothing at all is taken: it leaves a debt, and nothing passes
    /// until that is repaid.
    pub(crate) fn check(&self, rate: &Rate, share: Share, count: u64) -> Result<(), Duration> {
        let (cost, capacity) = (rate.cost(count), rate.capacity(share));
        if count == 0 || self.level.saturating_add(cost) <= capacity {
            return Ok(());
        }
        if share == Share::NONE {
            return Err(rate.time(1, share));
        }
        let excess =
            if cost > capacity { self.level } else { self.level.saturating_add(cost) - capacity };
        if excess == 0 { Ok(()) } else { Err(rate.time(excess, share)) }
    }

    /// Takes what was checked, or more than was reserved: then it is a debt.
    pub(crate) fn take(&mut self, rate: &Rate, count: u64) {
        self.level = self.level.saturating_add(rate.cost(count));
    }

    /// Gives back what was taken at `taken` and not used.
    ///
    /// Nothing, if the level has been empty since: then it has drained, and would be credit for nothing.
    pub(crate) fn give_back(&mut self, rate: &Rate, count: u64, taken: Timestamp) {
        if taken >= self.emptied {
            self.level = self.level.saturating_sub(rate.cost(count));
        }
    }

    /// How many could be taken now.
    pub(crate) fn remaining(&self, rate: &Rate, share: Share) -> u64 {
        let left = rate.capacity(share).saturating_sub(self.level) / rate.unit;
        u64::try_from(left).unwrap_or(u64::MAX)
    }

    /// Time until nothing is taken any more.
    pub(crate) fn full_in(&self, rate: &Rate, share: Share) -> Duration {
        if self.level == 0 { Duration::ZERO } else { rate.time(self.level, share) }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.level == 0
    }
}

fn common_divisor(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}
