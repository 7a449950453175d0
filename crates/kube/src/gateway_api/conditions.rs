//! Statuses of resources: what we say, and how it joins what is there.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::{Value, json};

use super::kind::{GATEWAY, Kind};
use super::object::{Key, Object};

/// Who we are in statuses, and what a GatewayClass names.
pub(super) const CONTROLLER: &str = "wicketgate.dev/gateway";

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
        Self::holds("Accepted", "Accepted", message)
    }

    /// `Accepted=False`.
    pub(super) fn refused(reason: &'static str, message: impl Into<String>) -> Self {
        Self::fails("Accepted", reason, message)
    }

    pub(super) fn holds(
        kind: &'static str,
        reason: &'static str,
        message: impl Into<String>,
    ) -> Self {
        Self { kind, is_true: true, reason, message: message.into() }
    }

    pub(super) fn fails(
        kind: &'static str,
        reason: &'static str,
        message: impl Into<String>,
    ) -> Self {
        Self { kind, is_true: false, reason, message: message.into() }
    }
}

/// The status that a resource shall have from us.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct StatusPatch {
    pub(super) kind: Kind,
    pub(super) key: Key,
    /// The version that it was worked out from.
    pub(super) resource_version: String,
    /// The generation that the conditions are about.
    pub(super) generation: i64,
    pub(super) says: Says,
}

