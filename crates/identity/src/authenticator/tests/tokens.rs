//! Tokens, good and bad.

use super::*;
use crate::token::testing::{ISSUER, NOW, unsigned};
use data_encoding::BASE64URL_NOPAD;

fn with_key(key: &Key) -> Authenticator {
    fetched(provider(), vec![], &[key.jwk("k1")])
}

#[test]
fn tokens_of_every_kind_of_key_are_accepted() {
    for key in [Key::rsa(), Key::ec(), Key::ed()] {
        let authenticator = with_key(&key);
        let token = key.token("k1", &good());
        let accepted = bearer(&authenticator, &token, 0).unwrap();
        assert_eq!(accepted.means, Means::Token);
        assert_eq!(accepted.caller.tenant.as_str(), "idp");
        assert_eq!(accepted.caller.credential.as_deref(), Some("idp:alice"));
        let again = bearer(&authenticator, &token, 1).unwrap();
        assert_eq!(again.means, Means::KnownToken, "the second time costs no signature");
    }
}

/// AWS's split: 401 for what a new token mends, 403 for what it does not.
#[test]
fn each_fault_has_the_status_that_aws_gives_it() {
    let key = Key::ec();
    let authenticator = with_key(&key);
    for (claims, wanted, status) in [
        (with(json!({ "exp": NOW - 31 })), Denied::Expired, 401),
        (with(json!({ "exp": null })), Denied::Malformed, 401),
        (with(json!({ "exp": "soon" })), Denied::Malformed, 401),
        (with(json!({ "exp": -1 })), Denied::Malformed, 401),
        (with(json!({ "nbf": NOW + 31 })), Denied::NotYetValid, 401),
        (with(json!({ "iss": "https://other.test" })), Denied::Issuer, 401),
        (with(json!({ "iss": format!("{ISSUER}/") })), Denied::Issuer, 401),
        (with(json!({ "iss": null })), Denied::Malformed, 401),
        (with(json!({ "iss": [ISSUER] })), Denied::Malformed, 401),
        (with(json!({ "aud": "other" })), Denied::Audience, 403),
        (with(json!({ "aud": ["a", "b"] })), Denied::Audience, 403),
        (with(json!({ "aud": null })), Denied::Audience, 403),
    ] {
        let denied = denied(&authenticator, &key.token("k1", &claims));
        assert_eq!((denied, denied.status()), (wanted, status), "{claims}");
        assert_eq!(denied.challenge().is_some(), status == 401);
    }
    for text in ["eyJ.eyJ.", "eyJhbGciOiJFUzI1NiJ9.x.y", "eyJ..", "eyJ\u{ff}.a.b"] {
        assert_eq!(denied(&authenticator, text), Denied::Malformed, "{text}");
    }
    let forged = Key::ec().token("k1", &good());
    assert_eq!((denied(&authenticator, &forged)).status(), 403);
    assert_eq!(denied(&authenticator, &forged), Denied::Signature);
}

#[test]
fn clocks_may_differ_by_the_skew_and_no_more() {
    let key = Key::ec();
    let authenticator = with_key(&key);
    let expired = key.token("k1", &with(json!({ "exp": NOW - 29 })));
    assert!(bearer(&authenticator, &expired, 0).is_ok());
    assert_eq!(bearer(&authenticator, &expired, 1).unwrap_err(), Denied::Expired, "cached or not");
    let early = key.token("k1", &with(json!({ "nbf": NOW + 30 })));
    assert!(bearer(&authenticator, &early, 0).is_ok());
}

/// RFC 8725 §3.1: `none` in any spelling.
#[test]
fn a_token_without_a_signature_is_refused() {
    let authenticator = with_key(&Key::rsa());
    for alg in ["none", "None", "NONE", "nOnE", ""] {
        for signature in ["", "AAAA"] {
            let token =
                format!("{}.{signature}", unsigned(&json!({ "alg": alg, "kid": "k1" }), &good()));
            assert_eq!(denied(&authenticator, &token), Denied::Malformed, "{alg}");
        }
    }
}

