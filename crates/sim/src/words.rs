//! Answers: pseudo-words that follow from the prompt, each exactly one token.

use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use crate::tokens::{Token, Tokens};

/// Four ASCII letters, the last a space, so that a trimmed answer still maps to its tokens.
pub(crate) type Word = [u8; 4];

/// The endless answer to one prompt. The same prompt, seed and choice give the same words.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Words {
    seed: u64,
}

impl Words {
    pub(crate) fn new(prompt: &Tokens, seed: u64, choice: u32) -> Self {
        let mut hash = seed ^ u64::from(choice) << 32;
        for token in &prompt.0 {
            hash = (hash.rotate_left(5) ^ u64::from(*token)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        }
        Self { seed: xxh3_64(&hash.to_le_bytes()) }
    }

    /// A share that follows from the prompt, `0.0..1.0`; what answer lengths are drawn with.
    pub(crate) fn draw(&self) -> f64 {
        (xxh3_64_with_seed(b"length", self.seed) >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// The word at `at`.
    pub(crate) fn word(&self, at: u32) -> Word {
        const CONSONANTS: &[u8; 16] = b"bcdfghjklmnprstv";
        const VOWELS: &[u8; 4] = b"aeio";
        let hash = xxh3_64_with_seed(&at.to_le_bytes(), self.seed);
        let pick = |shift: u32, most: u64| (hash >> shift & (most - 1)) as usize;
        [CONSONANTS[pick(0, 16)], VOWELS[pick(8, 4)], CONSONANTS[pick(16, 16)], b' ']
    }

    /// The first `count` words as tokens.
    pub(crate) fn tokens(&self, count: u32) -> Vec<Token> {
        (0..count).map(|at| Token::from_le_bytes(self.word(at))).collect()
    }

    /// The words of `range`, one after the other.
    pub(crate) fn text(&self, range: std::ops::Range<u32>) -> String {
        range.flat_map(|at| self.word(at)).map(char::from).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_maps_back_to_the_tokens_that_were_generated() {
        let mut prompt = Tokens::default();
        prompt.text("tell me");
        let words = Words::new(&prompt, 7, 0);
        let mut back = Tokens::default();
        back.text(&words.text(0..50));
        assert_eq!(back.0, words.tokens(50));
    }

    #[test]
    fn choices_of_one_prompt_differ() {
        let prompt = Tokens::default();
        let text = |choice| Words::new(&prompt, 7, choice).text(0..20);
        assert_ne!(text(0), text(1));
    }
}
