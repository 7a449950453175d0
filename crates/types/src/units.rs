//! Numbers that cannot be out of range.

use std::fmt;

/// A share, `0.0..=1.0`. A NaN or anything outside cannot be one.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct Ratio(f32);

/// A number that is no share.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[error("{0} is not between 0 and 1")]
pub struct RatioError(pub f64);

impl Ratio {
    pub const ZERO: Self = Self(0.0);
    pub const ONE: Self = Self(1.0);

    pub fn new(value: f64) -> Result<Self, RatioError> {
        if (0.0..=1.0).contains(&value) { Ok(Self(value as f32)) } else { Err(RatioError(value)) }
    }

    pub fn get(self) -> f32 {
        self.0
    }
}

impl TryFrom<f64> for Ratio {
    type Error = RatioError;

    fn try_from(value: f64) -> Result<Self, RatioError> {
        Self::new(value)
    }
}

impl fmt::Display for Ratio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_outside_zero_to_one_cannot_exist() {
        for value in [-0.001, 1.001, f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert!(Ratio::new(value).is_err(), "{value} was accepted");
        }
        for value in [0.0, 0.5, 1.0] {
            assert_eq!(Ratio::new(value).unwrap().get(), value as f32);
        }
    }
}
