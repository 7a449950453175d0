use prefix::BlockHash;
use types::Timestamp;

use super::{Chains, ENDS_MAX};
use crate::message::{BLOCKS_MAX, PromptEntry, Reader, Writer};

fn at(seconds: u64) -> Timestamp {
    Timestamp::from_millis(seconds * 1000)
}

fn chain(blocks: u64) -> Vec<BlockHash> {
    (1..=blocks).map(BlockHash).collect()
}

fn heard(hashes: Vec<BlockHash>, continues: bool) -> PromptEntry {
    PromptEntry { endpoint: 5, continues, hashes }
}

/// What is written for a prompt to endpoint 5.
fn told(chains: &mut Chains, hashes: &[BlockHash], now: Timestamp) -> Vec<PromptEntry> {
    let mut writer = Writer::prompts(64, 100);
    chains.tell(5, hashes, &mut writer, now).unwrap();
    let mut entries = Vec::new();
    for message in writer.finish() {
        let mut reader = Reader::new(&message[1..]);
        reader.number();
        while !reader.is_empty() {
            entries.push(reader.prompt().unwrap());
        }
    }
    entries
}

#[test]
fn of_a_next_turn_only_what_is_new_is_told_with_the_block_it_hangs_on() {
    let mut chains = Chains::default();
    assert_eq!(told(&mut chains, &chain(20), at(0))[0].hashes.len(), 20);
    let next = told(&mut chains, &chain(23), at(1));
    assert_eq!(next.len(), 1);
    assert!(next[0].continues);
    assert_eq!(next[0].hashes, chain(23)[19..]);
}

#[test]
fn the_same_prompt_again_is_not_told() {
    let mut chains = Chains::default();
    told(&mut chains, &chain(20), at(0));
    assert!(told(&mut chains, &chain(20), at(1)).is_empty());
}

#[test]
fn the_same_prompt_elsewhere_is_told_whole() {
    let mut chains = Chains::default();
    let mut writer = Writer::prompts(64, 100);
    chains.tell(6, &chain(20), &mut writer, at(0));
    assert!(!told(&mut chains, &chain(23), at(1))[0].continues);
}

#[test]
fn a_turn_after_a_peers_turn_is_told_from_there() {
    let mut chains = Chains::default();
    chains.heard(&heard(chain(20), false), at(0));
    assert_eq!(told(&mut chains, &chain(23), at(1))[0].hashes.len(), 4);
}

#[test]
fn turns_that_alternate_between_peers_are_told_whole_again_too() {
    let mut chains = Chains::default();
    told(&mut chains, &chain(10), at(0));
    for turn in 1..59 {
        let blocks = 10 + turn as usize;
        if turn % 2 == 0 {
            told(&mut chains, &chain(blocks as u64), at(turn));
        } else {
            chains.heard(&heard(chain(blocks as u64)[blocks - 2..].to_vec(), true), at(turn));
        }
    }
    let again = told(&mut chains, &chain(90), at(60));
    assert!(!again[0].continues);
}

#[test]
fn a_conversation_is_told_whole_again_after_a_minute_and_for_a_newcomer() {
    let mut chains = Chains::default();
    for turn in 0..60 {
        told(&mut chains, &chain(20 + turn), at(turn));
    }
    let again = told(&mut chains, &chain(90), at(60));
    assert_eq!((again[0].continues, again[0].hashes.len()), (false, 90));
    chains.forget();
    assert!(!told(&mut chains, &chain(91), at(61))[0].continues);
}

#[test]
fn a_prompt_longer_than_a_message_is_told_in_parts_that_hang_together() {
    let blocks = 3 * BLOCKS_MAX as u64;
    let parts = told(&mut Chains::default(), &chain(blocks), at(0));
    assert_eq!(parts.len(), 4);
    assert!(!parts[0].continues);
    let mut whole = parts[0].hashes.clone();
    for part in &parts[1..] {
        assert!(part.continues);
        assert_eq!(part.hashes.first(), whole.last());
        whole.extend_from_slice(&part.hashes[1..]);
    }
    assert_eq!(whole, chain(blocks));
}

#[test]
fn without_room_nothing_counts_as_told() {
    let mut chains = Chains::default();
    let mut writer = Writer::prompts(64, 1);
    assert_eq!(chains.tell(5, &chain(2 * BLOCKS_MAX as u64), &mut writer, at(0)), None);
    assert!(!told(&mut chains, &chain(2 * BLOCKS_MAX as u64), at(0))[0].continues);
}

#[test]
fn what_is_remembered_is_bounded() {
    let mut chains = Chains::default();
    for end in 0..3 * ENDS_MAX as u64 {
        chains.heard(&heard(vec![BlockHash(end)], false), at(0));
    }
    assert!(chains.ends.len() <= ENDS_MAX);
}
