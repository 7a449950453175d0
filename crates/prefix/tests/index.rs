//! What the index answers, one behaviour each.

mod common;

use common::{chain, index, matched};
use types::Slot;
use wicketgate_prefix::{BlockHash, Config, Matches, PrefixIndex};

const A: Slot = Slot(0);
const B: Slot = Slot(700);

/// PFX-1: blocks 0 to 3 held, 4 not, 5 to 9 held.
#[test]
fn only_blocks_without_a_gap_from_the_start_count() {
    let index = index();
    let prompt = chain(1, 10);
    index.record(A, &prompt[..4]);
    index.record(A, &prompt[5..]);
    assert_eq!(matched(&index, A, &prompt), 4);
    assert_eq!(matched(&index, A, &prompt[5..]), 5, "the tail is held, only not from the start");
}

/// PFX-2: 2,000 engine blocks of 16 tokens are 500 of our blocks of 64 tokens.
#[test]
fn no_more_is_held_than_the_engine_has_blocks_for() {
    let index = index();
    index.set_capacity(A, 2_000 * 16 / 64);
    for conversation in 0..40 {
        index.record(A, &chain(conversation, 100));
    }
    let held: u32 = (0..40).map(|n| matched(&index, A, &chain(n, 100))).sum();
    assert!((480..=500).contains(&held), "{held} blocks of 500");
    assert_eq!(matched(&index, A, &chain(39, 100)), 100, "the newest is whole");
    assert_eq!(matched(&index, A, &chain(30, 100)), 0, "the older ones are gone");
}

#[test]
fn each_endpoint_has_its_own_match() {
    let index = index();
    let prompt = chain(1, 50);
    index.record(A, &prompt[..20]);
    index.record(B, &prompt);
    let mut matches = Matches::default();
    index.longest_matches(&prompt, &mut matches);
    assert_eq!([A, B, Slot(1)].map(|slot| matches.blocks(slot)), [20, 50, 0]);
    assert_eq!(matches.longest(), 50);
}

#[test]
fn a_lookup_forgets_the_one_before() {
    let index = index();
    index.record(A, &chain(1, 5));
    let mut matches = Matches::default();
    index.longest_matches(&chain(1, 5), &mut matches);
    index.longest_matches(&chain(2, 5), &mut matches);
    assert_eq!((matches.blocks(A), matches.longest()), (0, 0));
    index.longest_matches(&[], &mut matches);
    assert_eq!(matches.longest(), 0);
}

/// PFX-4's half that is ours: turn n + 1 of a chat finds all of turn n.
#[test]
fn a_growing_conversation_matches_all_earlier_turns() {
    let index = index();
    let prompt = chain(9, 80);
    for turn in 1..10 {
        index.record(A, &prompt[..turn * 8]);
        assert_eq!(matched(&index, A, &prompt), turn as u32 * 8);
    }
}

#[test]
fn a_cleared_endpoint_holds_nothing_and_the_others_all() {
    for holders in [2_u16, 40] {
        let index = index();
        let prompt = chain(3, 30);
        for slot in 0..holders {
            index.record(Slot(slot), &prompt);
        }
        index.clear(A);
        assert_eq!(matched(&index, A, &prompt), 0, "{holders} holders");
        assert_eq!(matched(&index, Slot(1), &prompt), 30, "{holders} holders");
        assert_eq!(index.stats().holders, u64::from(holders - 1) * 30);
        index.record(A, &prompt[..10]);
        assert_eq!(matched(&index, A, &prompt), 10, "what is sent after counts again");
    }
}

#[test]
fn raising_the_capacity_after_a_clear_brings_nothing_back() {
    let index = index();
    index.record(A, &chain(3, 30));
    index.clear(A);
    index.set_capacity(A, 1_000_000);
    assert_eq!(matched(&index, A, &chain(3, 30)), 0);
}

#[test]
fn a_block_on_every_endpoint_is_found_on_every_endpoint() {
    // From one holder by words and lists to bitsets, and past the edges between them.
    let index = index();
    let prompt = chain(5, 40);
    let mut matches = Matches::default();
    for holder in 0..1000_u16 {
        // Spread, so that bitsets must grow.
        let slot = |n: u16| Slot(n * 37 % 1000);
        index.record(slot(holder), &prompt[..40 - usize::from(holder % 3)]);
        if holder % 50 == 49 || holder < 70 {
            index.longest_matches(&prompt, &mut matches);
            for n in 0..=holder {
                let expected = 40 - u32::from(n % 3);
                assert_eq!(matches.blocks(slot(n)), expected, "{n} of {holder}");
            }
            assert!(holder == 999 || matches.blocks(slot(holder + 1)) == 0);
        }
    }
    let stats = index.stats();
    assert_eq!(stats.blocks, 40);
    assert_eq!(stats.holders, (0..1000).map(|n| 40 - n % 3).sum::<u64>());
}

#[test]
fn a_widely_held_block_is_still_evicted_endpoint_by_endpoint() {
    let index = index();
    let shared = chain(5, 20);
    for slot in 0..200 {
        index.set_capacity(Slot(slot), 64);
        index.record(Slot(slot), &shared);
    }
    for slot in 0..100 {
        index.record(Slot(slot), &chain(1000 + u64::from(slot), 64));
    }
    let mut matches = Matches::default();
    index.longest_matches(&shared, &mut matches);
    for slot in 0..200 {
        let expected = if slot < 100 { 0 } else { 20 };
        assert_eq!(matches.blocks(Slot(slot)), expected, "{slot}");
    }
}

#[test]
fn a_prompt_that_leaves_the_shared_part_matches_on_after_it() {
    let index = index();
    let shared = chain(5, 20);
    for slot in 0..300 {
        index.record(Slot(slot), &shared);
    }
    let mut own = shared.clone();
    own.extend(chain(77, 15));
    index.record(Slot(123), &own);
    let mut matches = Matches::default();
    index.longest_matches(&own, &mut matches);
    assert_eq!(matches.blocks(Slot(123)), 35);
    assert_eq!(matches.blocks(Slot(124)), 20);
}

#[test]
fn a_slot_that_cannot_be_stored_is_ignored() {
    let index = index();
    index.record(Slot(u16::MAX), &chain(1, 5));
    index.set_capacity(Slot(u16::MAX), 5);
    index.clear(Slot(u16::MAX));
    assert_eq!(matched(&index, Slot(u16::MAX), &chain(1, 5)), 0);
    index.record(Slot(u16::MAX - 1), &chain(1, 5));
    assert_eq!(matched(&index, Slot(u16::MAX - 1), &chain(1, 5)), 5);
}

#[test]
fn extreme_hashes_and_capacities_are_like_any_other() {
    let index = PrefixIndex::new(Config { bytes_max: 0 });
    index.set_capacity(A, 0);
    index.set_capacity(B, u64::MAX);
    let prompt = [0, u64::MAX, 1, 1 << 32, u64::MAX << 32].map(BlockHash);
    index.record(A, &prompt);
    index.record(B, &prompt);
    assert_eq!(matched(&index, A, &prompt), 1, "capacity is at least one block");
    assert_eq!(matched(&index, B, &prompt), 5);
}
