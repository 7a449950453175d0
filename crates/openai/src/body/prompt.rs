//! Where in a body the prompt lies.

use std::ops::Range;

/// Raw bytes of the prompt: up to [`Prompt::RANGES_MAX`] ranges of the body, in the order in which
/// chat templates render them (tools, then system or instructions, then messages or text).
///
/// A range is the inside of its value: an array without its brackets, a string without its quotes.
/// So when a client appends a turn and serialises as before, the earlier ranges are byte prefixes
/// of the later ones, and hashes of their blocks agree.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Prompt {
    ranges: [Range<usize>; Self::RANGES_MAX],
    ranks: [u8; Self::RANGES_MAX],
    len: usize,
    /// Bytes of inline media (data URLs, base64 `data` fields) within the ranges: they are hashed
    /// like the rest, but are no text from which tokens could be estimated.
    pub media_bytes: usize,
}

impl Prompt {
    pub const RANGES_MAX: usize = 4;

    /// In rendering order; may be empty.
    pub fn ranges(&self) -> &[Range<usize>] {
        &self.ranges[..self.len]
    }

    /// The bytes of each range. `body` is the one that was scanned.
    pub fn pieces<'a>(&'a self, body: &'a [u8]) -> impl Iterator<Item = &'a [u8]> + 'a {
        self.ranges().iter().filter_map(|range| body.get(range.clone()))
    }

    /// Bytes in all ranges.
    pub fn bytes(&self) -> usize {
        self.ranges().iter().map(|range| range.len()).sum()
    }

    /// Adds a range behind those of the same or a lower rank. Past the last place it is dropped:
    /// no engine renders more than four fields.
    pub(super) fn insert(&mut self, rank: u8, range: Range<usize>) {
        if self.len == Self::RANGES_MAX {
            return;
        }
        let at = self.ranks[..self.len].iter().take_while(|other| **other <= rank).count();
        self.ranges[at..=self.len].rotate_right(1);
        self.ranks[at..=self.len].rotate_right(1);
        self.ranges[at] = range;
        self.ranks[at] = rank;
        self.len += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_stand_in_rendering_order_whatever_the_order_of_keys() {
        let mut prompt = Prompt::default();
        for (rank, range) in [(2, 0..1), (0, 1..2), (1, 2..3), (0, 3..4), (0, 4..5)] {
            prompt.insert(rank, range);
        }
        assert_eq!(prompt.ranges(), [1..2, 3..4, 2..3, 0..1]);
        assert_eq!(prompt.bytes(), 4);
        assert_eq!(prompt.pieces(b"abcd").collect::<Vec<_>>(), [b"b", b"d", b"c", b"a"]);
    }
}
