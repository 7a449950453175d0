//! What answers teach about an endpoint's capacity, against an engine with a true LRU cache.

mod common;

use std::collections::{BTreeMap, HashMap};

use common::{chain, index};
use proptest::prelude::{ProptestConfig, any, prop_assert, proptest};
use rand::{Rng, RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use types::Slot;
use wicketgate_prefix::{Answer, Belief, BlockHash, PrefixIndex};

const SLOT: Slot = Slot(3);
const REPORTED: u64 = 4000;
const BLOCK_TOKENS: u32 = 64;

/// An engine's prefix cache: least recently used blocks go first, a prompt's tail before its head.
struct Engine {
    capacity: usize,
    used: HashMap<u64, u64>,
    by_use: BTreeMap<u64, u64>,
    clock: u64,
}

impl Engine {
    fn new(capacity: usize) -> Self {
        Self { capacity, used: HashMap::new(), by_use: BTreeMap::new(), clock: 0 }
    }

    /// Serves a prompt; blocks found from its start.
    fn serve(&mut self, prompt: &[BlockHash]) -> u32 {
        let found = prompt.iter().take_while(|hash| self.used.contains_key(&hash.0)).count();
        for hash in prompt.iter().rev() {
            self.clock += 1;
            if let Some(before) = self.used.insert(hash.0, self.clock) {
                self.by_use.remove(&before);
            }
            self.by_use.insert(self.clock, hash.0);
        }
        while self.used.len() > self.capacity {
            let (_, oldest) = self.by_use.pop_first().expect("it holds more than its capacity");
            self.used.remove(&oldest);
        }
        found as u32
    }
}

fn answer(cached_tokens: Option<u32>) -> Answer {
    Answer {
        cached_tokens,
        block_tokens: BLOCK_TOKENS,
        engine_block_tokens: 16,
        ..Answer::default()
    }
}

/// Believed and found blocks, summed.
#[derive(Default)]
struct Sums {
    believed: f64,
    /// Believed and not found.
    missing: f64,
    /// Found and not believed.
    unknown: f64,
}

impl Sums {
    fn error(&self) -> f64 {
        self.missing / self.believed
    }
}

type Workload = fn(&mut Pcg64Mcg, &mut HashMap<u64, usize>) -> Vec<BlockHash>;

/// Conversations that grow, each as likely as any other to go on.
fn chats(rng: &mut Pcg64Mcg, turns: &mut HashMap<u64, usize>) -> Vec<BlockHash> {
    let chat = rng.next_u64() % 90;
    let turn = turns.entry(chat).or_insert(0);
    *turn = (*turn + 1) % 24;
    chain(chat << 20 | (*turn as u64 / 24), 8 + *turn * 3)
}

/// Documents asked about often or seldom, behind a system prompt that all share.
fn documents(rng: &mut Pcg64Mcg, _: &mut HashMap<u64, usize>) -> Vec<BlockHash> {
    let name = (250.0 * rng.random::<f64>().powi(2)) as u64;
    let mut prompt = chain(1 << 40, 12);
    prompt.extend(chain(name, 20 + name as usize % 20));
    prompt
}

/// Sends `requests` prompts, each answered before the next; sums over those after `warm_up`.
fn run(
    index: &PrefixIndex,
    engine: &mut Engine,
    workload: Workload,
    seed: u64,
    (requests, warm_up): (usize, usize),
    mut says: impl FnMut(&mut Pcg64Mcg, u32) -> Option<u32>,
) -> Sums {
    let mut rng = Pcg64Mcg::seed_from_u64(seed);
    let mut turns = HashMap::new();
    let mut sums = Sums::default();
    for request in 0..requests {
        let prompt = workload(&mut rng, &mut turns);
        let belief = index.record(SLOT, &prompt);
        let found = engine.serve(&prompt);
        index.correct(SLOT, &belief, &answer(says(&mut rng, found)));
        if request >= warm_up {
            sums.believed += f64::from(belief.blocks());
            sums.missing += f64::from(belief.blocks().saturating_sub(found));
            sums.unknown += f64::from(found.saturating_sub(belief.blocks()));
        }
    }
    sums
}

fn exact(_: &mut Pcg64Mcg, found: u32) -> Option<u32> {
    Some(found * BLOCK_TOKENS)
}

const WORKLOADS: [(&str, Workload); 2] = [("chats", chats), ("documents", documents)];

#[test]
fn an_engine_that_holds_half_of_what_it_reports_is_believed_to_a_few_per_cent() {
    for (name, workload) in WORKLOADS {
        for seed in 0..2 {
            let mut errors = [0.0, 0.0];
            for (is_corrected, error) in errors.iter_mut().enumerate() {
                let index = index();
                index.set_capacity(SLOT, REPORTED);
                let mut engine = Engine::new(REPORTED as usize / 2);
                let says = |_: &mut Pcg64Mcg, found: u32| {
                    (is_corrected == 1).then_some(found * BLOCK_TOKENS)
                };
                let sums = run(&index, &mut engine, workload, seed, (6000, 2000), says);
                *error = sums.error();
                if is_corrected == 1 {
                    let capacity = index.effective_capacity(SLOT);
                    assert!((1700..=2300).contains(&capacity), "{name}, seed {seed}: {capacity}");
                    assert!(sums.unknown < 0.05 * sums.believed, "{name}, seed {seed}");
                }
            }
            let [before, after] = errors;
            assert!(after < 0.04, "{name}, seed {seed}: error {after:.3}, without {before:.3}");
            assert!(before > 2.0 * after, "{name}, seed {seed}: {before:.3} without correction");
        }
    }
}

#[test]
fn an_engine_that_holds_what_it_reports_is_left_alone() {
    for (name, workload) in WORKLOADS {
        let index = index();
        index.set_capacity(SLOT, REPORTED);
        let mut engine = Engine::new(REPORTED as usize);
        let sums = run(&index, &mut engine, workload, 1, (6000, 1000), exact);
        let capacity = index.effective_capacity(SLOT);
        assert!(capacity > REPORTED * 95 / 100, "{name}: {capacity}");
        assert!(sums.error() < 0.02, "{name}: {:.3}", sums.error());
    }
}

#[test]
fn an_engine_that_gets_its_room_back_is_believed_again() {
    for (name, workload) in WORKLOADS {
        let index = index();
        index.set_capacity(SLOT, REPORTED);
        let mut engine = Engine::new(REPORTED as usize / 2);
        run(&index, &mut engine, workload, 2, (4000, 0), exact);
        assert!(index.effective_capacity(SLOT) < REPORTED * 6 / 10, "{name}");
        engine.capacity = REPORTED as usize;
        run(&index, &mut engine, workload, 3, (6000, 0), exact);
        let capacity = index.effective_capacity(SLOT);
        assert!(capacity > REPORTED * 9 / 10, "{name}: {capacity}");
    }
}

#[test]
fn an_engine_with_a_twentieth_of_what_it_reports_is_found_out() {
    let index = index();
    index.set_capacity(SLOT, REPORTED);
    let mut engine = Engine::new(REPORTED as usize / 20);
    let sums = run(&index, &mut engine, documents, 4, (6000, 2000), exact);
    let capacity = index.effective_capacity(SLOT);
    assert!((150..=260).contains(&capacity), "{capacity}");
    assert!(sums.error() < 0.05, "{:.3}", sums.error());
}

#[test]
fn answers_that_are_wrong_now_and_then_move_little() {
    for (name, workload) in WORKLOADS {
        let index = index();
        index.set_capacity(SLOT, REPORTED);
        let mut engine = Engine::new(REPORTED as usize);
        run(&index, &mut engine, workload, 5, (6000, 0), |rng, found| {
            // Preempted, restarted, or found by a request that overtook it.
            let is_wrong = rng.random_range(0..50) == 0;
            Some(if is_wrong { 0 } else { found * BLOCK_TOKENS })
        });
        let capacity = index.effective_capacity(SLOT);
        assert!(capacity > REPORTED * 85 / 100, "{name}: {capacity}");
    }
}

#[test]
fn engines_that_count_in_other_blocks_and_tokens_are_understood() {
    for (engine_block, rate) in [(16_u32, 1.0), (256, 1.0), (64, 1.4), (16, 0.7)] {
        let index = index();
        index.set_capacity(SLOT, REPORTED);
        let mut engine = Engine::new(REPORTED as usize / 2);
        let mut rng = Pcg64Mcg::seed_from_u64(6);
        let mut sums = Sums::default();
        for request in 0..6000 {
            let prompt = documents(&mut rng, &mut HashMap::new());
            let belief = index.record(SLOT, &prompt);
            let found = engine.serve(&prompt);
            let estimated_tokens = prompt.len() as u32 * BLOCK_TOKENS + 30;
            let real = |tokens: u32| (f64::from(tokens) * rate) as u32;
            let cached = real(found * BLOCK_TOKENS).min(real(estimated_tokens) - 1);
            let answer = Answer {
                cached_tokens: Some(cached / engine_block * engine_block),
                prompt_tokens: real(estimated_tokens),
                estimated_tokens,
                block_tokens: BLOCK_TOKENS,
                engine_block_tokens: engine_block,
            };
            index.correct(SLOT, &belief, &answer);
            if request > 2000 {
                sums.believed += f64::from(belief.blocks());
                sums.missing += f64::from(belief.blocks().saturating_sub(found));
            }
        }
        let capacity = index.effective_capacity(SLOT);
        let case = format!("blocks of {engine_block}, {rate} tokens each: {capacity}");
        assert!((1600..=2400).contains(&capacity), "{case}");
        assert!(sums.error() < 0.05, "{case}: {:.3}", sums.error());
    }
}

#[test]
fn an_engine_that_never_counts_changes_nothing() {
    for silence in [None, Some(0)] {
        let index = index();
        index.set_capacity(SLOT, REPORTED);
        let mut engine = Engine::new(REPORTED as usize / 2);
        run(&index, &mut engine, documents, 7, (3000, 0), |_, _| silence);
        assert_eq!(index.effective_capacity(SLOT), REPORTED);
    }
}

/// As vLLM does: the number is left out when it is zero.
#[test]
fn silence_of_an_engine_that_counts_means_zero() {
    fn without_shared_part(rng: &mut Pcg64Mcg, _: &mut HashMap<u64, usize>) -> Vec<BlockHash> {
        chain((250.0 * rng.random::<f64>().powi(2)) as u64, 25)
    }
    let index = index();
    index.set_capacity(SLOT, REPORTED);
    let mut engine = Engine::new(REPORTED as usize / 2);
    let says = |_: &mut Pcg64Mcg, found: u32| (found > 0).then_some(found * BLOCK_TOKENS);
    let sums = run(&index, &mut engine, without_shared_part, 8, (6000, 2000), says);
    assert!(sums.error() < 0.05, "{:.3}", sums.error());
}

#[test]
fn silence_about_prompts_just_sent_means_nothing() {
    let index = index();
    index.set_capacity(SLOT, REPORTED);
    let mut engine = Engine::new(REPORTED as usize);
    // Two of three answers come by a path that does not count.
    let mut turn = 0;
    run(&index, &mut engine, documents, 9, (6000, 0), |_, found| {
        turn += 1;
        (turn % 3 == 0).then_some(found * BLOCK_TOKENS)
    });
    let capacity = index.effective_capacity(SLOT);
    assert!(capacity > REPORTED * 9 / 10, "{capacity}");
}

#[test]
fn a_cleared_endpoint_and_another_reported_capacity_start_anew() {
    let index = index();
    index.set_capacity(SLOT, REPORTED);
    let mut engine = Engine::new(REPORTED as usize / 2);
    run(&index, &mut engine, documents, 10, (3000, 0), exact);
    let learned = index.effective_capacity(SLOT);
    assert!(learned < REPORTED * 6 / 10);
    index.set_capacity(SLOT, REPORTED);
    assert_eq!(index.effective_capacity(SLOT), learned, "each scrape reports it again");
    index.set_capacity(SLOT, REPORTED + 1);
    assert_eq!(index.effective_capacity(SLOT), REPORTED + 1);
    run(&index, &mut engine, documents, 11, (3000, 0), exact);
    assert!(index.effective_capacity(SLOT) < REPORTED * 6 / 10);
    index.clear(SLOT);
    assert_eq!(index.effective_capacity(SLOT), REPORTED + 1);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn whatever_answers_say_the_estimate_stays_between_a_part_and_the_whole(
        reported in 0..10_000_u64,
        answers in proptest::collection::vec(
            (0..40_u64, 1..60_usize, any::<Option<u32>>(), any::<(u32, u32, u32, u32)>()),
            1..200,
        ),
    ) {
        let index = index();
        index.set_capacity(SLOT, reported);
        let mut last = Belief::default();
        for (name, blocks, cached_tokens, (prompt, estimated, block, engine_block)) in answers {
            let belief = index.record(SLOT, &chain(name, blocks));
            prop_assert!(belief.blocks() as usize <= blocks);
            let answer = Answer {
                cached_tokens,
                prompt_tokens: prompt,
                estimated_tokens: estimated,
                block_tokens: block % 512,
                engine_block_tokens: engine_block % 512,
            };
            // Also a belief of long ago, as a slow answer brings.
            for belief in [&belief, &last] {
                index.correct(SLOT, belief, &answer);
                let capacity = index.effective_capacity(SLOT);
                prop_assert!(capacity >= (reported / 64).max(1));
                prop_assert!(capacity <= reported.max(1));
            }
            prop_assert!(index.stats().holders <= index.effective_capacity(SLOT));
            last = belief;
        }
    }
}
