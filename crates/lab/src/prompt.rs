//! What a prompt is made of, without text.

use std::collections::HashSet;
use std::hash::{BuildHasherDefault, Hasher};

/// Block hashes that were seen. They are uniform already, so they are their own hashes.
pub(crate) type Seen = HashSet<u64, BuildHasherDefault<AsIs>>;

#[derive(Debug, Default)]
pub(crate) struct AsIs(u64);

impl Hasher for AsIs {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u64(&mut self, value: u64) {
        self.0 = value;
    }
}

/// A run of tokens. Equal `content` in equal place after equal segments is equal text, also where
/// one of the two is cut short.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    pub content: u64,
    pub tokens: u32,
}

/// Hashes of the full blocks of `block_tokens` tokens (at least 1), in order, appended to `out`.
/// Two prompts get the same hash at the same place exactly if they are equal up to its end.
pub fn block_hashes(segments: &[Segment], block_tokens: u32, out: &mut Vec<u64>) {
    chained_hashes(0, segments.iter(), block_tokens, out);
}

/// [`block_hashes`] that share nothing with those of another `seed`.
pub(crate) fn chained_hashes<'a>(
    seed: u64,
    segments: impl Iterator<Item = &'a Segment>,
    block_tokens: u32,
    out: &mut Vec<u64>,
) {
    let block_tokens = block_tokens.max(1);
    let (mut chain, mut begin, mut next) = (seed, 0_u32, block_tokens);
    for segment in segments.filter(|segment| segment.tokens > 0) {
        chain = mix(mix(chain, segment.content), u64::from(begin));
        let end = begin.saturating_add(segment.tokens);
        while next <= end {
            out.push(mix(chain, u64::from(next)));
            next += block_tokens;
        }
        begin = end;
    }
}

/// Order matters: `mix(a, b) != mix(b, a)`. The finaliser is that of splitmix64.
pub(crate) fn mix(chain: u64, word: u64) -> u64 {
    let mut mixed = chain.rotate_left(23).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ word;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hashes(segments: &[(u64, u32)]) -> Vec<u64> {
        let segment =
            |(content, tokens): &(u64, u32)| Segment { content: *content, tokens: *tokens };
        let segments: Vec<_> = segments.iter().map(segment).collect();
        let mut out = Vec::new();
        block_hashes(&segments, 16, &mut out);
        out
    }

    fn shared(a: &[u64], b: &[u64]) -> usize {
        a.iter().zip(b).take_while(|(a, b)| a == b).count()
    }

    #[test]
    fn prompts_share_the_blocks_before_they_part_and_none_after() {
        let a = hashes(&[(1, 100), (2, 60)]);
        assert_eq!(a.len(), 10);
        assert_eq!(shared(&a, &hashes(&[(1, 100), (3, 60)])), 6);
        assert_eq!(shared(&a, &hashes(&[(1, 100), (2, 60), (4, 50)])), 10);
        assert_eq!(shared(&a, &hashes(&[(1, 99), (2, 61)])), 6);
        assert_eq!(shared(&a, &hashes(&[(5, 100), (2, 60)])), 0);
    }

    #[test]
    fn an_answer_cut_short_shares_what_there_is_of_it() {
        assert_eq!(shared(&hashes(&[(1, 100)]), &hashes(&[(1, 60)])), 3);
    }
}
