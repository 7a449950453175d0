//! Prompts as text that maps back to tokens as the simulated tokenizer does: four bytes a token.

use lab::Segment;

/// Tokens that the simulated chat template adds to one user message: its role, its end, and the
/// role of the answer.
const TEMPLATE_TOKENS: u32 = 3;

/// The one user message whose rendered prompt has as many tokens as `segments` have. Equal segments
/// in equal places give equal text. A prompt shorter than the template gets one word.
pub fn message(segments: &[Segment]) -> String {
    let whole: u32 = segments.iter().map(|segment| segment.tokens).sum();
    let mut left = whole.saturating_sub(TEMPLATE_TOKENS).max(1);
    let mut text = String::with_capacity(left as usize * 4);
    for segment in segments {
        let tokens = segment.tokens.min(left);
        left -= tokens;
        (0..tokens).for_each(|at| text.extend(word(segment.content, at).map(char::from)));
    }
    text
}

/// A pseudo-word of four ASCII bytes, the last a space.
fn word(content: u64, at: u32) -> [u8; 4] {
    const CONSONANTS: &[u8; 16] = b"bcdfghjklmnprstv";
    const VOWELS: &[u8; 4] = b"aeio";
    // The finaliser of splitmix64.
    let mut hash = content ^ u64::from(at).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^= hash >> 31;
    let pick = |shift: u32, most: u64| (hash >> shift & (most - 1)) as usize;
    [CONSONANTS[pick(0, 16)], VOWELS[pick(8, 4)], CONSONANTS[pick(16, 16)], b' ']
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_and_its_template_have_the_tokens_of_the_segments() {
        let segments = [Segment { content: 1, tokens: 40 }, Segment { content: 2, tokens: 10 }];
        assert_eq!(message(&segments).len(), (50 - 3) * 4);
    }

    #[test]
    fn equal_beginnings_are_equal_text_and_others_are_not() {
        let of = |own| {
            message(&[Segment { content: 1, tokens: 40 }, Segment { content: own, tokens: 40 }])
        };
        let (one, two) = (of(2), of(3));
        assert_eq!(one[..160], two[..160]);
        assert_ne!(one[160..], two[160..]);
    }
}
