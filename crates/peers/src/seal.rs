//! Datagrams that only peers can write and read.
//!
//! ```text
//! version 1 │ sender 8 │ counter 8 │ sealed message │ tag 16
//! ```
//!
//! AES-256-GCM under a key of the sender's own, with its counter as nonce. What is in front of the
//! sealed part is authenticated with it.

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};

use ring::aead::{Aad, LessSafeKey, Nonce};

use crate::Key;

/// Another version shares nothing with this one.
const VERSION: u8 = 1;
const HEAD_BYTES: usize = 17;
/// What sealing adds.
pub(crate) const SEAL_BYTES: usize = HEAD_BYTES + 16;
/// Keys of senders that are kept; a stranger's is derived, used once and not kept.
const SENDERS_MAX: usize = 256;

/// Seals what this process says.
pub(crate) struct Sealer {
    sender: u64,
    key: LessSafeKey,
    counter: AtomicU64,
}

/// Opens what others say.
pub(crate) struct Opener {
    root: Key,
    keys: HashMap<u64, LessSafeKey>,
}

/// Who said something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Origin {
    pub(crate) sender: u64,
    /// Rises from datagram to datagram.
    pub(crate) counter: u64,
}

impl Sealer {
    /// * `sender`: drawn at random, once for a process.
    pub(crate) fn new(root: &Key, sender: u64) -> Self {
        Self { sender, key: root.of_sender(sender), counter: AtomicU64::new(1) }
    }

    pub(crate) fn sender(&self) -> u64 {
        self.sender
    }

    /// The datagram of a message.
    pub(crate) fn seal(&self, message: &[u8]) -> Vec<u8> {
        let counter = self.counter.fetch_add(1, Ordering::Relaxed);
        let head = head(Origin { sender: self.sender, counter });
        let mut datagram = Vec::with_capacity(message.len() + SEAL_BYTES);
        datagram.extend_from_slice(&head);
        datagram.extend_from_slice(message);
        let sealed = &mut datagram[HEAD_BYTES..];
        let tag = self
            .key
            .seal_in_place_separate_tag(nonce(counter), Aad::from(head), sealed)
            .expect("a datagram is shorter than what one nonce can seal");
        datagram.extend_from_slice(tag.as_ref());
        datagram
    }
}

impl Opener {
    pub(crate) fn new(root: Key) -> Self {
        Self { root, keys: HashMap::new() }
    }

    /// The message within, in place. `None`: not from a peer, or not whole.
    pub(crate) fn open<'a>(&mut self, datagram: &'a mut [u8]) -> Option<(Origin, &'a [u8])> {
        let (head, sealed) = datagram.split_at_mut_checked(HEAD_BYTES)?;
        if head[0] != VERSION {
            return None;
        }
        let number = |bytes: &[u8]| Some(u64::from_le_bytes(bytes.try_into().ok()?));
        let origin = Origin { sender: number(&head[1..9])?, counter: number(&head[9..17])? };
        let fresh = match self.keys.get(&origin.sender) {
            Some(_) => None,
            None => Some(self.root.of_sender(origin.sender)),
        };
        let key = fresh.as_ref().or_else(|| self.keys.get(&origin.sender))?;
        let message = key.open_in_place(nonce(origin.counter), Aad::from(&*head), sealed).ok()?;
        if let Some(fresh) = fresh {
            if self.keys.len() >= SENDERS_MAX {
                // Of processes that ended, mostly; those that live come back with the next datagram.
                self.keys.clear();
            }
            self.keys.insert(origin.sender, fresh);
        }
        Some((origin, message))
    }
}

fn head(origin: Origin) -> [u8; HEAD_BYTES] {
    let mut head = [VERSION; HEAD_BYTES];
    head[1..9].copy_from_slice(&origin.sender.to_le_bytes());
    head[9..].copy_from_slice(&origin.counter.to_le_bytes());
    head
}

fn nonce(counter: u64) -> Nonce {
    let mut nonce = [0; 12];
    nonce[..8].copy_from_slice(&counter.to_le_bytes());
    Nonce::assume_unique_for_key(nonce)
}
