//! The parameters of a query.

use std::borrow::Cow;

/// The first parameter of this name, decoded.
pub(super) fn parameter<'a>(query: Option<&'a str>, name: &str) -> Option<Cow<'a, str>> {
    let value = query?.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='))?;
    decode(value)
}

/// Undoes `%41`; `None` for what is no text then. A plus stays one: names of models may have it.
fn decode(value: &str) -> Option<Cow<'_, str>> {
    if !value.contains('%') {
        return Some(Cow::Borrowed(value));
    }
    let mut decoded = Vec::with_capacity(value.len());
    let mut rest = value.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let pair = (*first == b'%').then(|| after.get(..2).and_then(byte));
        match pair {
            Some(Some(byte)) => {
                decoded.push(byte);
                rest = &after[2..];
            }
            Some(None) => return None,
            None => {
                decoded.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8(decoded).ok().map(Cow::Owned)
}

fn byte(digits: &[u8]) -> Option<u8> {
    let digit = |at: usize| char::from(*digits.get(at)?).to_digit(16);
    u8::try_from(digit(0)? * 16 + digit(1)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parameter_is_found_by_its_whole_name() {
        let query = Some("most=5&request_id=a-b&endpoint=10.0.0.1%3A8000&empty=");
        assert_eq!(parameter(query, "most").as_deref(), Some("5"));
        assert_eq!(parameter(query, "endpoint").as_deref(), Some("10.0.0.1:8000"));
        assert_eq!(parameter(query, "empty").as_deref(), Some(""));
        assert_eq!(parameter(query, "id"), None);
        assert_eq!(parameter(query, "mos"), None);
        assert_eq!(parameter(None, "most"), None);
    }

    #[test]
    fn what_is_no_text_is_no_parameter() {
        for broken in ["a=%", "a=%4", "a=%zz", "a=%ff", "a=%+1"] {
            assert_eq!(parameter(Some(broken), "a"), None, "{broken}");
        }
        assert_eq!(parameter(Some("a=%E2%82%AC+%3C"), "a").as_deref(), Some("€+<"));
    }
}
