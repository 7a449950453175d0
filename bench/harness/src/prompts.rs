//! Request bodies as chat clients send them: English words, line breaks and quotes, which JSON
//! escapes, in chat messages.
//!
//! The kind decides what a prefix-aware router can reuse. All are deterministic in their seed.

use std::fmt::Write;
use std::sync::Arc;

/// Name of the mock's model, also in its metrics page.
pub const MODEL: &str = "tiny";
/// What clients send as their key; LiteLLM wants a long one, nobody else looks.
pub const BEARER: &str = "sk-bench-not-a-secret-000000000000";

const WORDS: &[&str] = &[
    "the",
    "of",
    "and",
    "to",
    "in",
    "is",
    "that",
    "for",
    "it",
    "as",
    "was",
    "with",
    "be",
    "by",
    "on",
    "not",
    "he",
    "this",
    "are",
    "or",
    "his",
    "from",
    "at",
    "which",
    "but",
    "have",
    "an",
    "had",
    "they",
    "you",
    "were",
    "their",
    "one",
    "all",
    "we",
    "can",
    "her",
    "has",
    "there",
    "been",
    "if",
    "more",
    "when",
    "will",
    "would",
    "who",
    "so",
    "no",
    "answer",
    "water",
    "turbine",
    "gate",
    "request",
    "stream",
    "token",
    "model",
    "context",
    "function",
    "return",
    "number",
    "memory",
    "measure",
    "question",
    "system",
    "people",
    "between",
    "example",
    "different",
];

/// What the requests of one run share with each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Three quarters of the body is one system prompt; the rest is one of 16 questions.
    Shared,
    /// Each connection talks: a turn adds to all that was said before; mean size as asked, the
    /// longest body nearly twice that. All conversations begin with one system prompt.
    Conversations,
    /// No two requests have a first word in common, as far as chance allows.
    Unique,
}

/// A stream of whole HTTP requests for one connection.
pub struct Requests {
    host: String,
    kind: Kind,
    bytes: usize,
    seed: u64,
    random: Random,
    /// Ready requests, for [`Kind::Shared`]; every connection walks through them.
    shared: Arc<Vec<Vec<u8>>>,
    next: usize,
    conversation: String,
    out: Vec<u8>,
}

impl Requests {
    /// Requests to `host` (`HOST:PORT`) whose bodies have about `bytes` bytes.
    pub fn new(kind: Kind, bytes: usize, host: &str, seed: u64) -> Self {
        let mut shared = Vec::new();
        if kind == Kind::Shared {
            let system = Random(1).text(bytes * 3 / 4);
            for question in 0..16 {
                let messages = format!(
                    r#"{{"role":"system","content":"{system}"}},{{"role":"user","content":"{}"}}"#,
                    Random(100 + question).text((bytes / 4).saturating_sub(OVERHEAD))
                );
                let mut out = Vec::new();
                write_chat(&mut out, host, &messages);
                shared.push(out);
            }
        }
        Self {
            host: host.to_owned(),
            kind,
            bytes,
            seed,
            random: Random::seeded(seed),
            shared: Arc::new(shared),
            next: seed as usize,
            conversation: String::new(),
            out: Vec::new(),
        }
    }

    /// The same kind for another connection; shares what is ready and says something else.
    pub fn for_connection(&self, connection: u64) -> Self {
        let seed = self.seed.wrapping_mul(1_009).wrapping_add(connection + 1);
        Self {
            host: self.host.clone(),
            kind: self.kind,
            bytes: self.bytes,
            seed,
            random: Random::seeded(seed),
            shared: Arc::clone(&self.shared),
            next: seed as usize,
            conversation: String::new(),
            out: Vec::new(),
        }
    }

