//! What the document says of identity, with the keys in force.

#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use config::{Anonymous, Auth, JwksSource, SecretSource, Spec};

use crate::cache::{TokenCache, Verified};
use crate::callers::Callers;
use crate::keys::{KeyStore, KeysError, Stamp};
use crate::presented::Secret;
use crate::token::{self, DueFetch, FetchedKeys, JwksError, Provider, ProviderState};
use crate::{Caller, Denied, Moment, Presented};

/// Longest time that a token counts without its signature being verified again.
const REVERIFY_SECONDS: u64 = 60;
/// Longest file of signing keys, bytes.
const JWKS_BYTES_MAX: u64 = 1 << 20;

/// Turns credentials into callers.
#[derive(Debug)]
pub struct Authenticator {
    anonymous: Anonymous,
    nobody: Arc<Caller>,
    callers: Callers,
    keys: Option<KeyStore>,
    providers: Vec<Provider>,
    cache: TokenCache,
    /// Counts changes of signing keys.
    generation: AtomicU64,
}

/// A request that may come in.
#[derive(Clone, Debug)]
pub struct Accepted {
    pub caller: Arc<Caller>,
    pub means: Means,
}

/// What it was let in by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Means {
    ApiKey,
    Token,
    /// A token that was verified a short while ago.
    KnownToken,
    Certificate,
    Anonymous,
}

/// Why authentication cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    #[error("the API keys cannot be used")]
    Keys(#[from] KeysError),
    #[error("cannot read the signing keys in {}", path.display())]
    JwksFile {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error("the signing keys in {} cannot be used", path.display())]
    Jwks {
        path: PathBuf,
        #[source]
        source: JwksError,
    },
}

impl Authenticator {
    /// Reads the files that the document names.
    ///
    /// * `previous`: whose fetched signing keys stay in force, where their source is the same.
    pub fn load(auth: &Auth, previous: Option<&Self>) -> Result<Self, LoadError> {
        token::set_up();
        let callers = Callers::new(&auth.callers);
        let keys = auth.api_keys.as_ref().map(|keys| KeyStore::load(keys, &callers)).transpose()?;
        let providers: Vec<_> = auth.providers.iter().cloned().map(Provider::new).collect();
        for provider in &providers {
            if let JwksSource::File(path) = &provider.spec.jwks.source {
                let bytes = read(path)
                    .map_err(|source| LoadError::JwksFile { path: path.clone(), source })?;
                provider
                    .set_file(bytes)
                    .map_err(|source| LoadError::Jwks { path: path.clone(), source })?;
            }
            for known in previous.iter().flat_map(|previous| &previous.providers) {
                if matches!(known.spec.jwks.source, JwksSource::Remote { .. }) {
                    provider.adopt(known);
                }
            }
        }
        Ok(Self {
            anonymous: auth.anonymous,
            nobody: callers.anonymous(),
            callers,
            keys,
            providers,
            cache: TokenCache::default(),
            generation: AtomicU64::new(0),
        })
    }

    /// Who sends a request.
    pub fn authenticate(&self, shown: &Presented<'_>, now: Moment) -> Result<Accepted, Denied> {
        match (shown.secret()?, shown.certificate) {
            (Some(Secret::Token(token)), _) if !self.providers.is_empty() => self.token(token, now),
            (Some(Secret::Token(secret) | Secret::Key(secret)), _) => {
                let keys = self.keys.as_ref().ok_or(Denied::Malformed)?;
                let caller = keys.caller_of(secret, now.unix_seconds)?;
                Ok(Accepted { caller, means: Means::ApiKey })
            }
            (None, Some(certificate)) => {
                let caller = self.callers.of_certificate(certificate)?;
                Ok(Accepted { caller, means: Means::Certificate })
            }
            (None, None) => self.without_credentials(shown.lists_models),
        }
    }

    /// Who sends a request without credentials, where that is allowed.
    pub fn nobody(&self) -> Arc<Caller> {
        self.nobody.clone()
    }

