//! The Prometheus text format, line by line, without building anything.
//!
//! Only what a caller asks for is looked at: a page of 600 lines holds a dozen that matter.

use std::borrow::Cow;

use memchr::{memchr, memchr2, memchr3};

/// The lines of a page without their ends (`\n` or `\r\n`) and leading blanks.
pub fn lines(page: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = page;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let (line, after) = match memchr(b'\n', rest) {
            Some(end) => (&rest[..end], &rest[end + 1..]),
            None => (rest, &rest[rest.len()..]),
        };
        rest = after;
        Some(match line {
            [b' ' | b'\t' | b'\r', ..] | [.., b'\r'] => line.trim_ascii(),
            line => line,
        })
    })
}

/// A line's metric name and what follows it. A line without a blank or brace is all name.
pub fn split_name(line: &[u8]) -> (&[u8], &[u8]) {
    line.split_at(memchr3(b'{', b' ', b'\t', line).unwrap_or(line.len()))
}

/// What follows a name: labels, then a value, then perhaps a timestamp or an exemplar.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample<'a> {
    /// As written between the braces, so equal series have (nearly always) equal bytes.
    pub labels: Labels<'a>,
    pub value: f64,
}

impl<'a> Sample<'a> {
    /// `None` if the line is not in the format: unbalanced labels, no value, trailing junk.
    pub fn parse(after_name: &'a [u8]) -> Option<Self> {
        let text = after_name.trim_ascii_start();
        let (labels, rest) = match text {
            [b'{', inner @ ..] => {
                let end = Labels::end(inner)?;
                (Labels(&inner[..end]), &inner[end + 1..])
            }
            _ => (Labels(&[]), text),
        };
        let mut words = rest.trim_ascii().splitn(2, |byte| byte.is_ascii_whitespace());
        let value = number(words.next()?)?;
        let after = words.next().unwrap_or_default().trim_ascii();
        let ends_well = after.is_empty() || after[0] == b'#' || {
            let stamp = after.split(|byte| byte.is_ascii_whitespace()).next();
            stamp.and_then(number).is_some()
        };
        ends_well.then_some(Self { labels, value })
    }
}

/// A number as Go prints it: `1`, `1.5`, `1e+06`, `NaN`, `+Inf`.
fn number(text: &[u8]) -> Option<f64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// The labels of one series, as written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Labels<'a>(pub &'a [u8]);

impl<'a> Labels<'a> {
    /// Where the closing brace stands; braces and quotes inside values do not count.
    fn end(text: &[u8]) -> Option<usize> {
        let mut at = 0;
        loop {
            at += memchr2(b'"', b'}', &text[at..])?;
            if text[at] == b'}' {
                return Some(at);
            }
            at += 1 + value_end(&text[at + 1..])? + 1;
        }
    }

    /// The value of `key`, unescaped; `None` if there is no such label.
    pub fn get(self, key: &[u8]) -> Option<Cow<'a, [u8]>> {
        self.raw(key).map(unescape)
    }

    /// The value of `key` as written between its quotes.
    pub fn raw(self, key: &[u8]) -> Option<&'a [u8]> {
        let mut rest = self.0;
        loop {
            let equals = memchr(b'=', rest)?;
            let name = rest[..equals].trim_ascii();
            let quoted = rest[equals + 1..].trim_ascii_start().strip_prefix(b"\"")?;
            let end = value_end(quoted)?;
            if name == key {
                return Some(&quoted[..end]);
            }
            let after = quoted[end + 1..].trim_ascii_start();
            rest = after.strip_prefix(b",").unwrap_or(after);
        }
    }
}

/// Where the closing quote stands; `\"` does not close.
fn value_end(text: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        at += memchr2(b'"', b'\\', text.get(at..)?)?;
        if text[at] == b'"' {
            return Some(at);
        }
        at += 2;
    }
}

/// `\\`, `\"` and `\n` are the escapes of the format; any other backslash stands for itself.
fn unescape(raw: &[u8]) -> Cow<'_, [u8]> {
    if memchr(b'\\', raw).is_none() {
        return Cow::Borrowed(raw);
    }
    let mut out = Vec::with_capacity(raw.len());
    let mut bytes = raw.iter().copied().peekable();
    while let Some(byte) = bytes.next() {
        let escaped = match (byte, bytes.peek()) {
            (b'\\', Some(b'n')) => Some(b'\n'),
            (b'\\', Some(next @ (b'\\' | b'"'))) => Some(*next),
            _ => None,
        };
        if escaped.is_some() {
            bytes.next();
        }
        out.push(escaped.unwrap_or(byte));
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(after_name: &str) -> Option<f64> {
        Sample::parse(after_name.as_bytes()).map(|sample| sample.value)
    }

    fn label(labels: &str, key: &str) -> Option<String> {
        let value = Labels(labels.as_bytes()).get(key.as_bytes())?;
        Some(String::from_utf8(value.into_owned()).unwrap())
    }

    #[test]
    fn lines_end_with_lf_or_crlf_or_the_page() {
        let found: Vec<_> = lines(b"a 1\r\n\r\n  b 2\n\nc 3").collect();
        assert_eq!(found, [&b"a 1"[..], b"", b"b 2", b"", b"c 3"]);
    }

    #[test]
    fn a_value_may_have_a_timestamp_or_an_exemplar_behind_it() {
        for text in [" 16.0", "\t16", " 1.6e+01 1700000000000", " 16 1.7e9", " 16 # {id=\"x\"} 1.0"]
        {
            assert_eq!(value(text), Some(16.0), "{text}");
        }
        assert_eq!(value("{a=\"b\"} +Inf"), Some(f64::INFINITY));
        assert!(value(" NaN").is_some_and(f64::is_nan));
    }

    #[test]
    fn what_is_not_in_the_format_is_no_sample() {
        for text in [
            "",
            " ",
            "{",
            "{a=\"b\" 1",
            "{a=\"b\"}",
            " x",
            " 1 junk",
            "{a=\"b} 1",
            " 1,5",
            "{a=\"\\",
        ] {
            assert_eq!(value(text), None, "{text}");
        }
    }

    #[test]
    fn a_label_may_hold_braces_quotes_and_line_ends() {
        let text = r#"{a="x}\"y\\",b="1\n2",empty=""} 7"#;
        let sample = Sample::parse(text.as_bytes()).unwrap();
        assert_eq!(sample.value, 7.0);
        assert_eq!(sample.labels.get(b"a").as_deref(), Some(&b"x}\"y\\"[..]));
        assert_eq!(sample.labels.get(b"b").as_deref(), Some(&b"1\n2"[..]));
        assert_eq!(sample.labels.get(b"empty").as_deref(), Some(&b""[..]));
    }

    #[test]
    fn labels_are_found_by_whole_name_only() {
        let labels = r#"user_block_size="1", block_size = "16" ,x="block_size=9","#;
        assert_eq!(label(labels, "block_size").as_deref(), Some("16"));
        assert_eq!(label(labels, "size"), None);
        assert_eq!(label(labels, "x").as_deref(), Some("block_size=9"));
    }
}
