//! Who is let in, and which models exist for them.

use std::sync::Arc;

use identity::keys::{Hasher, KeyEntry, KeyFile, generate};
use telemetry::metrics::labels::AuthRefusal;

use super::*;
use crate::testing::{at, body, document, exchange, gateway};
use crate::{Exchange, RequestMeta, Wishes};

/// A gateway with two models, and a key for somebody who may use one of them.
fn closed() -> (Arc<Gateway>, String, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let (file, key) = (folder.path().join("keys.yaml"), generate());
    let entry = KeyEntry {
        name: "alice".to_owned(),
        hash: Hasher::plain().show(&key),
        caller: Some("a".to_owned()),
        created: None,
        expires: None,
        disabled: false,
    };
    KeyFile { keys: vec![entry] }.write(&file).unwrap();
    let spec = format!(
        "  auth: {{ apiKeys: {{ file: '{}' }}, callers: [{{ name: a, models: [llama, sql], priorityMax: Standard }}] }}
  schedulers:
  - {{ name: chat, modelName: llama, loraAdapters: [sql, hr], endpoints: [{{ url: 'http://10.0.0.1:8000' }}] }}
  - {{ name: big, modelName: llama-big, endpoints: [{{ url: 'http://10.0.0.2:8000' }}] }}
",
        file.display()
    );
    let gateway = gateway(&spec);
    (gateway, key, folder)
}

fn with_keys(gateway: &Arc<Gateway>) {
    let keys = Keys::load(&gateway.spec(), Some(gateway)).unwrap();
    gateway.use_keys(keys);
}

fn ask(gateway: &Gateway, key: &str) -> Result<Arc<Caller>, Refusal> {
    let shown = Presented { x_api_key: Some(key.as_bytes()), ..Presented::default() };
    gateway.authenticate(&shown, at(0))
}

fn exchange_of(gateway: &Arc<Gateway>, caller: Arc<Caller>) -> Exchange {
    let meta = RequestMeta {
        id: exchange(gateway).id().clone(),
        method: http::Method::POST,
        route: openai::Route::ChatCompletions,
        client: ([127, 0, 0, 1], 1).into(),
        received: at(0),
        session: None,
        pool: None,
        caller,
        wishes: Wishes::default(),
    };
    Exchange::new(gateway.clone(), meta)
}

#[test]
fn nobody_is_let_in_before_keys_are_in_force() {
    let (gateway, key, _folder) = closed();
    let refusal = ask(&gateway, &key).unwrap_err();
    assert_eq!((refusal.status, refusal.code), (503, "authentication_not_set_up"));
    with_keys(&gateway);
    assert_eq!(ask(&gateway, &key).unwrap().tenant.as_str(), "a");
}

#[test]
fn a_refusal_says_what_to_show_and_is_counted() {
    let (gateway, _, _folder) = closed();
    with_keys(&gateway);
    let refusal = gateway.authenticate(&Presented::default(), at(0)).unwrap_err();
    assert_eq!((refusal.status, refusal.component), (401, Component::Auth));
    let asks_for_a_token =
        |demand| matches!(demand, crate::Demand::Credentials(text) if text.starts_with("Bearer "));
    assert!(refusal.demand.is_some_and(asks_for_a_token));
    let refusal = ask(&gateway, "wg-typo").unwrap_err();
    assert_eq!((refusal.status, refusal.code), (401, "invalid_api_key"));
    assert!(!refusal.message.contains("wg-typo"));
    let counted = &gateway.metrics.gateway().auth.refused;
    assert_eq!(counted.of(AuthRefusal::Missing).get(), 1);
    assert_eq!(counted.of(AuthRefusal::UnknownKey).get(), 1);
}

#[test]
fn a_document_without_auth_lets_everybody_in() {
    let gateway = crate::testing::pool_of(1);
    assert!(ask(&gateway, "anything").unwrap().is_anonymous());
}

#[test]
fn a_model_that_a_caller_may_not_use_does_not_exist_for_it() {
    let (gateway, key, _folder) = closed();
    with_keys(&gateway);
    let caller = ask(&gateway, &key).unwrap();
    let names: Vec<_> =
        crate::cards(&gateway.catalog(), &caller).into_iter().map(|card| card.id).collect();
    assert_eq!(names, ["llama", "sql"]);
    for (model, exists) in [("llama", true), ("sql", true), ("hr", false), ("llama-big", false)] {
        assert_eq!(crate::card(&gateway.catalog(), &caller, model).is_ok(), exists, "{model}");
        let placed = exchange_of(&gateway, caller.clone()).place(&body(model), None, at(0));
        match placed {
            Ok(_) => assert!(exists, "{model}"),
            Err(refusal) => {
                assert!(!exists, "{model}: {refusal:?}");
                assert_eq!((refusal.status, refusal.code), (404, "model_not_found"));
                // The same as for a name that nobody serves; no hint at what it may not know.
                let unknown = exchange_of(&gateway, caller.clone())
                    .place(&body("nowhere"), None, at(0))
                    .unwrap_err();
                assert_eq!(refusal.component, unknown.component);
                let others = ["llama-big", "hr"].into_iter().filter(|other| *other != model);
                for other in others {
                    assert!(!refusal.message.contains(other), "{}", refusal.message);
                }
            }
        }
    }
}

#[test]
fn a_body_without_a_model_is_no_way_around_the_list() {
    let (gateway, key, folder) = closed();
    // Routing by the body is off: whatever the name, one pool gets it.
    let mut spec = document(
        "  bbr: { enabled: false }\n  schedulers: [{ name: big, modelName: llama-big, endpoints: [{ url: 'http://10.0.0.2:8000' }] }]\n",
    );
    spec.spec.auth = gateway.spec().auth.clone();
    gateway.apply(&spec);
    with_keys(&gateway);
    let caller = ask(&gateway, &key).unwrap();
    for body in [&br#"{"messages":[]}"#[..], br#"{"model":"hr","messages":[]}"#] {
        let placed = exchange_of(&gateway, caller.clone()).place(body, None, at(0));
        assert_eq!(placed.unwrap_err().status, 404);
    }
    drop(folder);
}

#[test]
fn an_endpoint_key_is_shown_by_no_debug_text() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("key");
    std::fs::write(&file, "engine-secret\n").unwrap();
    let gateway = gateway(&format!(
        "  schedulers: [{{ name: chat, modelName: llama, endpointApiKey: {{ file: '{}' }}, endpoints: [{{ url: 'http://10.0.0.1:8000' }}] }}]\n",
        file.display()
    ));
    with_keys(&gateway);
    let catalog = gateway.catalog();
    let held = catalog.pools[0].settings.authorization.as_ref().unwrap();
    assert_eq!(&*held.0, "Bearer engine-secret");
    assert!(!format!("{catalog:?} {:?}", gateway.door).contains("engine-secret"));
}
