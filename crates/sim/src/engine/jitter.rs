//! Noise on the time of a step: log-normal with mean 1.
//!
//! The factor is a function of the seed and the step's number, not a draw from a stream. So the
//! n-th step of an engine is slow or fast by the same factor whatever policy fills it (common
//! random numbers), and foreseeing steps that then do not happen costs no draw.

/// Factors on the times of one engine's steps.
#[derive(Clone, Copy, Debug)]
pub struct Jitter {
    seed: u64,
    /// Standard deviation of the factor's logarithm; 0: every factor is 1.
    sigma: f64,
}

impl Jitter {
    /// * `deviation`: relative standard deviation of a step's time; what is not positive and finite
    ///   counts as 0.
    pub fn new(deviation: f64, seed: u64) -> Self {
        // The moments of a log-normal: mean exp(µ + σ²/2) = 1, variance exp(σ²) - 1.
        let deviation = if deviation.is_finite() { deviation.max(0.0) } else { 0.0 };
        Self { seed: mixed(seed), sigma: (deviation * deviation).ln_1p().sqrt() }
    }

    /// The factor on the time of the step of this number.
    pub fn factor(&self, step: u64) -> f64 {
        if self.sigma == 0.0 {
            return 1.0;
        }
        let first = mixed(self.seed ^ step.wrapping_mul(2));
        let second = mixed(self.seed ^ step.wrapping_mul(2).wrapping_add(1));
        // Box and Muller.
        let normal =
            (-2.0 * (1.0 - unit(first)).ln()).sqrt() * (std::f64::consts::TAU * unit(second)).cos();
        (self.sigma * normal - self.sigma * self.sigma / 2.0).exp()
    }
}

/// 0 up to, not including, 1.
fn unit(bits: u64) -> f64 {
    (bits >> 11) as f64 / (1_u64 << 53) as f64
}

/// The output function of SplitMix64.
fn mixed(value: u64) -> u64 {
    let value = value.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let value = (value ^ value >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let value = (value ^ value >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    value ^ value >> 31
}

#[cfg(test)]
mod tests {
    use super::Jitter;

    #[test]
    fn the_factors_have_mean_one_and_the_deviation_asked_for() {
        for deviation in [0.1, 0.3] {
            let jitter = Jitter::new(deviation, 3);
            let factors: Vec<f64> = (0..200_000).map(|step| jitter.factor(step)).collect();
            let mean = factors.iter().sum::<f64>() / factors.len() as f64;
            let variance = factors.iter().map(|factor| (factor - mean).powi(2)).sum::<f64>()
                / factors.len() as f64;
            assert!((mean - 1.0).abs() < 0.003, "{mean}");
            assert!((variance.sqrt() - deviation).abs() < 0.005, "{}", variance.sqrt());
            assert!(factors.iter().all(|factor| *factor > 0.0));
        }
    }

    #[test]
    fn no_jitter_leaves_every_step_as_it_is_and_seeds_differ() {
        assert!((0..100).all(|step| Jitter::new(0.0, 3).factor(step) == 1.0));
        assert!((0..100).all(|step| Jitter::new(f64::NAN, 3).factor(step) == 1.0));
        assert_ne!(Jitter::new(0.1, 3).factor(7), Jitter::new(0.1, 4).factor(7));
    }
}
