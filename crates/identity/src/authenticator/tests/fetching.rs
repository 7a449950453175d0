//! Signing keys that come, change, and stay away.

use std::time::Duration;

use super::*;
use crate::Moment;

fn bring(authenticator: &Authenticator, keys: &[Value], max_age: Option<u64>, now: Moment) {
    let due = authenticator.due_fetches(now);
    assert_eq!(due.len(), 1, "a fetch is due");
    let keys = FetchedKeys { body: key_set(keys), max_age: max_age.map(Duration::from_secs) };
    authenticator.fetched(due[0].provider, Some(keys), now).unwrap();
}

fn fail(authenticator: &Authenticator, now: Moment) {
    for due in authenticator.due_fetches(now) {
        authenticator.fetched(due.provider, None, now).unwrap();
    }
}

/// A good token that lives as long as the test.
fn long() -> Value {
    with(json!({ "exp": crate::token::testing::NOW + 1_000_000 }))
}

#[test]
fn nothing_can_be_decided_until_keys_were_fetched_once() {
    let key = Key::ec();
    let authenticator = load(&Auth { providers: vec![provider()], ..auth() });
    assert_eq!(authenticator.waits_for(), Some("idp"));
    let denied = denied(&authenticator, &key.token("k1", &good()));
    assert_eq!((denied, denied.status()), (Denied::KeysUnavailable, 503));
    assert!(denied.retry_after().is_some());
    bring(&authenticator, &[key.jwk("k1")], None, moment(0));
    assert_eq!(authenticator.waits_for(), None);
    assert!(bearer(&authenticator, &key.token("k1", &good()), 0).is_ok());
}

#[test]
fn keys_are_fetched_anew_when_their_cache_time_is_over() {
    let key = Key::ec();
    let authenticator = fetched(provider(), vec![], &[key.jwk("k1")]);
    assert!(authenticator.due_fetches(moment(299)).is_empty());
    bring(&authenticator, &[key.jwk("k1")], Some(1000), moment(300));
    assert!(authenticator.due_fetches(moment(1299)).is_empty(), "the answer's own time holds");
    bring(&authenticator, &[key.jwk("k1")], Some(0), moment(1300));
    assert!(authenticator.due_fetches(moment(1309)).is_empty(), "but not below ten seconds");
    bring(&authenticator, &[key.jwk("k1")], Some(u64::MAX / 4), moment(1310));
    assert_eq!(authenticator.due_fetches(moment(1310 + 24 * 3600)).len(), 1, "nor beyond a day");
}

#[test]
fn a_new_key_is_fetched_at_once_and_the_old_one_is_forgotten() {
    let (old, new) = (Key::ec(), Key::ec());
    let authenticator = fetched(provider(), vec![], &[old.jwk("old")]);
    let (by_old, by_new) = (old.token("old", &long()), new.token("new", &long()));
    assert!(bearer(&authenticator, &by_old, 50).is_ok());
    // A client is asked to try again, not sent away: the key is on its way.
    assert_eq!(bearer(&authenticator, &by_new, 50).unwrap_err(), Denied::KeysUnavailable);
    bring(&authenticator, &[new.jwk("new")], None, moment(50));
    assert!(bearer(&authenticator, &by_new, 50).is_ok());
    let denied = bearer(&authenticator, &by_old, 51).unwrap_err();
    assert_eq!(denied, Denied::UnknownKeyId, "also where it was verified before");
}

#[test]
fn made_up_key_ids_cause_no_more_than_one_fetch_in_ten_seconds() {
    let (key, stranger) = (Key::ec(), Key::ec());
    let authenticator = fetched(provider(), vec![], &[key.jwk("k1")]);
    let mut fetches = 0;
    for second in 1..=100 {
        for number in 0..50 {
            let token = stranger.token(&format!("made-up-{second}-{number}"), &long());
            let denied = bearer(&authenticator, &token, second).unwrap_err();
            assert!(matches!(denied, Denied::UnknownKeyId | Denied::KeysUnavailable));
        }
        for due in authenticator.due_fetches(moment(second)) {
            fetches += 1;
            let keys = FetchedKeys { body: key_set(&[key.jwk("k1")]), max_age: None };
            authenticator.fetched(due.provider, Some(keys), moment(second)).unwrap();
        }
    }
    assert!((9..=11).contains(&fetches), "{fetches} fetches in 100 s");
}

#[test]
fn one_fetch_is_under_way_at_a_time() {
    let authenticator = load(&Auth { providers: vec![provider()], ..auth() });
    assert_eq!(authenticator.due_fetches(moment(0)).len(), 1);
    for second in 0..100 {
        let token = Key::ec().token("k1", &long());
        assert_eq!(bearer(&authenticator, &token, second).unwrap_err(), Denied::KeysUnavailable);
        assert!(authenticator.due_fetches(moment(second)).is_empty());
    }
}

