//! Finds the bytes that end a run of plain bytes in JSON.
//!
//! Prompts are long strings, so this loop is where a body scan spends its time. Eight bytes are
//! looked at in one integer, after "Bit Twiddling Hacks" (Anderson), `hasless` and `haszero`.

const ONES: u64 = 0x0101_0101_0101_0101;
const HIGHS: u64 = 0x8080_8080_8080_8080;

/// Index of the first `"`, `\` or control byte (below 0x20) at or after `from`; `bytes.len()` if
/// there is none.
#[inline]
pub(crate) fn string_stop(bytes: &[u8], from: usize) -> usize {
    let word = |word: u64| {
        below(word, 0x20)
            | zero(word ^ (ONES * u64::from(b'"')))
            | zero(word ^ (ONES * u64::from(b'\\')))
    };
    find(bytes, from, word, |byte| byte < 0x20 || byte == b'"' || byte == b'\\')
}

/// Index of the first quote, bracket or brace at or after `from`; `bytes.len()` if there is none.
#[inline]
pub(crate) fn structure(bytes: &[u8], from: usize) -> usize {
    let word = |word: u64| {
        // `[` and `{`, and `]` and `}`, differ in this bit only.
        let folded = word | (ONES * 0x20);
        zero(word ^ (ONES * u64::from(b'"')))
            | zero(folded ^ (ONES * u64::from(b'{')))
            | zero(folded ^ (ONES * u64::from(b'}')))
    };
    find(bytes, from, word, |byte| matches!(byte, b'"' | b'[' | b']' | b'{' | b'}'))
}

/// `hits` sets the high bit of each byte that stops. Only the lowest must be exact: a borrow can
/// set higher ones falsely.
#[inline(always)]
fn find(bytes: &[u8], from: usize, hits: impl Fn(u64) -> u64, stops: impl Fn(u8) -> bool) -> usize {
    let Some(rest) = bytes.get(from..) else { return bytes.len() };
    let (words, tail) = rest.as_chunks::<8>();
    for (index, word) in words.iter().enumerate() {
        let found = hits(u64::from_le_bytes(*word));
        if found != 0 {
            return from + index * 8 + found.trailing_zeros() as usize / 8;
        }
    }
    match tail.iter().position(|byte| stops(*byte)) {
        Some(at) => bytes.len() - tail.len() + at,
        None => bytes.len(),
    }
}

#[inline(always)]
fn zero(word: u64) -> u64 {
    word.wrapping_sub(ONES) & !word & HIGHS
}

#[inline(always)]
fn below(word: u64, bound: u64) -> u64 {
    word.wrapping_sub(ONES * bound) & !word & HIGHS
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn bytes_near_stops() -> impl Strategy<Value = Vec<u8>> {
        let stops = [b'"', b'\\', b'{', b'}', b'[', b']', 0x1f, 0x20, 0, 0x7f, 0x80, 0xff];
        let byte = prop_oneof![
            8 => b' '..=b'~',
            2 => any::<u8>(),
            1 => prop::sample::select(stops.to_vec()),
        ];
        prop::collection::vec(byte, 0..80)
    }

    proptest! {
        #[test]
        fn the_first_stop_of_a_string_is_found(bytes in bytes_near_stops(), from in 0_usize..90) {
            let wanted = (from..bytes.len())
                .find(|at| bytes[*at] < 0x20 || bytes[*at] == b'"' || bytes[*at] == b'\\')
                .unwrap_or(bytes.len());
            prop_assert_eq!(string_stop(&bytes, from), wanted);
        }

        #[test]
        fn the_first_structural_byte_is_found(bytes in bytes_near_stops(), from in 0_usize..90) {
            let wanted = (from..bytes.len())
                .find(|at| b"\"[]{}".contains(&bytes[*at]))
                .unwrap_or(bytes.len());
            prop_assert_eq!(structure(&bytes, from), wanted);
        }
    }
}
