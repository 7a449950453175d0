//! Money in whole numbers.

use std::fmt;
use std::ops::{Add, AddAssign};

/// Billionths of the currency unit that the document's prices are in. A token at 0.10 for a million is 100 of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Money(pub u64);

impl Money {
    pub const ZERO: Self = Self(0);
    pub const UNIT: u64 = 1_000_000_000;

    /// `None`: negative, not finite, or more than eighteen thousand million units.
    pub fn from_units(units: f64) -> Option<Self> {
        let nanos = (units * Self::UNIT as f64).round();
        (0.0..1.8e19).contains(&nanos).then_some(Self(nanos as u64))
    }

    pub fn units(self) -> f64 {
        self.0 as f64 / Self::UNIT as f64
    }

    pub fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl Add for Money {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Money {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl fmt::Display for Money {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.6}", self.units())
    }
}
