//! Which LoRA adapters requests name.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use types::AdapterId;

use super::Request;

/// A number of adapters, some named more often than others.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Adapters {
    pub(crate) count: u32,
    /// Exponent of Zipf's law: the n-th is named in proportion to `n^-zipf`.
    pub(crate) zipf: f64,
    /// Share of requests that name none.
    pub(crate) base: f64,
}

impl Adapters {
    /// Names adapters at random, the same for a seed.
    pub(super) fn assign(&self, seed: u64, requests: &mut [Request]) {
        let mut rng = Pcg64Mcg::seed_from_u64(seed);
        let weights = (1..=self.count).map(|rank| f64::from(rank).powf(-self.zipf));
        let mut sum = 0.0;
        let sums: Vec<f64> = weights
            .map(|weight| {
                sum += weight;
                sum
            })
            .collect();
        for request in requests {
            let (is_base, place) = (rng.random::<f64>() < self.base, rng.random::<f64>() * sum);
            let rank = sums.partition_point(|below| *below <= place);
            let named = AdapterId::of(&format!("adapter-{rank}"));
            request.adapter = (!is_base).then_some(named);
        }
    }
}
