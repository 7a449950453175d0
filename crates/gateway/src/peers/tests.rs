use std::sync::Arc;

use prefix::BlockHash;
use types::Slot;

use super::{Outbox, Peering, SentPrompts};
use crate::testing::{at, exchange, pool_of};

fn collected(outbox: &Outbox) -> Vec<(Slot, usize)> {
    let mut prompts = SentPrompts::default();
    outbox.take(&mut prompts);
    prompts.iter().map(|(slot, hashes)| (slot, hashes.len())).collect()
}

/// Long enough for eight blocks of 64 tokens.
fn long_body() -> Vec<u8> {
    let text = "all work and no play ".repeat(110);
    format!(r#"{{"model":"llama","messages":[{{"role":"user","content":"{text}"}}]}}"#).into_bytes()
}

#[test]
fn each_attempt_leaves_its_prompt_for_the_peers() {
    let gateway = pool_of(2);
    let outbox = Arc::new(Outbox::new(1000));
    gateway.join_peers(Peering { hash_key: 7, outbox: outbox.clone() });
    let mut exchange = exchange(&gateway);
    exchange.place(&long_body(), None, at(0)).unwrap();
    assert!(collected(&outbox).is_empty(), "nothing is sent yet");
    exchange.attempt(at(0)).unwrap();
    exchange.attempt(at(0)).unwrap();
    let told = collected(&outbox);
    assert_eq!(told.len(), 2);
    assert_ne!(told[0].0, told[1].0);
    assert!(told[0].1 >= 8);
    assert!(collected(&outbox).is_empty(), "what was taken is gone");
}

#[test]
fn gateways_with_the_same_key_know_a_prompt_by_the_same_blocks() {
    let blocks = |key| {
        let gateway = pool_of(1);
        let outbox = Arc::new(Outbox::new(1000));
        gateway.join_peers(Peering { hash_key: key, outbox: outbox.clone() });
        let mut exchange = exchange(&gateway);
        exchange.place(&long_body(), None, at(0)).unwrap();
        exchange.attempt(at(0)).unwrap();
        let mut prompts = SentPrompts::default();
        outbox.take(&mut prompts);
        prompts.iter().flat_map(|(_, hashes)| hashes.to_vec()).collect::<Vec<_>>()
    };
    assert_eq!(blocks(7), blocks(7));
    assert_ne!(blocks(7), blocks(8));
}

#[test]
fn a_peers_prompt_is_matched_like_our_own() {
    let gateway = pool_of(2);
    let member = &gateway.members()[1];
    let chain: Vec<_> = (1..=10).map(BlockHash).collect();
    assert_eq!(gateway.held_blocks(member, &chain), 0);
    gateway.record_for_peer(member, &chain);
    assert_eq!(gateway.held_blocks(member, &chain), 10);
    assert_eq!(gateway.held_blocks(&gateway.members()[0], &chain), 0);
}

#[test]
fn a_box_that_nobody_empties_stays_within_its_bound() {
    let outbox = Outbox::new(25);
    let chain: Vec<_> = (1..=10).map(BlockHash).collect();
    for _ in 0..5 {
        outbox.put(Slot(1), &chain);
    }
    assert_eq!((outbox.take_dropped(), outbox.take_dropped()), (3, 0));
    assert_eq!(collected(&outbox), [(Slot(1), 10), (Slot(1), 10)]);
}
