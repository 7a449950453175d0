//! JSON web tokens: who signed them, for whom, and until when.
//!
//! The checks that cost nothing come first, so that a token that has expired or comes from a
//! stranger costs no signature. Nothing of a token is used before its signature was verified but its
//! issuer and its times, and those only to refuse it.

mod claims;
mod jwks;
mod provider;
mod ring;
#[cfg(test)]
pub(crate) mod testing;

use config::JwtProvider;
use jsonwebtoken::errors::ErrorKind;
use jsonwebtoken::{Algorithm, Header, Validation};
use serde_json::{Map, Value};
use types::Timestamp;

use crate::{Denied, Moment};
pub(crate) use claims::{has_value, text};
pub use jwks::JwksError;
pub(crate) use provider::Provider;
pub use provider::{DueFetch, FetchedKeys, ProviderState};

/// Claims of a token.
pub(crate) type Claims = Map<String, Value>;

/// Keys without a `kid` of their own that are tried for one token.
const KEYS_TRIED_MAX: usize = 4;

/// A token that was verified.
pub(crate) struct Token<'a> {
    pub(crate) provider: &'a JwtProvider,
    pub(crate) claims: Claims,
    /// Seconds since 1970.
    pub(crate) expires: u64,
}

/// Makes the cryptography of the process that of `ring`. May be called any number of times.
pub(crate) fn set_up() {
    ring::install();
}

/// Verifies a token. Providers of the same issuer are asked in turn; the first refusal counts.
pub(crate) fn verify<'a>(
    token: &str,
    providers: &'a [Provider],
    now: Moment,
) -> Result<Token<'a>, Denied> {
    let header = jsonwebtoken::decode_header(token).map_err(|_| Denied::Malformed)?;
    let claims: Claims =
        jsonwebtoken::dangerous::insecure_decode_claims(token).map_err(|_| Denied::Malformed)?;
    let issuer = claims.get("iss").and_then(Value::as_str).ok_or(Denied::Malformed)?;
    let mut denied = None;
    for provider in providers.iter().filter(|provider| provider.spec.issuer == issuer) {
        match verify_as(token, &header, &claims, provider, now) {
            Ok(token) => return Ok(token),
            Err(why) => denied = denied.or(Some(why)),
        }
    }
    Err(denied.unwrap_or(Denied::Issuer))
}

fn verify_as<'a>(
    token: &str,
    header: &Header,
    unverified: &Claims,
    provider: &'a Provider,
    now: Moment,
) -> Result<Token<'a>, Denied> {
    let expires = in_time(unverified, &provider.spec, now)?;
    if !provider.algorithms.contains(&header.alg) {
        return Err(Denied::Algorithm);
    }
    let claims = verify_signature(token, header, provider, now.at)?;
    let spec = &provider.spec;
    if !spec.audiences.is_empty() && !claims::is_for(&claims, &spec.audiences) {
        return Err(Denied::Audience);
    }
    if !spec.required_claims.iter().all(|required| claims::has(&claims, required)) {
        return Err(Denied::Claims);
    }
    Ok(Token { provider: spec, claims, expires })
}

/// Judges `exp`, which must be there, and `nbf`. Seconds since 1970 from which on the token counts
/// for nothing.
fn in_time(claims: &Claims, spec: &JwtProvider, now: Moment) -> Result<u64, Denied> {
    let seconds = |name| match claims.get(name) {
        None => Ok(None),
        Some(value) => match value.as_f64() {
            Some(number) if number.is_finite() && number >= 0.0 => Ok(Some(number as u64)),
            _ => Err(Denied::Malformed),
        },
    };
    let skew = spec.clock_skew.as_secs();
    let expires = seconds("exp")?.ok_or(Denied::Malformed)?.saturating_add(skew);
    if expires <= now.unix_seconds {
        return Err(Denied::Expired);
    }
    if seconds("nbf")?.is_some_and(|begins| begins > now.unix_seconds.saturating_add(skew)) {
        return Err(Denied::NotYetValid);
    }
    Ok(expires)
}

/// The claims, if a key of the provider's has signed them.
///
/// Keys come from the provider alone: what a token says of keys (`jwk`, `jku`, `x5u`, `x5c`) is not
/// looked at. The algorithm must be one that the key itself is for, so that a public key is never
/// taken for a shared secret.
fn verify_signature(
    token: &str,
    header: &Header,
    provider: &Provider,
    now: Timestamp,
) -> Result<Claims, Denied> {
    let Some(keys) = provider.keys(now) else {
        provider.want_keys(now);
        return Err(Denied::KeysUnavailable);
    };
    let mut candidates = keys.for_token(header.kid.as_deref(), header.alg).peekable();
    if candidates.peek().is_none() {
        return Err(match (keys.knows(header.kid.as_deref()), provider.want_keys(now)) {
            (true, _) => Denied::Algorithm,
            (false, true) => Denied::KeysUnavailable,
            (false, false) => Denied::UnknownKeyId,
        });
    }
    let validation = signature_only(header.alg);
    let mut denied = Denied::Signature;
    for key in candidates.take(KEYS_TRIED_MAX) {
        match jsonwebtoken::decode::<Claims>(token, &key.key, &validation) {
            Ok(data) => return Ok(data.claims),
            Err(error) if matches!(error.kind(), ErrorKind::InvalidSignature) => {}
            // A header that demands what we do not do (`crit`), or no JSON.
            Err(_) => denied = Denied::Malformed,
        }
    }
    Err(denied)
}

/// Times and audience are judged by us: with our clock, and for AWS's split of 401 and 403.
fn signature_only(algorithm: Algorithm) -> Validation {
    let mut validation = Validation::new(algorithm);
    validation.required_spec_claims.clear();
    validation.validate_exp = false;
    validation.validate_nbf = false;
    validation.validate_aud = false;
    validation
}
