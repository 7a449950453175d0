//! Secrets of our own that the document names: keys for endpoints, the token of administration.

use std::collections::HashMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use config::{SecretSource, Spec};

/// Longest secret in a file, bytes.
const BYTES_MAX: usize = 16 * 1024;

/// What the sources of a document hold.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secrets(HashMap<SecretSource, Arc<str>>);

/// Why a secret cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SecretError {
    #[error("cannot read the secret in {}", path.display())]
    File {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error("the variable `{0}` is not set")]
    Env(String),
    #[error("the secret in {0} is empty, longer than 16 KiB, or not one line of visible ASCII")]
    Form(String),
}

impl Secrets {
    /// Reads all that a document names.
    pub fn load(spec: &Spec) -> Result<Self, SecretError> {
        let keys =
            spec.schedulers.iter().filter_map(|scheduler| scheduler.endpoint_api_key.as_ref());
        let mut secrets = HashMap::new();
        for source in keys.chain(&spec.admin.token) {
            if !secrets.contains_key(source) {
                secrets.insert(source.clone(), read(source)?);
            }
        }
        Ok(Self(secrets))
    }

    pub fn get(&self, source: &SecretSource) -> Option<&Arc<str>> {
        self.0.get(source)
    }

    /// Whether `shown` is the secret, in a time that does not depend on where they differ.
    pub fn is(&self, source: &SecretSource, shown: &[u8]) -> bool {
        self.get(source).is_some_and(|secret| same(secret.as_bytes(), shown))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether one may change while we run.
    pub fn has_files(&self) -> bool {
        !self.is_empty() && self.0.keys().any(|source| matches!(source, SecretSource::File(_)))
    }
}

impl fmt::Debug for Secrets {
    /// Where they stand, not what they are.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// Compares digests, whose bytes a caller cannot choose one by one.
pub(crate) fn same(one: &[u8], other: &[u8]) -> bool {
    let digest = |bytes| ring::digest::digest(&ring::digest::SHA256, bytes);
    digest(one).as_ref() == digest(other).as_ref()
}

fn read(source: &SecretSource) -> Result<Arc<str>, SecretError> {
    let (text, place) = match source {
        SecretSource::File(path) => {
            let text = std::fs::read_to_string(path)
                .map_err(|source| SecretError::File { path: path.clone(), source })?;
            (text, path.display().to_string())
        }
        SecretSource::Env(name) => {
            let text = std::env::var(name).map_err(|_| SecretError::Env(name.clone()))?;
            (text, format!("the variable `{name}`"))
        }
    };
    let text = text.trim();
    let fits = !text.is_empty()
        && text.len() <= BYTES_MAX
        && text.bytes().all(|byte| byte.is_ascii_graphic());
    if fits { Ok(text.into()) } else { Err(SecretError::Form(place)) }
}
