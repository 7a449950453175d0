//! Reads an event stream as it passes.
//!
//! Chunks go on to the client untouched; this only looks. Lines, fields and events are those of the
//! HTML standard, section 9.2 (CR, LF and CR LF end lines; a blank line ends an event; comments are
//! no events), read byte by byte as a state machine, so how the bytes were split cannot matter.
//! Events may have any size: their JSON is walked over, not kept.

#[cfg(test)]
mod tests;

use crate::answer::{Facts, Kind, Short, Walker};
use crate::usage::{Counts, Usage};

/// What an event is, the most telling first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    Error,
    /// Carries generated text, reasoning or a tool call.
    Content,
    /// The end of the stream.
    Done,
    /// Carries token counts.
    Usage,
    Other,
}

/// What an event stream said so far.
#[derive(Debug)]
pub struct SseReader {
    line: Line,
    /// The name of the field under way, as far as it was seen.
    field: Short,
    /// The last byte was a CR, so an LF belongs to it.
    after_cr: bool,
    /// Bytes of a byte order mark at the start of the stream that were seen; `MARK.len()` when
    /// past it.
    mark: usize,
    /// The event under way has a field.
    in_event: bool,
    name: Short,
    /// The beginning of the data under way; enough to know `[DONE]`.
    data: Short,
    data_lines: u32,
    walker: Walker,
    events: u64,
    content_events: u64,
    first_event: Option<EventKind>,
    counts: Counts,
    done: bool,
    error: bool,
}

/// Where within a line the bytes stopped.
#[derive(Clone, Copy, Debug)]
enum Line {
    /// In the field's name, or at the line's beginning.
    Name,
    /// Behind the colon; one space there does not count.
    Colon(Field),
    Value(Field),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Field {
    Data,
    Event,
    /// A comment, an id, a retry time, or anything unknown.
    Ignored,
}

const DONE: &[u8] = b"[DONE]";
const MARK: &[u8] = b"\xef\xbb\xbf";

impl Default for SseReader {
    fn default() -> Self {
        Self::new()
    }
}

impl SseReader {
    pub fn new() -> Self {
        Self {
            line: Line::Name,
            field: Short::new(),
            after_cr: false,
            mark: 0,
            in_event: false,
            name: Short::new(),
            data: Short::new(),
            data_lines: 0,
            walker: Walker::new(),
            events: 0,
            content_events: 0,
            first_event: None,
            counts: Counts::default(),
            done: false,
            error: false,
        }
    }

    /// Events that ended; comments (heartbeats) are none.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// Events with generated text, reasoning or tool calls.
    pub fn content_events(&self) -> u64 {
        self.content_events
    }

    pub fn first_event(&self) -> Option<EventKind> {
        self.first_event
    }

    /// The stream said that it is complete: `[DONE]`, or the last event of its dialect.
    pub fn done(&self) -> bool {
        self.done
    }

    /// An event carried an error.
    pub fn error(&self) -> bool {
        self.error
    }

    /// The latest counts; before the end of a stream they may be partial.
    pub fn usage(&self) -> Option<Usage> {
        self.counts.usage()
    }

    /// Whether an event of ours could be put here without damaging one under way.
    pub fn at_event_boundary(&self) -> bool {
        self.at_line_start() && !self.in_event && (self.mark == 0 || self.mark == MARK.len())
    }

    pub fn push(&mut self, chunk: &[u8]) {
        let mut at = if self.mark < MARK.len() { self.skip_mark(chunk) } else { 0 };
        while let Some(rest) = chunk.get(at..).filter(|rest| !rest.is_empty()) {
            at += match self.line {
                _ if self.after_cr => {
                    self.after_cr = false;
                    usize::from(rest[0] == b'\n')
                }
                Line::Name => self.field_name(rest),
                Line::Colon(field) => {
                    self.line = Line::Value(field);
                    usize::from(rest[0] == b' ')
                }
                Line::Value(field) => self.value(field, rest),
            };
        }
    }

    /// The stream has ended. An event without its blank line does not count, except `[DONE]`,
    /// after which nothing was to come.
    pub fn finish(&mut self) {
        if self.data.get() == DONE {
            self.end_event();
        }
    }

