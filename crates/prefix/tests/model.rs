//! The index against plain sets: what it may claim, and what it must find.

mod common;

use std::collections::{HashMap, HashSet};

use common::{chain, index};
use proptest::collection::vec;
use proptest::prelude::{
    Just, ProptestConfig, Strategy, prop_assert, prop_assert_eq, prop_oneof, proptest,
};
use types::Slot;
use wicketgate_prefix::{BlockHash, Matches};

#[derive(Clone, Debug)]
enum Step {
    /// The first `own` blocks of conversation `name`, after `shared` blocks of a common start.
    Record {
        slots: (u16, u16),
        shared: usize,
        name: u64,
        own: usize,
    },
    Clear {
        slots: (u16, u16),
    },
}

/// A first slot, and how many from there on: mostly one, sometimes most of a thousand.
fn slots() -> impl Strategy<Value = (u16, u16)> {
    prop_oneof![
        8 => (0..8_u16, Just(1)),
        2 => (0..1000_u16, 1..20_u16),
        1 => (0..50_u16, 100..950_u16),
    ]
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let record = (slots(), 0..150_usize, 0..4_u64, 0..150_usize)
        .prop_map(|(slots, shared, name, own)| Step::Record { slots, shared, name, own });
    let clear = slots().prop_map(|slots| Step::Clear { slots });
    vec(prop_oneof![6 => record, 1 => clear], 1..16)
}

fn prompt(shared: usize, name: u64, own: usize) -> Vec<BlockHash> {
    let mut prompt = chain(1 << 40, shared);
    // Blocks are chained: the same words after another start are other blocks.
    prompt.extend(chain(name << 20 | shared as u64, own));
    prompt
}

type Sets = HashMap<u16, HashSet<u64>>;

fn held(sets: &Sets, slot: u16, prompt: &[BlockHash]) -> u32 {
    let holds = |hash: &&BlockHash| sets.get(&slot).is_some_and(|set| set.contains(&hash.0));
    prompt.iter().take_while(holds).count() as u32
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, ..ProptestConfig::default() })]

    #[test]
    fn with_room_for_all_every_endpoint_matches_exactly_what_it_was_sent_since_it_was_cleared(
        steps in steps(),
    ) {
        let index = index();
        for slot in 0..1000 {
            index.set_capacity(Slot(slot), 1 << 20);
        }
        let mut sets = Sets::new();
        let mut matches = Matches::default();
        let mut prompts = Vec::new();
        for step in steps {
            match step {
                Step::Record { slots: (first, count), shared, name, own } => {
                    let prompt = prompt(shared, name, own);
                    for slot in first..(first + count).min(1000) {
                        let belief = index.record(Slot(slot), &prompt);
                        prop_assert_eq!(belief.blocks(), held(&sets, slot, &prompt));
                        sets.entry(slot).or_default().extend(prompt.iter().map(|hash| hash.0));
                    }
                    prompts.push(prompt);
                }
                Step::Clear { slots: (first, count) } => {
                    for slot in first..(first + count).min(1000) {
                        index.clear(Slot(slot));
                        sets.remove(&slot);
                    }
                }
            }
        }
        let pairs: usize = sets.values().map(HashSet::len).sum();
        prop_assert_eq!(index.stats().holders, pairs as u64);
        for prompt in &prompts {
            // Looked up together with blocks that nobody holds, too.
            let mut longer = prompt.clone();
            longer.extend(chain(1 << 41, 70));
            for asked in [prompt, &longer] {
                index.longest_matches(asked, &mut matches);
                for slot in 0..1000 {
                    let expected = held(&sets, slot, asked);
                    prop_assert_eq!(matches.blocks(Slot(slot)), expected, "slot {}", slot);
                }
                prop_assert_eq!(
                    matches.iter().count(),
                    (0..1000).filter(|slot| held(&sets, *slot, asked) > 0).count()
                );
            }
        }
    }

    /// Blocks recorded in any pieces: none after a gap counts.
    #[test]
    fn a_prompt_of_a_few_blocks_matches_up_to_the_first_gap_wherever_it_is(
        pieces in vec((0..40_u16, 0..64_usize, 0..64_usize), 1..60),
    ) {
        let index = index();
        let prompt = chain(7, 64);
        let mut sets = Sets::new();
        for (slot, from, blocks) in pieces {
            let piece = &prompt[from..(from + blocks).min(64)];
            index.record(Slot(slot), piece);
            sets.entry(slot).or_default().extend(piece.iter().map(|hash| hash.0));
        }
        let mut matches = Matches::default();
        index.longest_matches(&prompt, &mut matches);
        for slot in 0..40 {
            prop_assert_eq!(matches.blocks(Slot(slot)), held(&sets, slot, &prompt));
        }
    }

    #[test]
    fn an_endpoint_is_never_taken_to_hold_more_than_its_capacity_or_than_it_was_sent(
        capacity in 1..400_u64,
        steps in steps(),
    ) {
        let index = index();
        let mut sets = Sets::new();
        let mut matches = Matches::default();
        for step in steps {
            match step {
                Step::Record { slots: (first, count), shared, name, own } => {
                    let prompt = prompt(shared, name, own);
                    for slot in first..(first + count).min(1000) {
                        index.set_capacity(Slot(slot), capacity);
                        index.record(Slot(slot), &prompt);
                        sets.entry(slot).or_default().extend(prompt.iter().map(|hash| hash.0));
                    }
                    index.longest_matches(&prompt, &mut matches);
                    for (slot, blocks) in matches.iter() {
                        prop_assert!(u64::from(blocks) <= capacity);
                        prop_assert!(blocks <= held(&sets, slot.0, &prompt));
                    }
                }
                Step::Clear { slots: (first, count) } => {
                    for slot in first..(first + count).min(1000) {
                        index.clear(Slot(slot));
                        sets.remove(&slot);
                    }
                }
            }
            prop_assert!(index.stats().holders <= capacity * 1000);
        }
    }
}

/// Would take hours if it looked at the blocks.
#[test]
fn clearing_costs_the_same_however_much_is_held() {
    let index = index();
    index.set_capacity(Slot(0), 1 << 20);
    for name in 0..300 {
        index.record(Slot(0), &chain(name, 1000));
    }
    let last = chain(299, 1000);
    for _ in 0..100_000 {
        index.clear(Slot(0));
        index.record(Slot(0), &last[..1]);
    }
    let mut matches = Matches::default();
    index.longest_matches(&last, &mut matches);
    assert_eq!(matches.blocks(Slot(0)), 1, "no number of an old generation comes back");
    assert_eq!(index.stats().holders, 1);
}
