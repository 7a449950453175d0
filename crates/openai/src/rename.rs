//! Gives an answer back the model name that its client asked for.
//!
//! Works on a stream of bytes: only what could be the beginning of a name is held back, so a whole
//! event or document is never delayed.

use bytes::Bytes;

const KEY: &[u8] = b"\"model\"";

/// Replaces the value of `"model"`.
#[derive(Debug)]
pub struct Rename {
    /// The literals with their quotes.
    from: Vec<u8>,
    to: Vec<u8>,
    /// Bytes that may be the beginning of a match, from the last chunk.
    held: Vec<u8>,
}

/// How far bytes agree with `"model" : "name"`.
enum Match {
    No,
    /// All of them do, but more is needed.
    Partly,
    /// The value lies here.
    Value(std::ops::Range<usize>),
}

impl Rename {
    /// From the name that the endpoint knows to the one that the client does.
    pub fn new(from: &str, to: &str) -> Self {
        Self { from: json_literal(from), to: json_literal(to), held: Vec::new() }
    }

    /// The next chunk as the client gets it; not copied where there is nothing in it to rename.
    pub fn push(&mut self, chunk: &Bytes) -> Bytes {
        if self.leaves(chunk) {
            return chunk.clone();
        }
        let mut out = Vec::with_capacity(self.held.len() + chunk.len() + self.to.len());
        self.write(chunk, &mut out);
        out.into()
    }

    /// Whether the next chunk, if it is this one, goes on as it is.
    fn leaves(&self, chunk: &[u8]) -> bool {
        self.held.is_empty() && key_in(chunk).is_none() && !ends_in_key(chunk)
    }

    /// Appends the next chunk as the client gets it.
    pub fn write(&mut self, chunk: &[u8], out: &mut Vec<u8>) {
        let mut rest = std::mem::take(&mut self.held);
        rest.extend_from_slice(chunk);
        let mut from = 0;
        while let Some(quote) = memchr::memchr(b'"', &rest[from..]) {
            let at = from + quote;
            match self.match_at(&rest[at..]) {
                Match::No => {
                    out.extend_from_slice(&rest[from..=at]);
                    from = at + 1;
                }
                Match::Partly => {
                    out.extend_from_slice(&rest[from..at]);
                    self.held = rest.split_off(at);
                    return;
                }
                Match::Value(value) => {
                    out.extend_from_slice(&rest[from..at + value.start]);
                    out.extend_from_slice(&self.to);
                    from = at + value.end;
                }
            }
        }
        out.extend_from_slice(&rest[from..]);
    }

    /// What was held back, at the end of the answer.
    pub fn finish(&mut self) -> Bytes {
        std::mem::take(&mut self.held).into()
    }

    fn match_at(&self, bytes: &[u8]) -> Match {
        let mut at = 0;
        for literal in [KEY, b":", &self.from] {
            if at > 0 {
                at += bytes[at..].iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
            }
            let there = &bytes[at..];
            if there.len() < literal.len() {
                return if literal.starts_with(there) { Match::Partly } else { Match::No };
            }
            if !there.starts_with(literal) {
                return Match::No;
            }
            at += literal.len();
        }
        Match::Value(at - self.from.len()..at)
    }
}

/// A body with another model; every other byte stays.
///
/// * `literal`: where the body's name lies, [`Model::literal`](crate::Model::literal).
/// * `is_json`: the name is a JSON string there, else a form field's bare value.
///
/// `None` if the literal does not lie in the body.
pub fn with_model(
    body: &[u8],
    literal: std::ops::Range<usize>,
    name: &str,
    is_json: bool,
) -> Option<Bytes> {
    let written = if is_json { json_literal(name) } else { name.into() };
    let (before, after) = (body.get(..literal.start)?, body.get(literal.end..)?);
    let mut out = Vec::with_capacity(before.len() + written.len() + after.len());
    for part in [before, &written, after] {
        out.extend_from_slice(part);
    }
    Some(out.into())
}

/// Whether an answer of this type can tell a model's name.
pub fn holds_model_names(content_type: &str) -> bool {
    let kind = content_type.split(';').next().unwrap_or("").trim();
    kind.eq_ignore_ascii_case("application/json") || kind.eq_ignore_ascii_case("text/event-stream")
}

/// A name as a JSON string. Model names are printable ASCII, so only two bytes need an escape.
pub(crate) fn json_literal(name: &str) -> Vec<u8> {
    let mut literal = Vec::with_capacity(name.len() + 2);
    literal.push(b'"');
    for byte in name.bytes() {
        if matches!(byte, b'"' | b'\\') {
            literal.push(b'\\');
        }
        literal.push(byte);
    }
    literal.push(b'"');
    literal
}

fn key_in(bytes: &[u8]) -> Option<usize> {
    memchr::memmem::find(bytes, KEY)
}

