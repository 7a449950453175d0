//! The strict pass over a JSON text: checks every byte, builds nothing.
//!
//! Grammar of RFC 8259 and no more. A number must be finite as a double, because readers disagree
//! about the rest (some refuse `1e999`, some read infinity).

use std::ops::Range;

use super::{BodyError, BodyErrorKind};
use crate::stops;

/// Levels for which a bit tells array from object.
const DEPTH_MAX: u16 = 128;

/// A number of so many digits is far from a double's limit of 308.
const DIGITS_PLAIN: usize = 200;

/// A string shorter than this is not looked at for inline media.
const MEDIA_BYTES_MIN: usize = 1024;

pub(super) struct Scanner<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) at: usize,
    /// Bytes of inline media passed so far; see [`super::Prompt::media_bytes`].
    pub(super) media_bytes: usize,
    depth_max: u16,
}

/// A string literal; `inside` is without the quotes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Literal {
    pub(super) inside: Range<usize>,
    pub(super) escaped: bool,
}

impl Literal {
    /// A literal's quotes stand directly around its inside.
    pub(super) fn with_quotes(&self) -> Range<usize> {
        self.inside.start - 1..self.inside.end + 1
    }
}

/// A value that was passed, with the range that is its inside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Value {
    Null,
    Bool(bool),
    Number(Range<usize>),
    String(Literal),
    /// Without brackets, and without white space before the closing one.
    Array(Range<usize>),
    Object,
}

impl<'a> Scanner<'a> {
    /// `bytes` must be valid UTF-8.
    pub(super) fn new(bytes: &'a [u8], depth_max: u16) -> Self {
        Self { bytes, at: 0, media_bytes: 0, depth_max: depth_max.min(DEPTH_MAX) }
    }

    #[inline]
    pub(super) fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    #[inline]
    pub(super) fn skip_space(&mut self) {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.peek() {
            self.at += 1;
        }
    }

    /// A key of an object that is open, past the colon and the white space around it.
    #[inline]
    pub(super) fn key(&mut self) -> Result<Literal, BodyError> {
        if self.peek() != Some(b'"') {
            return Err(BodyError::json(self.at, "a quoted field name is expected here"));
        }
        let key = self.string()?;
        self.skip_space();
        if self.peek() != Some(b':') {
            return Err(BodyError::json(self.at, "a colon is expected after a field name"));
        }
        self.at += 1;
        self.skip_space();
        Ok(key)
    }

    /// Past the brace of an object and the white space after it.
    pub(super) fn enter(&mut self, depth: u16) -> Result<(), BodyError> {
        if depth >= self.depth_max {
            return Err(self.too_deep());
        }
        self.at += 1;
        self.skip_space();
        Ok(())
    }

    /// Any value. `depth`: containers that are open around it.
    #[inline]
    pub(super) fn value(&mut self, depth: u16) -> Result<Value, BodyError> {
        let start = self.at;
        match self.peek() {
            Some(b'"') => self.string().map(Value::String),
            Some(b'{') => self.container(depth).map(|()| Value::Object),
            Some(b'[') => {
                self.container(depth)?;
                Ok(Value::Array(self.trimmed(start + 1..self.at - 1)))
            }
            Some(b't') => self.word(b"true").map(|()| Value::Bool(true)),
            Some(b'f') => self.word(b"false").map(|()| Value::Bool(false)),
            Some(b'n') => self.word(b"null").map(|()| Value::Null),
            _ => self.number().map(Value::Number),
        }
    }

    /// A whole array or object, without recursion.
    fn container(&mut self, depth: u16) -> Result<(), BodyError> {
        let mut open = 0_u16;
        let mut objects = 0_u128; // lowest bit: the innermost container is an object
        let mut key = 0..0;
        loop {
            match self.peek() {
                Some(bracket @ (b'{' | b'[')) => {
                    if depth + open >= self.depth_max {
                        return Err(self.too_deep());
                    }
                    let object = bracket == b'{';
                    self.at += 1;
                    self.skip_space();
                    if self.peek() == Some(bracket + 2) {
                        self.at += 1;
                    } else {
                        open += 1;
                        objects = objects << 1 | u128::from(object);
                        if object {
                            key = self.key()?.inside;
                        }
                        continue;
                    }
                }
                Some(b'"') => {
                    let inside = self.string()?.inside;
                    if inside.len() >= MEDIA_BYTES_MIN {
                        self.count_media(objects & 1 == 1, key.clone(), inside);
                    }
                }
                Some(b't') => self.word(b"true")?,
                Some(b'f') => self.word(b"false")?,
                Some(b'n') => self.word(b"null")?,
                Some(b'1'..=b'9') if objects & 1 == 0 && self.skip_integers() => continue,
                _ => {
                    self.number()?;
                }
            }
            loop {
                if open == 0 {
                    return Ok(());
                }
                self.skip_space();
                let object = objects & 1 == 1;
                match self.peek() {
                    Some(b',') => {
                        self.at += 1;
                        self.skip_space();
                        if object {
                            key = self.key()?.inside;
                        }
                        break;
                    }
                    Some(b'}') if object => {}
                    Some(b']') if !object => {}
                    _ if object => {
                        return Err(BodyError::json(self.at, "a comma or `}` is expected here"));
                    }
                    _ => return Err(BodyError::json(self.at, "a comma or `]` is expected here")),
                }
                self.at += 1;
                open -= 1;
                objects >>= 1;
            }
        }
    }

