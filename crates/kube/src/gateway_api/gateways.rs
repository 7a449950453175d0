//! A Gateway with its routes becomes a table of ways into pools.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use config::spec::{RouteBackend, RouteListener, RouteRule, Routes};
use serde_json::{Value, json};

use super::attach::{self, Attached};
use super::backends;
use super::conditions::{CONTROLLER, Condition, ListenerSays, Parent, Says, StatusPatch};
use super::kind::{GATEWAY, Kind};
use super::listeners::{Judged, judge};
use super::object::{Key, Object};
use super::pools::Pools;
use super::resources::{GatewaySpec, ParentRef, RouteSpec};
use super::served::ServedGateway;
use super::world::World;

/// What follows from a Gateway and its routes.
pub(super) struct Routing {
    pub(super) routes: Routes,
    /// Those that routes lead to.
    pub(super) pools: Pools,
    pub(super) statuses: Vec<StatusPatch>,
}

/// What the routes of the world come to at one Gateway.
#[derive(Default)]
struct Draft<'a> {
    /// By listener.
    rules: Vec<Vec<Attached<'a>>>,
    attached: Vec<usize>,
    /// Reached by an accepted route, whether or not we can serve them.
    named: BTreeSet<Key>,
    statuses: Vec<StatusPatch>,
}

pub(super) fn resolve(world: &World, served: &ServedGateway) -> Routing {
    let mut statuses = classes(world);
    let gateway = world.gateways.get(&served.key).filter(|gateway| {
        let class = Key::new("", &gateway.spec.gateway_class_name);
        world.classes.get(&class).is_some_and(|class| class.spec.controller_name == CONTROLLER)
    });
    let listeners = gateway.map(|gateway| judge(&gateway.spec.listeners)).unwrap_or_default();
    let mut draft = Draft {
        rules: vec![Vec::new(); listeners.len()],
        attached: vec![0; listeners.len()],
        ..Draft::default()
    };
    for route in world.routes.values() {
        draft.take_in(world, &served.key, &listeners, route);
    }
    statuses.append(&mut draft.statuses);
    statuses.extend(pools(world, &served.key, &draft.named));
    if let Some(gateway) = gateway {
        statuses.push(status(gateway, served, &listeners, &draft.attached));
    }
    let usable: Vec<Key> = draft
        .rules
        .iter()
        .flatten()
        .flat_map(|rule| rule.backends.iter().map(move |backend| (rule, backend)))
        .filter_map(|(rule, backend)| {
            backends::resolve(world, &rule.route.key.namespace, backend).ok()
        })
        .collect::<BTreeSet<_>>()
        .into_iter()
        .collect();
    let pools = Pools::new(usable, &served.key.namespace);
    Routing { routes: table(world, &listeners, draft.rules, &pools), pools, statuses }
}

