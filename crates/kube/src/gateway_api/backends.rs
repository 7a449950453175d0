//! What a route's `backendRefs` come to.

use super::kind::{GATEWAY, INFERENCE};
use super::object::Key;
use super::resources::BackendRef;
use super::world::World;

/// Why a backend cannot be used, with the reason of `ResolvedRefs`.
pub(super) struct Unresolved {
    pub(super) reason: &'static str,
    pub(super) message: String,
}

/// The pool that a backend of a route in `namespace` names, if this gateway can serve it.
pub(super) fn resolve(
    world: &World,
    namespace: &str,
    backend: &BackendRef,
) -> Result<Key, Unresolved> {
    let pool = reach(world, namespace, backend)?;
    if world.pools.get(&pool).is_some_and(|object| object.spec.has_picker_of_others()) {
        let message = picker_of_others(&pool);
        return Err(Unresolved { reason: "UnsupportedPicker", message });
    }
    Ok(pool)
}

/// The pool that a backend names, if it is there and may be used, whether or not we can serve it.
pub(super) fn reach(
    world: &World,
    namespace: &str,
    backend: &BackendRef,
) -> Result<Key, Unresolved> {
    let failed = |reason, message| Err(Unresolved { reason, message });
    let kind = backend.kind.as_deref().unwrap_or("Service");
    if backend.group != INFERENCE || kind != "InferencePool" {
        let name = &backend.name;
        return failed("InvalidKind", format!("{kind} `{name}`: only InferencePools are served"));
    }
    let pool = Key::new(backend.namespace.as_deref().unwrap_or(namespace), &backend.name);
    if pool.namespace != namespace && !is_granted(world, namespace, &pool) {
        let message = format!(
            "no ReferenceGrant in `{}` lets HTTPRoutes of `{namespace}` use its InferencePool `{}`",
            pool.namespace, pool.name
        );
        return failed("RefNotPermitted", message);
    }
    if !world.pools.contains_key(&pool) {
        return failed("BackendNotFound", format!("there is no InferencePool `{pool}`"));
    }
    Ok(pool)
}

pub(super) fn picker_of_others(pool: &Key) -> String {
    format!(
        "InferencePool `{pool}` has an `endpointPickerRef`, and pickers of others are not asked yet: without it, or with group `gateway.wicketgate.dev`, this gateway picks"
    )
}

fn is_granted(world: &World, from: &str, pool: &Key) -> bool {
    let grants = world.grants.values().filter(|grant| grant.key.namespace == pool.namespace);
    grants.into_iter().any(|grant| {
        let names_us =
            grant.spec.from.iter().any(|one| {
                one.group == GATEWAY && one.kind == "HTTPRoute" && one.namespace == from
            });
        let names_pool = grant.spec.to.iter().any(|one| {
            let is_it = one.name.as_ref().is_none_or(|name| name.is_empty() || *name == pool.name);
            one.group == INFERENCE && one.kind == "InferencePool" && is_it
        });
        names_us && names_pool
    })
}
