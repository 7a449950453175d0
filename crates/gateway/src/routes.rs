//! Finds the pool of a request by its head, where routes of a cluster say so.

use config::spec::{RouteBackend, RouteRule, Routes};
use telemetry::metrics::labels;
use types::PoolName;

use crate::{Component, Refusal};

/// What routes look at.
#[derive(Clone, Copy)]
pub struct RoutedHead<'a> {
    /// As the client wrote it, with or without a port.
    pub host: &'a str,
    pub path: &'a str,
    pub query: Option<&'a str>,
    pub method: &'a str,
    /// The value of a header by its lower-case name.
    pub header: &'a dyn Fn(&str) -> Option<&'a str>,
}

/// The pool of a request.
///
/// * `chance`: any number; decides between backends by their weights.
///
/// # Errors
/// 404: no route fits. 500: the route's backend cannot be resolved.
pub fn find_pool(routes: &Routes, head: RoutedHead<'_>, chance: u64) -> Result<PoolName, Refusal> {
    let host = host_of(head.host);
    let listener = routes.listeners.iter().find(|listener| listener.host.fits(&host));
    let mut rules = listener.into_iter().flat_map(|listener| &listener.rules);
    let rule = rules.find(|rule| fits(rule, &host, head)).ok_or_else(|| {
        Refusal::new(
            404,
            "route_not_found",
            Component::Edge,
            labels::Refusal::RouteNotFound,
            "no route leads from this host and path to a pool",
        )
    })?;
    let pool = choose(&rule.backends, chance).and_then(|backend| backend.pool.clone());
    pool.ok_or_else(|| {
        Refusal::new(
            500,
            "backend_not_found",
            Component::Edge,
            labels::Refusal::RouteNotFound,
            "the route's backend is not there, or may not be used: the HTTPRoute's status says why",
        )
    })
}

/// Without its port, in lower case.
fn host_of(host: &str) -> String {
    let end = match host.rfind(']') {
        Some(bracket) => bracket + 1,
        None => host.find(':').unwrap_or(host.len()),
    };
    host.get(..end).unwrap_or(host).to_ascii_lowercase()
}

fn fits(rule: &RouteRule, host: &str, head: RoutedHead<'_>) -> bool {
    rule.host.fits(host)
        && rule.path.fits(head.path)
        && rule.method.as_ref().is_none_or(|method| method == head.method)
        && rule.headers.iter().all(|(name, value)| (head.header)(name) == Some(value.as_str()))
        && rule.query.iter().all(|(name, value)| has(head.query, name, value))
}

/// Whether the first parameter of this name has this value.
fn has(query: Option<&str>, name: &str, value: &str) -> bool {
    let pairs = query.unwrap_or_default().split('&');
    let mut values = pairs.filter_map(|pair| {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        (key == name).then_some(value)
    });
    values.next() == Some(value)
}

/// One of the backends, each in proportion to its weight.
fn choose(backends: &[RouteBackend], chance: u64) -> Option<&RouteBackend> {
    let total: u64 = backends.iter().map(|backend| u64::from(backend.weight)).sum();
    let mut point = chance.checked_rem(total)?;
    backends.iter().find(|backend| {
        let weight = u64::from(backend.weight);
        let is_it = point < weight;
        point = point.saturating_sub(weight);
        is_it
    })
}

#[cfg(test)]
mod tests {
    use config::spec::{HostMatch, PathMatch, RouteListener};

    use super::*;

    fn rule(path: &str, pools: &[(&str, u32)]) -> RouteRule {
        let backend = |(pool, weight): &(&str, u32)| RouteBackend {
            weight: *weight,
            pool: (!pool.is_empty()).then(|| PoolName::new(pool)),
        };
        RouteRule {
            host: HostMatch::Any,
            path: PathMatch::Prefix(path.to_owned()),
            method: None,
            headers: Vec::new(),
            query: Vec::new(),
            backends: pools.iter().map(backend).collect(),
        }
    }

    fn routes(rules: Vec<RouteRule>) -> Routes {
        Routes { listeners: vec![RouteListener { host: HostMatch::Any, rules }] }
    }

    fn found(routes: &Routes, host: &str, target: &str, chance: u64) -> Result<String, u16> {
        let (path, query) = target.split_once('?').map_or((target, None), |(p, q)| (p, Some(q)));
        let header = |name: &str| (name == "x-team").then_some("red");
        let head = RoutedHead { host, path, query, method: "GET", header: &header };
        let found = find_pool(routes, head, chance);
        found.map(|pool| pool.as_str().to_owned()).map_err(|refusal| refusal.status)
    }

    #[test]
    fn the_first_rule_that_fits_counts_and_none_is_404() {
        let routes = routes(vec![rule("/a/b", &[("long", 1)]), rule("/a", &[("short", 1)])]);
        assert_eq!(found(&routes, "x", "/a/b/c", 0), Ok("long".to_owned()));
        assert_eq!(found(&routes, "x", "/a/c", 0), Ok("short".to_owned()));
        assert_eq!(found(&routes, "x", "/c", 0), Err(404));
    }

    #[test]
    fn weights_are_shares_and_what_cannot_be_resolved_keeps_its_own() {
        let routes = routes(vec![rule("/", &[("a", 7), ("", 3)])]);
        let count = (0..1000).filter(|n| found(&routes, "x", "/", *n).is_ok()).count();
        assert_eq!(count, 700);
        assert_eq!(found(&routes, "x", "/", 9), Err(500));
    }

    #[test]
    fn no_backend_and_no_weight_are_500() {
        for backends in [&[][..], &[("a", 0)]] {
            assert_eq!(found(&routes(vec![rule("/", backends)]), "x", "/", 5), Err(500));
        }
    }

    #[test]
    fn a_request_belongs_to_the_listener_with_the_most_particular_host_alone() {
        let listener = |host: &str, rules| RouteListener { host: HostMatch::parse(host), rules };
        let routes = Routes {
            listeners: vec![
                listener("a.com", vec![rule("/only", &[("own", 1)])]),
                listener("", vec![rule("/", &[("any", 1)])]),
            ],
        };
        assert_eq!(found(&routes, "A.com:8080", "/only", 0), Ok("own".to_owned()));
        assert_eq!(found(&routes, "a.com", "/", 0), Err(404));
        assert_eq!(found(&routes, "b.com", "/", 0), Ok("any".to_owned()));
        assert_eq!(found(&routes, "[::1]:80", "/", 0), Ok("any".to_owned()));
    }

    #[test]
    fn headers_parameters_and_methods_must_fit_exactly() {
        let narrowed = |change: fn(&mut RouteRule)| {
            let mut rule = rule("/", &[("a", 1)]);
            change(&mut rule);
            routes(vec![rule])
        };
        let red = narrowed(|rule| rule.headers.push(("x-team".to_owned(), "red".to_owned())));
        let blue = narrowed(|rule| rule.headers.push(("x-team".to_owned(), "blue".to_owned())));
        let query = narrowed(|rule| rule.query.push(("v".to_owned(), "2".to_owned())));
        let post = narrowed(|rule| rule.method = Some("POST".to_owned()));
        assert!(found(&red, "x", "/", 0).is_ok());
        assert_eq!(found(&blue, "x", "/", 0), Err(404));
        assert!(found(&query, "x", "/?u=1&v=2&v=3", 0).is_ok());
        assert_eq!(found(&query, "x", "/?v=3&v=2", 0), Err(404), "the first of a name counts");
        assert_eq!(found(&post, "x", "/", 0), Err(404));
    }
}
