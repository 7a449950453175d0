//! What peers say, as bytes.
//!
//! ```text
//! gossip   0 │ chitchat's own
//! credits  1 │ span, ms │ { endpoint 8 │ requests │ prefilling │ prefill tokens │ tokens ahead }…
//! prompts  2 │ tokens of a block │ { endpoint 8 │ blocks·2 + continues │ hash 8 … }…
//! leaving  3
//! ```
//!
//! Numbers are little-endian base-128 (as in Protocol Buffers) where no size is given. An endpoint is
//! the keyed hash of its address, so peers must write addresses alike.

#[cfg(test)]
mod tests;

use prefix::BlockHash;
use sched::Credit;

use crate::seal::SEAL_BYTES;

/// Largest UDP payload that every IPv6 path carries whole: 1,280 − 40 − 8 bytes.
const DATAGRAM_BYTES_MAX: usize = 1232;
/// Largest message of credits or prompts.
pub const MESSAGE_BYTES_MAX: usize = DATAGRAM_BYTES_MAX - SEAL_BYTES;
/// Most blocks of one prompt in one message.
pub(crate) const BLOCKS_MAX: usize = (MESSAGE_BYTES_MAX - 16) / 8;

/// First byte of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Gossip,
    Credits,
    Prompts,
    Leaving,
}

impl Kind {
    pub(crate) fn byte(self) -> u8 {
        match self {
            Self::Gossip => 0,
            Self::Credits => 1,
            Self::Prompts => 2,
            Self::Leaving => 3,
        }
    }

    pub(crate) fn of(byte: u8) -> Option<Self> {
        [Self::Gossip, Self::Credits, Self::Prompts, Self::Leaving]
            .into_iter()
            .find(|kind| kind.byte() == byte)
    }
}

/// A peer's load on one endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CreditEntry {
    pub(crate) endpoint: u64,
    pub(crate) credit: Credit,
}

/// Blocks that a peer sent to one endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PromptEntry {
    pub(crate) endpoint: u64,
    /// The first block is known from an earlier message, and what is before it too.
    pub(crate) continues: bool,
    pub(crate) hashes: Vec<BlockHash>,
}

/// Fills messages, one after the other.
#[derive(Debug)]
pub(crate) struct Writer {
    kind: Kind,
    number: u64,
    messages: Vec<Vec<u8>>,
    messages_max: usize,
}

impl Writer {
    /// * `span_ms`: what changed, changed within this time.
    pub(crate) fn credits(span_ms: u64, messages_max: usize) -> Self {
        Self { kind: Kind::Credits, number: span_ms, messages: Vec::new(), messages_max }
    }

    pub(crate) fn prompts(block_tokens: u32, messages_max: usize) -> Self {
        let number = u64::from(block_tokens);
        Self { kind: Kind::Prompts, number, messages: Vec::new(), messages_max }
    }

    /// `false`: no room is left, and nothing was written.
    pub(crate) fn credit(&mut self, entry: &CreditEntry) -> bool {
        let Some(message) = self.room(8 + 4 * 10) else { return false };
        message.extend_from_slice(&entry.endpoint.to_le_bytes());
        push(message, u64::from(entry.credit.requests));
        push(message, u64::from(entry.credit.prefilling));
        push(message, entry.credit.prefill_tokens);
        push(message, entry.credit.tokens_ahead);
        true
    }

    /// * `hashes`: at most [`BLOCKS_MAX`].
    pub(crate) fn prompt(&mut self, endpoint: u64, continues: bool, hashes: &[BlockHash]) -> bool {
        let hashes = &hashes[..hashes.len().min(BLOCKS_MAX)];
        let Some(message) = self.room(8 + 2 + 8 * hashes.len()) else { return false };
        message.extend_from_slice(&endpoint.to_le_bytes());
        push(message, (hashes.len() as u64) << 1 | u64::from(continues));
        for hash in hashes {
            message.extend_from_slice(&hash.0.to_le_bytes());
        }
        true
    }

    /// A message without entries, if there is none yet: a sign of life.
    pub(crate) fn at_least_one(&mut self) {
        if self.messages.is_empty() {
            self.begin();
        }
    }

    pub(crate) fn finish(self) -> Vec<Vec<u8>> {
        self.messages
    }

    fn room(&mut self, bytes: usize) -> Option<&mut Vec<u8>> {
        let has_room =
            self.messages.last().is_some_and(|last| last.len() + bytes <= MESSAGE_BYTES_MAX);
        if !has_room {
            if self.messages.len() >= self.messages_max {
                return None;
            }
            self.begin();
        }
        self.messages.last_mut()
    }

    fn begin(&mut self) {
        let mut message = Vec::with_capacity(MESSAGE_BYTES_MAX);
        message.push(self.kind.byte());
        push(&mut message, self.number);
        self.messages.push(message);
    }
}

/// Reads a message from its second byte on. Every step is `None` where it is not well formed.
#[derive(Debug)]
pub(crate) struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    pub(crate) fn new(rest: &'a [u8]) -> Self {
        Self(rest)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn number(&mut self) -> Option<u64> {
        let mut number = 0;
        for at in 0..10 {
            let (byte, rest) = self.0.split_first()?;
            self.0 = rest;
            let bits = u64::from(byte & 0x7f);
            number |= bits.checked_shl(7 * at).filter(|shifted| shifted >> (7 * at) == bits)?;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }

    pub(crate) fn credit(&mut self) -> Option<CreditEntry> {
        let endpoint = self.word()?;
        let credit = Credit {
            requests: u32::try_from(self.number()?).ok()?,
            prefilling: u32::try_from(self.number()?).ok()?,
            prefill_tokens: self.number()?,
            tokens_ahead: self.number()?,
        };
        Some(CreditEntry { endpoint, credit })
    }

    pub(crate) fn prompt(&mut self) -> Option<PromptEntry> {
        let endpoint = self.word()?;
        let number = self.number()?;
        let count = usize::try_from(number >> 1).ok()?;
        let (hashes, rest) = self.0.split_at_checked(count.checked_mul(8)?)?;
        self.0 = rest;
        let hash = |bytes: &[u8]| Some(BlockHash(u64::from_le_bytes(bytes.try_into().ok()?)));
        let hashes = hashes.chunks_exact(8).filter_map(hash).collect();
        Some(PromptEntry { endpoint, continues: number & 1 == 1, hashes })
    }

    fn word(&mut self) -> Option<u64> {
        let (bytes, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u64::from_le_bytes(*bytes))
    }
}

fn push(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}
