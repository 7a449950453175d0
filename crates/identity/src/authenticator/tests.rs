//! Whole decisions: what is shown, and who it is.

mod fetching;
mod tokens;

use std::collections::BTreeSet;

use config::{
    Anonymous, ApiKeys, Auth, CallerMatch, CallerSpec, ClaimType, JwtProvider, RequiredClaim,
};
use serde_json::{Value, json};
use types::Priority;

use super::*;
use crate::keys::{Hasher, KeyEntry, KeyFile, generate};
use crate::token::testing::{Key, good, key_set, moment, provider, with};
use crate::{Certificate, ModelAccess};

fn auth() -> Auth {
    Auth::default()
}

fn caller(name: &str, matches: CallerMatch) -> CallerSpec {
    CallerSpec {
        name: name.to_owned(),
        matches,
        tenant: None,
        tenant_claim: None,
        fairness_id: None,
        priority_max: None,
        objective: None,
        models: None,
    }
}

fn load(auth: &Auth) -> Authenticator {
    Authenticator::load(auth, None).unwrap()
}

/// With the keys of its one provider already fetched.
fn fetched(provider: JwtProvider, callers: Vec<CallerSpec>, keys: &[Value]) -> Authenticator {
    let authenticator = load(&Auth { providers: vec![provider], callers, ..auth() });
    assert_eq!(authenticator.due_fetches(moment(0)).len(), 1);
    let keys = FetchedKeys { body: key_set(keys), max_age: None };
    authenticator.fetched(0, Some(keys), moment(0)).unwrap();
    authenticator
}

fn bearer(authenticator: &Authenticator, secret: &str, seconds: u64) -> Result<Accepted, Denied> {
    let value = format!("Bearer {secret}");
    let shown = Presented { authorization: Some(value.as_bytes()), ..Presented::default() };
    authenticator.authenticate(&shown, moment(seconds))
}

fn denied(authenticator: &Authenticator, secret: &str) -> Denied {
    bearer(authenticator, secret, 0).unwrap_err()
}

fn entry(name: &str, key: &str) -> KeyEntry {
    KeyEntry {
        name: name.to_owned(),
        hash: Hasher::plain().show(key),
        caller: None,
        created: None,
        expires: None,
        disabled: false,
    }
}

/// With these keys in a file.
fn keyed(keys: Vec<KeyEntry>, callers: Vec<CallerSpec>) -> Authenticator {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("keys.yaml");
    KeyFile { keys }.write(&file).unwrap();
    load(&Auth { api_keys: Some(ApiKeys { file, pepper_file: None }), callers, ..auth() })
}

#[test]
fn a_key_is_its_caller_until_it_expires_or_is_revoked() {
    let (alice, bob, carol) = (generate(), generate(), generate());
    let mut expiring = entry("bob", &bob);
    expiring.expires = Some(KeyEntry::show_time(
        std::time::UNIX_EPOCH + std::time::Duration::from_secs(crate::token::testing::NOW + 60),
    ));
    let mut revoked = entry("carol", &carol);
    revoked.disabled = true;
    let authenticator = keyed(vec![entry("alice", &alice), expiring, revoked], vec![]);
    let accepted = bearer(&authenticator, &alice, 0).unwrap();
    assert_eq!(accepted.means, Means::ApiKey);
    assert_eq!(accepted.caller.tenant.as_str(), "alice");
    assert_eq!(accepted.caller.credential.as_deref(), Some("alice"));
    assert!(bearer(&authenticator, &bob, 59).is_ok());
    assert_eq!(bearer(&authenticator, &bob, 60).unwrap_err(), Denied::KeyExpired);
    assert_eq!(denied(&authenticator, &carol), Denied::KeyRevoked);
    assert_eq!(denied(&authenticator, &generate()), Denied::UnknownKey);
    assert_eq!(denied(&authenticator, &alice[..alice.len() - 1]), Denied::UnknownKey);
    assert_eq!(authenticator.keys(), 2);
}