    /// The next request, head and body.
    pub fn next(&mut self) -> &[u8] {
        match self.kind {
            Kind::Shared => {
                self.next = self.next.wrapping_add(1) % self.shared.len();
                &self.shared[self.next]
            }
            Kind::Conversations => {
                self.turn();
                write_chat(&mut self.out, &self.host, &self.conversation);
                &self.out
            }
            Kind::Unique => {
                let text = self.random.text(self.bytes.saturating_sub(OVERHEAD));
                let messages = format!(r#"{{"role":"user","content":"{text}"}}"#);
                write_chat(&mut self.out, &self.host, &messages);
                &self.out
            }
        }
    }

    /// Adds a turn: an eighth of the mean size each, so 15 of them average to it.
    fn turn(&mut self) {
        let turn = self.bytes / 8;
        if self.conversation.is_empty() || self.conversation.len() + turn > self.bytes * 2 {
            let system = Random(1).text((turn / 2).max(8));
            self.conversation.clear();
            let _ = write!(
                self.conversation,
                r#"{{"role":"system","content":"{system}"}},{{"role":"user","content":"{}"}}"#,
                self.random.text((turn / 2).max(8))
            );
        } else {
            let _ = write!(
                self.conversation,
                r#",{{"role":"assistant","content":"{}"}},{{"role":"user","content":"{}"}}"#,
                self.random.text((turn / 2).saturating_sub(40).max(8)),
                self.random.text((turn / 2).saturating_sub(40).max(8))
            );
        }
    }
}

/// Bytes of a body around its text.
const OVERHEAD: usize = 90;

fn write_chat(out: &mut Vec<u8>, host: &str, messages: &str) {
    let body = format!(r#"{{"model":"{MODEL}","messages":[{messages}],"max_tokens":16}}"#);
    write_post(out, host, &body);
}

/// A request for a stream of `chunks` events.
pub fn stream_request(host: &str, chunks: u32) -> Vec<u8> {
    let body = format!(
        r#"{{"model":"{MODEL}","messages":[{{"role":"user","content":"{}"}}],"stream":true,"max_tokens":{chunks}}}"#,
        Random(7).text(300)
    );
    let mut out = Vec::new();
    write_post(&mut out, host, &body);
    out
}

fn write_post(out: &mut Vec<u8>, host: &str, body: &str) {
    out.clear();
    out.extend_from_slice(
        format!(
            "POST /v1/chat/completions HTTP/1.1\r\nhost: {host}\r\nuser-agent: wicketgate-bench\r\n\
             accept: application/json\r\nauthorization: Bearer {BEARER}\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n",
            body.len()
        )
        .as_bytes(),
    );
    out.extend_from_slice(body.as_bytes());
}

/// xorshift64*: good enough for words, and cheap enough to make them while measuring.
struct Random(u64);

impl Random {
    /// Near seeds give unlike sequences; a state of zero would stay zero.
    fn seeded(seed: u64) -> Self {
        let mut random = Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        for _ in 0..4 {
            random.next();
        }
        random
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// Text of exactly `bytes` bytes, ready for a JSON string.
    fn text(&mut self, bytes: usize) -> String {
        let mut text = String::with_capacity(bytes + 16);
        let _ = write!(text, "{:x} ", self.next() >> 16);
        while text.len() < bytes {
            let dice = self.next();
            text.push_str(WORDS[(dice >> 8) as usize % WORDS.len()]);
            text.push_str(match dice & 63 {
                0 => "\\n",
                1 => "\\\" ",
                2 => ", \\\"",
                3 => ". ",
                _ => " ",
            });
        }
        // Cut to size without cutting an escape in two.
        text.truncate(bytes);
        if text.ends_with('\\') {
            text.pop();
            text.push(' ');
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(request: &[u8]) -> serde_json::Value {
        let at = memchr::memmem::find(request, b"\r\n\r\n").unwrap() + 4;
        let head = std::str::from_utf8(&request[..at]).unwrap();
        assert!(head.contains(&format!("content-length: {}\r\n", request.len() - at)));
        serde_json::from_slice(&request[at..]).unwrap()
    }

    #[test]
    fn every_body_is_json_of_about_the_asked_size() {
        for bytes in [500, 3_900, 32_000, 400_000] {
            for kind in [Kind::Shared, Kind::Unique] {
                let mut requests = Requests::new(kind, bytes, "h:1", 3);
                let request = requests.next();
                assert_eq!(body(request)["model"], MODEL);
                let size = request.len() as f64 / bytes as f64;
                assert!((0.9..1.6).contains(&size), "{kind:?} {bytes}: {}", request.len());
            }
        }
    }

    #[test]
    fn a_conversation_repeats_what_was_said_and_has_the_mean_size() {
        let mut requests = Requests::new(Kind::Conversations, 32_000, "h:1", 3);
        let (mut sum, mut last, mut begun) = (0, Vec::new(), 0);
        for _ in 0..64 {
            let now = body(requests.next());
            sum += now.to_string().len();
            let messages = now["messages"].as_array().unwrap().clone();
            if messages.len() > last.len() {
                assert!(messages.starts_with(&last));
            } else {
                assert_eq!(messages[0], last[0], "the system prompt is the same for all");
                begun += 1;
            }
            last = messages;
        }
        assert!((2..=5).contains(&begun), "{begun}");
        assert!((25_000..40_000).contains(&(sum / 64)), "{}", sum / 64);
    }

    #[test]
    fn unique_prompts_differ_from_the_first_word_on() {
        let base = Requests::new(Kind::Unique, 600, "h:1", 0);
        let mut seen = std::collections::HashSet::new();
        let again = Requests::new(Kind::Unique, 600, "h:1", 1);
        for connection in 0..16 {
            let base = if connection < 8 { &base } else { &again };
            let mut requests = base.for_connection(connection % 8);
            for _ in 0..50 {
                let text = body(requests.next())["messages"][0]["content"].to_string();
                assert!(seen.insert(text[..8].to_owned()));
            }
        }
    }
}
