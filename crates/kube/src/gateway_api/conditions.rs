//! Conditions of resources: what we say, and how it joins what is there.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::{Value, json};

use super::kind::Kind;
use super::object::Key;

/// One condition, without its times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Condition {
    pub(super) kind: &'static str,
    pub(super) is_true: bool,
    pub(super) reason: &'static str,
    pub(super) message: String,
}

impl Condition {
    /// `Accepted=True`.
    pub(super) fn accepted(message: impl Into<String>) -> Self {
        Self { kind: "Accepted", is_true: true, reason: "Accepted", message: message.into() }
    }

    /// `Accepted=False`.
    pub(super) fn refused(reason: &'static str, message: impl Into<String>) -> Self {
        Self { kind: "Accepted", is_true: false, reason, message: message.into() }
    }
}

/// The conditions that a resource shall have from us.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct StatusPatch {
    pub(super) kind: Kind,
    pub(super) key: Key,
    /// The version that it was worked out from.
    pub(super) resource_version: String,
    /// The generation that the conditions are about.
    pub(super) generation: i64,
    pub(super) conditions: Vec<Condition>,
}

impl StatusPatch {
    /// The list of conditions with ours in it; `None` if it is so already.
    ///
    /// Conditions of other types stay as they are. The time of ours changes only with their status.
    pub(super) fn merged(&self, status: &Value, now: &Time) -> Option<Value> {
        let there = status["conditions"].as_array().cloned().unwrap_or_default();
        let mut list = there.clone();
        for condition in &self.conditions {
            let at = list.iter().position(|one| one["type"] == condition.kind);
            let before = at.map(|at| list[at].clone()).unwrap_or_default();
            let state = if condition.is_true { "True" } else { "False" };
            let since = if before["status"] == state {
                before["lastTransitionTime"].clone()
            } else {
                json!(now)
            };
            let said = json!({
                "type": condition.kind,
                "status": state,
                "reason": condition.reason,
                "message": condition.message,
                "observedGeneration": self.generation,
                "lastTransitionTime": since,
            });
            match at {
                Some(at) => list[at] = said,
                None => list.push(said),
            }
        }
        (list != there).then_some(Value::Array(list))
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::jiff::Timestamp;

    use super::*;

    fn patch(condition: Condition) -> StatusPatch {
        StatusPatch {
            kind: Kind::Pool,
            key: Key::new("a", "b"),
            resource_version: "1".to_owned(),
            generation: 3,
            conditions: vec![condition],
        }
    }

    fn at(second: i64) -> Time {
        Time(Timestamp::from_second(second).unwrap())
    }

    #[test]
    fn what_is_said_already_is_not_written_again() {
        let patch = patch(Condition::accepted("all is well"));
        let written = patch.merged(&Value::Null, &at(10)).unwrap();
        assert_eq!(patch.merged(&json!({ "conditions": written }), &at(20)), None);
    }

    #[test]
    fn conditions_of_others_stay_and_the_time_changes_with_the_status_only() {
        let other = json!({ "type": "Ready", "status": "Unknown" });
        let first = patch(Condition::accepted("all is well"));
        let written = first.merged(&json!({ "conditions": [other] }), &at(10)).unwrap();
        assert_eq!(written[0], other);
        let since = written[1]["lastTransitionTime"].clone();
        let status = json!({ "conditions": written });
        let reworded = patch(Condition::accepted("still")).merged(&status, &at(20)).unwrap();
        assert_eq!(reworded[1]["lastTransitionTime"], since);
        let refused = patch(Condition::refused("PoolNotFound", "gone"));
        let refused = refused.merged(&status, &at(30)).unwrap();
        assert_ne!(refused[1]["lastTransitionTime"], since);
        assert_eq!(refused.as_array().unwrap().len(), 2);
    }
}
