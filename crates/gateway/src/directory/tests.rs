use std::collections::HashMap;
use std::sync::Arc;

use types::PoolName;

use crate::Found;
use crate::testing::{at, gateway, pool_of, served};

const TWO_POOLS: &str = r"
  schedulers:
  - { name: chat, modelName: llama, loraAdapters: [sql], endpoints: [{ url: 'http://10.0.0.1:8000' }] }
  - { name: code, modelName: qwen, endpoints: [{ url: 'http://10.0.0.2:8000' }] }
";

fn pool_for(gateway: &crate::Gateway, name: &str) -> Option<String> {
    gateway.catalog().get(name).map(|target| target.pool.name.as_str().to_owned())
}

#[test]
fn a_name_leads_to_the_pool_that_declares_it() {
    let gateway = gateway(TWO_POOLS);
    assert_eq!(pool_for(&gateway, "llama").as_deref(), Some("chat"));
    assert_eq!(pool_for(&gateway, "sql").as_deref(), Some("chat"));
    assert_eq!(pool_for(&gateway, "qwen").as_deref(), Some("code"));
    assert_eq!(pool_for(&gateway, "mistral"), None);
    assert!(gateway.catalog().get("sql").unwrap().adapter.is_some());
}

#[test]
fn an_adapter_that_a_server_tells_of_is_served_and_gone_when_it_is_unloaded() {
    let gateway = gateway(TWO_POOLS);
    let address = "http://10.0.0.1:8000".parse().unwrap();
    gateway.note_served(&address, vec![served("llama", None), served("fr", Some("llama"))]);
    assert_eq!(pool_for(&gateway, "fr").as_deref(), Some("chat"));
    gateway.note_served(&address, vec![served("llama", None)]);
    assert_eq!(pool_for(&gateway, "fr"), None);
    assert_eq!(pool_for(&gateway, "sql").as_deref(), Some("chat"), "declared ones stay");
}

#[test]
fn an_adapter_of_a_base_model_with_another_name_is_still_the_pools() {
    // The document calls the model `llama`; the server calls it by its own path.
    let gateway = gateway(TWO_POOLS);
    let address = "http://10.0.0.1:8000".parse().unwrap();
    gateway.note_served(&address, vec![served("llama", None), served("fr", Some("/models/llama"))]);
    assert_eq!(pool_for(&gateway, "fr").as_deref(), Some("chat"));
}

#[test]
fn endpoints_without_a_model_get_a_pool_for_each_base_model_they_serve() {
    let gateway = gateway(
        "  discover: [{ url: 'http://10.0.0.1:1' }, { url: 'http://10.0.0.2:1' }, { url: 'http://10.0.0.3:1' }]\n",
    );
    assert!(!gateway.is_ready(), "nobody has told yet");
    let address = |n: u8| format!("http://10.0.0.{n}:1").parse().unwrap();
    gateway.note_served(&address(1), vec![served("llama", None), served("sql", Some("llama"))]);
    gateway.note_served(&address(2), vec![served("llama", None)]);
    gateway.note_served(&address(3), vec![served("qwen", None)]);
    assert!(gateway.is_ready());
    let catalog = gateway.catalog();
    assert_eq!(catalog.get("llama").unwrap().pool.members.len(), 2);
    assert_eq!(catalog.get("qwen").unwrap().pool.members.len(), 1);
    assert_eq!(catalog.get("sql").unwrap().pool.name.as_str(), "llama");
}

#[test]
fn a_discovered_endpoint_joins_the_scheduler_of_its_model() {
    let gateway = gateway(&format!("{TWO_POOLS}  discover: [{{ url: 'http://10.0.0.9:1' }}]\n"));
    gateway.note_served(&"http://10.0.0.9:1".parse().unwrap(), vec![served("llama", None)]);
    assert_eq!(gateway.catalog().get("llama").unwrap().pool.members.len(), 2);
    assert_eq!(gateway.catalog().pools.len(), 2);
}

#[test]
fn what_an_unknown_server_tells_is_ignored() {
    let gateway = gateway(TWO_POOLS);
    gateway.note_served(&"http://10.9.9.9:1".parse().unwrap(), vec![served("llama", None)]);
    assert_eq!(gateway.catalog().get("llama").unwrap().pool.members.len(), 1);
}

#[test]
fn a_reload_keeps_what_is_known_of_endpoints_that_stay() {
    let gateway = pool_of(2);
    let before = gateway.members();
    let credit = before[0].state.reserve(10, at(0));
    let document = config::parse(
        "apiVersion: gateway.wicketgate.dev/v1alpha1\nkind: InferenceGatewayConfig\nmetadata: { name: test }\nspec:\n  \
         schedulers: [{ name: chat, modelName: llama, endpoints: [{ url: 'http://10.0.0.1:8000' }, { url: 'http://10.0.0.7:8000' }] }]\n",
        "test",
    )
    .unwrap();
    gateway.apply(&document);
    let after = gateway.members();
    assert_eq!(after[0].state.in_flight(), 1, "the ledger went on");
    assert_eq!(after[1].authority, "10.0.0.7:8000");
    assert_eq!(
        after[1].endpoint.slot, before[1].endpoint.slot,
        "the slot of the one that left is used again"
    );
    assert_ne!(after[1].endpoint.id, before[1].endpoint.id, "its id is not");
    drop(credit);
    assert_eq!(after[0].state.in_flight(), 0);
}

