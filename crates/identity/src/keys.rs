//! API keys of our own: only their hashes are kept.

mod file;
mod secret;
mod stamp;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use config::ApiKeys;
use subtle::ConstantTimeEq;

use crate::callers::Callers;
use crate::{Caller, Denied};
pub use file::{KeyEntry, KeyFile};
pub use secret::{Hasher, PREFIX, generate, is_well_formed};
pub use stamp::Stamp;

/// Longest file of hashes, bytes: some 400,000 keys.
const FILE_BYTES_MAX: u64 = 64 << 20;

/// Why keys cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum KeysError {
    #[error("cannot read {}", path.display())]
    Read {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error("cannot write {}", path.display())]
    Write {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error("{} is no file of keys: {reason}", path.display())]
    Form { path: PathBuf, reason: String },
    #[error("the key `{name}` in {}: {reason}", path.display())]
    Key { path: PathBuf, name: String, reason: String },
    #[error("two keys are called `{0}`")]
    Twice(String),
}

/// The keys in force, by hash.
#[derive(Debug)]
pub(crate) struct KeyStore {
    hasher: Hasher,
    keys: HashMap<[u8; 32], Key>,
    warnings: Vec<String>,
}

#[derive(Debug)]
struct Key {
    caller: Result<Arc<Caller>, Denied>,
    /// Seconds since 1970.
    expires: Option<u64>,
    revoked: bool,
}

impl KeyStore {
    pub(crate) fn load(spec: &ApiKeys, callers: &Callers) -> Result<Self, KeysError> {
        let hasher = match &spec.pepper_file {
            None => Hasher::plain(),
            Some(path) => Hasher::with_pepper(&read(path)?),
        };
        let mut store = Self { hasher, keys: HashMap::new(), warnings: Vec::new() };
        let mut names = std::collections::HashSet::new();
        for path in files(&spec.file)? {
            for entry in KeyFile::read(&path)?.keys {
                if !names.insert(entry.name.clone()) {
                    return Err(KeysError::Twice(entry.name));
                }
                store.add(&path, &entry, callers)?;
            }
        }
        Ok(store)
    }

    fn add(&mut self, path: &Path, entry: &KeyEntry, callers: &Callers) -> Result<(), KeysError> {
        let fault = |reason: String| KeysError::Key {
            path: path.to_owned(),
            name: entry.name.clone(),
            reason,
        };
        let hash = self.hasher.parse(&entry.hash).map_err(fault)?;
        let expires = entry.expires_at().map_err(fault)?;
        let caller = callers.of_key(&entry.name, entry.caller.as_deref());
        if caller.is_err() {
            self.warnings.push(match &entry.caller {
                Some(caller) => format!(
                    "the API key `{}` names the caller `{caller}`, which the document does not have: it is refused",
                    entry.name
                ),
                None => format!(
                    "no caller of the document matches the API key `{}`: it is refused",
                    entry.name
                ),
            });
        }
        let key = Key { caller, expires, revoked: entry.disabled };
        if self.keys.insert(hash, key).is_some() {
            return Err(fault("another key has the same hash".to_owned()));
        }
        Ok(())
    }

    /// The caller behind a key.
    ///
    /// The key is found by its hash, so what the time of the search tells is about a hash that
    /// nobody can choose. The hash that was found is compared once more, in constant time.
    pub(crate) fn caller_of(&self, secret: &str, now: u64) -> Result<Arc<Caller>, Denied> {
        let hash = self.hasher.hash(secret);
        let (known, key) = self.keys.get_key_value(&hash).ok_or(Denied::UnknownKey)?;
        if !bool::from(known.ct_eq(&hash)) {
            return Err(Denied::UnknownKey);
        }
        if key.revoked {
            return Err(Denied::KeyRevoked);
        }
        if key.expires.is_some_and(|expires| expires <= now) {
            return Err(Denied::KeyExpired);
        }
        key.caller.clone()
    }

    pub(crate) fn len(&self) -> usize {
        self.keys.values().filter(|key| !key.revoked).count()
    }

    pub(crate) fn warnings(&self) -> &[String] {
        &self.warnings
    }
}

/// The file itself, or what is in the folder. Names with a dot in front are Kubernetes' own.
fn files(path: &Path) -> Result<Vec<PathBuf>, KeysError> {
    let fault = |source| KeysError::Read { path: path.to_owned(), source };
    if !std::fs::metadata(path).map_err(fault)?.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut files = Vec::new();
    for entry in std::fs::read_dir(path).map_err(fault)? {
        let entry = entry.map_err(fault)?;
        let hidden = entry.file_name().as_encoded_bytes().starts_with(b".");
        if !hidden && entry.path().is_file() {
            files.push(entry.path());
        }
    }
    files.sort();
    Ok(files)
}

fn read(path: &Path) -> Result<String, KeysError> {
    let fault = |source| KeysError::Read { path: path.to_owned(), source };
    if std::fs::metadata(path).map_err(fault)?.len() > FILE_BYTES_MAX {
        return Err(fault(std::io::ErrorKind::FileTooLarge.into()));
    }
    std::fs::read_to_string(path).map_err(fault)
}
