//! `/debug/fleet`: the members of a router over clusters, to be seen and to be drained.

use bytes::Bytes;
use gateway::Gateway;
use serde::Deserialize;
use telemetry::clock;

use super::{json, origin};
use crate::answer::Answer;
use crate::fields::Fields;

/// Where the list is; a member's name behind it and a slash takes changes.
pub(super) const PATH: &str = "/debug/fleet";

/// What can be done to a member.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Action {
    Drain,
    Undrain,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    action: Action,
}

/// All members; `None` at a gateway that is no router.
pub(super) fn view(gateway: &Gateway) -> Option<Answer> {
    Some(json(&gateway.clusters()?.view(clock::now())))
}

/// The member that a path is about.
pub(super) fn name_in(path: &str) -> Option<&str> {
    path.strip_prefix(PATH)?.strip_prefix('/').filter(|name| !name.is_empty())
}

/// Carries out the action in the body.
pub(super) fn act(gateway: &Gateway, member: &str, fields: &Fields, body: &Bytes) -> Answer {
    if let Some(objection) = origin::objection(fields) {
        return refused(403, objection);
    }
    let Some(clusters) = gateway.clusters() else {
        return refused(404, "this gateway is no router: it has no members");
    };
    let asked: Asked = match serde_json::from_slice(body) {
        Ok(asked) => asked,
        Err(error) => return refused(400, &error.to_string()),
    };
    let is_drained = matches!(asked.action, Action::Drain);
    let now = clock::now();
    match clusters.drain(member, is_drained, now) {
        Some(()) => json(&clusters.view(now)),
        None => {
            let members = clusters.view(now).members;
            let names: Vec<_> = members.iter().map(|member| member.member.as_str()).collect();
            refused(404, &format!("there is no member of this name; members: {}", names.join(", ")))
        }
    }
}

fn refused(status: u16, message: &str) -> Answer {
    let body = serde_json::json!({ "error": { "message": message } });
    Answer::new(status, "application/json", body.to_string())
}