#[test]
fn a_pool_that_left_takes_its_series_along() {
    let gateway = gateway(TWO_POOLS);
    assert!(gateway.metrics.encode().contains("pool=\"code\""));
    let document = config::parse(
        "apiVersion: gateway.wicketgate.dev/v1alpha1\nkind: InferenceGatewayConfig\nmetadata: { name: test }\nspec:\n  \
         schedulers: [{ name: chat, modelName: llama, endpoints: [{ url: 'http://10.0.0.1:8000' }] }]\n",
        "test",
    )
    .unwrap();
    gateway.apply(&document);
    assert!(!gateway.metrics.encode().contains("pool=\"code\""));
}

#[test]
fn a_reload_changes_the_retry_budget_and_keeps_the_pace_of_a_pool_that_stays_as_it_was() {
    let gateway = pool_of(2);
    let pace = |gateway: &crate::Gateway| gateway.catalog().pools[0].pace.clone();
    let before = pace(&gateway);
    let document = |retry: &str| {
        let text = format!(
            "apiVersion: gateway.wicketgate.dev/v1alpha1\nkind: InferenceGatewayConfig\nmetadata: {{ name: test }}\nspec:\n{retry}  \
             schedulers: [{{ name: chat, modelName: llama, endpoints: [{{ url: 'http://10.0.0.1:8000' }}] }}]\n"
        );
        config::parse(&text, "test").unwrap()
    };
    gateway.apply(&document(""));
    assert!(std::sync::Arc::ptr_eq(&before, &pace(&gateway)));
    gateway.apply(&document("  retry: { budgetFloorPerSecond: 9 }\n"));
    assert_eq!(pace(&gateway).retry.floor_per_second, 9.0);
}

const SELECTED: &str = r"
  schedulers:
  - { name: chat, modelName: llama, modelSelector: { matchLabels: { app: llama } } }
";

/// One endpoint for the pool `chat` in this place; `instance` tells servers there apart.
fn found(pool: &str, url: &str, instance: &str) -> HashMap<PoolName, Arc<[Found]>> {
    let endpoint = config::EndpointSpec::new(url.parse().unwrap());
    let found = Found { endpoint, instance: instance.into() };
    HashMap::from([(PoolName::new(pool), Arc::from([found]))])
}

#[test]
fn endpoints_that_were_found_serve_beside_those_of_the_document() {
    let gateway = pool_of(1);
    assert!(gateway.set_found(found("chat", "http://10.1.0.1:8000", "a")));
    assert_eq!(gateway.catalog().get("llama").unwrap().pool.members.len(), 2);
    assert!(gateway.set_found(HashMap::new()));
    assert_eq!(gateway.catalog().get("llama").unwrap().pool.members.len(), 1);
}

#[test]
fn a_pool_of_pods_is_ready_when_the_first_was_found() {
    let gateway = gateway(SELECTED);
    assert!(!gateway.is_ready());
    gateway.set_found(found("chat", "http://10.1.0.1:8000", "a"));
    assert!(gateway.is_ready());
}

#[test]
fn finding_the_same_again_changes_nothing() {
    let gateway = gateway(SELECTED);
    gateway.set_found(found("chat", "http://10.1.0.1:8000", "a"));
    let before = gateway.catalog().pools[0].clone();
    assert!(!gateway.set_found(found("chat", "http://10.1.0.1:8000", "a")));
    assert!(std::sync::Arc::ptr_eq(&before, &gateway.catalog().pools[0]));
}

#[test]
fn an_endpoint_that_the_document_names_and_somebody_finds_is_one() {
    let gateway = pool_of(1);
    gateway.set_found(found("chat", "http://10.0.0.1:8000", "a"));
    assert_eq!(gateway.catalog().get("llama").unwrap().pool.members.len(), 1);
}

#[test]
fn another_server_behind_the_same_address_begins_with_nothing() {
    let gateway = gateway(SELECTED);
    let url = "http://10.1.0.1:8000";
    gateway.set_found(found("chat", url, "a"));
    gateway.note_served(&url.parse().unwrap(), vec![served("fr", Some("llama"))]);
    let before = gateway.members()[0].clone();
    let _credit = before.state.reserve(10, at(0));
    gateway.set_found(found("chat", url, "b"));
    let after = gateway.members()[0].clone();
    assert_ne!(after.endpoint.id, before.endpoint.id);
    assert_eq!(after.state.in_flight(), 0);
    assert_eq!(pool_for(&gateway, "fr"), None, "what the old one served is forgotten");
}

#[test]
fn what_is_found_for_a_pool_that_does_not_exist_waits_for_it() {
    let gateway = gateway(SELECTED);
    gateway.set_found(found("code", "http://10.1.0.1:8000", "a"));
    assert!(gateway.members().is_empty());
    gateway.apply(&crate::testing::document(
        "  schedulers: [{ name: code, modelName: qwen, modelSelector: {} }]\n",
    ));
    assert_eq!(gateway.members().len(), 1);
}
