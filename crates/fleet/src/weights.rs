//! AWS's four weights, and what each rates.

use types::Ratio;

/// How much each signal counts; together 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Weights {
    pub kv_headroom: Ratio,
    pub queue_depth: Ratio,
    pub region_proximity: Ratio,
    pub error_rate: Ratio,
}

/// Why four numbers are no weights.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum WeightsError {
    #[error("the weights sum to {0:.4}, not to 1")]
    Sum(f64),
}

impl Weights {
    /// How far the sum may be from 1, as in AWS's resource.
    pub const TOLERANCE: f64 = 0.001;

    pub fn new(
        kv_headroom: Ratio,
        queue_depth: Ratio,
        region_proximity: Ratio,
        error_rate: Ratio,
    ) -> Result<Self, WeightsError> {
        let all = [kv_headroom, queue_depth, region_proximity, error_rate];
        let sum: f64 = all.iter().map(|weight| f64::from(weight.get())).sum();
        // A hair more than the tolerance, since weights are held in single precision.
        if (sum - 1.0).abs() > Self::TOLERANCE + 1e-6 {
            return Err(WeightsError::Sum(sum));
        }
        Ok(Self { kv_headroom, queue_depth, region_proximity, error_rate })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn weights(all: [f64; 4]) -> Result<Weights, WeightsError> {
        let [kv, queue, region, errors] = all.map(|weight| Ratio::new(weight).unwrap());
        Weights::new(kv, queue, region, errors)
    }

    #[test]
    fn weights_must_sum_to_one_within_a_thousandth() {
        assert!(weights([0.25; 4]).is_ok());
        assert!(weights([1.0, 0.0, 0.0, 0.0]).is_ok());
        assert!(weights([0.4, 0.3, 0.2, 0.101]).is_ok());
        assert!(weights([0.4, 0.3, 0.2, 0.102]).is_err());
        assert!(weights([0.4, 0.3, 0.2, 0.098]).is_err());
        assert!(weights([0.0; 4]).is_err());
    }
}
