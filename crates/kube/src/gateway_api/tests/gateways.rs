//! A Gateway with its routes.

use config::spec::{HostMatch, PathMatch, RouteRule, Routes};
use kube::core::DynamicObject;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::super::conditions::{CONTROLLER, Condition, ListenerSays, Says};
use super::super::kind::Kind;
use super::super::object::Key;
use super::super::resolve::{Resolved, resolve};
use super::super::served::{Served, ServedGateway};
use super::super::world::World;
use super::{pool, world};

fn object(namespace: &str, name: &str, spec: Value) -> DynamicObject {
    serde_json::from_value(json!({
        "metadata": { "namespace": namespace, "name": name, "generation": 1 }, "spec": spec,
    }))
    .unwrap()
}

fn class(controller: &str) -> (Kind, DynamicObject) {
    (Kind::Class, object("", "wicketgate", json!({ "controllerName": controller })))
}

fn gateway(listeners: Value) -> (Kind, DynamicObject) {
    let spec = json!({ "gatewayClassName": "wicketgate", "listeners": listeners });
    (Kind::Gateway, object("models", "gate", spec))
}

/// One listener for any host, for routes of all namespaces.
fn open_gateway() -> (Kind, DynamicObject) {
    gateway(json!([
        { "name": "http", "port": 80, "protocol": "HTTP", "allowedRoutes": { "namespaces": { "from": "All" } } },
    ]))
}

fn backend(pool: &str) -> Value {
    json!({ "group": "inference.networking.k8s.io", "kind": "InferencePool", "name": pool })
}

/// A route of `models` to the gateway; `spec` is merged over it.
fn route(name: &str, spec: Value) -> (Kind, DynamicObject) {
    route_in("models", name, spec)
}

fn route_in(namespace: &str, name: &str, spec: Value) -> (Kind, DynamicObject) {
    let mut all = json!({ "parentRefs": [{ "name": "gate", "namespace": "models" }] });
    all.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
    (Kind::Route, object(namespace, name, all))
}

fn rules(pools: &[&str]) -> Value {
    let backends: Vec<_> = pools.iter().map(|pool| backend(pool)).collect();
    json!({ "rules": [{ "backendRefs": backends }] })
}

fn resolved(world: &World) -> Resolved {
    let key = "gate".parse().unwrap();
    let gateway = ServedGateway::new(key, vec!["10.0.0.1".to_owned()], "models");
    resolve(world, &Served::Gateway(gateway))
}

fn of(objects: Vec<(Kind, DynamicObject)>) -> Resolved {
    resolved(&world(std::iter::once(class(CONTROLLER)).chain(objects)))
}

fn says(resolved: &Resolved, kind: Kind, name: &str) -> Says {
    let found = resolved.statuses.iter().find(|patch| patch.kind == kind && patch.key.name == name);
    found.unwrap().says.clone()
}

fn text(conditions: &[Condition]) -> Vec<String> {
    let text = |one: &Condition| format!("{}={} {}", one.kind, one.is_true, one.reason);
    conditions.iter().map(text).collect()
}

/// The conditions at each of our parents of a route or pool.
fn parents(resolved: &Resolved, kind: Kind, name: &str) -> Vec<Vec<String>> {
    let Says::Parents { parents, .. } = says(resolved, kind, name) else { panic!("no parents") };
    parents.iter().map(|parent| text(&parent.conditions)).collect()
}

fn listeners(resolved: &Resolved) -> Vec<ListenerSays> {
    let Says::Gateway { listeners, .. } = says(resolved, Kind::Gateway, "gate") else {
        panic!("no gateway")
    };
    listeners
}

/// Each rule as `host path -> pool=weight …`, by listener.
fn table(resolved: &Resolved) -> Vec<String> {
    let Routes { listeners } = resolved.additions.routes.clone().unwrap();
    let host = |host: &HostMatch| match host {
        HostMatch::Any => "*".to_owned(),
        HostMatch::Suffix(suffix) => format!("*{suffix}"),
        HostMatch::Exact(exact) => exact.clone(),
    };
    let line = |rule: &RouteRule| {
        let path = match &rule.path {
            PathMatch::Exact(path) => format!("={path}"),
            PathMatch::Prefix(path) => path.clone(),
        };
        let backends = rule.backends.iter().map(|backend| {
            let pool = backend.pool.as_ref().map_or("-", |pool| pool.as_str());
            format!(" {pool}={}", backend.weight)
        });
        format!("{} {path} ->{}", host(&rule.host), backends.collect::<String>())
    };
    listeners.iter().flat_map(|listener| listener.rules.iter().map(line)).collect()
}