#[test]
fn keys_stay_valid_through_an_outage_for_the_stated_time_and_no_longer() {
    let key = Key::ec();
    let authenticator = fetched(provider(), vec![], &[key.jwk("k1")]);
    let token = |seconds| bearer(&authenticator, &key.token("k1", &long()), seconds);
    for second in 300..=3600 {
        fail(&authenticator, moment(second));
    }
    assert!(token(3600).is_ok());
    let state = &authenticator.providers(moment(3600))[0];
    assert_eq!((state.age, state.has_keys), (Some(Duration::from_secs(3600)), true));
    assert!(state.failures > 10, "{state:?}");
    assert_eq!(token(3601 + 60).unwrap_err(), Denied::KeysUnavailable);
    // The issuer is back.
    bring(&authenticator, &[key.jwk("k1")], None, moment(4000));
    assert!(token(4000).is_ok());
    assert_eq!(authenticator.providers(moment(4000))[0].failures, 0);
}

#[test]
fn failed_fetches_are_repeated_ever_more_slowly() {
    let authenticator = load(&Auth { providers: vec![provider()], ..auth() });
    let mut at = Vec::new();
    for second in 0..300 {
        for due in authenticator.due_fetches(moment(second)) {
            at.push(second);
            authenticator.fetched(due.provider, None, moment(second)).unwrap();
        }
    }
    assert_eq!(at[..7], [0, 1, 3, 7, 15, 31, 63]);
    assert!(at.windows(2).all(|pair| pair[1] - pair[0] <= 60), "{at:?}");
}

#[test]
fn an_answer_that_is_no_key_set_changes_nothing() {
    let key = Key::ec();
    let authenticator = fetched(provider(), vec![], &[key.jwk("k1")]);
    for (body, wanted) in [
        (&b"<html>"[..], JwksError::NoSet),
        (b"{}", JwksError::NoSet),
        (br#"{"keys":[]}"#, JwksError::Empty),
        (br#"{"keys":[{"kty":"oct","k":"AAAA"},{"kty":"EC","crv":"P-256"},7]}"#, JwksError::Empty),
    ] {
        let now = moment(1000);
        authenticator.providers[0].end_fetch(None, moment(0).at).unwrap();
        assert_eq!(authenticator.due_fetches(now).len(), 1);
        let keys = FetchedKeys { body: body.to_vec(), max_age: None };
        assert_eq!(authenticator.fetched(0, Some(keys), now), Err(wanted));
        assert!(bearer(&authenticator, &key.token("k1", &long()), 1000).is_ok());
    }
}

#[test]
fn a_reload_keeps_fetched_keys_of_the_same_source_only() {
    let key = Key::ec();
    let authenticator = fetched(provider(), vec![], &[key.jwk("k1")]);
    let stricter = JwtProvider { audiences: vec!["other".to_owned()], ..provider() };
    let auth = Auth { providers: vec![stricter], ..auth() };
    let reloaded = Authenticator::load(&auth, Some(&authenticator)).unwrap();
    assert_eq!(reloaded.waits_for(), None);
    assert_eq!(denied(&reloaded, &key.token("k1", &good())), Denied::Audience);

    let mut elsewhere = provider();
    elsewhere.jwks.source =
        JwksSource::Remote { uri: "https://other.test/keys".to_owned(), ca_file: None };
    let auth = Auth { providers: vec![elsewhere], ..super::auth() };
    let reloaded = Authenticator::load(&auth, Some(&authenticator)).unwrap();
    assert_eq!(reloaded.waits_for(), Some("idp"));
}

#[test]
fn keys_in_a_file_do_not_age() {
    let key = Key::ec();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("keys.json");
    std::fs::write(&file, key_set(&[key.jwk("k1")])).unwrap();
    let mut spec = provider();
    spec.jwks.source = JwksSource::File(file.clone());
    let auth = Auth { providers: vec![spec], ..auth() };
    let authenticator = load(&auth);
    assert_eq!(authenticator.waits_for(), None);
    assert!(bearer(&authenticator, &key.token("k1", &long()), 900_000).is_ok());
    assert!(authenticator.due_fetches(moment(900_000)).is_empty());
    assert_eq!(denied(&authenticator, &Key::ec().token("k2", &good())), Denied::UnknownKeyId);

    let spec = config::Spec { auth: Some(auth.clone()), ..config::Spec::default() };
    let before = stamp(&spec);
    std::fs::write(&file, "{}").unwrap();
    assert_ne!(stamp(&spec), before);
    let error = Authenticator::load(&auth, Some(&authenticator)).unwrap_err();
    assert!(matches!(error, LoadError::Jwks { source: JwksError::NoSet, .. }));
}
