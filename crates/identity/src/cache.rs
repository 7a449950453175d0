//! Tokens that were verified a short while ago, so that the same token costs one signature, not one
//! for each request.
//!
//! Bounded: two generations a shard, the older of which is dropped when the younger is full. Only
//! valid tokens get in, so nobody can push others out with rubbish.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::Caller;

const SHARDS: usize = 16;
/// Tokens of one generation in one shard; 16,384 in all, some 5 MiB.
const GENERATION_MAX: usize = 512;

/// SHA-256 of a token.
pub(crate) type Digest = [u8; 32];

#[derive(Debug, Default)]
pub(crate) struct TokenCache {
    shards: [Mutex<Shard>; SHARDS],
}

#[derive(Debug, Default)]
struct Shard {
    young: HashMap<Digest, Verified>,
    old: HashMap<Digest, Verified>,
}

#[derive(Clone, Debug)]
pub(crate) struct Verified {
    pub(crate) caller: Arc<Caller>,
    /// Seconds since 1970 from which on it has to be verified again.
    pub(crate) until: u64,
    /// Generation of the keys that it was verified with.
    pub(crate) generation: u64,
}

impl TokenCache {
    pub(crate) fn get(&self, digest: &Digest, now: u64, generation: u64) -> Option<Arc<Caller>> {
        let mut shard = self.shard(digest);
        let is_good = |found: &Verified| found.until > now && found.generation == generation;
        if let Some(found) = shard.young.get(digest) {
            return is_good(found).then(|| found.caller.clone());
        }
        let found = shard.old.get(digest).filter(|found| is_good(found)).cloned()?;
        let caller = found.caller.clone();
        shard.put(*digest, found);
        Some(caller)
    }

    pub(crate) fn put(&self, digest: Digest, verified: Verified) {
        self.shard(&digest).put(digest, verified);
    }

    fn shard(&self, digest: &Digest) -> std::sync::MutexGuard<'_, Shard> {
        let shard = &self.shards[usize::from(digest[0]) % SHARDS];
        shard.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shard {
    fn put(&mut self, digest: Digest, verified: Verified) {
        if self.young.len() >= GENERATION_MAX {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(digest, verified);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(number: u32) -> Digest {
        let mut digest = [0; 32];
        digest[..4].copy_from_slice(&number.to_be_bytes());
        digest
    }

    fn verified(until: u64, generation: u64) -> Verified {
        Verified { caller: Caller::anonymous(), until, generation }
    }

    #[test]
    fn a_token_is_forgotten_when_it_expires_or_the_keys_change() {
        let cache = TokenCache::default();
        cache.put(digest(1), verified(100, 1));
        assert!(cache.get(&digest(1), 99, 1).is_some());
        assert!(cache.get(&digest(1), 100, 1).is_none());
        assert!(cache.get(&digest(1), 99, 2).is_none());
    }

    #[test]
    fn tokens_are_bounded_and_those_in_use_stay() {
        let cache = TokenCache::default();
        for number in 0..100_000 {
            cache.put(digest(number), verified(100, 1));
            assert!(cache.get(&digest(0), 0, 1).is_some(), "in use, but gone after {number}");
        }
        let held: usize = cache
            .shards
            .iter()
            .map(|shard| {
                let shard = shard.lock().unwrap();
                shard.young.len() + shard.old.len()
            })
            .sum();
        assert!(held <= 2 * SHARDS * GENERATION_MAX, "{held}");
    }
}
