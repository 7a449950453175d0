//! What a request costs that shows an API key, a token that is known, and one that is not.
//!
//! `cargo bench -p wicketgate-identity`

use config::{ApiKeys, Auth, Jwks, JwksSource, JwtProvider};
use criterion::{Criterion, criterion_group, criterion_main};
use data_encoding::BASE64URL_NOPAD;
use ring::rand::SystemRandom;
use ring::signature::{RSA_PKCS1_SHA256, RsaKeyPair};
use serde_json::json;
use types::Timestamp;
use wicketgate_identity::keys::{Hasher, KeyEntry, KeyFile, generate};
use wicketgate_identity::{Authenticator, Moment, Presented};

const RSA: &[u8] = include_bytes!("../src/token/testing/rsa-2048.der");

fn now() -> Moment {
    Moment { at: Timestamp::from_millis(1_000_000), unix_seconds: 1_800_000_000 }
}

fn part(value: &serde_json::Value) -> String {
    BASE64URL_NOPAD.encode(value.to_string().as_bytes())
}

/// A token of a usual size: an RSA signature and thirty groups.
fn token(pair: &RsaKeyPair, number: u32) -> String {
    let groups: Vec<_> = (0..30).map(|group| format!("group-{group}")).collect();
    let claims = json!({
        "iss": "https://idp.test", "aud": "gateway", "sub": number.to_string(), "exp": 1_900_000_000_u64,
        "groups": groups,
    });
    let message = format!("{}.{}", part(&json!({ "alg": "RS256", "kid": "k" })), part(&claims));
    let mut signed = vec![0; pair.public().modulus_len()];
    pair.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), message.as_bytes(), &mut signed)
        .expect("the key signs");
    format!("Bearer {message}.{}", BASE64URL_NOPAD.encode(&signed))
}

fn benches(criterion: &mut Criterion) {
    let folder = tempfile::tempdir().expect("a folder");
    let (keys, jwks) = (folder.path().join("keys.json"), folder.path().join("jwks.json"));
    let mut secrets = Vec::new();
    let mut file = KeyFile::default();
    for number in 0..100_000 {
        let secret = generate();
        file.keys.push(KeyEntry {
            name: format!("key-{number}"),
            hash: Hasher::plain().show(&secret),
            caller: None,
            created: None,
            expires: None,
            disabled: false,
        });
        secrets.push(format!("Bearer {secret}"));
    }
    file.write(&keys).expect("the keys are written");
    let pair = RsaKeyPair::from_der(RSA).expect("a key");
    let public = ring::rsa::PublicKeyComponents::<Vec<u8>>::from(pair.public());
    let (n, e) = (BASE64URL_NOPAD.encode(&public.n), BASE64URL_NOPAD.encode(&public.e));
    let set = json!({ "keys": [{ "kty": "RSA", "kid": "k", "n": n, "e": e }] });
    std::fs::write(&jwks, set.to_string()).expect("the key set is written");
    let provider = JwtProvider {
        name: "idp".to_owned(),
        issuer: "https://idp.test".to_owned(),
        jwks: Jwks { source: JwksSource::File(jwks), ..Jwks::default() },
        audiences: vec!["gateway".to_owned()],
        required_claims: Vec::new(),
        algorithms: Vec::new(),
        clock_skew: std::time::Duration::from_secs(30),
        tenant_claim: None,
    };
    let auth = Auth {
        providers: vec![provider],
        api_keys: Some(ApiKeys { file: keys, pepper_file: None }),
        ..Auth::default()
    };
    let authenticator = Authenticator::load(&auth, None).expect("it can be set up");
    let ask = |value: &str| {
        let shown = Presented { authorization: Some(value.as_bytes()), ..Presented::default() };
        authenticator.authenticate(&shown, now()).expect("it is let in")
    };
    let mut at = 0;
    criterion.bench_function("API key, one of 100,000", |bencher| {
        bencher.iter(|| {
            at = (at + 7919) % secrets.len();
            ask(&secrets[at])
        });
    });
    let known = token(&pair, 0);
    criterion.bench_function("token that is known", |bencher| bencher.iter(|| ask(&known)));
    // More of them than are remembered.
    let tokens: Vec<_> = (0..20_000).map(|number| token(&pair, number)).collect();
    let mut at = 0;
    criterion.bench_function("token that is verified, RS256", |bencher| {
        bencher.iter(|| {
            at = (at + 1) % tokens.len();
            ask(&tokens[at])
        });
    });
}

criterion_group!(all, benches);
criterion_main!(all);
