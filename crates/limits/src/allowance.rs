//! Which part of a rule's amounts one gateway may spend.
//!
//! Alone it may spend all. Several gateways that share a limit each hold a part for a short time: an authority
//! reads what was asked for ([`Limiter::demands`](crate::Limiter::demands)) and grants
//! ([`Limiter::grant`](crate::Limiter::grant)); a request never waits for it.

use types::Timestamp;

use crate::BucketName;

/// A part of a limit, in 65536ths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Share(u32);

/// What a bucket may spend, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allowance {
    pub share: Share,
    pub until: Timestamp,
    /// From then on, unless another allowance comes first.
    pub after: Share,
}

/// What a bucket was asked for since the last reading.
#[derive(Clone, Copy, Debug)]
pub struct Demand<'a> {
    pub rule: &'a str,
    pub bucket: &'a BucketName,
    /// Asked for, whether it passed or not.
    pub requests: u64,
    /// By estimate; output unweighted.
    pub tokens: u64,
    /// In how many seconds the whole limit would give as much as will be used of it, by the rate that is shortest;
    /// 0 if the bucket has budgets and places only.
    pub seconds: f64,
}

impl Share {
    pub const ALL: Self = Self(1 << 16);
    pub const NONE: Self = Self(0);

    /// `part` of `whole`, rounded down; all of it if `part` is not less.
    pub fn of(part: u64, whole: u64) -> Self {
        if part >= whole {
            return Self::ALL;
        }
        let share = (u128::from(part) << 16) / u128::from(whole);
        Self(u32::try_from(share).unwrap_or(1 << 16))
    }

    /// In 65536ths.
    pub fn parts(self) -> u32 {
        self.0
    }

    /// So many 65536ths, all at most.
    pub fn of_parts(parts: u32) -> Self {
        Self(parts.min(1 << 16))
    }

    pub(crate) fn units(self) -> u128 {
        u128::from(self.0)
    }

    /// This part of a number, rounded up.
    pub(crate) fn part(self, of: u64) -> u64 {
        let part = (u128::from(of) * self.units()).div_ceil(Self::ALL.units());
        u64::try_from(part).unwrap_or(u64::MAX)
    }
}

impl Allowance {
    /// Everything, for ever: nobody else spends.
    pub const ALL: Self = Self { share: Share::ALL, until: Timestamp::ZERO, after: Share::ALL };

    pub(crate) fn at(&self, now: Timestamp) -> Share {
        if now < self.until { self.share } else { self.after }
    }
}
