//! Distributions, drawn from a generator that the caller owns.

use rand::RngExt;
use rand_pcg::Pcg64Mcg;

/// How long prompts or answers are, tokens.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Lengths {
    Fixed(u32),
    /// Linear between the quantiles at [`SHARES`].
    Quantiles(&'static [u32; 45]),
    LogNormal {
        median: f64,
        sigma: f64,
        min: u32,
        max: u32,
    },
    /// A `share` of lengths is log-uniform between `min` and `max`.
    Outliers {
        most: &'static Lengths,
        share: f64,
        min: u32,
        max: u32,
    },
}

/// Prompts of the Azure 2023 conversation trace, 19,366 requests; mean 1,155.
///
/// Source: Patel et al., *Splitwise* (ISCA'24), AzurePublicDataset b469a11, CC-BY-4.0; quantiles
/// taken from it.
pub(crate) const AZURE_PROMPT: Lengths = Lengths::Quantiles(&[
    2, 120, 181, 200, 207, 235, 372, 379, 387, 393, 396, 400, 403, 407, 414, 428, 703, 922, 984,
    1005, 1020, 1034, 1045, 1058, 1071, 1083, 1097, 1112, 1130, 1153, 1189, 1277, 1315, 1434, 1876,
    2309, 2734, 4075, 4083, 4092, 4110, 4142, 4831, 6212, 14050,
]);

/// Answers of the same trace; mean 211.
pub(crate) const AZURE_ANSWER: Lengths = Lengths::Quantiles(&[
    7, 28, 41, 48, 54, 60, 67, 72, 77, 82, 85, 88, 91, 93, 96, 99, 103, 108, 113, 120, 129, 139,
    151, 162, 177, 195, 217, 373, 384, 391, 395, 396, 400, 406, 411, 416, 424, 430, 451, 522, 571,
    601, 643, 954, 1000,
]);

/// Every fortieth up to 39/40, then the tail.
fn share_at(at: usize) -> f64 {
    const TAIL: [f64; 5] = [0.985, 0.99, 0.995, 0.999, 1.0];
    if at < 40 { at as f64 / 40.0 } else { TAIL[(at - 40).min(4)] }
}

impl Lengths {
    pub(crate) fn draw(&self, rng: &mut Pcg64Mcg) -> u32 {
        match self {
            Self::Fixed(tokens) => *tokens,
            Self::Quantiles(values) => {
                let share = rng.random::<f64>();
                let above = (1..values.len() - 1).find(|at| share < share_at(*at));
                let above = above.unwrap_or(values.len() - 1);
                let (low, high) = (share_at(above - 1), share_at(above));
                let part = (share - low) / (high - low);
                let (from, to) = (f64::from(values[above - 1]), f64::from(values[above]));
                (from + part * (to - from)).round() as u32
            }
            Self::LogNormal { median, sigma, min, max } => {
                let length = median * (sigma * normal(rng)).exp();
                (length.round() as u32).clamp(*min, *max)
            }
            Self::Outliers { most, share, min, max } => {
                // Drawn always, so that the share does not shift what the others get.
                let (is_long, place) = (rng.random::<f64>() < *share, rng.random::<f64>());
                let usual = most.draw(rng);
                if !is_long {
                    return usual;
                }
                let (min, max) = (f64::from(*min), f64::from(*max));
                (min * (max / min).powf(place)).round() as u32
            }
        }
    }
}

/// Standard normal, Box-Muller; `1 - u` keeps the logarithm finite.
pub(crate) fn normal(rng: &mut Pcg64Mcg) -> f64 {
    let radius = (-2.0 * (1.0 - rng.random::<f64>()).ln()).sqrt();
    radius * (std::f64::consts::TAU * rng.random::<f64>()).cos()
}

/// Exponential with mean 1.
pub(crate) fn exponential(rng: &mut Pcg64Mcg) -> f64 {
    -(1.0 - rng.random::<f64>()).ln()
}

/// Gamma with mean `shape`: Marsaglia and Tsang 2000, with their boost below 1.
pub(crate) fn gamma(shape: f64, rng: &mut Pcg64Mcg) -> f64 {
    if shape < 1.0 {
        let boost = (1.0 - rng.random::<f64>()).powf(1.0 / shape);
        return gamma(shape + 1.0, rng) * boost;
    }
    let d = shape - 1.0 / 3.0;
    let c = 1.0 / (9.0 * d).sqrt();
    loop {
        let x = normal(rng);
        let v = (1.0 + c * x).powi(3);
        let u = 1.0 - rng.random::<f64>();
        if v > 0.0 && u.ln() < 0.5 * x * x + d * (1.0 - v + v.ln()) {
            return d * v;
        }
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;

    fn mean(lengths: Lengths) -> f64 {
        let mut rng = Pcg64Mcg::seed_from_u64(1);
        (0..100_000).map(|_| f64::from(lengths.draw(&mut rng))).sum::<f64>() / 100_000.0
    }

    #[test]
    fn lengths_have_the_means_of_the_trace() {
        assert!((mean(AZURE_PROMPT) / 1155.0 - 1.0).abs() < 0.02);
        assert!((mean(AZURE_ANSWER) / 211.0 - 1.0).abs() < 0.02);
    }

    #[test]
    fn outliers_have_their_share_and_range() {
        let lengths =
            Lengths::Outliers { most: &AZURE_PROMPT, share: 0.03, min: 20_000, max: 80_000 };
        let mut rng = Pcg64Mcg::seed_from_u64(2);
        let drawn: Vec<u32> = (0..100_000).map(|_| lengths.draw(&mut rng)).collect();
        let long = drawn.iter().filter(|length| **length >= 20_000).count();
        assert!((2800..3200).contains(&long), "{long}");
        assert!(drawn.iter().all(|length| *length <= 80_000));
    }

    #[test]
    fn gamma_has_the_mean_and_variance_of_its_shape() {
        for shape in [0.25, 0.0625, 3.0] {
            let mut rng = Pcg64Mcg::seed_from_u64(3);
            let drawn: Vec<f64> = (0..200_000).map(|_| gamma(shape, &mut rng) / shape).collect();
            let mean = drawn.iter().sum::<f64>() / drawn.len() as f64;
            let variance =
                drawn.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / drawn.len() as f64;
            assert!((mean - 1.0).abs() < 0.03, "shape {shape}: mean {mean}");
            assert!((variance * shape - 1.0).abs() < 0.06, "shape {shape}: {variance}");
        }
    }
}
