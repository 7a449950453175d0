//! Who sends a request, what that entitles it to, and what it asks for.
//!
//! A [`Caller`] comes from the request's credentials and is trusted; [`Wishes`] come from its header
//! fields and are not: they can lower what the caller is entitled to, never raise it.

use std::time::Duration;

pub use identity::{Caller, ModelAccess};

/// What a request asks of flow control.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Wishes {
    pub objective: Option<Box<str>>,
    /// Counts for callers without an identity only: others could split themselves into many flows.
    pub fairness_id: Option<Box<str>>,
    /// Wanted time to the first token.
    pub ttft: Option<Duration>,
    /// Refuse at once what cannot have its first token within this time.
    pub deadline: Option<Duration>,
}

/// Longest name that a header field may carry, bytes.
const NAME_BYTES_MAX: usize = 256;

impl Wishes {
    /// Reads header fields; `field` finds a value by its lower-case name.
    ///
    /// What is no valid value counts as absent: these are hints of a client, and a request must not
    /// fail over one.
    pub fn read<'a>(field: impl Fn(&str) -> Option<&'a str>) -> Self {
        let either = |ours: &str, fields: &str| field(ours).or_else(|| field(fields));
        let name = |text: &'a str| {
            let is_name = !text.is_empty()
                && text.len() <= NAME_BYTES_MAX
                && text.bytes().all(|byte| byte.is_ascii_graphic());
            is_name.then(|| Box::<str>::from(text))
        };
        let millis = |text: &str| text.parse().ok().map(Duration::from_millis);
        Self {
            objective: either("x-llm-d-inference-objective", "x-gateway-inference-objective")
                .and_then(name),
            fairness_id: either("x-llm-d-inference-fairness-id", "x-gateway-inference-fairness-id")
                .and_then(name),
            ttft: either("x-llm-d-slo-ttft-ms", "x-slo-ttft-ms").and_then(millis),
            deadline: field("x-wicketgate-deadline-ms").and_then(millis),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(fields: &[(&str, &'static str)]) -> Wishes {
        Wishes::read(|name| {
            fields.iter().find(|(known, _)| *known == name).map(|(_, value)| *value)
        })
    }

    #[test]
    fn both_spellings_of_a_wish_are_read_and_the_newer_one_wins() {
        let wishes = read(&[
            ("x-gateway-inference-objective", "old"),
            ("x-llm-d-inference-objective", "new"),
            ("x-gateway-inference-fairness-id", "team-a"),
            ("x-slo-ttft-ms", "250"),
            ("x-wicketgate-deadline-ms", "2000"),
        ]);
        assert_eq!(wishes.objective.as_deref(), Some("new"));
        assert_eq!(wishes.fairness_id.as_deref(), Some("team-a"));
        assert_eq!(wishes.ttft, Some(Duration::from_millis(250)));
        assert_eq!(wishes.deadline, Some(Duration::from_secs(2)));
    }

    #[test]
    fn a_wish_that_cannot_be_read_is_none() {
        let long = Box::leak("x".repeat(300).into_boxed_str());
        for value in ["", "two words", "\u{1}", long] {
            let wishes = read(&[("x-llm-d-inference-objective", value), ("x-slo-ttft-ms", value)]);
            assert_eq!(wishes, Wishes::default(), "{value:?}");
        }
    }
}
