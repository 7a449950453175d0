//! The simulated tokenizer: four bytes of text are one token, and a block's hash covers its tokens
//! and everything before them.
//!
//! Roles and ends of messages are tokens of their own, and each piece of text starts a new token,
//! as special tokens do in real templates. So an answer that comes back as the history of the
//! next turn maps to the very tokens that were generated, whatever the length of the rest.

use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::engine::BlockHash;

/// Four bytes of UTF-8, little end first; a shorter piece is filled with 0xFF, which no text holds.
pub(crate) type Token = u32;

/// A token that no text can spell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Special {
    System = 1,
    User = 2,
    Assistant = 3,
    Tool = 4,
    Tools = 5,
    End = 6,
    Media = 7,
}

impl Special {
    pub(crate) fn of_role(role: &str) -> Self {
        match role {
            "system" | "developer" => Self::System,
            "assistant" => Self::Assistant,
            "tool" | "function" => Self::Tool,
            _ => Self::User,
        }
    }
}

/// Tokens in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tokens(pub(crate) Vec<Token>);

impl Tokens {
    pub(crate) fn text(&mut self, text: &str) {
        self.0.extend(text.as_bytes().chunks(4).map(|piece| {
            let mut bytes = [0xFF; 4];
            bytes[..piece.len()].copy_from_slice(piece);
            Token::from_le_bytes(bytes)
        }));
    }

    pub(crate) fn special(&mut self, special: Special) {
        self.0.push(Token::from_le_bytes([0xFF, special as u8, 0xFF, 0xFF]));
    }

    pub(crate) fn len(&self) -> u32 {
        u32::try_from(self.0.len()).unwrap_or(u32::MAX)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The text that these tokens spell; specials are silent, and broken UTF-8 is replaced.
    pub(crate) fn spell(&self) -> String {
        let mut bytes = Vec::with_capacity(self.0.len() * 4);
        for token in &self.0 {
            let piece = token.to_le_bytes();
            if piece[0] != 0xFF {
                bytes.extend(piece.iter().filter(|byte| **byte != 0xFF));
            }
        }
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

/// Chained hashes of full blocks.
#[derive(Clone, Debug)]
pub(crate) struct BlockHasher {
    block_bytes: usize,
    parent: u64,
    open: Vec<u8>,
}

impl BlockHasher {
    /// * `block_size`: tokens in a block, at least 1.
    /// * `adapter`, `salt`: part of every hash, so that nothing is shared across them.
    pub(crate) fn new(block_size: u32, adapter: Option<&str>, salt: Option<&str>) -> Self {
        let mut parent = 0;
        for (seed, extra) in [(1, adapter), (2, salt)] {
            if let Some(extra) = extra {
                parent = xxh3_64_with_seed(extra.as_bytes(), parent ^ seed);
            }
        }
        Self { block_bytes: block_size.max(1) as usize * 4, parent, open: Vec::new() }
    }

    /// Appends tokens; returns the hashes of the blocks that they complete.
    pub(crate) fn push(&mut self, tokens: &[Token]) -> Vec<BlockHash> {
        let mut hashes = Vec::with_capacity(tokens.len() * 4 / self.block_bytes + 1);
        for token in tokens {
            self.open.extend(token.to_le_bytes());
            if self.open.len() == self.block_bytes {
                self.parent = xxh3_64_with_seed(&self.open, self.parent);
                hashes.push(BlockHash(self.parent));
                self.open.clear();
            }
        }
        hashes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(texts: &[&str]) -> Tokens {
        let mut tokens = Tokens::default();
        for text in texts {
            tokens.text(text);
        }
        tokens
    }

    #[test]
    fn text_of_whole_tokens_is_spelt_back() {
        let text = "grüße, 世界! one two three";
        assert_eq!(tokens(&[text]).spell(), text);
    }

    #[test]
    fn equal_prefixes_share_hashes_until_the_first_difference() {
        let hashes = |text: &str| BlockHasher::new(2, None, None).push(&tokens(&[text]).0);
        let (one, two) = (hashes("aaaabbbbccccdddd"), hashes("aaaabbbbccccDDDDeeee"));
        assert_eq!((one.len(), two.len()), (2, 2));
        assert_eq!(one[0], two[0]);
        assert_ne!(one[1], two[1]);
    }

    #[test]
    fn adapter_and_salt_share_nothing_with_anyone() {
        let hash = |adapter, salt| BlockHasher::new(1, adapter, salt).push(&[7])[0];
        let all = [hash(None, None), hash(Some("a"), None), hash(None, Some("a"))];
        assert!(all[0] != all[1] && all[1] != all[2] && all[0] != all[2]);
    }

    #[test]
    fn hashing_in_pieces_equals_hashing_at_once() {
        let all = tokens(&["the quick brown fox jumps over the lazy dog"]).0;
        let mut pieces = BlockHasher::new(3, None, None);
        let (mut first, second) = (pieces.push(&all[..4]), pieces.push(&all[4..]));
        first.extend(second);
        assert_eq!(first, BlockHasher::new(3, None, None).push(&all));
    }
}
