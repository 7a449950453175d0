//! Walks over the JSON of an answer as it passes, in pieces of any size.
//!
//! Knows the few places where engines put what we read (usage, errors, first tokens, the end) and
//! steps over the rest with vector searches. Its memory is this struct, whatever passes. Engines
//! are not trusted: what is malformed or of an odd type is ignored, and nothing can panic.

mod place;
#[cfg(test)]
mod tests;

use place::{Place, Slot};

use crate::stops;
use crate::usage::Counts;

/// Containers that lead to something we read: `response.usage.input_tokens_details` and the like.
const LEVELS: usize = 6;

/// What one JSON text said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Facts {
    pub(crate) counts: Counts,
    /// From `type`.
    pub(crate) kind: Kind,
    /// An error object, or `"object":"error"`.
    pub(crate) error: bool,
    /// Generated text, reasoning, or a tool call.
    pub(crate) content: bool,
    /// TGI's whole text, which comes with the last token.
    pub(crate) generated_text: bool,
}

/// What a `type`, or the name of an event, tells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Kind {
    #[default]
    None,
    /// Some type that tells nothing.
    Other,
    Delta,
    Error,
    /// The last event of an answer that ended as it should.
    End,
    /// The last event of an answer that failed.
    Failed,
}

impl Kind {
    /// Event types of Anthropic's Messages and OpenAI's Responses and Transcriptions.
    pub(crate) fn of(name: &[u8]) -> Self {
        match name {
            b"" => Self::None,
            b"error" => Self::Error,
            b"message_stop"
            | b"response.completed"
            | b"response.incomplete"
            | b"transcript.text.done" => Self::End,
            b"response.failed" => Self::Failed,
            b"content_block_delta" => Self::Delta,
            _ if name.ends_with(b".delta") => Self::Delta,
            _ => Self::Other,
        }
    }
}

/// The first bytes of a short text; a longer one equals nothing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Short {
    bytes: [u8; Self::BYTES_MAX],
    len: usize,
}

impl Short {
    /// Longer than any name that is compared.
    pub(crate) const BYTES_MAX: usize = 48;

    pub(crate) fn new() -> Self {
        Self { bytes: [0; Self::BYTES_MAX], len: 0 }
    }

    pub(crate) fn clear(&mut self) {
        self.len = 0;
    }

    pub(crate) fn push(&mut self, more: &[u8]) {
        if let Some(free) = self.bytes.get_mut(self.len..self.len + more.len()) {
            free.copy_from_slice(more);
            self.len += more.len();
        } else {
            self.len = Self::BYTES_MAX + 1;
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Empty if the text was too long.
    pub(crate) fn get(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }
}

/// Where within a token the bytes stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token {
    /// Between tokens.
    None,
    Key {
        escape: bool,
    },
    String {
        escape: bool,
    },
    Number {
        value: Option<u64>,
    },
    /// A string below a place that is stepped over.
    Skipped {
        escape: bool,
    },
}

#[derive(Debug)]
pub(crate) struct Walker {
    token: Token,
    /// The containers that are open and known, outermost first.
    places: [Place; LEVELS],
    level: usize,
    /// Containers open inside one that is stepped over.
    skipped: u64,
    /// The next string is a key.
    key_next: bool,
    /// An array or object of [`Slot::Content`] was opened and nothing was seen in it yet.
    content_opened: bool,
    /// What the next value is.
    slot: Slot,
    /// A key, or the value of a `type`, that came in several pieces.
    short: Short,
    facts: Facts,
    /// Counts of the elements of an outermost array that have ended.
    sum: Option<Counts>,
}

impl Walker {
    pub(crate) fn new() -> Self {
        Self {
            token: Token::None,
            places: [Place::Root; LEVELS],
            level: 0,
            skipped: 0,
            key_next: false,
            content_opened: false,
            slot: Slot::Root,
            short: Short::new(),
            facts: Facts::default(),
            sum: None,
        }
    }

    /// Makes ready for another JSON text.
    pub(crate) fn reset(&mut self) {
        self.token = Token::None;
        self.level = 0;
        self.skipped = 0;
        self.key_next = false;
        self.content_opened = false;
        self.slot = Slot::Root;
        self.facts = Facts::default();
        self.sum = None;
    }

    /// What was said so far. Of an outermost array (SGLang's batches) the counts are sums.
    pub(crate) fn facts(&self) -> Facts {
        let counts = match self.sum {
            Some(sum) => sum.plus(self.facts.counts),
            None => self.facts.counts,
        };
        Facts { counts, ..self.facts }
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        let mut at = 0;
        while at < bytes.len() {
            at = match self.token {
                Token::None if self.skipped > 0 => self.skip(bytes, at),
                Token::None => self.between(bytes, at),
                Token::Key { escape } => self.key(bytes, at, escape),
                Token::String { escape } => self.string(bytes, at, escape),
                Token::Number { value } => self.number(bytes, at, value),
                Token::Skipped { escape } => self.skipped_string(bytes, at, escape),
            };
        }
    }

    #[inline]
    fn between(&mut self, bytes: &[u8], at: usize) -> usize {
        match bytes[at] {
            b'"' => {
                self.short.clear();
                if self.key_next {
                    self.key_next = false;
                    self.token = Token::Key { escape: false };
                } else {
                    self.token = Token::String { escape: false };
                }
            }
            bracket @ (b'{' | b'[') => self.open(bracket),
            b'}' | b']' => self.close(),
            b',' => {
                let place = self.place();
                self.key_next = place.is_some_and(Place::is_object);
                self.slot = place.map_or(Slot::Other, Place::element);
            }
            byte @ b'0'..=b'9' if self.slot.is_count() => {
                self.token = Token::Number { value: Some(u64::from(byte - b'0')) };
            }
            b't' if self.slot == Slot::Error => {
                self.facts.error = true;
                self.slot = Slot::Other;
            }
            // Anything else that begins a value is none that we read.
            b'-' | b'0'..=b'9' | b't' | b'f' | b'n' => self.slot = Slot::Other,
            _ => {}
        }
        at + 1
    }