    fn at_line_start(&self) -> bool {
        matches!(self.line, Line::Name) && self.field.is_empty()
    }

    /// Steps over a byte order mark at the start of the stream, and nowhere else.
    fn skip_mark(&mut self, chunk: &[u8]) -> usize {
        for (at, byte) in chunk.iter().enumerate() {
            if MARK.get(self.mark) == Some(byte) {
                self.mark += 1;
            } else {
                if self.mark < MARK.len() {
                    self.field.push(&MARK[..self.mark]);
                    self.mark = MARK.len();
                }
                return at;
            }
        }
        chunk.len()
    }

    #[inline]
    fn field_name(&mut self, rest: &[u8]) -> usize {
        if self.field.is_empty() && rest.starts_with(b"data:") {
            self.begin_value(Field::Data);
            return 5;
        }
        let Some(end) = rest.iter().position(|byte| matches!(byte, b':' | b'\r' | b'\n')) else {
            self.field.push(rest);
            return rest.len();
        };
        self.field.push(&rest[..end]);
        let comment = self.field.is_empty();
        if rest[end] == b':' {
            self.in_event |= !comment;
            self.begin_value(Field::of(self.field.get()));
        } else if comment {
            self.end_event();
            self.end_line(rest[end]);
        } else {
            self.begin_value(Field::of(self.field.get()));
            self.end_line(rest[end]);
        }
        end + 1
    }

    #[inline]
    fn begin_value(&mut self, field: Field) {
        self.line = Line::Colon(field);
        self.field.clear();
        match field {
            Field::Data => {
                self.in_event = true;
                if self.data_lines > 0 {
                    self.data.push(b"\n");
                    self.walker.push(b"\n");
                }
                self.data_lines = self.data_lines.saturating_add(1);
            }
            Field::Event => self.name.clear(),
            Field::Ignored => {}
        }
    }

    #[inline]
    fn value(&mut self, field: Field, rest: &[u8]) -> usize {
        let end = memchr::memchr2(b'\r', b'\n', rest);
        let text = &rest[..end.unwrap_or(rest.len())];
        match field {
            Field::Data => {
                self.data.push(text);
                self.walker.push(text);
            }
            Field::Event => self.name.push(text),
            Field::Ignored => {}
        }
        match end {
            Some(end) => {
                self.end_line(rest[end]);
                end + 1
            }
            None => rest.len(),
        }
    }

    #[inline]
    fn end_line(&mut self, end: u8) {
        self.line = Line::Name;
        self.field.clear();
        self.after_cr = end == b'\r';
    }

    /// A blank line: what was gathered is one event, unless it has no data.
    fn end_event(&mut self) {
        if self.data_lines > 0 {
            self.count_event(self.walker.facts());
            self.walker.reset();
        }
        self.in_event = false;
        self.name.clear();
        self.data.clear();
        self.data_lines = 0;
    }

    fn count_event(&mut self, facts: Facts) {
        let kind = match facts.kind {
            Kind::None => Kind::of(self.name.get()),
            kind => kind,
        };
        let error = facts.error || matches!(kind, Kind::Error | Kind::Failed);
        // Where events have types, only deltas are new text; others repeat it.
        let untyped = facts.kind == Kind::None;
        let content = kind == Kind::Delta || facts.content && untyped;
        let done = self.data.get() == DONE
            || matches!(kind, Kind::End | Kind::Failed)
            || facts.generated_text;
        let event = match () {
            () if error => EventKind::Error,
            () if content => EventKind::Content,
            () if done => EventKind::Done,
            () if facts.counts.usage().is_some() => EventKind::Usage,
            () => EventKind::Other,
        };
        self.events += 1;
        self.content_events += u64::from(content);
        self.first_event.get_or_insert(event);
        self.counts = self.counts.overruled_by(facts.counts);
        self.done |= done;
        self.error |= error;
    }
}

impl Field {
    fn of(name: &[u8]) -> Self {
        match name {
            b"data" => Self::Data,
            b"event" => Self::Event,
            _ => Self::Ignored,
        }
    }
}
