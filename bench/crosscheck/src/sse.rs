//! Events of one streamed chat completion, from bytes in any pieces.

use memchr::memmem;

/// What one event is to the measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    Token,
    Usage(Usage),
    /// An error instead of, or behind, an answer.
    Error,
    Done,
    /// The role, a comment.
    Other,
}

/// Counts that the server reported; what a router took out is `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    pub prompt_tokens: Option<u32>,
    pub output_tokens: Option<u32>,
    pub cached_tokens: Option<u32>,
}

/// Bytes of an event that is not complete.
#[derive(Debug, Default)]
pub struct Events {
    open: Vec<u8>,
}

impl Events {
    /// Appends bytes; gives each event that they complete.
    pub fn feed(&mut self, bytes: &[u8], mut each: impl FnMut(Event)) {
        self.open.extend_from_slice(bytes);
        let mut begin = 0;
        while let Some(length) = memmem::find(&self.open[begin..], b"\n\n") {
            each(read(&self.open[begin..begin + length]));
            begin += length + 2;
        }
        self.open.drain(..begin);
    }
}

fn read(event: &[u8]) -> Event {
    const CONTENT: &[u8] = b"\"content\":\"";
    let Some(at) = memmem::find(event, b"data:") else { return Event::Other };
    let data = event[at + 5..].trim_ascii();
    if data == b"[DONE]" {
        return Event::Done;
    }
    // Looked at for every token, hence without parsing.
    if let Some(at) = memmem::find(data, CONTENT) {
        let is_empty = data.get(at + CONTENT.len()) == Some(&b'"');
        return if is_empty { Event::Other } else { Event::Token };
    }
    let Ok(value) = serde_json::from_slice::<serde_json::Value>(data) else { return Event::Error };
    if !value["error"].is_null() {
        return Event::Error;
    }
    let usage = &value["usage"];
    if usage.is_null() {
        return Event::Other;
    }
    let count = |value: &serde_json::Value| value.as_u64().and_then(|n| u32::try_from(n).ok());
    Event::Usage(Usage {
        prompt_tokens: count(&usage["prompt_tokens"]),
        output_tokens: count(&usage["completion_tokens"]),
        cached_tokens: count(&usage["prompt_tokens_details"]["cached_tokens"]),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const STREAM: &str = concat!(
        "data: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n",
        "data: {\"choices\":[{\"delta\":{\"content\":\"bad \"}}]}\n\n",
        ": still here\n\n",
        "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":1,",
        "\"prompt_tokens_details\":{\"cached_tokens\":4}}}\n\n",
        "data: [DONE]\n\n",
    );

    fn events(pieces: &[&[u8]]) -> Vec<Event> {
        let (mut events, mut seen) = (Events::default(), Vec::new());
        pieces.iter().for_each(|piece| events.feed(piece, |event| seen.push(event)));
        seen
    }

    #[test]
    fn events_are_the_same_for_any_split() {
        let usage =
            Usage { prompt_tokens: Some(9), output_tokens: Some(1), cached_tokens: Some(4) };
        let whole =
            [Event::Other, Event::Token, Event::Other, Event::Usage(usage), Event::Done].to_vec();
        for cut in 0..STREAM.len() {
            let (one, two) = STREAM.as_bytes().split_at(cut);
            assert_eq!(events(&[one, two]), whole, "{cut}");
        }
    }

    #[test]
    fn an_error_event_and_garbage_are_errors() {
        assert_eq!(events(&[b"data: {\"error\":{\"message\":\"x\"}}\n\n"]), [Event::Error]);
        assert_eq!(events(&[b"data: {oops\n\n"]), [Event::Error]);
    }
}
