//! Which listeners a route attaches to, and what its rules are there.

use std::cmp::Reverse;

use config::spec::{HostMatch, PathMatch};

use super::conditions::Condition;
use super::kind::GATEWAY;
use super::listeners::Judged;
use super::object::{Key, Object};
use super::resources::{BackendRef, HttpMatch, NameValue, ParentRef, RouteSpec};
use super::world::World;

/// One rule at one listener, with what its precedence depends on.
#[derive(Clone, Debug)]
pub(super) struct Attached<'a> {
    pub(super) host: HostMatch,
    pub(super) path: PathMatch,
    pub(super) matches: HttpMatch,
    pub(super) route: &'a Object<RouteSpec>,
    pub(super) backends: &'a [BackendRef],
    place: (usize, usize),
}

impl Attached<'_> {
    /// Smaller goes first: the specification's order of precedence.
    pub(super) fn order(&self) -> impl Ord + use<> {
        let HttpMatch { headers, query_params, method, .. } = &self.matches;
        (
            Reverse(self.host.rank()),
            Reverse(self.path.rank()),
            Reverse(method.is_some()),
            Reverse(headers.len()),
            Reverse(query_params.len()),
            self.route.created,
            self.route.key.clone(),
            self.place,
        )
    }
}

/// Whether a route of `namespace` names this gateway with one of its parents.
pub(super) fn names(parent: &ParentRef, namespace: &str, gateway: &Key) -> bool {
    parent.group.as_deref().is_none_or(|group| group == GATEWAY)
        && parent.kind.as_deref().is_none_or(|kind| kind == "Gateway")
        && parent.name == gateway.name
        && parent.namespace.as_deref().unwrap_or(namespace) == gateway.namespace
}

/// The listeners that a route attaches to by one of its parents, and with which hosts.
///
/// # Errors
/// `Accepted=False` with the reason.
pub(super) fn attach(
    world: &World,
    gateway: &Key,
    listeners: &[Judged<'_>],
    route: &Object<RouteSpec>,
    parent: &ParentRef,
) -> Result<Vec<(usize, Vec<HostMatch>)>, Condition> {
    if let Some(what) = unsupported(&route.spec) {
        let message = format!("{what} is not served by this gateway");
        return Err(Condition::refused("UnsupportedValue", message));
    }
    let is_named = |judged: &Judged<'_>| {
        let section = parent.section_name.as_ref();
        section.is_none_or(|name| *name == judged.listener.name)
            && parent.port.is_none_or(|port| port == judged.listener.port)
    };
    let mut named: Vec<_> =
        listeners.iter().enumerate().filter(|(_, judged)| is_named(judged)).collect();
    named.retain(|(_, judged)| judged.is_served());
    if named.is_empty() {
        let message = "the Gateway has no listener of this name and port that is served";
        return Err(Condition::refused("NoMatchingParent", message));
    }
    named.retain(|(_, judged)| judged.allows(world, &gateway.namespace, &route.key.namespace));
    if named.is_empty() {
        let message = "no listener allows routes of this kind and namespace";
        return Err(Condition::refused("NotAllowedByListeners", message));
    }
    let hosts = named.into_iter().map(|(at, judged)| (at, common(&judged.host, &route.spec)));
    let hosts: Vec<_> = hosts.filter(|(_, hosts)| !hosts.is_empty()).collect();
    if hosts.is_empty() {
        let message = "no hostname is one of a listener's";
        return Err(Condition::refused("NoMatchingListenerHostname", message));
    }
    Ok(hosts)
}

fn common(listener: &HostMatch, route: &RouteSpec) -> Vec<HostMatch> {
    if route.hostnames.is_empty() {
        return vec![listener.clone()];
    }
    route.hostnames.iter().filter_map(|name| HostMatch::parse(name).and(listener)).collect()
}

/// The rules of a route for one of its hosts.
pub(super) fn rules<'a>(
    route: &'a Object<RouteSpec>,
    host: &HostMatch,
) -> impl Iterator<Item = Attached<'a>> {
    route.spec.rules.iter().enumerate().flat_map(move |(at, rule)| {
        let all = vec![HttpMatch::default()];
        let matches = if rule.matches.is_empty() { all } else { rule.matches.clone() };
        let host = host.clone();
        matches.into_iter().enumerate().map(move |(nth, matches)| Attached {
            host: host.clone(),
            path: path(&matches),
            matches,
            route,
            backends: &rule.backend_refs,
            place: (at, nth),
        })
    })
}

fn path(matches: &HttpMatch) -> PathMatch {
    let path = matches.path.as_ref();
    let value = path.and_then(|path| path.value.as_deref()).unwrap_or("/");
    match path.and_then(|path| path.kind.as_deref()) {
        Some("Exact") => PathMatch::Exact(value.to_owned()),
        _ => {
            let trimmed = value.trim_end_matches('/');
            PathMatch::Prefix(if trimmed.is_empty() { "/" } else { trimmed }.to_owned())
        }
    }
}

/// What of a route cannot be done here, if anything; half a route would be another route.
fn unsupported(route: &RouteSpec) -> Option<&'static str> {
    let is_pattern = |kind: Option<&String>| kind.is_some_and(|kind| kind == "RegularExpression");
    let any_pattern = |pairs: &[NameValue]| pairs.iter().any(|pair| is_pattern(pair.kind.as_ref()));
    for rule in &route.rules {
        if !rule.filters.is_empty() || rule.backend_refs.iter().any(|one| !one.filters.is_empty()) {
            return Some("`filters`");
        }
        if rule.timeouts.is_some() {
            return Some("`timeouts`");
        }
        if rule.retry.is_some() {
            return Some("`retry`");
        }
        if rule.session_persistence.is_some() {
            return Some("`sessionPersistence`");
        }
        for one in &rule.matches {
            let path = one.path.as_ref().and_then(|path| path.kind.as_ref());
            if is_pattern(path) || any_pattern(&one.headers) || any_pattern(&one.query_params) {
                return Some("a match of type RegularExpression");
            }
        }
    }
    None
}
