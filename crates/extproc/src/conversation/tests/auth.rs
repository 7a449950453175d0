//! Who is let in behind a proxy, and what of their credentials goes on.

use std::sync::Arc;

use gateway::{Gateway, Keys};
use identity::keys::{Hasher, KeyEntry, KeyFile, generate};

use crate::conversation::Next;
use crate::settings::{Role, Settings};
use crate::testing::{Stream, asking, body, chat, gateway, head, set_by};
use crate::wire::{ImmediateResponse, ProcessingRequest, ProcessingResponse, Response};

/// Two pools and the adapter `sql`; the key may name `llama` and `sql`. `more` stands in `auth`.
fn closed(more: &str) -> (Arc<Gateway>, String) {
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
    let engine = folder.path().join("engine");
    std::fs::write(&engine, "engine-key").unwrap();
    let gateway = gateway(&format!(
        "  auth: {{ apiKeys: {{ file: '{}' }}, callers: [{{ name: a, models: [llama, sql] }}, \
         {{ name: web, match: {{ certificate: 'spiffe://test/web' }} }}]{more} }}
  schedulers:
  - {{ name: chat, modelName: llama, loraAdapters: [sql], endpoints: [{{ url: 'http://10.0.0.1:8000' }}] }}
  - {{ name: big, modelName: big, endpointApiKey: {{ file: '{}' }}, endpoints: [{{ url: 'http://10.0.0.2:8000' }}] }}
",
        file.display(),
        engine.display()
    ));
    gateway.use_keys(Keys::load(&gateway.spec(), None).unwrap());
    (gateway, key)
}

fn settings(role: Role) -> Settings {
    Settings { role, destinations: 1, ..Settings::default() }
}

fn status(response: &ImmediateResponse) -> i32 {
    response.status.unwrap().code
}

fn field(response: &ImmediateResponse, name: &str) -> Option<String> {
    let response = ProcessingResponse::from(Response::Immediate(response.clone()));
    set_by(&response, name)
}

/// The fields that the answer to the request's head removes.
fn removed(answers: &[ProcessingResponse]) -> Vec<String> {
    let Some(Response::RequestHeaders(headers)) = &answers[0].response else {
        panic!("{answers:?}");
    };
    let mutation = headers.response.as_ref().unwrap().header_mutation.clone();
    mutation.unwrap_or_default().remove_headers
}

/// Sends a chat and gives back what was answered to it.
fn ask(
    gateway: &Arc<Gateway>,
    role: Role,
    model: &str,
    fields: &[(&str, &str)],
) -> Vec<ProcessingResponse> {
    let mut stream = Stream::new(gateway, settings(role));
    if stream.send(chat(fields)).unwrap() == Next::Read {
        stream.send(body(asking(model), true)).unwrap();
    }
    stream.take()
}

fn refused(answers: Vec<ProcessingResponse>) -> ImmediateResponse {
    match answers.into_iter().last().and_then(|answer| answer.response) {
        Some(Response::Immediate(response)) => response,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_request_without_credentials_is_refused_before_its_body_comes() {
    let (gateway, _) = closed("");
    for role in [Role::Both, Role::Picker, Role::Router] {
        let mut stream = Stream::new(&gateway, settings(role));
        assert_eq!(stream.send(chat(&[])).unwrap(), Next::Close);
        let response = stream.immediate();
        assert_eq!(status(&response), 401, "{role:?}");
        assert!(field(&response, "www-authenticate").unwrap().starts_with("Bearer"));
        assert_eq!(field(&response, "x-wicketgate-component").as_deref(), Some("auth"));
    }
}

#[test]
fn credentials_end_here_and_go_on_only_where_the_document_says_so() {
    for (more, stay) in [("", true), (", forwardCredentials: true", false)] {
        let (gateway, key) = closed(more);
        let bearer = format!("Bearer {key}");
        let fields = [("authorization", bearer.as_str()), ("x-api-key", &key), ("cookie", "a=b")];
        let answers = ask(&gateway, Role::Both, "llama", &fields);
        for name in ["authorization", "x-api-key", "cookie"] {
            assert_eq!(removed(&answers).contains(&name.to_owned()), stay, "{name}");
        }
        assert_eq!(set_by(&answers[0], "authorization"), None);
        // A router leaves them to the picker behind it.
        assert!(removed(&ask(&gateway, Role::Router, "llama", &fields)).is_empty());
    }
}

#[test]
fn a_pool_with_a_key_of_its_own_gets_that_one() {
    let (gateway, _) = closed(", anonymous: allow");
    let answers = ask(&gateway, Role::Both, "big", &[]);
    assert_eq!(set_by(&answers[0], "authorization").as_deref(), Some("Bearer engine-key"));
    assert!(set_by(&ask(&gateway, Role::Both, "llama", &[])[0], "authorization").is_none());
}

#[test]
fn a_field_that_comes_twice_is_refused() {
    let (gateway, key) = closed("");
    let bearer = format!("Bearer {key}");
    let twice = [("authorization", bearer.as_str()), ("authorization", "Bearer other")];
    assert_eq!(status(&refused(ask(&gateway, Role::Both, "llama", &twice))), 400);
}

#[test]
fn a_model_that_a_caller_may_not_use_does_not_exist_in_any_role() {
    let (gateway, key) = closed("");
    let key = [("x-api-key", key.as_str())];
    for role in [Role::Both, Role::Picker, Role::Router] {
        assert_eq!(status(&refused(ask(&gateway, role, "big", &key))), 404, "{role:?}");
        assert!(set_by(&ask(&gateway, role, "sql", &key)[0], "x-wicketgate-component").is_none());
    }
    for (path, wanted) in [("/v1/models", 200), ("/v1/models/sql", 200), ("/v1/models/big", 404)] {
        let mut stream = Stream::new(&gateway, settings(Role::Both));
        stream.send(head(&[(":method", "GET"), (":path", path), key[0]], true)).unwrap();
        let response = stream.immediate();
        assert_eq!(status(&response), wanted, "{path}");
        let text = String::from_utf8(response.body.to_vec()).unwrap();
        assert!(path.ends_with("big") || !text.contains("big"), "{text}");
    }
}

#[test]
fn a_forwarded_certificate_counts_only_where_the_proxy_is_trusted_to_write_it() {
    let xfcc = [("x-forwarded-client-cert", "Hash=ab;URI=spiffe://test/web")];
    let (gateway, _) = closed("");
    assert_eq!(status(&refused(ask(&gateway, Role::Both, "big", &xfcc))), 401);
    let (gateway, _) = closed(", forwardedCertificate: header");
    let answers = ask(&gateway, Role::Both, "big", &xfcc);
    assert!(removed(&answers).contains(&"x-forwarded-client-cert".to_owned()));
    let other = [("x-forwarded-client-cert", "Hash=ab;URI=spiffe://test/other")];
    assert_eq!(status(&refused(ask(&gateway, Role::Both, "big", &other))), 403);

    let (gateway, _) = closed(", forwardedCertificate: attributes");
    assert_eq!(status(&refused(ask(&gateway, Role::Both, "big", &xfcc))), 401);
    let attributes = crate::wire::structure([(
        "connection.uri_san_peer_certificate",
        crate::wire::string("spiffe://test/web"),
    )]);
    let mut stream = Stream::new(&gateway, settings(Role::Both));
    let message = ProcessingRequest {
        request: Some(chat(&[])),
        attributes: [("envoy.filters.http.ext_proc".to_owned(), attributes)].into(),
        ..ProcessingRequest::default()
    };
    assert_eq!(stream.send_message(message).unwrap(), Next::Read);
}