/// RFC 8725 §3.1: the public key, which everybody knows, as an HMAC secret.
#[test]
fn a_public_key_is_never_taken_for_a_shared_secret() {
    let key = Key::rsa();
    let authenticator = with_key(&key);
    let jwk = key.jwk("k1");
    let modulus = BASE64URL_NOPAD.decode(jwk["n"].as_str().unwrap().as_bytes()).unwrap();
    for secret in [modulus, jwk.to_string().into_bytes(), key_set(&[jwk])] {
        for (alg, hmac) in [("HS256", ring::hmac::HMAC_SHA256), ("HS512", ring::hmac::HMAC_SHA512)]
        {
            let message = unsigned(&json!({ "alg": alg, "kid": "k1" }), &good());
            let hmac = ring::hmac::Key::new(hmac, &secret);
            let signature =
                BASE64URL_NOPAD.encode(ring::hmac::sign(&hmac, message.as_bytes()).as_ref());
            assert_eq!(
                denied(&authenticator, &format!("{message}.{signature}")),
                Denied::Algorithm
            );
        }
    }
}

#[test]
fn a_shared_secret_among_published_keys_verifies_nothing() {
    let key = Key::ec();
    let secret = json!({ "kty": "oct", "kid": "h", "alg": "HS256", "k": "AAAAAAAAAAAAAAAAAAAAAA" });
    let authenticator = fetched(provider(), vec![], &[secret, key.jwk("k1")]);
    let message = unsigned(&json!({ "alg": "HS256", "kid": "h" }), &good());
    let hmac = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, &[0; 16]);
    let signature = BASE64URL_NOPAD.encode(ring::hmac::sign(&hmac, message.as_bytes()).as_ref());
    assert_eq!(denied(&authenticator, &format!("{message}.{signature}")), Denied::Algorithm);
}

#[test]
fn a_key_verifies_only_what_it_is_for() {
    let key = Key::rsa();
    let mut jwk = key.jwk("k1");
    jwk["alg"] = json!("PS256");
    let authenticator = fetched(provider(), vec![], &[jwk]);
    assert_eq!(denied(&authenticator, &key.token("k1", &good())), Denied::Algorithm);

    let narrow = JwtProvider { algorithms: vec!["ES256".to_owned()], ..provider() };
    let authenticator = fetched(narrow, vec![], &[key.jwk("k1")]);
    assert_eq!(denied(&authenticator, &key.token("k1", &good())), Denied::Algorithm);

    let ec = Key::ec();
    let mut encryption = ec.jwk("k1");
    encryption["use"] = json!("enc");
    let authenticator = fetched(provider(), vec![], &[encryption, key.jwk("other")]);
    assert_ne!(denied(&authenticator, &ec.token("k1", &good())).status(), 200);
}

/// RFC 8725 §3.10: keys that the token brings along, or says where to find.
#[test]
fn keys_that_a_token_names_itself_are_not_used() {
    let (key, own) = (Key::ec(), Key::ec());
    let authenticator = with_key(&key);
    for (name, value) in [
        ("jwk", own.jwk("k1")),
        ("jku", json!("https://evil.test/keys")),
        ("x5u", json!("https://evil.test/cert")),
        ("x5c", json!(["AAAA"])),
    ] {
        let mut header = json!({ "alg": "ES256", "kid": "k1" });
        header[name] = value;
        let token = own.token_with(&header, &good());
        assert_eq!(denied(&authenticator, &token), Denied::Signature, "{name}");
    }
}

/// RFC 7515 §4.1.11.
#[test]
fn a_header_that_demands_what_we_do_not_do_is_refused() {
    let key = Key::ec();
    let authenticator = with_key(&key);
    for extra in [
        json!({ "crit": ["exp"] }),
        json!({ "crit": [] }),
        json!({ "crit": ["b64"], "b64": false }),
    ] {
        let mut header = json!({ "alg": "ES256", "kid": "k1" });
        header.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        assert_eq!(denied(&authenticator, &key.token_with(&header, &good())), Denied::Malformed);
    }
}