    fn place(&self) -> Option<Place> {
        self.level.checked_sub(1).and_then(|top| self.places.get(top)).copied()
    }

    fn open(&mut self, bracket: u8) {
        if self.slot == Slot::Error {
            self.facts.error = true;
        }
        if self.slot == Slot::Token {
            self.facts.content = true;
        }
        match self.slot.opened_by(bracket) {
            Some(place) if self.level < LEVELS => {
                self.places[self.level] = place;
                self.level += 1;
                self.key_next = place.is_object();
                self.slot = place.element();
                if place == Place::Roots {
                    self.sum = Some(Counts::default());
                }
            }
            _ => {
                self.skipped = 1;
                self.content_opened = self.slot == Slot::Content;
                self.slot = Slot::Other;
            }
        }
    }

    fn close(&mut self) {
        let closed = self.place();
        self.level = self.level.saturating_sub(1);
        self.key_next = false;
        self.slot = Slot::Other;
        if let (Some(Place::Root), Some(sum)) = (closed, &mut self.sum) {
            *sum = sum.plus(self.facts.counts);
            self.facts.counts = Counts::default();
        }
    }

    /// Within a container that is stepped over only quotes and brackets matter.
    #[inline]
    fn skip(&mut self, bytes: &[u8], at: usize) -> usize {
        let at = stops::structure(bytes, at);
        match bytes.get(at) {
            Some(b'"') => {
                self.token = Token::Skipped { escape: false };
                self.facts.content |= self.content_opened;
                self.content_opened = false;
            }
            Some(b'{' | b'[') => {
                self.skipped += 1;
                self.facts.content |= self.content_opened;
                self.content_opened = false;
            }
            Some(_) => {
                self.skipped -= 1;
                self.content_opened = false;
            }
            None => {}
        }
        at + 1
    }

    #[inline]
    fn skipped_string(&mut self, bytes: &[u8], at: usize, escape: bool) -> usize {
        let (end, after, escape) = string_end(bytes, at, escape);
        self.token = match end {
            true => Token::None,
            false => Token::Skipped { escape },
        };
        after
    }

    #[inline]
    fn key(&mut self, bytes: &[u8], at: usize, escape: bool) -> usize {
        let (end, after, escape) = string_end(bytes, at, escape);
        if !end {
            self.short.push(&bytes[at..after]);
            self.token = Token::Key { escape };
            return after;
        }
        let last = &bytes[at..after - 1];
        let place = self.place().unwrap_or(Place::Root);
        self.slot = if self.short.is_empty() {
            place.slot(last)
        } else {
            self.short.push(last);
            place.slot(self.short.get())
        };
        self.token = Token::None;
        after
    }

    #[inline]
    fn string(&mut self, bytes: &[u8], at: usize, escape: bool) -> usize {
        let (end, after, escape) = string_end(bytes, at, escape);
        let text = &bytes[at..if end { after - 1 } else { after }];
        match self.slot {
            Slot::Content => self.facts.content |= !text.is_empty(),
            Slot::Error | Slot::Type | Slot::Object => self.short.push(text),
            _ => {}
        }
        if !end {
            self.token = Token::String { escape };
            return after;
        }
        match self.slot {
            Slot::Type => self.facts.kind = Kind::of(self.short.get()),
            Slot::Object => self.facts.error |= self.short.get() == b"error",
            Slot::Error => self.facts.error |= !self.short.is_empty(),
            Slot::GeneratedText => self.facts.generated_text = true,
            _ => {}
        }
        self.slot = Slot::Other;
        self.token = Token::None;
        after
    }

    #[inline]
    fn number(&mut self, bytes: &[u8], at: usize, mut value: Option<u64>) -> usize {
        for (offset, byte) in bytes[at..].iter().enumerate() {
            match byte {
                b'0'..=b'9' => {
                    value = value.map(|value| {
                        value.saturating_mul(10).saturating_add(u64::from(byte - b'0'))
                    });
                }
                b',' | b'}' | b']' | b' ' | b'\t' | b'\r' | b'\n' => {
                    if let Some(value) = value {
                        self.slot.count(&mut self.facts.counts, value);
                    }
                    self.slot = Slot::Other;
                    self.token = Token::None;
                    return at + offset;
                }
                // A fraction or an exponent: not a count.
                _ => value = None,
            }
        }
        self.token = Token::Number { value };
        bytes.len()
    }
}

/// Looks for the quote that ends a string from `at` on. Returns whether it was found, the index
/// after it (or the length), and whether the next byte is escaped.
#[inline]
fn string_end(bytes: &[u8], at: usize, escape: bool) -> (bool, usize, bool) {
    let mut at = at + usize::from(escape);
    loop {
        at = stops::string_stop(bytes, at);
        match bytes.get(at) {
            Some(b'"') => return (true, at + 1, false),
            Some(b'\\') if at + 1 == bytes.len() => return (false, bytes.len(), true),
            Some(b'\\') => at += 2,
            Some(_) => at += 1,
            None => return (false, bytes.len(), false),
        }
    }
}
