//! Why credentials do not let a request in.

use std::time::Duration;

/// Why, in the order in which it is found out.
///
/// The split between 401 and 403 is AWS's: 401 for what a new token would mend, 403 for what it
/// would not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Denied {
    #[error(
        "the request has no credentials: send an API key or a token as `Authorization: Bearer KEY`"
    )]
    Missing,
    #[error("the request has different credentials in several header fields: send one of them")]
    Ambiguous,
    #[error("the credentials are neither an API key nor a token")]
    Malformed,
    #[error("the token is signed with an algorithm that is not accepted")]
    Algorithm,
    #[error("the token's issuer is not trusted here")]
    Issuer,
    #[error("the token has expired")]
    Expired,
    #[error("the token is not valid yet")]
    NotYetValid,
    #[error("the token's signature is not valid")]
    Signature,
    /// No key with the token's `kid`, and keys were fetched just now.
    #[error("the token is signed with a key that its issuer does not publish")]
    UnknownKeyId,
    /// No key with the token's `kid`, or none at all; keys are being fetched.
    #[error("the issuer's signing keys are not at hand: try again")]
    KeysUnavailable,
    #[error("the token is meant for another audience")]
    Audience,
    #[error("the token's claims do not allow this")]
    Claims,
    #[error("the API key is not known")]
    UnknownKey,
    #[error("the API key has expired")]
    KeyExpired,
    #[error("the API key was revoked")]
    KeyRevoked,
    #[error("the credentials are valid, but nobody with them may send requests here")]
    NoCaller,
    /// The document asks for authentication, and nothing was set up for it.
    #[error("authentication is not set up")]
    NotSetUp,
}

/// Where a bearer token belongs; the field `WWW-Authenticate` of a 401.
const CHALLENGE: &str = "Bearer realm=\"wicketgate\"";
const CHALLENGE_INVALID: &str = "Bearer realm=\"wicketgate\", error=\"invalid_token\"";

impl Denied {
    pub fn status(self) -> u16 {
        match self {
            Self::Ambiguous => 400,
            Self::Missing
            | Self::Malformed
            | Self::Algorithm
            | Self::Issuer
            | Self::Expired
            | Self::NotYetValid
            | Self::UnknownKey
            | Self::KeyExpired
            | Self::KeyRevoked => 401,
            Self::Signature
            | Self::UnknownKeyId
            | Self::Audience
            | Self::Claims
            | Self::NoCaller => 403,
            Self::KeysUnavailable | Self::NotSetUp => 503,
        }
    }

    /// For programs; never changes once released.
    pub fn code(self) -> &'static str {
        match self {
            Self::Missing => "missing_credentials",
            Self::Ambiguous => "ambiguous_credentials",
            // OpenAI's code, which its SDKs and those who use them know.
            Self::UnknownKey | Self::KeyRevoked => "invalid_api_key",
            Self::KeyExpired => "api_key_expired",
            Self::Malformed => "invalid_credentials",
            Self::Algorithm | Self::Issuer | Self::NotYetValid => "invalid_token",
            Self::Expired => "token_expired",
            Self::Signature | Self::UnknownKeyId => "invalid_signature",
            Self::Audience => "wrong_audience",
            Self::Claims => "claims_not_accepted",
            Self::NoCaller => "caller_not_allowed",
            Self::KeysUnavailable => "signing_keys_unavailable",
            Self::NotSetUp => "authentication_not_set_up",
        }
    }

    /// `WWW-Authenticate`, which RFC 9110 asks for with 401.
    pub fn challenge(self) -> Option<&'static str> {
        match self.status() {
            401 if self == Self::Missing => Some(CHALLENGE),
            401 => Some(CHALLENGE_INVALID),
            _ => None,
        }
    }

    pub fn retry_after(self) -> Option<Duration> {
        (self.status() == 503).then_some(Duration::from_secs(1))
    }
}
