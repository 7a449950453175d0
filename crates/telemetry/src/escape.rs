//! Text from outside, made harmless for a terminal and for whatever reads lines.

/// Bytes of one string in a log at most; the rest is cut at a character and replaced by `…`.
pub(crate) const STRING_BYTES_MAX: usize = 256;

/// Controls (C0, DEL, C1), line separators, and the marks that reorder text on a screen.
pub(crate) fn is_unsafe(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{2028}' | '\u{2029}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
        || matches!(c, '\u{200e}' | '\u{200f}' | '\u{feff}')
}

/// Appends `c` as `\uXXXX`, which is right inside JSON strings and readable elsewhere.
pub(crate) fn push_escaped(c: char, out: &mut Vec<u8>) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    for unit in c.encode_utf16(&mut [0; 2]) {
        let unit = usize::from(*unit);
        let digits = [unit >> 12, unit >> 8 & 15, unit >> 4 & 15, unit & 15].map(|at| HEX[at]);
        out.extend_from_slice(b"\\u");
        out.extend_from_slice(&digits);
    }
}

/// Appends `text` as a JSON string, cut to [`STRING_BYTES_MAX`].
pub(crate) fn push_json_string(text: &str, out: &mut Vec<u8>) {
    let kept = cut(text);
    out.push(b'"');
    let plain = |byte: &u8| matches!(byte, b' '..=b'~') && *byte != b'"' && *byte != b'\\';
    if kept.as_bytes().iter().all(plain) {
        out.extend_from_slice(kept.as_bytes());
    } else {
        for c in kept.chars() {
            match c {
                '"' | '\\' => out.extend_from_slice(&[b'\\', c as u8]),
                c if is_unsafe(c) => push_escaped(c, out),
                c => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
            }
        }
    }
    if kept.len() < text.len() {
        out.extend_from_slice("…".as_bytes());
    }
    out.push(b'"');
}

/// At most the first [`STRING_BYTES_MAX`] bytes, whole characters only.
fn cut(text: &str) -> &str {
    let mut end = text.len().min(STRING_BYTES_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(text: &str) -> String {
        let mut out = Vec::new();
        push_json_string(text, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn an_escaped_string_reads_back_as_it_was() {
        for text in ["", "plain", "a\"b\\c", "\x1b[31mred\r\n\0\x7f", "é\u{9b}\u{202e}漢\u{feff}🙂"]
        {
            assert_eq!(serde_json::from_str::<String>(&json(text)).unwrap(), text);
        }
    }

    #[test]
    fn nothing_unsafe_survives() {
        for c in ('\0'..='\u{ffff}').filter(|c| is_unsafe(*c)) {
            assert!(
                json(&c.to_string()).bytes().all(|byte| (b' '..=b'~').contains(&byte)),
                "{c:?}"
            );
        }
    }

    #[test]
    fn a_long_string_is_cut_at_a_character() {
        let long = format!("{}é{}", "x".repeat(STRING_BYTES_MAX - 1), "y".repeat(1000));
        assert_eq!(json(&long), format!("\"{}…\"", "x".repeat(STRING_BYTES_MAX - 1)));
    }
}
