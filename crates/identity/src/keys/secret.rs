//! What a key looks like, and what is kept of it.

use std::fmt;

use data_encoding::{BASE32_NOPAD, HEXLOWER};
use rand::Rng;
use ring::{digest, hmac};

/// What every key begins with, so that people and scanners for leaked secrets know one.
pub const PREFIX: &str = "wg-";
/// Random bytes of a key: 208 bits.
const RANDOM_BYTES: usize = 26;
/// Bytes of the checksum that ends it.
const CHECKSUM_BYTES: usize = 4;

/// A new key: [`PREFIX`] and 48 characters, of which the last six or seven only confirm the others.
pub fn generate() -> String {
    let mut bytes = [0; RANDOM_BYTES + CHECKSUM_BYTES];
    rand::rng().fill_bytes(&mut bytes[..RANDOM_BYTES]);
    let checksum = checksum(&bytes[..RANDOM_BYTES]);
    bytes[RANDOM_BYTES..].copy_from_slice(&checksum);
    format!("{PREFIX}{}", BASE32_NOPAD.encode(&bytes).to_ascii_lowercase())
}

/// Whether a text was made by [`generate`], as far as one can see: no typing error, nothing cut off.
pub fn is_well_formed(key: &str) -> bool {
    let Some(text) = key.strip_prefix(PREFIX) else { return false };
    let is_lower = !text.bytes().any(|byte| byte.is_ascii_uppercase());
    let bytes = BASE32_NOPAD.decode(text.to_ascii_uppercase().as_bytes());
    bytes.is_ok_and(|bytes| {
        is_lower
            && bytes.len() == RANDOM_BYTES + CHECKSUM_BYTES
            && checksum(&bytes[..RANDOM_BYTES]) == bytes[RANDOM_BYTES..]
    })
}

fn checksum(random: &[u8]) -> [u8; CHECKSUM_BYTES] {
    let mut context = digest::Context::new(&digest::SHA256);
    context.update(PREFIX.as_bytes());
    context.update(random);
    let mut checksum = [0; CHECKSUM_BYTES];
    checksum.copy_from_slice(&context.finish().as_ref()[..CHECKSUM_BYTES]);
    checksum
}

/// Makes hashes of keys.
///
/// Plain SHA-256 suffices for keys with 128 random bits or more: there is nothing to try out. With a
/// pepper (HMAC-SHA-256) a stolen file does not even tell whether a known key is in it.
#[derive(Clone)]
pub struct Hasher(Option<hmac::Key>);

impl Hasher {
    pub fn plain() -> Self {
        Self(None)
    }

    /// * `pepper`: white space around it does not count.
    pub fn with_pepper(pepper: &str) -> Self {
        Self(Some(hmac::Key::new(hmac::HMAC_SHA256, pepper.trim().as_bytes())))
    }

    pub fn hash(&self, key: &str) -> [u8; 32] {
        let mut hash = [0; 32];
        match &self.0 {
            None => hash.copy_from_slice(digest::digest(&digest::SHA256, key.as_bytes()).as_ref()),
            Some(pepper) => hash.copy_from_slice(hmac::sign(pepper, key.as_bytes()).as_ref()),
        }
        hash
    }

    /// The hash as it stands in files: `sha256:…` or `hmac-sha256:…` with 64 hexadecimal digits.
    pub fn show(&self, key: &str) -> String {
        format!("{}:{}", self.scheme(), HEXLOWER.encode(&self.hash(key)))
    }

    /// Reads what [`Self::show`] wrote. `Err`: why it cannot be used.
    pub(crate) fn parse(&self, text: &str) -> Result<[u8; 32], String> {
        let (scheme, digits) =
            text.split_once(':').ok_or("the hash has no scheme: write sha256:HEX")?;
        if scheme != self.scheme() {
            return Err(match scheme {
                "hmac-sha256" => "the hash needs a pepper: set `apiKeys.pepperFile`".to_owned(),
                "sha256" => "the hash was made without the pepper: make the key anew".to_owned(),
                _ => "the hash is of no known scheme: write sha256:HEX".to_owned(),
            });
        }
        let bytes = HEXLOWER.decode(digits.to_ascii_lowercase().as_bytes()).ok();
        let bytes = bytes.and_then(|bytes| <[u8; 32]>::try_from(bytes).ok());
        bytes.ok_or_else(|| "the hash has not 64 hexadecimal digits".to_owned())
    }

    fn scheme(&self) -> &'static str {
        if self.0.is_some() { "hmac-sha256" } else { "sha256" }
    }
}

impl fmt::Debug for Hasher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.scheme())
    }
}
