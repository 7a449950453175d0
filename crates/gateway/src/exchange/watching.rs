//! What can be learned from an answer while it passes by.

use std::time::Duration;

use openai::{EventKind, Route, SseReader, Usage, UsageReader};
use types::Timestamp;

/// Follows one answer; holds nothing of it back.
#[derive(Debug, Default)]
pub(super) struct Watching {
    reader: Reader,
    pub(super) bytes_out: u64,
    first: Option<Timestamp>,
    /// When the first payload came that may be of a token.
    pub(super) first_token: Option<Timestamp>,
    pub(super) last: Option<Timestamp>,
    must_end: bool,
    /// Events come before the prompt is computed: `response.created` and the like.
    has_preamble: bool,
}

#[derive(Debug, Default)]
enum Reader {
    /// Not an answer that we read: an error, or no JSON.
    #[default]
    Nothing,
    Events(Box<SseReader>),
    Json(Box<UsageReader>),
}

/// When payload came.
pub(super) struct Gap {
    /// It is the first.
    pub(super) is_first: bool,
    /// It brings the first token.
    pub(super) is_first_token: bool,
    pub(super) since_last: Option<Duration>,
}

impl Watching {
    pub(super) fn begin(&mut self, route: Route, status: u16, content_type: Option<&str>) {
        let kind = content_type.unwrap_or("").split(';').next().unwrap_or("").trim();
        let is_ok = (200..300).contains(&status);
        self.reader = if is_ok && kind.eq_ignore_ascii_case("text/event-stream") {
            Reader::Events(Box::new(SseReader::new()))
        } else if is_ok && kind.eq_ignore_ascii_case("application/json") {
            Reader::Json(Box::new(UsageReader::new()))
        } else {
            Reader::Nothing
        };
        self.has_preamble = route == Route::Responses && self.is_event_stream();
        self.must_end = is_ok
            && matches!(
                route,
                Route::ChatCompletions
                    | Route::Completions
                    | Route::Responses
                    | Route::Messages
                    | Route::Generate
                    | Route::GenerateStream
            );
    }

    pub(super) fn payload(&mut self, bytes: &[u8], now: Timestamp) -> Gap {
        self.bytes_out += bytes.len() as u64;
        match &mut self.reader {
            Reader::Nothing => {}
            Reader::Events(reader) => reader.push(bytes),
            Reader::Json(reader) => reader.push(bytes),
        }
        let since_last = self.last.map(|last| now.since(last));
        self.last = Some(now);
        let is_first = self.first.is_none();
        self.first.get_or_insert(now);
        let is_first_token = self.first_token.is_none() && self.is_past_preamble();
        if is_first_token {
            self.first_token = Some(now);
        }
        Gap { is_first, is_first_token, since_last }
    }

    fn is_past_preamble(&self) -> bool {
        match &self.reader {
            Reader::Events(reader) if self.has_preamble => reader.content_events() > 0,
            _ => true,
        }
    }

    pub(super) fn is_event_stream(&self) -> bool {
        matches!(self.reader, Reader::Events(_))
    }

    pub(super) fn at_event_boundary(&self) -> bool {
        match &self.reader {
            Reader::Events(reader) => reader.at_event_boundary(),
            _ => true,
        }
    }

    pub(super) fn stream_is_unfinished(&self) -> bool {
        match &self.reader {
            Reader::Events(reader) => self.must_end && !reader.done() && !reader.error(),
            _ => false,
        }
    }

    pub(super) fn opened_with_error(&self) -> bool {
        matches!(&self.reader, Reader::Events(reader) if reader.first_event() == Some(EventKind::Error))
    }

    /// Whether the endpoint reported an error inside its stream.
    pub(super) fn saw_error(&self) -> bool {
        matches!(&self.reader, Reader::Events(reader) if reader.error())
    }

    pub(super) fn usage(&self) -> Option<Usage> {
        match &self.reader {
            Reader::Nothing => None,
            Reader::Events(reader) => reader.usage(),
            Reader::Json(reader) => reader.usage(),
        }
    }

    /// Events with content, an estimate of the tokens sent where the endpoint gives no usage.
    pub(super) fn content_events(&self) -> Option<u64> {
        match &self.reader {
            Reader::Events(reader) => Some(reader.content_events()),
            _ => None,
        }
    }
}
