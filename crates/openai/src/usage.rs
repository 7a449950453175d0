//! Tokens that an answer says it used.

use crate::answer::Walker;

/// Tokens of one answer, in one meaning for all dialects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Tokens of the prompt, cached ones included.
    pub prompt_tokens: u64,
    pub completion_tokens: u64,
    /// Prompt tokens that the engine had cached; `None`: it does not say.
    pub cached_tokens: Option<u64>,
}

/// Counts as they stand in an answer; a later event overrules an earlier one number by number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) prompt: Option<u64>,
    pub(crate) completion: Option<u64>,
    pub(crate) cached: Option<u64>,
    pub(crate) cache_read: Option<u64>,
    pub(crate) cache_creation: Option<u64>,
}

impl Counts {
    pub(crate) fn overruled_by(self, later: Self) -> Self {
        Self {
            prompt: later.prompt.or(self.prompt),
            completion: later.completion.or(self.completion),
            cached: later.cached.or(self.cached),
            cache_read: later.cache_read.or(self.cache_read),
            cache_creation: later.cache_creation.or(self.cache_creation),
        }
    }

    pub(crate) fn plus(self, other: Self) -> Self {
        let sum = |left: Option<u64>, right: Option<u64>| match (left, right) {
            (Some(left), Some(right)) => Some(left.saturating_add(right)),
            (left, right) => left.or(right),
        };
        Self {
            prompt: sum(self.prompt, other.prompt),
            completion: sum(self.completion, other.completion),
            cached: sum(self.cached, other.cached),
            cache_read: sum(self.cache_read, other.cache_read),
            cache_creation: sum(self.cache_creation, other.cache_creation),
        }
    }

    /// `None` unless a prompt or a completion was counted.
    pub(crate) fn usage(self) -> Option<Usage> {
        if self.prompt.is_none() && self.completion.is_none() {
            return None;
        }
        let beside = self.cache_read.unwrap_or(0).saturating_add(self.cache_creation.unwrap_or(0));
        Some(Usage {
            prompt_tokens: self.prompt.unwrap_or(0).saturating_add(beside),
            completion_tokens: self.completion.unwrap_or(0),
            cached_tokens: self.cached.or(self.cache_read),
        })
    }
}

/// Reads the usage of an answer that is one JSON text, as it passes in chunks of any size.
/// Memory is constant; nothing is copied.
#[derive(Debug)]
pub struct UsageReader {
    walker: Walker,
}

impl Default for UsageReader {
    fn default() -> Self {
        Self::new()
    }
}

impl UsageReader {
    pub fn new() -> Self {
        Self { walker: Walker::new() }
    }

    pub fn push(&mut self, chunk: &[u8]) {
        self.walker.push(chunk);
    }

    /// What was read so far. Of an array of answers (SGLang's batches), the sum.
    pub fn usage(&self) -> Option<Usage> {
        self.walker.facts().counts.usage()
    }

    /// The answer has an error object.
    pub fn error(&self) -> bool {
        self.walker.facts().error
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(answer: &str) -> Option<Usage> {
        let mut reader = UsageReader::new();
        reader.push(answer.as_bytes());
        reader.usage()
    }

    fn tokens(
        prompt_tokens: u64,
        completion_tokens: u64,
        cached_tokens: Option<u64>,
    ) -> Option<Usage> {
        Some(Usage { prompt_tokens, completion_tokens, cached_tokens })
    }

    #[test]
    fn each_dialects_usage_is_read() {
        let chat = r#"{"id":"x","choices":[{"message":{"content":"hi"}}],"usage":{"prompt_tokens":12,"total_tokens":15,"completion_tokens":3,"prompt_tokens_details":{"cached_tokens":8}}}"#;
        assert_eq!(usage(chat), tokens(12, 3, Some(8)));
        let embeddings = r#"{"data":[{"embedding":[0.1,-2e-3,4]}],"usage":{"prompt_tokens":5,"total_tokens":5}}"#;
        assert_eq!(usage(embeddings), tokens(5, 0, None));
        let responses = r#"{"object":"response","output":[],"usage":{"input_tokens":7,"input_tokens_details":{"cached_tokens":0},"output_tokens":2}}"#;
        assert_eq!(usage(responses), tokens(7, 2, Some(0)));
        let messages = r#"{"type":"message","usage":{"input_tokens":7,"cache_read_input_tokens":100,"cache_creation_input_tokens":10,"output_tokens":2}}"#;
        assert_eq!(usage(messages), tokens(117, 2, Some(100)));
        let tgi = r#"{"generated_text":"x","details":{"finish_reason":"length","generated_tokens":20,"prefill":[],"tokens":[{"id":1}]}}"#;
        assert_eq!(usage(tgi), tokens(0, 20, None));
        let sglang = r#"{"text":"x","meta_info":{"id":"1","prompt_tokens":4,"completion_tokens":5,"cached_tokens":1}}"#;
        assert_eq!(usage(sglang), tokens(4, 5, Some(1)));
    }

    #[test]
    fn a_batch_is_summed() {
        let one = r#"{"text":"x","meta_info":{"prompt_tokens":4,"completion_tokens":5,"cached_tokens":1}}"#;
        assert_eq!(usage(&format!("[{one}, {one}]")), tokens(8, 10, Some(2)));
    }

    #[test]
    fn usage_elsewhere_is_not_the_answers() {
        assert_eq!(
            usage(r#"{"tools":[{"usage":{"prompt_tokens":1}}],"x":{"usage":{"prompt_tokens":1}}}"#),
            None
        );
        assert_eq!(
            usage(r#"{"choices":[{"message":{"content":"\"usage\":{\"prompt_tokens\":9}"}}]}"#),
            None
        );
        assert_eq!(usage(r#"{"choices":[{"usage":{"prompt_tokens":9}}]}"#), None);
    }

    #[test]
    fn odd_types_in_usage_are_ignored() {
        for odd in [
            r#""text""#,
            "null",
            "-1",
            "1.5",
            "1e3",
            "[]",
            "[7]",
            "{}",
            r#"{"prompt_tokens":7}"#,
            "true",
            "",
            ",",
            "}}}}",
            "]]]]",
            r#""\"#,
        ] {
            assert_eq!(
                usage(&format!(r#"{{"usage":{odd}}}"#)).map(|usage| usage.completion_tokens),
                if odd == r#"{"prompt_tokens":7}"# { Some(0) } else { None },
                "{odd}"
            );
            assert_eq!(usage(&format!(r#"{{"usage":{{"prompt_tokens":{odd}}}}}"#)), None, "{odd}");
            let details =
                format!(r#"{{"usage":{{"prompt_tokens":3,"prompt_tokens_details":{odd}}}}}"#);
            assert_eq!(usage(&details), tokens(3, 0, None), "{odd}");
        }
        assert_eq!(
            usage(r#"{"usage":{"prompt_tokens":99999999999999999999999}}"#),
            tokens(u64::MAX, 0, None)
        );
    }

    #[test]
    fn an_error_object_is_noticed() {
        let error = |answer: &str| {
            let mut reader = UsageReader::new();
            reader.push(answer.as_bytes());
            reader.error()
        };
        assert!(error(r#"{"error":{"message":"x"}}"#));
        assert!(error(r#"{"error":"x","error_type":"validation"}"#));
        assert!(error(r#"{"object":"error","message":"x"}"#));
        assert!(!error(r#"{"error":null,"object":"response"}"#));
    }
}
