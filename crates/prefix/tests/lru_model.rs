//! The index against a true LRU of every endpoint's blocks.

mod common;

use std::collections::HashMap;

use common::{chain, index};
use rand::{Rng, RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use types::Slot;
use wicketgate_prefix::{BlockHash, Matches};

const CAPACITY: usize = 1000;

/// Blocks by last use; the rank among those used later is the depth in the LRU stack.
#[derive(Default)]
struct TrueLru {
    used: HashMap<u64, u64>,
    clock: u64,
    /// Depth is looked up often: last uses, newest first, rebuilt after each record.
    newest_first: Vec<u64>,
}

impl TrueLru {
    fn record(&mut self, hashes: &[BlockHash]) {
        for hash in hashes.iter().rev() {
            self.clock += 1;
            self.used.insert(hash.0, self.clock);
        }
        self.newest_first = self.used.values().copied().collect();
        self.newest_first.sort_unstable_by(|a, b| b.cmp(a));
        // Deeper than anyone asks.
        if let Some(oldest) = self.newest_first.get(2 * CAPACITY).copied() {
            self.used.retain(|_, at| *at > oldest);
        }
    }

    fn matched(&self, hashes: &[BlockHash], capacity: usize) -> u32 {
        let oldest = self.newest_first.get(capacity - 1).copied().unwrap_or(0);
        let is_held = |hash: &&BlockHash| self.used.get(&hash.0).is_some_and(|at| *at >= oldest);
        hashes.iter().take_while(is_held).count() as u32
    }
}

/// Runs a workload and returns found blocks against those of a true LRU of 0.8 × capacity.
fn compare(seed: u64, mut next: impl FnMut(&mut Pcg64Mcg) -> Vec<BlockHash>) -> f64 {
    let mut rng = Pcg64Mcg::seed_from_u64(seed);
    let index = index();
    let mut models = [TrueLru::default(), TrueLru::default()];
    let mut matches = Matches::default();
    let (mut found, mut expected) = (0_u64, 0_u64);
    for slot in 0..2 {
        index.set_capacity(Slot(slot), CAPACITY as u64);
    }
    for _ in 0..800 {
        let prompt = next(&mut rng);
        index.longest_matches(&prompt, &mut matches);
        for (slot, model) in models.iter().enumerate() {
            let claimed = matches.blocks(Slot(slot as u16));
            let most = model.matched(&prompt, CAPACITY * 5 / 4);
            assert!(claimed <= most, "claims {claimed}, a true LRU holds {most}; seed {seed}");
            found += u64::from(claimed);
            expected += u64::from(model.matched(&prompt, CAPACITY * 4 / 5));
        }
        let chosen = rng.next_u32() as usize % 2;
        index.record(Slot(chosen as u16), &prompt);
        models[chosen].record(&prompt);
    }
    assert!(expected > 0, "the workload never hits; seed {seed}");
    found as f64 / expected as f64
}

fn assert_finds_enough(name: &str, seed: u64, share: f64) {
    assert!(share >= 0.95, "{name}: found {share:.3} of a smaller LRU; seed {seed}");
}

#[test]
fn chats_that_grow_are_held_as_by_a_true_lru() {
    for seed in 0..3 {
        let mut turns = HashMap::new();
        let share = compare(seed, |rng| {
            let chat = rng.next_u64() % 60;
            let turn = turns.entry(chat).or_insert(0);
            *turn = (*turn + 1) % 20;
            chain(chat, 5 + *turn * 3)
        });
        assert_finds_enough("chats", seed, share);
    }
}

#[test]
fn a_hot_prefix_among_one_time_prompts_is_held_as_by_a_true_lru() {
    for seed in 0..3 {
        let mut unique = 1 << 40;
        let share = compare(seed, |rng| {
            let mut prompt = chain(rng.next_u64() % 3, 40);
            unique += 1;
            prompt.extend(chain(unique, rng.random_range(0..80)));
            prompt
        });
        assert_finds_enough("hot prefix", seed, share);
    }
}

#[test]
fn a_working_set_larger_than_the_cache_is_held_as_by_a_true_lru() {
    for seed in 0..3 {
        let share = compare(seed, |rng| {
            // Skewed: low names often, high ones rarely.
            let name = (120.0 * rng.random::<f64>().powi(3)) as u64;
            chain(name, 10 + name as usize % 30)
        });
        assert_finds_enough("skewed", seed, share);
    }
}

#[test]
fn a_small_set_used_over_and_over_ages_nothing_else() {
    let index = index();
    let mut matches = Matches::default();
    index.set_capacity(Slot(0), CAPACITY as u64);
    index.record(Slot(0), &chain(1, 300));
    for round in 0..20_000 {
        index.record(Slot(0), &chain(2 + round % 3, 30));
    }
    index.longest_matches(&chain(1, 300), &mut matches);
    assert_eq!(matches.blocks(Slot(0)), 300);
}

#[test]
fn epoch_numbers_that_wrap_bring_no_dead_block_back() {
    let index = index();
    let mut matches = Matches::default();
    // Capacity 1: each block is an epoch of its own, so numbers wrap after 65,536 blocks.
    index.set_capacity(Slot(0), 1);
    let old = chain(1, 200);
    index.record(Slot(0), &old);
    let others = chain(2, 50_000);
    for _ in 0..3 {
        for group in others.chunks(97) {
            index.record(Slot(0), group);
            // Others' epochs sweep too, and must not take the turn of the busiest.
            for slot in 1..8 {
                index.record(Slot(slot), &group[..1]);
            }
            index.longest_matches(&old, &mut matches);
            assert_eq!(matches.blocks(Slot(0)), 0);
            for hash in old.iter().skip(1).step_by(50) {
                index.longest_matches(std::slice::from_ref(hash), &mut matches);
                assert_eq!(matches.blocks(Slot(0)), 0);
            }
        }
    }
}
