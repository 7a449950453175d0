//! `/debug/rollouts`: splits of traffic, to be seen and to be changed.

use bytes::Bytes;
use gateway::{ActionRefused, Gateway, RolloutAction, RolloutView};
use serde::Serialize;
use telemetry::clock;

use super::{json, origin, parameter};
use crate::answer::Answer;
use crate::fields::Fields;

/// Where the list is; a rewrite's name behind it and a slash takes changes.
pub(super) const PATH: &str = "/debug/rollouts";

#[derive(Serialize)]
struct Rollouts {
    rollouts: Vec<RolloutView>,
}

/// Every rule, or those of the rewrite that the query names.
pub(super) fn list(gateway: &Gateway, query: Option<&str>) -> Answer {
    let name = parameter(query, "name");
    json(&Rollouts { rollouts: gateway.rollouts(name.as_deref(), clock::now()) })
}

/// The name of the rewrite that a path is about.
pub(super) fn name_in(path: &str) -> Option<&str> {
    path.strip_prefix(PATH)?.strip_prefix('/').filter(|name| !name.is_empty())
}

/// Carries out the action in the body.
pub(super) fn act(
    gateway: &Gateway,
    name: &str,
    query: Option<&str>,
    fields: &Fields,
    body: &Bytes,
) -> Answer {
    if let Some(objection) = origin::objection(fields) {
        return refused(403, objection);
    }
    let action: RolloutAction = match serde_json::from_slice(body) {
        Ok(action) => action,
        Err(error) => return refused(400, &error.to_string()),
    };
    let rule = match parameter(query, "rule").map(|text| text.parse()).transpose() {
        Ok(rule) => rule,
        Err(_) => return refused(400, "`rule` is the position of a rule, 0 the first"),
    };
    match gateway.act_on_rollout(name, rule, &action, clock::now()) {
        Ok(view) => json(&view),
        Err(error) => {
            let status = match &error {
                ActionRefused::Unknown { .. } | ActionRefused::NoRule { .. } => 404,
                ActionRefused::WhichRule { .. } | ActionRefused::Share => 400,
                ActionRefused::Refused { .. } => 409,
            };
            let cause = std::error::Error::source(&error);
            let cause = cause.map(|cause| format!(": {cause}")).unwrap_or_default();
            refused(status, &format!("{error}{cause}"))
        }
    }
}

fn refused(status: u16, message: &str) -> Answer {
    let body = serde_json::json!({ "error": { "message": message } });
    Answer::new(status, "application/json", body.to_string())
}
