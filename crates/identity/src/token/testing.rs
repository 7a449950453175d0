//! An issuer for tests: keys, key sets and tokens of any shape.

use std::time::Duration;

use config::{Jwks, JwksSource, JwtProvider};
use data_encoding::BASE64URL_NOPAD;
use ring::rand::SystemRandom;
use ring::signature::{
    self, ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair, RsaKeyPair,
};
use serde_json::{Value, json};
use types::Timestamp;

use crate::Moment;

/// Made for these tests; it signs nothing else.
const RSA: &[u8] = include_bytes!("testing/rsa-2048.der");

pub(crate) const ISSUER: &str = "https://idp.test";

/// A key that signs.
pub(crate) enum Key {
    Rsa(RsaKeyPair),
    Ec(EcdsaKeyPair),
    Ed(Ed25519KeyPair),
}

impl Key {
    pub(crate) fn rsa() -> Self {
        Self::Rsa(RsaKeyPair::from_der(RSA).unwrap())
    }

    pub(crate) fn ec() -> Self {
        let rng = SystemRandom::new();
        let pkcs8 = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &rng).unwrap();
        let algorithm = &ECDSA_P256_SHA256_FIXED_SIGNING;
        Self::Ec(EcdsaKeyPair::from_pkcs8(algorithm, pkcs8.as_ref(), &rng).unwrap())
    }

    pub(crate) fn ed() -> Self {
        let pkcs8 = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
        Self::Ed(Ed25519KeyPair::from_pkcs8(pkcs8.as_ref()).unwrap())
    }

    pub(crate) fn algorithm(&self) -> &'static str {
        match self {
            Self::Rsa(_) => "RS256",
            Self::Ec(_) => "ES256",
            Self::Ed(_) => "EdDSA",
        }
    }

    /// The public key as its issuer publishes it.
    pub(crate) fn jwk(&self, kid: &str) -> Value {
        let b64 = |bytes: &[u8]| BASE64URL_NOPAD.encode(bytes);
        match self {
            Self::Rsa(pair) => {
                let public = ring::rsa::PublicKeyComponents::<Vec<u8>>::from(pair.public());
                json!({ "kty": "RSA", "kid": kid, "use": "sig", "n": b64(&public.n), "e": b64(&public.e) })
            }
            Self::Ec(pair) => {
                let point = pair.public_key().as_ref();
                json!({ "kty": "EC", "crv": "P-256", "kid": kid, "x": b64(&point[1..33]), "y": b64(&point[33..]) })
            }
            Self::Ed(pair) => {
                json!({ "kty": "OKP", "crv": "Ed25519", "kid": kid, "x": b64(pair.public_key().as_ref()) })
            }
        }
    }

    fn sign(&self, message: &[u8]) -> Vec<u8> {
        let rng = SystemRandom::new();
        match self {
            Self::Rsa(pair) => {
                let mut signed = vec![0; pair.public().modulus_len()];
                pair.sign(&signature::RSA_PKCS1_SHA256, &rng, message, &mut signed).unwrap();
                signed
            }
            Self::Ec(pair) => pair.sign(&rng, message).unwrap().as_ref().to_vec(),
            Self::Ed(pair) => pair.sign(message).as_ref().to_vec(),
        }
    }

    pub(crate) fn token(&self, kid: &str, claims: &Value) -> String {
        self.token_with(&json!({ "alg": self.algorithm(), "kid": kid, "typ": "JWT" }), claims)
    }

    /// With any header, whether it fits or not.
    pub(crate) fn token_with(&self, header: &Value, claims: &Value) -> String {
        let message = unsigned(header, claims);
        let signed = BASE64URL_NOPAD.encode(&self.sign(message.as_bytes()));
        format!("{message}.{signed}")
    }
}

/// Header and claims, to be signed.
pub(crate) fn unsigned(header: &Value, claims: &Value) -> String {
    let part = |part: &Value| BASE64URL_NOPAD.encode(part.to_string().as_bytes());
    format!("{}.{}", part(header), part(claims))
}

pub(crate) fn key_set(keys: &[Value]) -> Vec<u8> {
    json!({ "keys": keys }).to_string().into_bytes()
}

pub(crate) const NOW: u64 = 1_800_000_000;

pub(crate) fn moment(seconds: u64) -> Moment {
    Moment { at: Timestamp::from_millis(1_000_000 + seconds * 1000), unix_seconds: NOW + seconds }
}

/// Claims of a good token for `gateway` that expires in five minutes.
pub(crate) fn good() -> Value {
    json!({ "iss": ISSUER, "sub": "alice", "aud": "gateway", "exp": NOW + 300 })
}

/// `good` with other claims over it; `null` takes one away.
pub(crate) fn with(changes: Value) -> Value {
    let mut claims = good();
    for (name, value) in changes.as_object().unwrap() {
        if value.is_null() {
            claims.as_object_mut().unwrap().remove(name);
        } else {
            claims[name] = value.clone();
        }
    }
    claims
}

pub(crate) fn provider() -> JwtProvider {
    JwtProvider {
        name: "idp".to_owned(),
        issuer: ISSUER.to_owned(),
        jwks: Jwks {
            source: JwksSource::Remote { uri: "https://idp.test/keys".to_owned(), ca_file: None },
            cache: Duration::from_secs(300),
            stale_for: Duration::from_secs(3600),
        },
        audiences: vec!["gateway".to_owned()],
        required_claims: Vec::new(),
        algorithms: Vec::new(),
        clock_skew: Duration::from_secs(30),
        tenant_claim: None,
    }
}
