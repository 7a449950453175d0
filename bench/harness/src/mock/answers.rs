//! The bytes that the mock sends: ready-made, in the shape of vLLM's answers.

use std::sync::LazyLock;

use super::STAMP_DIGITS;
use crate::prompts::MODEL;

/// The page of an idle vLLM; see `testdata/README.md`.
const METRICS: &str = include_str!("../../testdata/vllm-0.32.0-cpu-idle.txt");

/// The answer to a request for a completion that is not streamed.
pub(super) static COMPLETION: LazyLock<Vec<u8>> = LazyLock::new(|| {
    json(&format!(
        r#"{{"id":"chatcmpl-bench","object":"chat.completion","created":1760000000,"model":"{MODEL}","choices":[{{"index":0,"message":{{"role":"assistant","content":"The gate meters the water, and the turbine turns."}},"finish_reason":"stop"}}],"usage":{{"prompt_tokens":120,"completion_tokens":12,"total_tokens":132}}}}"#
    ))
});

pub(super) static MODELS: LazyLock<Vec<u8>> = LazyLock::new(|| {
    json(&format!(
        r#"{{"object":"list","data":[{{"id":"{MODEL}","object":"model","created":1760000000,"owned_by":"vllm","root":"{MODEL}","parent":null,"max_model_len":131072}}]}}"#
    ))
});

/// Rendered and tokenised prompts, for routers that ask for them before they route: 128 ids.
pub(super) static TOKENS: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let ids: Vec<u32> = (1..=128).collect();
    json(&serde_json::json!({"count": 128, "max_model_len": 131072, "token_ids": ids, "tokens": ids, "prompt_token_ids": ids}).to_string())
});

/// What routers of the SGLang family ask a server about itself.
pub(super) static SERVER: LazyLock<Vec<u8>> = LazyLock::new(|| {
    json(&format!(
        r#"{{"model_path":"{MODEL}","model_id":"{MODEL}","served_model_name":"{MODEL}","status":"ready","version":"0.32.0"}}"#
    ))
});

pub(super) static METRICS_PAGE: LazyLock<Vec<u8>> =
    LazyLock::new(|| answer("200 OK", "text/plain; version=1.0.0; charset=utf-8", METRICS));

pub(super) static NOT_FOUND: LazyLock<Vec<u8>> =
    LazyLock::new(|| answer("404 Not Found", "application/json", r#"{"detail":"Not Found"}"#));

/// Head of a stream.
pub(super) const STREAM_HEAD: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\ncache-control: no-cache\r\ntransfer-encoding: chunked\r\n\r\n";

/// Last bytes of a stream: the end event and the end of the body.
pub(super) const STREAM_END: &[u8] = b"e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n";

/// One event, framed, with a place for the send time.
pub(super) struct Event {
    bytes: Vec<u8>,
    stamp_at: usize,
}

impl Event {
    pub(super) fn new() -> Self {
        let before = format!(
            r#"data: {{"id":"chatcmpl-bench","object":"chat.completion.chunk","created":1760000000,"model":"{MODEL}","choices":[{{"index":0,"delta":{{"content":"T"#
        );
        let after = "\"},\"finish_reason\":null}]}\n\n";
        let length = before.len() + STAMP_DIGITS + after.len();
        let mut bytes = format!("{length:x}\r\n{before}").into_bytes();
        let stamp_at = bytes.len();
        bytes.extend_from_slice(&[b'0'; STAMP_DIGITS]);
        bytes.extend_from_slice(after.as_bytes());
        bytes.extend_from_slice(b"\r\n");
        Self { bytes, stamp_at }
    }

    /// The event with this send time.
    pub(super) fn at(&mut self, now_ns: u64) -> &[u8] {
        let mut left = now_ns;
        for place in (0..STAMP_DIGITS).rev() {
            self.bytes[self.stamp_at + place] = b'0' + (left % 10) as u8;
            left /= 10;
        }
        &self.bytes
    }
}

fn json(body: &str) -> Vec<u8> {
    answer("200 OK", "application/json", body)
}

fn answer(status: &str, content_type: &str, body: &str) -> Vec<u8> {
    format!(
        "HTTP/1.1 {status}\r\nserver: uvicorn\r\ncontent-type: {content_type}\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_event_carries_its_send_time_and_its_length() {
        let mut event = Event::new();
        let text = String::from_utf8(event.at(1_234_567_890_123).to_vec()).unwrap();
        assert!(text.contains("\"T00000001234567890123\""), "{text}");
        let (length, rest) = text.split_once("\r\n").unwrap();
        assert_eq!(usize::from_str_radix(length, 16).unwrap(), rest.len() - 2);
        let json = rest.trim().strip_prefix("data: ").unwrap();
        serde_json::from_str::<serde_json::Value>(json).unwrap();
    }
}
