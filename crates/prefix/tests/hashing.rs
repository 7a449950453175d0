//! Block hashes: what they depend on and what not.

use proptest::prelude::{any, prop_assert_eq, proptest};
use proptest::{collection, sample};
use wicketgate_prefix::{BlockHash, block_hashes, seed};

fn hashes(seed: u64, ranges: &[&[u8]], block_bytes: usize) -> Vec<BlockHash> {
    let mut out = Vec::new();
    block_hashes(seed, ranges, block_bytes, usize::MAX, &mut out);
    out
}

proptest! {
    #[test]
    fn cutting_the_prompt_into_ranges_changes_no_hash(
        text in collection::vec(any::<u8>(), 0..2000),
        cuts in collection::vec(any::<sample::Index>(), 0..8),
        block_bytes in sample::select(vec![1, 3, 16, 64, 240, 241, 256, 700]),
    ) {
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(text.len() + 1)).collect();
        cuts.sort_unstable();
        let mut ranges = Vec::new();
        let mut begin = 0;
        for cut in cuts.into_iter().chain([text.len()]) {
            ranges.push(&text[begin..cut]);
            begin = cut;
        }
        let whole = hashes(7, &[&text], block_bytes);
        prop_assert_eq!(whole.len(), text.len() / block_bytes);
        prop_assert_eq!(hashes(7, &ranges, block_bytes), whole);
    }
}

#[test]
fn a_block_hash_depends_on_every_block_before_it() {
    let text: Vec<u8> = (0..1024_u32).map(|n| (n % 251) as u8).collect();
    let original = hashes(1, &[&text], 256);
    for changed_block in 0..4 {
        let mut changed = text.clone();
        changed[changed_block * 256 + 100] ^= 1;
        let changed = hashes(1, &[&changed], 256);
        for block in 0..4 {
            let is_equal = original[block] == changed[block];
            assert_eq!(is_equal, block < changed_block, "block {block} of {changed_block}");
        }
    }
}

#[test]
fn a_longer_prompt_begins_with_the_hashes_of_the_shorter() {
    let text = vec![b'x'; 5000];
    let long = hashes(1, &[&text], 256);
    assert!(long.starts_with(&hashes(1, &[&text[..3000]], 256)));
}

#[test]
fn the_same_block_twice_in_a_row_has_two_hashes() {
    let hashes = hashes(1, &[&[0; 512]], 256);
    assert_ne!(hashes[0], hashes[1]);
}

#[test]
fn no_more_blocks_are_hashed_than_asked_for() {
    let mut out = vec![BlockHash(5)];
    block_hashes(1, &[&[0; 100], &[0; 412]], 64, 3, &mut out);
    assert_eq!(out.len(), 1 + 3, "appended to what was there");
    block_hashes(1, &[&[0; 100]], 64, 0, &mut out);
    assert_eq!(out.len(), 1 + 3);
}

/// PFX-3: same text, other model, adapter, salt or process.
#[test]
fn another_model_adapter_salt_or_process_shares_no_block() {
    let text = vec![b'x'; 512];
    let seeds = [
        seed(1, "llama", None, b""),
        seed(2, "llama", None, b""),
        seed(1, "qwen", None, b""),
        seed(1, "llama", Some("sql"), b""),
        seed(1, "llama", Some(""), b""),
        seed(1, "llama", None, b"sql"),
        seed(1, "llama", Some("sql"), b"tenant"),
        seed(1, "llama", Some("tenant"), b"sql"),
        seed(1, "llamasql", None, b""),
    ];
    let mut all: Vec<u64> =
        seeds.iter().flat_map(|seed| hashes(*seed, &[&text], 256)).map(|hash| hash.0).collect();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), seeds.len() * 2);
}