const ACCEPTED: [&str; 2] = ["Accepted=true Accepted", "ResolvedRefs=true ResolvedRefs"];

#[test]
fn a_route_leads_from_the_gateway_to_its_pool_and_all_are_told_so() {
    let resolved = of(vec![open_gateway(), pool("chat", &[8000]), route("r", rules(&["chat"]))]);
    assert_eq!(table(&resolved), ["* / -> chat=1"]);
    assert_eq!(resolved.additions.schedulers.len(), 1);
    assert!(!resolved.additions.catches_all);
    assert_eq!(parents(&resolved, Kind::Route, "r"), [ACCEPTED]);
    assert_eq!(parents(&resolved, Kind::Pool, "chat"), [ACCEPTED]);
    let Says::Gateway { conditions, addresses, .. } = says(&resolved, Kind::Gateway, "gate") else {
        panic!("no gateway")
    };
    assert_eq!(text(&conditions), ["Accepted=true Accepted", "Programmed=true Programmed"]);
    assert_eq!(addresses, ["10.0.0.1"]);
    assert_eq!(listeners(&resolved)[0].attached_routes, 1);
    let Says::Conditions(conditions) = says(&resolved, Kind::Class, "wicketgate") else {
        panic!("no class")
    };
    assert_eq!(text(&conditions), ["Accepted=true Accepted"]);
}

#[test]
fn a_gateway_of_another_controller_is_left_alone() {
    let objects = [
        class("example.com/other"),
        open_gateway(),
        pool("chat", &[1]),
        route("r", rules(&["chat"])),
    ];
    let resolved = resolved(&world(objects));
    assert!(table(&resolved).is_empty());
    assert_eq!(parents(&resolved, Kind::Route, "r"), Vec::<Vec<String>>::new());
    assert!(resolved.statuses.iter().all(|patch| patch.kind != Kind::Gateway));
}

#[test]
fn a_missing_pool_leaves_the_route_accepted_and_its_references_unresolved() {
    let resolved =
        of(vec![open_gateway(), pool("chat", &[1]), route("r", rules(&["chat", "gone"]))]);
    assert_eq!(table(&resolved), ["* / -> chat=1 -=1"], "its share is not given to the other");
    assert_eq!(
        parents(&resolved, Kind::Route, "r"),
        [["Accepted=true Accepted", "ResolvedRefs=false BackendNotFound"]]
    );
    assert_eq!(parents(&resolved, Kind::Pool, "chat"), [ACCEPTED]);
}

#[test]
fn a_service_is_no_backend() {
    let service = json!({ "rules": [{ "backendRefs": [{ "name": "web", "port": 80 }] }] });
    let resolved = of(vec![open_gateway(), route("r", service)]);
    assert_eq!(
        parents(&resolved, Kind::Route, "r"),
        [["Accepted=true Accepted", "ResolvedRefs=false InvalidKind"]]
    );
}

#[test]
fn a_pool_without_a_route_has_no_parent() {
    let resolved = of(vec![open_gateway(), pool("chat", &[1])]);
    assert_eq!(parents(&resolved, Kind::Pool, "chat"), Vec::<Vec<String>>::new());
}

#[test]
fn a_pool_with_a_picker_of_others_is_not_served_and_told_why() {
    let mut chat = pool("chat", &[1]);
    chat.1.data["spec"]["endpointPickerRef"] = json!({ "name": "epp", "port": { "number": 9002 } });
    let resolved = of(vec![open_gateway(), chat, route("r", rules(&["chat"]))]);
    assert_eq!(table(&resolved), ["* / -> -=1"]);
    assert_eq!(
        parents(&resolved, Kind::Pool, "chat"),
        [["Accepted=false NotSupportedByParent", "ResolvedRefs=false InvalidExtensionRef"]]
    );
}

