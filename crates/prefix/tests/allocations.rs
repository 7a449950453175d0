//! Lookups, and most records, leave the allocator alone.

mod common;

use common::chain;
use types::Slot;
use wicketgate_prefix::{Answer, Config, Matches, PrefixIndex};

#[test]
fn a_lookup_allocates_nothing_once_its_matches_have_room() {
    let index = PrefixIndex::new(Config::default());
    let prompt = chain(1, 2000);
    for slot in 0..1000 {
        index.set_capacity(Slot(slot), 1 << 20);
        // As many ends of matches as there can be.
        index.record(Slot(slot), &prompt[..usize::from(slot) * 2 + 1]);
    }
    for slot in 0..3 {
        index.record(Slot(slot), &chain(2, 2000));
    }
    let prompts = [prompt.clone(), prompt[..1000].to_vec(), prompt[..50].to_vec(), chain(2, 2000)];
    let mut matches = Matches::default();
    for prompt in &prompts {
        index.longest_matches(prompt, &mut matches);
    }
    let unknown = chain(3, 2000);
    let counted = allocation_counter::measure(|| {
        for prompt in prompts.iter().chain([&unknown]) {
            index.longest_matches(prompt, &mut matches);
            assert!(matches.iter().all(|(slot, blocks)| matches.blocks(slot) == blocks));
            matches.clear();
        }
    });
    assert_eq!(counted.count_total, 0);
}

#[test]
fn recording_what_is_held_and_correcting_allocate_nothing() {
    let index = PrefixIndex::new(Config::default());
    let prompt = chain(1, 200);
    index.record(Slot(1), &prompt);
    let answer = Answer { cached_tokens: Some(64), block_tokens: 64, ..Answer::default() };
    let counted = allocation_counter::measure(|| {
        let belief = index.record(Slot(1), &prompt);
        index.correct(Slot(1), &belief, &answer);
    });
    assert_eq!(counted.count_total, 0);
}
