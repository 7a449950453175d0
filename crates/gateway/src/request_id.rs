//! The id that follows a request through logs, engines and answers.

use rand::Rng;

/// Longest id that is taken from a client.
const BYTES_MAX: usize = 128;

/// A client's own id if it is harmless, else one of ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestId(Repr);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Repr {
    Ours([u8; 32]),
    Theirs(Box<str>),
}

impl RequestId {
    /// 128 random bits in hex.
    pub fn random(rng: &mut impl Rng) -> Self {
        let mut hex = [0; 32];
        let bits = (u128::from(rng.next_u64()) << 64) | u128::from(rng.next_u64());
        for (at, digit) in hex.iter_mut().enumerate() {
            *digit = b"0123456789abcdef"[((bits >> (4 * at)) & 15) as usize];
        }
        Self(Repr::Ours(hex))
    }

    /// The client's id, if it is 1 to 128 letters, digits, `-`, `_`, `.` or `:`.
    ///
    /// Engines match ids by prefix when they abort, and logs print them: so nothing else passes.
    pub fn from_client(id: &str) -> Option<Self> {
        let fits = !id.is_empty()
            && id.len() <= BYTES_MAX
            && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.:".contains(&byte));
        fits.then(|| Self(Repr::Theirs(id.into())))
    }

    pub fn as_str(&self) -> &str {
        match &self.0 {
            // Hex digits only, so this is always text.
            Repr::Ours(hex) => std::str::from_utf8(hex).unwrap_or_default(),
            Repr::Theirs(id) => id,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_that_could_break_a_header_or_a_log_is_replaced() {
        for id in ["", "a b", "a\r\nx-evil: 1", "a\u{1b}[31m", "ä", &"x".repeat(129)] {
            assert_eq!(RequestId::from_client(id), None, "{id:?}");
        }
        assert_eq!(RequestId::from_client("req-1_2.3:4").unwrap().as_str(), "req-1_2.3:4");
    }

    #[test]
    fn a_random_id_is_32_hex_digits() {
        let id = RequestId::random(&mut rand::rng());
        assert_eq!(id.as_str().len(), 32);
        assert!(id.as_str().bytes().all(|byte| byte.is_ascii_hexdigit()));
    }
}