/// What a status says, by the kind of resource.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Says {
    Conditions(Vec<Condition>),
    /// One entry for each way in which this gateway is the resource's parent.
    Parents {
        gateway: Key,
        parents: Vec<Parent>,
    },
    Gateway {
        conditions: Vec<Condition>,
        listeners: Vec<ListenerSays>,
        addresses: Vec<String>,
    },
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Parent {
    /// As the resource's own `parentRef` has it.
    pub(super) parent_ref: Value,
    pub(super) conditions: Vec<Condition>,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct ListenerSays {
    pub(super) name: String,
    pub(super) takes_http_routes: bool,
    pub(super) attached_routes: usize,
    pub(super) conditions: Vec<Condition>,
}

impl StatusPatch {
    pub(super) fn of<S>(kind: Kind, object: &Object<S>, says: Says) -> Self {
        Self {
            kind,
            key: object.key.clone(),
            resource_version: object.resource_version.clone(),
            generation: object.generation,
            says,
        }
    }

    /// What to write over the status; `None` if it says so already.
    ///
    /// What others say stays as it is. The time of a condition changes only with its status.
    pub(super) fn merged(&self, status: &Value, now: &Time) -> Option<Value> {
        let conditions =
            |ours: &[Condition], there: &Value| merge(ours, there, self.generation, now);
        let said = match &self.says {
            Says::Conditions(ours) => {
                json!({ "conditions": conditions(ours, &status["conditions"]) })
            }
            Says::Parents { gateway, parents } => {
                let there = list(&status["parents"]);
                let said = |parent: &Parent| {
                    let same = there.iter().find(|entry| {
                        entry["parentRef"] == parent.parent_ref
                            && entry["controllerName"] == CONTROLLER
                    });
                    let known = same.map_or(&Value::Null, |entry| &entry["conditions"]);
                    json!({
                        "parentRef": parent.parent_ref,
                        "controllerName": CONTROLLER,
                        "conditions": conditions(&parent.conditions, known),
                    })
                };
                let is_other = |entry: &&Value| {
                    let parent = &entry["parentRef"];
                    let namespace = parent["namespace"].as_str().unwrap_or(&self.key.namespace);
                    entry["controllerName"] != CONTROLLER
                        || parent["name"] != gateway.name.as_str()
                        || namespace != gateway.namespace
                };
                let others = there.iter().filter(is_other).cloned();
                let mut all: Vec<Value> = others.chain(parents.iter().map(said)).collect();
                // In the order in which they stand already.
                all.sort_by_key(|entry| {
                    let is_it = |known: &Value| {
                        known["parentRef"] == entry["parentRef"]
                            && known["controllerName"] == entry["controllerName"]
                    };
                    there.iter().position(is_it).unwrap_or(usize::MAX)
                });
                json!({ "parents": all })
            }
            Says::Gateway { conditions: ours, listeners, addresses } => {
                let there = list(&status["listeners"]);
                let listeners = listeners.iter().map(|listener| {
                    let known = there.iter().find(|one| one["name"] == listener.name.as_str());
                    let known = known.map_or(&Value::Null, |one| &one["conditions"]);
                    let kinds = match listener.takes_http_routes {
                        true => json!([{ "group": GATEWAY, "kind": "HTTPRoute" }]),
                        false => json!([]),
                    };
                    json!({
                        "name": listener.name,
                        "supportedKinds": kinds,
                        "attachedRoutes": listener.attached_routes,
                        "conditions": conditions(&listener.conditions, known),
                    })
                });
                let listeners: Vec<Value> = listeners.collect();
                let addresses = addresses.iter().map(|address| {
                    let is_ip = address.parse::<std::net::IpAddr>().is_ok();
                    let kind = if is_ip { "IPAddress" } else { "Hostname" };
                    json!({ "type": kind, "value": address })
                });
                json!({
                    "conditions": conditions(ours, &status["conditions"]),
                    "listeners": listeners,
                    "addresses": addresses.collect::<Vec<_>>(),
                })
            }
        };
        let is_same = said.as_object().into_iter().flatten().all(|(field, value)| {
            status[field] == *value || (status[field].is_null() && *value == json!([]))
        });
        (!is_same).then_some(said)
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// Our conditions among those that are there.
fn merge(ours: &[Condition], there: &Value, generation: i64, now: &Time) -> Value {
    let mut all = list(there).to_vec();
    for condition in ours {
        let at = all.iter().position(|one| one["type"] == condition.kind);
        let before = at.map(|at| all[at].clone()).unwrap_or_default();
        let state = if condition.is_true { "True" } else { "False" };
        let since = match before["status"] == state {
            true => before["lastTransitionTime"].clone(),
            false => json!(now),
        };
        let said = json!({
            "type": condition.kind,
            "status": state,
            "reason": condition.reason,
            "message": condition.message,
            "observedGeneration": generation,
            "lastTransitionTime": since,
        });
        match at {
            Some(at) => all[at] = said,
            None => all.push(said),
        }
    }
    Value::Array(all)
}

#[cfg(test)]
mod tests {
    use k8s_openapi::jiff::Timestamp;

    use super::*;

    fn patch(says: Says) -> StatusPatch {
        StatusPatch {
            kind: Kind::Pool,
            key: Key::new("a", "b"),
            resource_version: "1".to_owned(),
            generation: 3,
            says,
        }
    }

    fn conditions(condition: Condition) -> StatusPatch {
        patch(Says::Conditions(vec![condition]))
    }

    fn parents(parents: Vec<Parent>) -> StatusPatch {
        patch(Says::Parents { gateway: Key::new("a", "gate"), parents })
    }

    fn parent(section: &str) -> Parent {
        Parent {
            parent_ref: json!({ "name": "gate", "sectionName": section }),
            conditions: vec![Condition::accepted("")],
        }
    }

    fn at(second: i64) -> Time {
        Time(Timestamp::from_second(second).unwrap())
    }

    #[test]
    fn what_is_said_already_is_not_written_again() {
        let gateway = Says::Gateway {
            conditions: vec![Condition::accepted("")],
            listeners: vec![ListenerSays {
                name: "http".to_owned(),
                takes_http_routes: true,
                attached_routes: 2,
                conditions: vec![Condition::accepted("")],
            }],
            addresses: vec!["10.0.0.1".to_owned()],
        };
        for patch in [
            conditions(Condition::accepted("all is well")),
            parents(vec![parent("x"), parent("y")]),
            patch(gateway),
        ] {
            let written = patch.merged(&Value::Null, &at(10)).unwrap();
            assert_eq!(patch.merged(&written, &at(20)), None);
        }
        assert_eq!(parents(Vec::new()).merged(&Value::Null, &at(10)), None, "nothing to say");
    }

    #[test]
    fn conditions_of_others_stay_and_the_time_changes_with_the_status_only() {
        let other = json!({ "type": "Ready", "status": "Unknown" });
        let first = conditions(Condition::accepted("all is well"));
        let status = first.merged(&json!({ "conditions": [other] }), &at(10)).unwrap();
        assert_eq!(status["conditions"][0], other);
        let since = status["conditions"][1]["lastTransitionTime"].clone();
        let reworded = conditions(Condition::accepted("still")).merged(&status, &at(20)).unwrap();
        assert_eq!(reworded["conditions"][1]["lastTransitionTime"], since);
        let refused = conditions(Condition::refused("PoolNotFound", "gone"));
        let refused = refused.merged(&status, &at(30)).unwrap();
        assert_ne!(refused["conditions"][1]["lastTransitionTime"], since);
        assert_eq!(refused["conditions"].as_array().unwrap().len(), 2);
    }

    #[test]
    fn entries_of_other_controllers_and_gateways_stay_and_our_own_go_when_they_must() {
        let others = [
            json!({ "parentRef": { "name": "gate" }, "controllerName": "example.com/other" }),
            json!({ "parentRef": { "name": "second" }, "controllerName": CONTROLLER }),
            json!({ "parentRef": { "name": "gate", "namespace": "z" }, "controllerName": CONTROLLER }),
        ];
        let status = json!({ "parents": others });
        let said = parents(vec![parent("x")]).merged(&status, &at(10)).unwrap();
        assert_eq!(said["parents"].as_array().unwrap().len(), 4);
        let gone = parents(Vec::new()).merged(&said, &at(20)).unwrap();
        assert_eq!(gone, status);
    }
}