    fn too_deep(&self) -> BodyError {
        let wanted = "send fewer arrays and objects inside each other";
        BodyError::new(BodyErrorKind::TooDeep, self.at, wanted)
    }

    fn count_media(&mut self, in_object: bool, key: Range<usize>, inside: Range<usize>) {
        let base64 = in_object && self.bytes.get(key) == Some(b"data".as_slice());
        let text = self.bytes.get(inside).unwrap_or_default();
        if base64 || text.starts_with(b"data:") {
            self.media_bytes += text.len();
        }
    }

    /// A string whose opening quote is at `at`.
    #[inline]
    fn string(&mut self) -> Result<Literal, BodyError> {
        let start = self.at + 1;
        let mut escaped = false;
        let mut at = start;
        loop {
            at = stops::string_stop(self.bytes, at);
            match self.bytes.get(at) {
                Some(b'"') => {
                    self.at = at + 1;
                    return Ok(Literal { inside: start..at, escaped });
                }
                Some(b'\\') => {
                    escaped = true;
                    // Escapes come in runs (`\n\n`, `\u4eba\u5de5`).
                    while self.bytes.get(at) == Some(&b'\\') {
                        at += self.escape(at)?;
                    }
                }
                Some(_) => {
                    let wanted = "write control characters in strings as escapes such as \\n";
                    return Err(BodyError::json(at, wanted));
                }
                None => return Err(BodyError::json(at, "the body ends inside a string")),
            }
        }
    }

    /// Length of the escape at `at`.
    #[inline]
    fn escape(&self, at: usize) -> Result<usize, BodyError> {
        match self.bytes.get(at + 1) {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => Ok(2),
            Some(b'u') => match self.bytes.get(at + 2..).and_then(<[u8]>::first_chunk::<4>) {
                Some(digits)
                    if digits.iter().fold(true, |all, digit| all & digit.is_ascii_hexdigit()) =>
                {
                    Ok(6)
                }
                _ => Err(BodyError::json(at, "\\u needs four hexadecimal digits")),
            },
            _ => Err(BodyError::json(at, "JSON has no such escape")),
        }
    }

    #[inline]
    fn word(&mut self, word: &'static [u8]) -> Result<(), BodyError> {
        let end = self.at + word.len();
        if self.bytes.get(self.at..end) != Some(word) {
            return Err(BodyError::json(self.at, VALUE_WANTED));
        }
        self.at = end;
        Ok(())
    }

    #[inline]
    fn number(&mut self) -> Result<Range<usize>, BodyError> {
        let start = self.at;
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        match self.peek() {
            Some(b'0') => self.at += 1,
            Some(b'1'..=b'9') => self.skip_digits(),
            None => {
                return Err(BodyError::json(self.at, "the body ends where a value is expected"));
            }
            Some(_) => return Err(BodyError::json(start, VALUE_WANTED)),
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        let mantissa_bytes = self.at - start;
        let mut exponent_bytes = 0;
        if let Some(b'e' | b'E') = self.peek() {
            self.at += 1;
            if let Some(b'+' | b'-') = self.peek() {
                self.at += 1;
            }
            let exponent = self.at;
            self.digits()?;
            exponent_bytes = self.at - exponent;
        }
        // So many digits times 10^99 still fit a double; anything longer is worth a real look.
        if (mantissa_bytes > DIGITS_PLAIN || exponent_bytes > 2) && !self.is_finite(start..self.at)
        {
            return Err(BodyError::json(start, "a number must lie within a double's range"));
        }
        Ok(start..self.at)
    }

    /// Steps over whole numbers that another element follows: prompts may be long lists of token
    /// ids. Whether it got on; if so, a value must come next.
    fn skip_integers(&mut self) -> bool {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let mut passed = 0;
        while let Some(number) = rest.get(passed..).filter(|rest| matches!(rest, [b'1'..=b'9', ..]))
        {
            let digits = number.iter().take_while(|byte| byte.is_ascii_digit()).count();
            match number.get(digits..) {
                Some([b',', b' ', ..]) if digits <= DIGITS_PLAIN => passed += digits + 2,
                Some([b',', ..]) if digits <= DIGITS_PLAIN => passed += digits + 1,
                _ => break,
            }
        }
        self.at += passed;
        if passed > 0 {
            self.skip_space();
        }
        passed > 0
    }

    fn digits(&mut self) -> Result<(), BodyError> {
        match self.peek() {
            Some(b'0'..=b'9') => {
                self.skip_digits();
                Ok(())
            }
            _ => Err(BodyError::json(self.at, "a digit is expected here")),
        }
    }

    #[inline]
    fn skip_digits(&mut self) {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        self.at += rest.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(rest.len());
    }

    fn is_finite(&self, range: Range<usize>) -> bool {
        let text = self.bytes.get(range).and_then(|bytes| std::str::from_utf8(bytes).ok());
        text.and_then(|text| text.parse::<f64>().ok()).is_some_and(f64::is_finite)
    }

    fn trimmed(&self, range: Range<usize>) -> Range<usize> {
        let inside = self.bytes.get(range.clone()).unwrap_or_default();
        let space = |byte: &&u8| matches!(byte, b' ' | b'\n' | b'\r' | b'\t');
        range.start..range.end - inside.iter().rev().take_while(space).count()
    }
}

const VALUE_WANTED: &str = "a JSON value is expected here";
