//! Kubernetes' conditions, whose time changes only with their status.

use serde_json::{Value, json};

/// Longest message that the definition takes.
const MESSAGE_MAX: usize = 4096;

#[derive(Clone, Debug)]
pub(super) struct Condition {
    pub kind: &'static str,
    pub status: &'static str,
    pub reason: String,
    pub message: String,
}

impl Condition {
    pub(super) fn new(
        kind: &'static str,
        status: &'static str,
        reason: &str,
        message: &str,
    ) -> Self {
        let message = message.chars().take(MESSAGE_MAX).collect();
        Self { kind, status, reason: reason.to_owned(), message }
    }
}

/// The list for a status whose last one was `before`.
pub(super) fn merged(
    before: &Value,
    conditions: Vec<Condition>,
    generation: i64,
    now: &str,
) -> Value {
    let write = |condition: Condition| {
        let old = find(before, condition.kind).filter(|old| old["status"] == condition.status);
        let since = old.and_then(|old| old["lastTransitionTime"].as_str()).unwrap_or(now);
        json!({
            "type": condition.kind,
            "status": condition.status,
            "reason": condition.reason,
            "message": condition.message,
            "lastTransitionTime": since,
            "observedGeneration": generation,
        })
    };
    conditions.into_iter().map(write).collect()
}

pub(super) fn find<'a>(status: &'a Value, kind: &str) -> Option<&'a Value> {
    status["conditions"].as_array()?.iter().find(|one| one["type"] == kind)
}
