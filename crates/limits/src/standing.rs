//! How far a limit is used, for headers and for people.

use std::time::Duration;

use crate::rule::{Kind, Period};

/// One measure of a bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gauge {
    pub kind: Kind,
    /// `None`: how many at once.
    pub period: Option<Period>,
    /// What can be used of an untouched bucket: the amount, or the burst if that is more.
    pub limit: u64,
    pub remaining: u64,
    /// Until nothing is used any more.
    pub reset: Duration,
}

/// The tightest measures that a request is under.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    pub requests: Option<Gauge>,
    pub tokens: Option<Gauge>,
}

impl Standing {
    pub(crate) fn note(&mut self, gauge: Gauge) {
        let place = match gauge.kind {
            Kind::Requests => &mut self.requests,
            Kind::InputTokens | Kind::OutputTokens | Kind::Tokens => &mut self.tokens,
            Kind::Concurrent => return,
        };
        if place.is_none_or(|known| gauge.is_tighter_than(&known)) {
            *place = Some(gauge);
        }
    }
}

impl Gauge {
    /// Whether a smaller share of it is left.
    pub fn is_tighter_than(&self, other: &Self) -> bool {
        let left = |own: &Self, other: &Self| u128::from(own.remaining) * u128::from(other.limit);
        left(self, other) < left(other, self)
    }

    /// The share that is used, 0 to 1.
    pub fn used(&self) -> f64 {
        if self.limit == 0 { 1.0 } else { 1.0 - self.remaining as f64 / self.limit as f64 }
    }
}
