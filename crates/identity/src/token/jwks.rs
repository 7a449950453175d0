//! The keys that an issuer publishes (RFC 7517).

use std::str::FromStr;

use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk, KeyOperations, PublicKeyUse};
use jsonwebtoken::{Algorithm, AlgorithmFamily, DecodingKey, DecodingKeyKind};
use serde::Deserialize;
use serde_json::Value;

/// Most keys of one issuer.
const KEYS_MAX: usize = 256;
/// Shorter RSA keys verify nothing.
const RSA_BYTES_MIN: usize = 256;

/// Why keys cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JwksError {
    #[error("this is no JSON web key set")]
    NoSet,
    #[error("the key set has no key that can verify a signature")]
    Empty,
    #[error("the key set has more than {KEYS_MAX} keys")]
    TooMany,
}

/// Keys that can verify signatures.
#[derive(Debug)]
pub(crate) struct KeySet {
    keys: Vec<SigningKey>,
}

#[derive(Debug)]
pub(crate) struct SigningKey {
    id: Option<String>,
    /// What the key itself may be used with.
    algorithms: Vec<Algorithm>,
    pub(crate) key: DecodingKey,
}

#[derive(Deserialize)]
struct Document {
    keys: Vec<Value>,
}

impl KeySet {
    /// Reads a key set. Keys of kinds that we do not know are left out, as RFC 7517 §5 says.
    pub(crate) fn parse(json: &[u8]) -> Result<Self, JwksError> {
        let document: Document = serde_json::from_slice(json).map_err(|_| JwksError::NoSet)?;
        if document.keys.len() > KEYS_MAX {
            return Err(JwksError::TooMany);
        }
        let keys: Vec<_> = document.keys.into_iter().filter_map(signing_key).collect();
        if keys.is_empty() { Err(JwksError::Empty) } else { Ok(Self { keys }) }
    }

    /// Keys that can have signed a token.
    pub(crate) fn for_token<'a>(
        &'a self,
        id: Option<&'a str>,
        algorithm: Algorithm,
    ) -> impl Iterator<Item = &'a SigningKey> {
        self.keys.iter().filter(move |key| {
            (id.is_none() || key.id.as_deref() == id) && key.algorithms.contains(&algorithm)
        })
    }

    /// Whether there is a key with this `kid`, whatever it can be used with.
    pub(crate) fn knows(&self, id: Option<&str>) -> bool {
        id.is_none() || self.keys.iter().any(|key| key.id.as_deref() == id)
    }
}

fn signing_key(value: Value) -> Option<SigningKey> {
    let jwk: Jwk = serde_json::from_value(value).ok()?;
    let for_other =
        matches!(&jwk.common.public_key_use, Some(use_) if *use_ != PublicKeyUse::Signature);
    let operations = jwk.common.key_operations.as_ref();
    if for_other
        || operations.is_some_and(|operations| !operations.contains(&KeyOperations::Verify))
    {
        return None;
    }
    let by_type: &[Algorithm] = match &jwk.algorithm {
        AlgorithmParameters::RSA(_) => AlgorithmFamily::Rsa.algorithms(),
        AlgorithmParameters::EllipticCurve(curve) => match curve.curve {
            EllipticCurve::P256 => &[Algorithm::ES256],
            EllipticCurve::P384 => &[Algorithm::ES384],
            _ => return None,
        },
        AlgorithmParameters::OctetKeyPair(pair) if pair.curve == EllipticCurve::Ed25519 => {
            &[Algorithm::EdDSA]
        }
        // A shared secret among published keys is nobody's key.
        _ => return None,
    };
    let algorithms: Vec<_> = match jwk.common.key_algorithm {
        None => by_type.to_vec(),
        Some(stated) => {
            let stated = Algorithm::from_str(&stated.to_string()).ok()?;
            by_type.iter().copied().filter(|known| *known == stated).collect()
        }
    };
    let key = DecodingKey::from_jwk(&jwk).ok()?;
    if matches!(key.kind(), DecodingKeyKind::RsaModulusExponent { n, .. } if n.len() < RSA_BYTES_MIN)
        || algorithms.is_empty()
    {
        return None;
    }
    Some(SigningKey { id: jwk.common.key_id, algorithms, key })
}
