//! Who may come in: the keys in force, put to each request before its body is read.

mod keeping;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use arc_swap::ArcSwap;
use config::Spec;
use identity::keys::Stamp;
use identity::{Authenticator, Denied, LoadError, Means, Moment, Presented, SecretError, Secrets};
use telemetry::clock;
use telemetry::metrics::labels;
use tokio::sync::Notify;
use types::Timestamp;

use crate::pool::Secret;
use crate::refusal::{Component, Demand, Refusal};
use crate::{Caller, Gateway};
pub use keeping::{FetchKeys, KeysFetchError, keep_keys};

/// Keys and secrets that the document names, read.
#[derive(Debug, Default)]
pub struct Keys {
    authenticator: Option<Authenticator>,
    secrets: Secrets,
    /// How the files stood before they were read.
    stamp: Stamp,
}

/// Why they cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum KeysError {
    #[error("authentication cannot be set up")]
    Load(#[from] LoadError),
    #[error("a secret that the document names cannot be used")]
    Secret(#[from] SecretError),
}

/// The keys in force, as all requests share them.
#[derive(Debug, Default)]
pub(crate) struct Door {
    keys: ArcSwap<Keys>,
    /// A token asked for signing keys that are not here.
    wanted: Notify,
}

impl Keys {
    /// Reads what the document names.
    ///
    /// * `gateway`: whose fetched signing keys stay in force.
    pub fn load(spec: &Spec, gateway: Option<&Gateway>) -> Result<Self, KeysError> {
        let previous = gateway.map(|gateway| gateway.door.keys.load_full());
        let previous = previous.as_ref().and_then(|keys| keys.authenticator.as_ref());
        let stamp = identity::stamp(spec);
        let authenticator =
            spec.auth.as_ref().map(|auth| Authenticator::load(auth, previous)).transpose()?;
        Ok(Self { authenticator, secrets: Secrets::load(spec)?, stamp })
    }

    pub(crate) fn authenticator(&self) -> Option<&Authenticator> {
        self.authenticator.as_ref()
    }
}

impl Gateway {
    /// Puts keys in force. Until then nobody is let in where the document asks for authentication.
    pub fn use_keys(self: &Arc<Self>, keys: Keys) {
        let count = keys.authenticator.as_ref().map_or(0, Authenticator::keys);
        self.metrics.gateway().auth.api_keys.set(i64::try_from(count).unwrap_or(i64::MAX));
        for warning in keys.authenticator.iter().flat_map(Authenticator::warnings) {
            tracing::warn!("{warning}");
        }
        let changes_secrets = self.door.keys.load().secrets != keys.secrets;
        self.door.keys.store(Arc::new(keys));
        if changes_secrets {
            self.rebuild();
        }
        // Issuers may be new.
        self.door.wanted.notify_one();
    }

    /// Who sends a request, or why it is turned away. Costs one load where the document has no `auth`.
    pub fn authenticate(
        &self,
        shown: &Presented<'_>,
        now: Timestamp,
    ) -> Result<Arc<Caller>, Refusal> {
        let keys = self.door.keys.load();
        let decided = match &keys.authenticator {
            None if self.spec().auth.is_none() => return Ok(Caller::anonymous()),
            None => Err(Denied::NotSetUp),
            Some(authenticator) => authenticator.authenticate(shown, moment(now)),
        };
        let metrics = &self.metrics.gateway().auth;
        match decided {
            Ok(accepted) => {
                metrics.accepted.of(means_label(accepted.means)).inc();
                Ok(accepted.caller)
            }
            Err(denied) => {
                metrics.refused.of(reason_label(denied)).inc();
                if denied == Denied::KeysUnavailable {
                    self.door.wanted.notify_one();
                }
                Err(refusal(denied))
            }
        }
    }

    pub(crate) fn keys_in_force(&self) -> Arc<Keys> {
        self.door.keys.load_full()
    }

    /// Whether engines see what clients authenticate with.
    pub fn hands_credentials_on(&self) -> bool {
        self.spec().auth.as_ref().is_some_and(|auth| auth.forward_credentials)
    }

    /// Whether cookies, which may hold a session, end here. Where nobody is authenticated they pass.
    pub fn keeps_cookies(&self) -> bool {
        self.spec().auth.as_ref().is_some_and(|auth| !auth.forward_credentials)
    }

    /// An issuer of tokens whose keys were never there yet.
    pub fn waits_for_keys(&self) -> Option<String> {
        self.door.keys.load().authenticator.as_ref()?.waits_for().map(str::to_owned)
    }

    /// Whether administration lets somebody in who shows this as a bearer token.
    pub fn is_administrator(&self, authorization: Option<&[u8]>) -> bool {
        let spec = self.spec();
        let Some(source) = &spec.admin.token else { return true };
        let shown = authorization.and_then(|value| {
            let (scheme, rest) = value.trim_ascii().split_at_checked(7)?;
            scheme.eq_ignore_ascii_case(b"bearer ").then(|| rest.trim_ascii())
        });
        shown.is_some_and(|shown| self.door.keys.load().secrets.is(source, shown))
    }

    /// `Authorization` towards the endpoints of a scheduler that has a key of its own.
    pub(crate) fn endpoint_authorization(
        &self,
        source: Option<&config::SecretSource>,
    ) -> Option<Secret> {
        let keys = self.door.keys.load();
        let key = keys.secrets.get(source?)?;
        Some(Secret(format!("Bearer {key}").into()))
    }
}

fn moment(now: Timestamp) -> Moment {
    Moment { at: now, unix_seconds: clock::unix_seconds(clock::wall()) as u64 }
}

fn refusal(denied: Denied) -> Refusal {
    let reason = match denied.status() {
        400 => labels::Refusal::Malformed,
        401 => labels::Refusal::Unauthorized,
        403 => labels::Refusal::Forbidden,
        _ => labels::Refusal::Overloaded,
    };
    let code = denied.code();
    let mut refusal =
        Refusal::new(denied.status(), code, Component::Auth, reason, denied.to_string());
    refusal.demand = denied.challenge().map(Demand::Credentials);
    refusal.retry_after = denied.retry_after();
    refusal
}

fn means_label(means: Means) -> labels::AuthMeans {
    match means {
        Means::ApiKey => labels::AuthMeans::ApiKey,
        Means::Token => labels::AuthMeans::Token,
        Means::KnownToken => labels::AuthMeans::KnownToken,
        Means::Certificate => labels::AuthMeans::Certificate,
        Means::Anonymous => labels::AuthMeans::Anonymous,
    }
}

fn reason_label(denied: Denied) -> labels::AuthRefusal {
    match denied {
        Denied::Missing => labels::AuthRefusal::Missing,
        Denied::Ambiguous => labels::AuthRefusal::Ambiguous,
        Denied::Malformed => labels::AuthRefusal::Malformed,
        Denied::Algorithm => labels::AuthRefusal::Algorithm,
        Denied::Issuer => labels::AuthRefusal::Issuer,
        Denied::Expired => labels::AuthRefusal::Expired,
        Denied::NotYetValid => labels::AuthRefusal::NotYetValid,
        Denied::Signature => labels::AuthRefusal::Signature,
        Denied::UnknownKeyId => labels::AuthRefusal::UnknownKeyId,
        Denied::KeysUnavailable => labels::AuthRefusal::KeysUnavailable,
        Denied::Audience => labels::AuthRefusal::Audience,
        Denied::Claims => labels::AuthRefusal::Claims,
        Denied::UnknownKey => labels::AuthRefusal::UnknownKey,
        Denied::KeyExpired => labels::AuthRefusal::KeyExpired,
        Denied::KeyRevoked => labels::AuthRefusal::KeyRevoked,
        Denied::NoCaller => labels::AuthRefusal::NoCaller,
        Denied::NotSetUp => labels::AuthRefusal::NotSetUp,
    }
}
