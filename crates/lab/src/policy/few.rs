//! Policies of a line or two: bound connections, two random choices, products of tokens and
//! requests.

use rand::RngExt;
use rand_pcg::Pcg64Mcg;
use sched::Candidate;

use super::{Asked, least};

/// Connections that clients keep open through a Kubernetes Service.
const CONNECTIONS: usize = 64;

/// Each connection stays with a random endpoint as long as that one takes requests.
pub(crate) struct Sticky(Vec<usize>);

impl Sticky {
    pub(super) fn new(endpoints: usize, rng: &mut Pcg64Mcg) -> Self {
        Self((0..CONNECTIONS).map(|_| rng.random_range(0..endpoints)).collect())
    }

    /// * `candidates`: at least one.
    pub(super) fn choose(&mut self, candidates: &[Candidate], rng: &mut Pcg64Mcg) -> usize {
        let connection = rng.random_range(0..self.0.len());
        let bound = self.0[connection];
        if let Some(at) = candidates.iter().position(|other| other.endpoint.0 as usize == bound) {
            return at;
        }
        let at = rng.random_range(0..candidates.len());
        self.0[connection] = candidates[at].endpoint.0 as usize;
        at
    }
}

/// The one of two random endpoints that has fewer requests.
pub(super) fn power_of_two(candidates: &[Candidate], rng: &mut Pcg64Mcg) -> usize {
    let all = candidates.len();
    let first = rng.random_range(0..all);
    if all == 1 {
        return first;
    }
    let second = (first + rng.random_range(1..all)) % all;
    let is_less = candidates[second].in_flight < candidates[first].in_flight;
    if is_less { second } else { first }
}

/// LMetric, also vllm-router's `kv_aware`: least (A + p − h) · (requests + 1).
pub(super) fn lmetric(
    asked: &Asked<'_>,
    candidates: &[Candidate],
    rng: &mut Pcg64Mcg,
) -> Option<usize> {
    let cost = |candidate: &Candidate| {
        let tokens = candidate.prefill_tokens + u64::from(asked.uncached(candidate));
        (tokens * u64::from(candidate.in_flight + 1)) as f64
    };
    least(candidates.iter().map(cost), rng)
}