impl<'a> Draft<'a> {
    fn take_in(
        &mut self,
        world: &World,
        gateway: &Key,
        listeners: &[Judged<'_>],
        route: &'a Object<RouteSpec>,
    ) {
        let namespace = &route.key.namespace;
        let ours = route.spec.parent_refs.iter();
        let ours = ours.filter(|parent| attach::names(parent, namespace, gateway));
        let mut parents = Vec::new();
        let mut places: BTreeMap<usize, Vec<_>> = BTreeMap::new();
        for parent in ours {
            // A Gateway that is not ours, or not there, is for others to speak of.
            if listeners.is_empty() {
                continue;
            }
            let accepted = match attach::attach(world, gateway, listeners, route, parent) {
                Ok(at) => {
                    for (listener, hosts) in at {
                        places.entry(listener).or_default().extend(hosts);
                    }
                    Condition::accepted("")
                }
                Err(refused) => refused,
            };
            let conditions = vec![accepted, resolved_refs(world, route)];
            parents.push(Parent { parent_ref: written(parent), conditions });
        }
        for (listener, mut hosts) in places {
            hosts.sort_by_key(|host| Reverse(host.rank()));
            hosts.dedup();
            self.attached[listener] += 1;
            let rules = hosts.iter().flat_map(|host| attach::rules(route, host));
            self.rules[listener].extend(rules);
            let backends = route.spec.rules.iter().flat_map(|rule| &rule.backend_refs);
            let reached = backends.filter_map(|one| backends::reach(world, namespace, one).ok());
            self.named.extend(reached);
        }
        let says = Says::Parents { gateway: gateway.clone(), parents };
        self.statuses.push(StatusPatch::of(Kind::Route, route, says));
    }
}

/// `ResolvedRefs`: the first backend that cannot be used says why.
fn resolved_refs(world: &World, route: &Object<RouteSpec>) -> Condition {
    let mut backends = route.spec.rules.iter().flat_map(|rule| &rule.backend_refs);
    let failed =
        backends.find_map(|backend| backends::resolve(world, &route.key.namespace, backend).err());
    match failed {
        None => Condition::holds("ResolvedRefs", "ResolvedRefs", ""),
        Some(why) => Condition::fails("ResolvedRefs", why.reason, why.message),
    }
}

/// A parent as a status names it.
fn written(parent: &ParentRef) -> Value {
    let mut said = json!({
        "group": parent.group.as_deref().unwrap_or(GATEWAY),
        "kind": parent.kind.as_deref().unwrap_or("Gateway"),
        "name": parent.name,
    });
    if let Some(namespace) = &parent.namespace {
        said["namespace"] = json!(namespace);
    }
    if let Some(section) = &parent.section_name {
        said["sectionName"] = json!(section);
    }
    if let Some(port) = parent.port {
        said["port"] = json!(port);
    }
    said
}

/// All classes that are ours are accepted.
fn classes(world: &World) -> Vec<StatusPatch> {
    let ours = world.classes.values().filter(|class| class.spec.controller_name == CONTROLLER);
    let accepted = || Says::Conditions(vec![Condition::accepted("")]);
    ours.map(|class| StatusPatch::of(Kind::Class, class, accepted())).collect()
}

/// What each pool is told: an entry where a route of this Gateway leads to it, none where none does.
fn pools(world: &World, gateway: &Key, named: &BTreeSet<Key>) -> Vec<StatusPatch> {
    let told = world.pools.values().map(|pool| {
        let parent_ref = json!({
            "group": GATEWAY, "kind": "Gateway", "namespace": gateway.namespace, "name": gateway.name,
        });
        let conditions = match pool.spec.has_picker_of_others() {
            false => vec![
                Condition::accepted(""),
                Condition::holds("ResolvedRefs", "ResolvedRefs", ""),
            ],
            true => {
                let why = backends::picker_of_others(&pool.key);
                vec![
                    Condition::refused("NotSupportedByParent", why.clone()),
                    Condition::fails("ResolvedRefs", "InvalidExtensionRef", why),
                ]
            }
        };
        let entry = named.contains(&pool.key).then_some(Parent { parent_ref, conditions });
        let parents = entry.into_iter().collect();
        let says = Says::Parents { gateway: gateway.clone(), parents };
        StatusPatch::of(Kind::Pool, pool, says)
    });
    told.collect()
}

fn status(
    gateway: &Object<GatewaySpec>,
    served: &ServedGateway,
    listeners: &[Judged<'_>],
    attached: &[usize],
) -> StatusPatch {
    let faults = listeners.iter().filter(|judged| !judged.is_served()).count();
    let accepted = match faults {
        0 => Condition::accepted(""),
        all if all == listeners.len() => {
            Condition::refused("ListenersNotValid", "no listener can be served; each says why")
        }
        _ => Condition::holds(
            "Accepted",
            "ListenersNotValid",
            "some listeners cannot be served; each says why",
        ),
    };
    let programmed = if served.addresses.is_empty() {
        let message =
            "traffic is served, but nobody has said where clients reach it (--gateway-address)";
        Condition::fails("Programmed", "AddressNotAssigned", message)
    } else if accepted.is_true {
        Condition::holds("Programmed", "Programmed", "")
    } else {
        Condition::fails("Programmed", "Invalid", "no listener can be served")
    };
    let listeners = listeners.iter().zip(attached).map(|(judged, attached)| ListenerSays {
        name: judged.listener.name.clone(),
        takes_http_routes: judged.takes_http_routes(),
        attached_routes: *attached,
        conditions: judged.conditions(),
    });
    let says = Says::Gateway {
        conditions: vec![accepted, programmed],
        listeners: listeners.collect(),
        addresses: served.addresses.clone(),
    };
    StatusPatch::of(Kind::Gateway, gateway, says)
}

/// The table that requests are looked up in, each part in its order of precedence.
fn table(
    world: &World,
    listeners: &[Judged<'_>],
    rules: Vec<Vec<Attached<'_>>>,
    pools: &Pools,
) -> Routes {
    let served = listeners.iter().zip(rules).filter(|(judged, _)| judged.is_served());
    let mut listeners: Vec<RouteListener> = served
        .map(|(judged, mut rules)| {
            rules.sort_by_cached_key(Attached::order);
            let rules = rules.into_iter().map(|rule| written_rule(world, rule, pools));
            RouteListener { host: judged.host.clone(), rules: rules.collect() }
        })
        .collect();
    listeners.sort_by_key(|listener| Reverse(listener.host.rank()));
    Routes { listeners }
}

fn written_rule(world: &World, rule: Attached<'_>, pools: &Pools) -> RouteRule {
    let namespace = &rule.route.key.namespace;
    let backends = rule.backends.iter().map(|backend| RouteBackend {
        weight: backend.weight.unwrap_or(1),
        pool: backends::resolve(world, namespace, backend).ok().map(|pool| pools.name(&pool)),
    });
    let backends = backends.collect();
    let headers = rule.matches.headers.iter();
    RouteRule {
        host: rule.host,
        path: rule.path,
        method: rule.matches.method.clone(),
        headers: headers.map(|one| (one.name.to_ascii_lowercase(), one.value.clone())).collect(),
        query: {
            let query = rule.matches.query_params.iter();
            query.map(|one| (one.name.clone(), one.value.clone())).collect()
        },
        backends,
    }
}
