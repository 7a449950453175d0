//! Requests whose pool a route has chosen.

use types::PoolName;

use super::*;
use crate::testing::{at, body, exchange_to, gateway, served};

/// Two pools that serve the same model; only the second has the adapter `sql`. Each has a rewrite of `alias`.
fn two_pools() -> Arc<Gateway> {
    let gateway = gateway(
        "  schedulers:
  - { name: one, modelName: first, endpoints: [{ url: 'http://10.0.0.1:8000' }] }
  - { name: two, modelName: second, endpoints: [{ url: 'http://10.0.0.2:8000' }] }
  modelRewrites:
  - { name: a, poolRef: { name: one }, rules: [{ matches: [{ model: { value: alias } }], targets: [{ modelRewrite: first }] }] }
  - { name: b, poolRef: { name: two }, rules: [{ matches: [{ model: { value: alias } }], targets: [{ modelRewrite: sql }] }] }
",
    );
    let address = "http://10.0.0.2:8000".parse().unwrap();
    gateway.note_served(&address, vec![served("second", None), served("sql", Some("second"))]);
    gateway
}

/// Pool, whether it is an adapter, and the name that the endpoint is asked for.
fn goes(gateway: &Arc<Gateway>, pool: &str, model: &str) -> (String, bool, String) {
    let mut exchange = exchange_to(gateway, PoolName::new(pool));
    exchange.place(&body(model), None, at(0)).unwrap();
    let target = exchange.target.clone().unwrap();
    let name = exchange.wire_model().unwrap_or(model).to_owned();
    (target.pool.name.as_str().to_owned(), target.adapter.is_some(), name)
}

fn expected(pool: &str, is_adapter: bool, name: &str) -> (String, bool, String) {
    (pool.to_owned(), is_adapter, name.to_owned())
}

#[test]
fn a_route_keeps_a_request_in_its_pool_whatever_its_model() {
    let gateway = two_pools();
    assert_eq!(goes(&gateway, "one", "first"), expected("one", false, "first"));
    assert_eq!(goes(&gateway, "one", "second"), expected("one", false, "second"));
    assert_eq!(goes(&gateway, "one", "sql"), expected("one", false, "sql"), "not its adapter");
    assert_eq!(goes(&gateway, "two", "sql"), expected("two", true, "sql"));
    assert_eq!(goes(&gateway, "two", "unheard-of"), expected("two", false, "unheard-of"));
}

#[test]
fn a_route_has_the_rewrites_of_its_own_pool() {
    let gateway = two_pools();
    assert_eq!(goes(&gateway, "one", "alias"), expected("one", false, "first"));
    assert_eq!(goes(&gateway, "two", "alias"), expected("two", true, "sql"));
}

#[test]
fn a_pool_that_is_gone_is_503() {
    let gateway = two_pools();
    let mut exchange = exchange_to(&gateway, PoolName::new("gone"));
    assert_eq!(exchange.place(&body("first"), None, at(0)).unwrap_err().status, 503);
}