#[test]
fn a_picker_of_our_group_is_the_built_in_one() {
    let mut chat = pool("chat", &[1]);
    let group = "gateway.wicketgate.dev";
    chat.1.data["spec"]["endpointPickerRef"] =
        json!({ "group": group, "kind": "Picker", "name": "built-in" });
    let resolved = of(vec![open_gateway(), chat, route("r", rules(&["chat"]))]);
    assert_eq!(table(&resolved), ["* / -> chat=1"]);
    assert_eq!(parents(&resolved, Kind::Pool, "chat"), [ACCEPTED]);
}

#[test]
fn the_particular_goes_before_the_general() {
    let paths = json!({ "rules": [
        { "matches": [{ "path": { "type": "PathPrefix", "value": "/" } }], "backendRefs": [backend("chat")] },
        { "matches": [{ "path": { "type": "PathPrefix", "value": "/a/" } }], "backendRefs": [backend("chat")] },
        { "matches": [{ "path": { "type": "Exact", "value": "/a" } }], "backendRefs": [backend("chat")] },
    ] });
    let mut named = rules(&["chat"]);
    named["hostnames"] = json!(["*.example.com", "a.example.com"]);
    let resolved =
        of(vec![open_gateway(), pool("chat", &[1]), route("a", paths), route("b", named)]);
    assert_eq!(
        table(&resolved),
        [
            "a.example.com / -> chat=1",
            "*.example.com / -> chat=1",
            "* =/a -> chat=1",
            "* /a -> chat=1",
            "* / -> chat=1",
        ]
    );
}