    /// The caller that the document calls so, as a key of it would be let in.
    pub fn caller_named(&self, name: &str) -> Option<Arc<Caller>> {
        self.callers.named(name)
    }

    fn without_credentials(&self, lists_models: bool) -> Result<Accepted, Denied> {
        match self.anonymous {
            Anonymous::Allow => {}
            Anonymous::ModelsOnly if lists_models => {}
            Anonymous::ModelsOnly | Anonymous::Deny => return Err(Denied::Missing),
        }
        Ok(Accepted { caller: self.nobody.clone(), means: Means::Anonymous })
    }

    fn token(&self, token: &str, now: Moment) -> Result<Accepted, Denied> {
        let mut digest = [0; 32];
        let sha = ring::digest::digest(&ring::digest::SHA256, token.as_bytes());
        digest.copy_from_slice(sha.as_ref());
        let generation = self.generation.load(Ordering::Relaxed);
        if let Some(caller) = self.cache.get(&digest, now.unix_seconds, generation) {
            return Ok(Accepted { caller, means: Means::KnownToken });
        }
        let verified = token::verify(token, &self.providers, now)?;
        let caller = self.callers.of_token(verified.provider, &verified.claims)?;
        let until = verified.expires.min(now.unix_seconds + REVERIFY_SECONDS);
        self.cache.put(digest, Verified { caller: caller.clone(), until, generation });
        Ok(Accepted { caller, means: Means::Token })
    }

    /// Begins the fetches of signing keys that are due; each must be ended with [`Self::fetched`].
    pub fn due_fetches(&self, now: Moment) -> Vec<DueFetch> {
        let providers = self.providers.iter().enumerate();
        providers.filter_map(|(index, provider)| provider.begin_fetch(index, now.at)).collect()
    }

    /// What came of a fetch; `None`: nothing. Keys that are held stay in force on an error.
    pub fn fetched(
        &self,
        provider: usize,
        keys: Option<FetchedKeys>,
        now: Moment,
    ) -> Result<(), JwksError> {
        let Some(provider) = self.providers.get(provider) else { return Ok(()) };
        if provider.end_fetch(keys, now.at)? {
            self.generation.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }

    /// A provider without which no decision can be made yet.
    pub fn waits_for(&self) -> Option<&str> {
        let waiting = self.providers.iter().find(|provider| !provider.has_keys());
        waiting.map(|provider| provider.spec.name.as_str())
    }

    pub fn providers(&self, now: Moment) -> Vec<ProviderState> {
        self.providers.iter().map(|provider| provider.state(now.at)).collect()
    }

    /// API keys that let somebody in.
    pub fn keys(&self) -> usize {
        self.keys.as_ref().map_or(0, KeyStore::len)
    }

    /// What a person should look at.
    pub fn warnings(&self) -> &[String] {
        self.keys.as_ref().map_or(&[], KeyStore::warnings)
    }
}

/// How the files of keys and secrets stand that a document names: when this changes, they are read
/// again.
pub fn stamp(spec: &Spec) -> Stamp {
    let secrets =
        spec.schedulers.iter().filter_map(|scheduler| scheduler.endpoint_api_key.as_ref());
    let secrets = secrets.chain(&spec.admin.token).filter_map(|source| match source {
        SecretSource::File(path) => Some(path),
        SecretSource::Env(_) => None,
    });
    let keys = spec.auth.iter().flat_map(|auth| &auth.api_keys);
    let keys = keys.flat_map(|keys| keys.pepper_file.iter().chain([&keys.file]));
    let providers = spec.auth.iter().flat_map(|auth| &auth.providers);
    let signing = providers.filter_map(|provider| match &provider.jwks.source {
        JwksSource::File(path) => Some(path),
        JwksSource::Remote { .. } => None,
    });
    Stamp::of(keys.chain(signing).chain(secrets).map(PathBuf::as_path))
}

fn read(path: &Path) -> std::io::Result<Vec<u8>> {
    if std::fs::metadata(path)?.len() > JWKS_BYTES_MAX {
        return Err(std::io::ErrorKind::FileTooLarge.into());
    }
    std::fs::read(path)
}
