//! Listeners of a Gateway: which of them this gateway can be, and who may use them.

use std::collections::BTreeSet;

use config::spec::{HostMatch, LabelSelector, SelectorOperator, SelectorRequirement};

use super::conditions::Condition;
use super::kind::GATEWAY;
use super::resources::{AllowedRoutes, Listener, Selector};
use super::world::World;
use crate::selector;

/// One listener, judged.
pub(super) struct Judged<'a> {
    pub(super) listener: &'a Listener,
    pub(super) host: HostMatch,
    /// Why it cannot be served; `None`: it is.
    fault: Option<Condition>,
}

/// Judges all listeners of a Gateway.
///
/// A gateway has one port for traffic, so only listeners of the first one's port can be.
pub(super) fn judge(listeners: &[Listener]) -> Vec<Judged<'_>> {
    let port = listeners.iter().find(|one| one.protocol == "HTTP").map(|one| one.port);
    let mut hosts = BTreeSet::new();
    let judged = listeners.iter().map(|listener| {
        let fault = if listener.protocol != "HTTP" {
            let message = format!("protocol {} is not served: only HTTP is", listener.protocol);
            Some(Condition::refused("UnsupportedProtocol", message))
        } else if Some(listener.port) != port {
            let message = format!(
                "a gateway has one port for traffic, and another listener has it: {}",
                port.unwrap_or_default()
            );
            Some(Condition::refused("PortUnavailable", message))
        } else if !hosts.insert(listener.hostname.to_ascii_lowercase()) {
            Some(Condition::refused("HostnameConflict", "another listener has this hostname"))
        } else {
            None
        };
        Judged { listener, host: HostMatch::parse(&listener.hostname), fault }
    });
    judged.collect()
}

impl Judged<'_> {
    pub(super) fn is_served(&self) -> bool {
        self.fault.is_none()
    }

    /// Whether routes of our kind may attach at all.
    pub(super) fn takes_http_routes(&self) -> bool {
        let kinds = &self.listener.allowed_routes.kinds;
        let is_ours = |kind: &str, group: &str| kind == "HTTPRoute" && group == GATEWAY;
        kinds.is_empty() || kinds.iter().any(|one| is_ours(&one.kind, &one.group))
    }

    /// Whether a route of this namespace may attach.
    ///
    /// * `home`: the Gateway's own namespace.
    pub(super) fn allows(&self, world: &World, home: &str, namespace: &str) -> bool {
        let AllowedRoutes { namespaces, .. } = &self.listener.allowed_routes;
        let is_allowed = match namespaces.from.as_deref() {
            Some("All") => true,
            Some("Selector") => {
                let key = super::object::Key::new("", namespace);
                let labels = world.namespaces.get(&key).map(|object| &object.labels);
                let selector = namespaces.selector.as_ref();
                labels.zip(selector).is_some_and(|(labels, selector)| {
                    read(selector).is_some_and(|selector| selector::matches(&selector, labels))
                })
            }
            Some("None") => false,
            _ => namespace == home,
        };
        is_allowed && self.takes_http_routes()
    }

    pub(super) fn conditions(&self) -> Vec<Condition> {
        let kinds = &self.listener.allowed_routes.kinds;
        let is_foreign = kinds.iter().any(|one| one.kind != "HTTPRoute" || one.group != GATEWAY);
        let resolved = match is_foreign {
            false => Condition::holds("ResolvedRefs", "ResolvedRefs", ""),
            true => Condition::fails(
                "ResolvedRefs",
                "InvalidRouteKinds",
                "only HTTPRoutes can be attached",
            ),
        };
        let is_conflict = self.fault.as_ref().is_some_and(|one| one.reason == "HostnameConflict");
        let conflicted = match &self.fault {
            Some(fault) if is_conflict => {
                Condition::holds("Conflicted", "HostnameConflict", fault.message.clone())
            }
            _ => Condition::fails("Conflicted", "NoConflicts", ""),
        };
        match &self.fault {
            None => vec![
                Condition::accepted(""),
                Condition::holds("Programmed", "Programmed", ""),
                resolved,
                conflicted,
            ],
            Some(fault) => vec![
                fault.clone(),
                Condition::fails("Programmed", "Invalid", fault.message.clone()),
                resolved,
                conflicted,
            ],
        }
    }
}

/// `None`: an operator that does not exist, which the definition does not allow.
fn read(selector: &Selector) -> Option<LabelSelector> {
    let requirements = selector.match_expressions.iter().map(|one| {
        let operator = match one.operator.as_str() {
            "In" => SelectorOperator::In,
            "NotIn" => SelectorOperator::NotIn,
            "Exists" => SelectorOperator::Exists,
            "DoesNotExist" => SelectorOperator::DoesNotExist,
            _ => return None,
        };
        Some(SelectorRequirement { key: one.key.clone(), operator, values: one.values.clone() })
    });
    Some(LabelSelector {
        match_labels: selector.match_labels.clone(),
        match_expressions: requirements.collect::<Option<_>>()?,
    })
}
