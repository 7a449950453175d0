//! Dynamo's KV router at its defaults: temperature 0, overlap credit 1 without decay, prefill
//! scale 1, no weight for requests.
//!
//! ```text
//! cost = max(0, (A + p) / 16 − h / 16) + D
//! ```
//!
//! with `A` the uncached prompt tokens sent and not yet answered, `p` the prompt, `h` what the
//! endpoint holds of it, and `D` the distinct prompt blocks of the requests there, this one
//! included. Blocks of answers are not tracked. Source: `dynamo-kv-router` 1.6.1, the selector's
//! `reference.rs` and `prompt_registry.rs`. Holds what was sent, not KV events: the same knowledge
//! as everybody's here.

use std::collections::HashMap;

use prefix::BlockHash;
use rand_pcg::Pcg64Mcg;
use sched::Candidate;

use super::{Asked, least};

/// Tokens of the blocks in which it counts.
const BLOCK: f64 = 16.0;

/// What each endpoint's requests refer to.
pub(crate) struct Dynamo {
    active: Vec<Active>,
}

#[derive(Default)]
struct Active {
    /// Requests that refer to a block.
    blocks: HashMap<BlockHash, u32>,
    /// Blocks of each request, and the tokens after its last whole block.
    requests: HashMap<u32, (Vec<BlockHash>, u32)>,
    /// Σ of these tokens.
    tails: u64,
}

impl Dynamo {
    pub(super) fn new(endpoints: usize) -> Self {
        Self { active: (0..endpoints).map(|_| Active::default()).collect() }
    }

    pub(super) fn choose(
        &self,
        asked: &Asked<'_>,
        candidates: &[Candidate],
        rng: &mut Pcg64Mcg,
    ) -> Option<usize> {
        let cost = |candidate: &Candidate| {
            let active = &self.active[candidate.endpoint.0 as usize];
            let shared = asked.hashes.iter().take_while(|hash| active.blocks.contains_key(*hash));
            let shared = shared.count() as f64 * f64::from(asked.block_tokens);
            let held = f64::from(asked.held(candidate));
            let prompt = f64::from(asked.view.prompt_tokens);
            let prefill = (candidate.prefill_tokens as f64 + prompt - held).max(0.0);
            let blocks = active.blocks.len() as f64 * f64::from(asked.block_tokens);
            let decode = blocks + active.tails as f64 + prompt - shared;
            (prefill + decode) / BLOCK
        };
        least(candidates.iter().map(cost), rng)
    }

    pub(super) fn sent(&mut self, endpoint: usize, request: u32, asked: &Asked<'_>) {
        let active = &mut self.active[endpoint];
        for hash in asked.hashes {
            *active.blocks.entry(*hash).or_default() += 1;
        }
        let whole = asked.hashes.len() as u32 * asked.block_tokens;
        let tail = asked.view.prompt_tokens.saturating_sub(whole);
        active.tails += u64::from(tail);
        active.requests.insert(request, (asked.hashes.to_vec(), tail));
    }

    pub(super) fn ended(&mut self, endpoint: usize, request: u32) {
        let active = &mut self.active[endpoint];
        let Some((hashes, tail)) = active.requests.remove(&request) else { return };
        active.tails -= u64::from(tail);
        for hash in hashes {
            if let Some(references) = active.blocks.get_mut(&hash) {
                *references -= 1;
                if *references == 0 {
                    active.blocks.remove(&hash);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use sched::RequestView;
    use types::{EndpointId, Slot};

    use super::*;

    fn asked(hashes: &[BlockHash]) -> Asked<'_> {
        let prompt_tokens = hashes.len() as u32 * 64;
        let view = RequestView { prompt_tokens, ..RequestView::default() };
        Asked { view, block_tokens: 64, hashes, output_tokens: 1, is_sampled: false }
    }

    #[test]
    fn blocks_that_requests_share_count_once_and_leave_with_the_last_of_them() {
        let mut policy = Dynamo::new(2);
        let candidates: Vec<_> =
            (0..2).map(|at| Candidate::idle(EndpointId(at), Slot(at as u16))).collect();
        let [a, b]: [Vec<BlockHash>; 2] =
            [(0..10).map(BlockHash).collect(), (20..26).map(BlockHash).collect()];
        let choose = |policy: &Dynamo, hashes: &[BlockHash]| {
            let rng = &mut Pcg64Mcg::seed_from_u64(3);
            policy.choose(&asked(hashes), &candidates, rng).unwrap()
        };
        policy.sent(0, 1, &asked(&a));
        policy.sent(0, 2, &asked(&a));
        policy.sent(1, 3, &asked(&b));
        policy.sent(1, 4, &asked(&b[..5]));
        // Ten blocks against six for a stranger; none more against ten for one of the same prompt.
        assert_eq!(choose(&policy, &[BlockHash(99)]), 1);
        assert_eq!(choose(&policy, &a), 0);
        policy.ended(0, 1);
        assert_eq!(choose(&policy, &[BlockHash(99)]), 1);
        policy.ended(0, 2);
        policy.ended(0, 2);
        assert_eq!(choose(&policy, &[BlockHash(99)]), 0);
    }
}