#[test]
fn listeners_say_who_may_attach() {
    let gateway = gateway(json!([
        { "name": "same", "hostname": "same.com", "port": 80, "protocol": "HTTP" },
        { "name": "red", "hostname": "red.com", "port": 80, "protocol": "HTTP", "allowedRoutes": { "namespaces": {
            "from": "Selector", "selector": { "matchLabels": { "team": "red" } },
        } } },
    ]));
    let mut namespace = object("", "web", json!({}));
    namespace.metadata.labels = Some([("team".to_owned(), "red".to_owned())].into());
    let grant = object(
        "models",
        "g",
        json!({
            "from": [{ "group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "namespace": "web" }],
            "to": [{ "group": "inference.networking.k8s.io", "kind": "InferencePool", "name": "chat" }],
        }),
    );
    let mut far = rules(&["chat"]);
    far["rules"][0]["backendRefs"][0]["namespace"] = json!("models");
    let objects = |with_grant: bool| {
        let grant = with_grant.then(|| (Kind::Grant, grant.clone()));
        let stranger = route_in("blue", "stranger", rules(&[]));
        let own = [
            gateway.clone(),
            (Kind::Namespace, namespace.clone()),
            pool("chat", &[1]),
            route_in("web", "far", far.clone()),
            stranger,
        ];
        own.into_iter().chain(grant).collect::<Vec<_>>()
    };
    let granted = of(objects(true));
    assert_eq!(table(&granted), ["red.com / -> chat=1"]);
    assert_eq!(parents(&granted, Kind::Route, "far"), [ACCEPTED]);
    assert_eq!(
        parents(&granted, Kind::Route, "stranger"),
        [["Accepted=false NotAllowedByListeners", "ResolvedRefs=true ResolvedRefs"]]
    );
    let refused = of(objects(false));
    assert_eq!(table(&refused), ["red.com / -> -=1"]);
    assert!(parents(&refused, Kind::Pool, "chat").is_empty(), "who may not use it does not show");
    assert_eq!(
        parents(&refused, Kind::Route, "far"),
        [["Accepted=true Accepted", "ResolvedRefs=false RefNotPermitted"]]
    );
}

#[test]
fn a_route_says_why_it_is_not_attached() {
    let reason = |change: fn(&mut Value)| {
        let mut spec = rules(&["chat"]);
        spec["parentRefs"] = json!([{ "name": "gate" }]);
        change(&mut spec);
        let gateway = gateway(json!([
            { "name": "http", "hostname": "*.a.com", "port": 80, "protocol": "HTTP" },
        ]));
        let resolved = of(vec![gateway, pool("chat", &[1]), route("r", spec)]);
        assert!(table(&resolved).is_empty());
        parents(&resolved, Kind::Route, "r")[0][0].clone()
    };
    let refused = |reason| format!("Accepted=false {reason}");
    let section = reason(|spec| spec["parentRefs"][0]["sectionName"] = json!("other"));
    assert_eq!(section, refused("NoMatchingParent"));
    let port = reason(|spec| spec["parentRefs"][0]["port"] = json!(81));
    assert_eq!(port, refused("NoMatchingParent"));
    let host = reason(|spec| spec["hostnames"] = json!(["b.com"]));
    assert_eq!(host, refused("NoMatchingListenerHostname"));
    let filter = reason(|spec| spec["rules"][0]["filters"] = json!([{ "type": "RequestMirror" }]));
    assert_eq!(filter, refused("UnsupportedValue"));
    let pattern = reason(|spec| {
        spec["rules"][0]["matches"] =
            json!([{ "path": { "type": "RegularExpression", "value": ".*" } }]);
    });
    assert_eq!(pattern, refused("UnsupportedValue"));
}

#[test]
fn listeners_that_cannot_be_served_say_so() {
    let resolved = of(vec![gateway(json!([
        { "name": "http", "port": 80, "protocol": "HTTP" },
        { "name": "twin", "port": 80, "protocol": "HTTP" },
        { "name": "other", "port": 81, "protocol": "HTTP" },
        { "name": "tls", "port": 443, "protocol": "HTTPS" },
    ]))]);
    let accepted: Vec<_> =
        listeners(&resolved).iter().map(|one| text(&one.conditions)[0].clone()).collect();
    assert_eq!(
        accepted,
        [
            "Accepted=true Accepted",
            "Accepted=false HostnameConflict",
            "Accepted=false PortUnavailable",
            "Accepted=false UnsupportedProtocol",
        ]
    );
}

fn everything() -> Vec<(Kind, DynamicObject)> {
    let mut named = rules(&["code", "gone"]);
    named["hostnames"] = json!(["a.com"]);
    vec![
        class(CONTROLLER),
        open_gateway(),
        pool("chat", &[1]),
        pool("code", &[1]),
        route("a", rules(&["chat"])),
        route("b", rules(&["chat", "code"])),
        route("c", named),
        super::objective(super::LLM_D, "fast", "chat", 1),
    ]
}

proptest! {
    #[test]
    fn the_order_of_events_does_not_matter_to_gateways(
        events in Just(everything()).prop_shuffle(),
        removed in 0_usize..8,
    ) {
        let all = everything();
        let mut shuffled = world(events);
        prop_assert_eq!(resolved(&shuffled), resolved(&world(all.clone())));
        let (kind, gone) = all[removed].clone();
        shuffled.remove(kind, &Key::of(&gone).unwrap());
        let rest = all.into_iter().enumerate().filter(|(at, _)| *at != removed).map(|(_, one)| one);
        prop_assert_eq!(resolved(&shuffled), resolved(&world(rest)));
    }
}

/// Prints how long it takes to work out what a large cluster comes to: `--nocapture`.
#[test]
#[ignore = "a measurement: cargo test --workspace --lib -- --ignored --nocapture measured_time_to_resolve"]
fn measured_time_to_resolve_a_thousand_pools() {
    let names: Vec<String> = (0..1000).map(|n| format!("pool-{n}")).collect();
    let objects = names.iter().flat_map(|name| {
        let paths = json!({ "rules": [{
            "matches": [{ "path": { "type": "PathPrefix", "value": format!("/{name}") } }],
            "backendRefs": [backend(name)],
        }] });
        [pool(name, &[8000]), route(name, paths), super::objective(super::LLM_D, name, name, 1)]
    });
    let world = world([class(CONTROLLER), open_gateway()].into_iter().chain(objects));
    let mut times: Vec<_> = (0..20)
        .map(|_| {
            let begun = telemetry::clock::now();
            let resolved = resolved(&world);
            assert_eq!(resolved.additions.schedulers.len(), 1000);
            telemetry::clock::now().since(begun)
        })
        .collect();
    times.sort();
    eprintln!(
        "1,000 pools, routes and objectives: median {:?}, longest {:?}",
        times[10], times[19]
    );
}
