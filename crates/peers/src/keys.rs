//! Everything secret is derived from the deployment's name and its key.

use std::fmt;

use ring::aead::{AES_256_GCM, LessSafeKey, UnboundKey};
use ring::hkdf::{HKDF_SHA256, KeyType, Prk, Salt};

/// What all peers of a deployment have in common, and nobody else.
#[derive(Clone)]
pub struct Key {
    root: Prk,
    is_secret: bool,
}

impl Key {
    /// * `cluster_id`: keeps deployments apart that reach each other by mistake.
    /// * `secret`: without one, whoever knows the name can read and forge.
    pub fn new(cluster_id: &str, secret: Option<&[u8]>) -> Self {
        let salt = Salt::new(HKDF_SHA256, cluster_id.as_bytes());
        let secret = secret.unwrap_or_default();
        Self { root: salt.extract(secret), is_secret: !secret.is_empty() }
    }

    /// Whether a stranger cannot know it.
    pub fn is_secret(&self) -> bool {
        self.is_secret
    }

    /// Key of prompt hashes and of endpoint names.
    pub(crate) fn hashes(&self) -> u64 {
        let mut key = [0; 8];
        let filled = self
            .root
            .expand(&[b"wicketgate peers 1 hashes"], Length(8))
            .and_then(|expanded| expanded.fill(&mut key));
        filled.expect("eight bytes can be expanded");
        u64::from_le_bytes(key)
    }

    /// Key of what one process seals; no two processes share one, so that each may count nonces.
    pub(crate) fn of_sender(&self, sender: u64) -> LessSafeKey {
        let info = [b"wicketgate peers 1 seal".as_slice(), &sender.to_le_bytes()];
        let expanded = self.root.expand(&info, &AES_256_GCM);
        LessSafeKey::new(UnboundKey::from(expanded.expect("one key can be expanded")))
    }
}

/// Never shows the key.
impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Key").field("is_secret", &self.is_secret).finish_non_exhaustive()
    }
}

struct Length(usize);

impl KeyType for Length {
    fn len(&self) -> usize {
        self.0
    }
}