#[test]
fn a_key_gets_what_its_caller_may() {
    let (alice, bob, stray) = (generate(), generate(), generate());
    let team = CallerSpec {
        tenant: Some("team-a".into()),
        priority_max: Some(Priority::STANDARD),
        objective: Some("chat".into()),
        fairness_id: Some("flow".to_owned()),
        models: Some(BTreeSet::from(["llama".into()])),
        ..caller("a", CallerMatch::Named)
    };
    let mut named = entry("alice", &alice);
    named.caller = Some("a".to_owned());
    let by_key = caller("b", CallerMatch::Key("bob".to_owned()));
    let authenticator =
        keyed(vec![named, entry("bob", &bob), entry("stray", &stray)], vec![team, by_key]);
    let caller = bearer(&authenticator, &alice, 0).unwrap().caller;
    assert_eq!((caller.tenant.as_str(), caller.priority_max), ("team-a", Priority::STANDARD));
    assert_eq!(caller.objective.as_ref().map(|name| name.as_str()), Some("chat"));
    assert_eq!(caller.fairness_id.as_deref(), Some("flow"));
    assert!(caller.models.allows("llama") && !caller.models.allows("secret"));
    let caller = bearer(&authenticator, &bob, 0).unwrap().caller;
    assert_eq!((caller.tenant.as_str(), &caller.models), ("b", &ModelAccess::All));
    assert_eq!(denied(&authenticator, &stray), Denied::NoCaller, "callers are a closed list");
    assert_eq!(authenticator.warnings().len(), 1);
}

#[test]
fn a_catch_all_takes_what_comes_after_it_and_keys_keep_their_own_tenant() {
    let (alice, bob) = (generate(), generate());
    let callers = vec![
        caller("first", CallerMatch::Key("alice".to_owned())),
        caller("rest", CallerMatch::Any),
        caller("never", CallerMatch::Key("bob".to_owned())),
    ];
    let authenticator = keyed(vec![entry("alice", &alice), entry("bob", &bob)], callers);
    assert_eq!(bearer(&authenticator, &alice, 0).unwrap().caller.tenant.as_str(), "first");
    assert_eq!(bearer(&authenticator, &bob, 0).unwrap().caller.tenant.as_str(), "bob");
}

#[test]
fn without_credentials_one_may_do_what_the_document_says() {
    let nobody = Presented::default();
    let listing = Presented { lists_models: true, ..nobody };
    for (anonymous, lists, calls) in [
        (Anonymous::Deny, false, false),
        (Anonymous::ModelsOnly, true, false),
        (Anonymous::Allow, true, true),
    ] {
        let authenticator = load(&Auth { anonymous, ..auth() });
        assert_eq!(authenticator.authenticate(&listing, moment(0)).is_ok(), lists);
        let called = authenticator.authenticate(&nobody, moment(0));
        assert_eq!(called.is_ok(), calls);
        match called {
            Err(denied) => assert_eq!(denied, Denied::Missing),
            Ok(accepted) => {
                assert!(accepted.caller.is_anonymous());
                assert_eq!(accepted.caller.priority_max, Priority::STANDARD);
            }
        }
    }
}

/// A typing error must not turn somebody into nobody, who may do other things.
#[test]
fn wrong_credentials_are_never_taken_for_none() {
    let authenticator = Authenticator { anonymous: Anonymous::Allow, ..keyed(vec![], vec![]) };
    assert_eq!(denied(&authenticator, &generate()), Denied::UnknownKey);
    let basic = Presented { authorization: Some(b"Basic abc"), ..Presented::default() };
    let basic = authenticator.authenticate(&basic, moment(0));
    assert_eq!(basic.unwrap_err(), Denied::Malformed);
}

#[test]
fn a_certificate_counts_where_no_secret_is_shown() {
    let web = Certificate::from_subject(["spiffe://test/web"], Some("CN=web"));
    let callers = vec![caller("web", CallerMatch::Certificate("spiffe://test/web".to_owned()))];
    let authenticator = load(&Auth { callers, ..auth() });
    let shown = Presented { certificate: Some(&web), ..Presented::default() };
    let accepted = authenticator.authenticate(&shown, moment(0)).unwrap();
    assert_eq!(accepted.means, Means::Certificate);
    assert_eq!(accepted.caller.credential.as_deref(), Some("spiffe://test/web"));
    let other = Certificate::from_subject(["spiffe://test/other"], Some("CN=spiffe://test/web"));
    let shown = Presented { certificate: Some(&other), ..Presented::default() };
    let refused = authenticator.authenticate(&shown, moment(0));
    assert_eq!(refused.unwrap_err(), Denied::NoCaller, "a common name beside other names");
}