/// Whether the last bytes could be the beginning of the key.
fn ends_in_key(bytes: &[u8]) -> bool {
    (1..KEY.len()).any(|length| bytes.ends_with(&KEY[..length]))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn renamed(text: &[u8], cuts: &[usize]) -> Vec<u8> {
        let mut rename = Rename::new("llama-ft", "llama");
        let mut out = Vec::new();
        let mut from = 0;
        for cut in cuts.iter().copied().chain([text.len()]) {
            let cut = cut.clamp(from, text.len());
            out.extend_from_slice(&rename.push(&Bytes::copy_from_slice(&text[from..cut])));
            from = cut;
        }
        out.extend_from_slice(&rename.finish());
        out
    }

    const EVENT: &[u8] = b"data: {\"id\":\"1\",\"model\":\"llama-ft\",\"choices\":[{\"delta\":{\"content\":\"say \\\"model\\\":\\\"llama-ft\\\"\"}}]}\n\n";

    #[test]
    fn a_name_is_given_back_wherever_the_answer_is_cut() {
        let whole = renamed(EVENT, &[]);
        let text = String::from_utf8(whole.clone()).unwrap();
        assert!(text.contains("\"model\":\"llama\","), "{text}");
        assert!(text.contains("\\\"llama-ft\\\""), "text inside a string stays");
        for first in 0..EVENT.len() {
            assert_eq!(renamed(EVENT, &[first]), whole, "cut at {first}");
        }
        let every: Vec<_> = (1..EVENT.len()).collect();
        assert_eq!(renamed(EVENT, &every), whole);
    }

    #[test]
    fn a_forms_field_gets_the_bare_name() {
        let body = with_model(b"--b\r\n\r\nold\r\n--b--", 7..10, "new", false).unwrap();
        assert_eq!(&body[..], b"--b\r\n\r\nnew\r\n--b--");
        assert_eq!(with_model(b"short", 3..9, "new", false), None);
    }

    #[test]
    fn a_whole_event_is_never_held_back() {
        let mut rename = Rename::new("llama-ft", "llama");
        for event in [EVENT, b"data: {\"a\":\"b\"}\n\n", b"data: [DONE]\n\n", b": ping\n\n"] {
            rename.push(&Bytes::from_static(event));
            assert!(rename.held.is_empty());
        }
    }

    #[test]
    fn other_names_and_spaces_are_kept() {
        for (from, to) in [
            ("{\"model\" : \"llama-ft\"}", "{\"model\" : \"llama\"}"),
            ("{\"model\":\"llama-ft-2\"}", "{\"model\":\"llama-ft-2\"}"),
            ("{\"model\":\"llama\"}", "{\"model\":\"llama\"}"),
            ("{\"model\":null}", "{\"model\":null}"),
            ("{\"model", "{\"model"),
            ("\"model\"\"model\":\"llama-ft\"", "\"model\"\"model\":\"llama\""),
        ] {
            assert_eq!(renamed(from.as_bytes(), &[]), to.as_bytes());
        }
    }

    proptest! {
        #[test]
        fn cuts_change_nothing(
            text in "(\"model\":|\"llama-ft\"|\"|model| |:|[a-z]){0,40}",
            cuts in proptest::collection::vec(0_usize..200, 0..8),
        ) {
            let mut cuts = cuts;
            cuts.sort_unstable();
            prop_assert_eq!(renamed(text.as_bytes(), &cuts), renamed(text.as_bytes(), &[]));
        }

        #[test]
        fn a_body_with_another_model_is_the_same_in_every_other_byte(
            before in " {0,3}\\{(\"x\":[0-9]{1,3},){0,3}\"model\" {0,2}: {0,2}",
            after in "(,\"y\":\"[a-z\\\\u00e9]{0,9}\"){0,3}\\} {0,3}",
            name in "[ -~]{1,40}",
        ) {
            let body = format!("{before}\"m\\u0031\"{after}");
            let literal = before.len()..body.len() - after.len();
            let spliced = with_model(body.as_bytes(), literal, &name, true).unwrap();
            prop_assert!(spliced.starts_with(before.as_bytes()));
            prop_assert!(spliced.ends_with(after.as_bytes()));
            let inner = &spliced[before.len()..spliced.len() - after.len()];
            prop_assert_eq!(serde_json::from_slice::<String>(inner).unwrap(), name);
        }

        #[test]
        fn what_is_read_in_a_spliced_body_is_the_new_name_and_all_else_as_before(
            name in "[!-~]{1,40}", tail in "[a-z ]{0,60}",
        ) {
            let body = format!("{{\"seed\": 9007199254740993,\"model\":\"a\",\"stream\":true,\"messages\":[{{\"role\":\"user\",\"content\":\"{tail}\"}}]}}");
            let route = crate::Route::ChatCompletions;
            let limits = crate::Limits::default();
            let said = crate::scan(route, body.as_bytes(), &limits).unwrap();
            let literal = said.model.clone().unwrap().literal;
            let spliced = with_model(body.as_bytes(), literal, &name, true).unwrap();
            let again = crate::scan(route, &spliced, &limits).unwrap();
            prop_assert_eq!(&again.model.as_ref().unwrap().name, &name);
            let text = |body: &[u8], said: &crate::Body| -> Vec<u8> {
                said.prompt.ranges().iter().flat_map(|range| body[range.clone()].to_vec()).collect()
            };
            prop_assert_eq!(text(&spliced, &again), text(body.as_bytes(), &said));
            prop_assert_eq!(again.stream, said.stream);
        }
    }
}