#[test]
fn claims_that_are_required_are_403_where_they_do_not_match() {
    let key = Key::ec();
    let required = RequiredClaim {
        name: "groups".to_owned(),
        value_type: ClaimType::StringArray,
        values: vec!["ml".to_owned()],
    };
    let spec = JwtProvider { audiences: vec![], required_claims: vec![required], ..provider() };
    let authenticator = fetched(spec, vec![], &[key.jwk("k1")]);
    assert!(
        bearer(&authenticator, &key.token("k1", &with(json!({ "groups": ["x", "ml"] }))), 0)
            .is_ok()
    );
    for groups in [json!(["x"]), json!("ml"), json!(null), json!([])] {
        let token = key.token("k1", &with(json!({ "groups": groups })));
        assert_eq!(denied(&authenticator, &token), Denied::Claims, "{groups}");
    }
}

#[test]
fn claims_name_the_tenant_and_choose_the_caller() {
    let key = Key::ec();
    let claim = |value: &str| CallerMatch::Claim {
        provider: Some("idp".to_owned()),
        name: "groups".to_owned(),
        value: value.to_owned(),
    };
    let callers = vec![
        caller("ops", claim("ops")),
        CallerSpec { tenant_claim: Some("org".to_owned()), ..caller("ml", claim("ml")) },
    ];
    let authenticator = fetched(provider(), callers, &[key.jwk("k1")]);
    let tenant = |claims: Value| {
        let accepted = bearer(&authenticator, &key.token("k1", &with(claims)), 0);
        accepted.map(|accepted| accepted.caller.tenant.as_str().to_owned())
    };
    assert_eq!(tenant(json!({ "groups": ["ml", "ops"], "org": "acme" })), Ok("ops".to_owned()));
    assert_eq!(tenant(json!({ "groups": "ml", "org": "acme" })), Ok("acme".to_owned()));
    assert_eq!(tenant(json!({ "groups": ["ml"] })), Err(Denied::Claims), "no tenant to be found");
    assert_eq!(tenant(json!({ "groups": ["ml"], "org": "two words" })), Err(Denied::Claims));
    assert_eq!(tenant(json!({ "groups": ["x"] })), Err(Denied::NoCaller));
}

#[test]
fn two_providers_may_have_one_issuer() {
    let key = Key::ec();
    let other = JwtProvider { name: "b".to_owned(), audiences: vec!["b".to_owned()], ..provider() };
    let auth = Auth { providers: vec![provider(), other], ..auth() };
    let authenticator = load(&auth);
    for due in authenticator.due_fetches(moment(0)) {
        let keys = FetchedKeys { body: key_set(&[key.jwk("k1")]), max_age: None };
        authenticator.fetched(due.provider, Some(keys), moment(0)).unwrap();
    }
    let accepted = bearer(&authenticator, &key.token("k1", &with(json!({ "aud": "b" }))), 0);
    assert_eq!(accepted.unwrap().caller.tenant.as_str(), "b");
    assert_eq!(
        denied(&authenticator, &key.token("k1", &with(json!({ "aud": "c" })))),
        Denied::Audience
    );
}

#[test]
fn no_text_makes_it_panic() {
    let key = Key::ec();
    let authenticator = with_key(&key);
    let token = key.token("k1", &good());
    proptest::proptest!(|(at in 0..token.len(), byte in 0x20_u8..0x7f)| {
        let mut bytes = token.clone().into_bytes();
        let same = bytes[at] == byte;
        bytes[at] = byte;
        let changed = String::from_utf8(bytes).unwrap();
        // The last character of a signature has bits that mean nothing; they must be zero too.
        assert!(same || bearer(&authenticator, &changed, 0).is_err(), "{changed}");
    });
    proptest::proptest!(|(text in "eyJ[ -~]{0,40}\\.[ -~]{0,40}\\.[ -~]{0,20}")| {
        assert!(bearer(&authenticator, &text, 0).is_err());
    });
}
