//! `cache_aware` as sglang-router and early vllm-router had it.
//!
//! Rule and defaults: the policy's source, sglang-router 0.3. Without a match the least loaded gets the
//! request, as the programs do (`bench/crosscheck`), and of equals the one with the smallest tree. Matches
//! come from the same index as everybody's, which forgets as the engines do; its own tree forgets later.

use rand_pcg::Pcg64Mcg;
use sched::Candidate;

use super::{Asked, least};

/// Requests by which the longest queue must exceed the shortest before length decides.
const IMBALANCE: u32 = 64;
/// The same as a ratio.
const IMBALANCE_RATIO: f64 = 1.5;
/// Share of the prompt from which on a match decides.
const MATCH_MIN: f64 = 0.3;

/// Text sent to each endpoint that it did not hold, tokens: the size of its tree.
pub(crate) struct CacheAware {
    trees: Vec<u64>,
}

impl CacheAware {
    pub(super) fn new(endpoints: usize) -> Self {
        Self { trees: vec![0; endpoints] }
    }

    pub(super) fn choose(
        &self,
        asked: &Asked<'_>,
        candidates: &[Candidate],
        rng: &mut Pcg64Mcg,
    ) -> Option<usize> {
        let requests = || candidates.iter().map(|candidate| candidate.in_flight);
        let (most, fewest) = (requests().max()?, requests().min()?);
        let is_imbalanced =
            most - fewest > IMBALANCE && f64::from(most) > IMBALANCE_RATIO * f64::from(fewest);
        if is_imbalanced {
            return least(requests().map(f64::from), rng);
        }
        let matched = |candidate: &Candidate| f64::from(asked.held(candidate));
        let best = candidates.iter().map(matched).fold(0.0, f64::max);
        if best > MATCH_MIN * f64::from(asked.view.prompt_tokens) {
            return least(candidates.iter().map(|candidate| -matched(candidate)), rng);
        }
        // A tree's share of all stays below one request.
        let all = self.trees.iter().sum::<u64>() as f64 + 1.0;
        let load = |candidate: &Candidate| {
            let tree = self.trees[candidate.endpoint.0 as usize] as f64;
            f64::from(candidate.in_flight) + tree / all
        };
        least(candidates.iter().map(load), rng)
    }

    pub(super) fn sent(&mut self, endpoint: usize, uncached: u32) {
        self.trees[endpoint] += u64::from(uncached);
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use sched::RequestView;
    use types::{EndpointId, Slot};

    use super::*;

    fn candidates() -> Vec<Candidate> {
        (0..3).map(|at| Candidate::idle(EndpointId(at), Slot(at as u16))).collect()
    }

    fn choose(policy: &CacheAware, candidates: &[Candidate]) -> usize {
        let view = RequestView { prompt_tokens: 640, prompt_blocks: 10, ..RequestView::default() };
        let asked =
            Asked { view, block_tokens: 64, hashes: &[], output_tokens: 1, is_sampled: false };
        policy.choose(&asked, candidates, &mut Pcg64Mcg::seed_from_u64(1)).unwrap()
    }

    #[test]
    fn a_good_match_wins_and_a_poor_one_leaves_it_to_load_and_then_to_the_smallest_tree() {
        let mut policy = CacheAware::new(3);
        policy.sent(0, 500);
        policy.sent(1, 100);
        policy.sent(2, 300);
        let mut candidates = candidates();
        candidates[2].matched_blocks = 4;
        assert_eq!(choose(&policy, &candidates), 2);
        candidates[2].matched_blocks = 3;
        assert_eq!(choose(&policy, &candidates), 1);
        candidates[1].in_flight = 1;
        assert_eq!(choose(&policy, &candidates), 2);
    }

    #[test]
    fn only_a_difference_of_more_than_64_requests_overrules_a_match() {
        let mut candidates = candidates();
        candidates[2].matched_blocks = 10;
        (candidates[0].in_flight, candidates[1].in_flight) = (8, 9);
        candidates[2].in_flight = 72;
        assert_eq!(choose(&CacheAware::new(3), &candidates), 2);
        candidates[2].in_flight = 73;
        assert_eq!(choose(&CacheAware::new(3), &candidates), 0);
    }
}
