//! From prompt bytes to block hashes.
//!
//! `h_i = mix(h_{i-1}, xxh3(bytes_i))`, where xxh3 runs under a secret that is derived from the
//! seed: who does not know the process key can make no two blocks collide on purpose. Chaining
//! outside of xxh3 keeps the long loop free of a key schedule for every block.

use xxhash_rust::xxh3::{Xxh3, xxh3_64_with_secret, xxh3_64_with_seed};

/// A block together with everything before it. Equal hashes: equal prompts up to here (64 bits).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BlockHash(pub u64);

/// Bytes of an xxh3 secret.
const SECRET_BYTES: usize = 192;
/// Odd constant of splitmix64 (Steele, Lea, Flood 2014).
const GOLDEN_GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

/// Seed of the chain: prompts that may not share cache blocks get different seeds.
///
/// * `process_key`: drawn once per process, so that clients cannot foresee hashes.
/// * `salt`: the request's cache salt or tenant; empty if it has none.
pub fn seed(process_key: u64, model: &str, adapter: Option<&str>, salt: &[u8]) -> u64 {
    let mut seed = process_key;
    // An absent adapter differs from an empty one by the count of fields hashed.
    for field in [Some(model.as_bytes()), Some(salt), adapter.map(str::as_bytes)] {
        let Some(field) = field else { continue };
        seed = xxh3_64_with_seed(field, mix(seed, field.len() as u64));
    }
    seed
}

/// Hashes of the full blocks of one logical byte string, appended to `out`.
///
/// * `ranges`: pieces of the prompt in order; a block may span several, and how the string is cut
///   into ranges does not change the hashes.
/// * `block_bytes`: length of one block, at least 1; a shorter rest at the end is left out.
/// * `blocks_max`: at most so many blocks are hashed; what follows is not looked at.
pub fn block_hashes(
    seed: u64,
    ranges: &[&[u8]],
    block_bytes: usize,
    blocks_max: usize,
    out: &mut Vec<BlockHash>,
) {
    let block_bytes = block_bytes.max(1);
    let secret = secret(seed);
    let blocks_full = ranges.iter().map(|range| range.len()).sum::<usize>() / block_bytes;
    let mut blocks_left = blocks_full.min(blocks_max);
    out.reserve(blocks_left);
    let mut chain = seed;
    let mut push = |block: u64| {
        chain = mix(chain, block);
        out.push(BlockHash(chain));
    };
    let mut begun: Option<(Box<Xxh3>, usize)> = None;
    for range in ranges {
        let mut rest = *range;
        if let Some((hasher, missing)) = &mut begun {
            let (head, tail) = rest.split_at(rest.len().min(*missing));
            hasher.update(head);
            *missing -= head.len();
            rest = tail;
            if *missing > 0 {
                continue;
            }
            push(hasher.digest());
            blocks_left -= 1;
            begun = None;
        }
        let mut blocks = rest.chunks_exact(block_bytes);
        for block in blocks.by_ref().take(blocks_left) {
            push(xxh3_64_with_secret(block, &secret));
            blocks_left -= 1;
        }
        if blocks_left == 0 {
            return;
        }
        let tail = blocks.remainder();
        if !tail.is_empty() {
            let mut hasher = Box::new(Xxh3::with_secret(secret));
            hasher.update(tail);
            begun = Some((hasher, block_bytes - tail.len()));
        }
    }
}

fn secret(seed: u64) -> [u8; SECRET_BYTES] {
    let mut secret = [0; SECRET_BYTES];
    let mut state = seed;
    for word in secret.chunks_exact_mut(8) {
        state = state.wrapping_add(GOLDEN_GAMMA);
        word.copy_from_slice(&avalanche(state).to_le_bytes());
    }
    secret
}

/// Order matters: `mix(a, b) != mix(b, a)`.
fn mix(chain: u64, block: u64) -> u64 {
    avalanche(chain.rotate_left(23).wrapping_mul(GOLDEN_GAMMA) ^ block)
}

/// Finaliser of splitmix64: every input bit reaches every output bit.
fn avalanche(mut word: u64) -> u64 {
    word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}
