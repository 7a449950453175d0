//! Prompts are told once: of a conversation's next turn only what is new.

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::time::Duration;

use prefix::BlockHash;
use types::Timestamp;

use crate::message::{BLOCKS_MAX, PromptEntry, Writer};

/// A conversation is told from its beginning again after this time, for those who missed it.
const WHOLE_AGAIN: Duration = Duration::from_secs(60);
/// Ends of prompts that are remembered, about 24 bytes each; all are forgotten when there are more.
const ENDS_MAX: usize = 65_536;
/// How far from a prompt's end the end of an earlier one is looked for, blocks.
const LOOK_BACK: usize = 512;

/// Where prompts ended that the peers know as a whole.
#[derive(Debug, Default)]
pub(crate) struct Chains {
    /// By endpoint and last block: when it was told from its first block.
    ends: HashMap<(u64, BlockHash), Timestamp>,
}

impl Chains {
    /// Writes what peers do not know of a prompt; how many blocks, or `None` if there was no room.
    pub(crate) fn tell(
        &mut self,
        endpoint: u64,
        hashes: &[BlockHash],
        writer: &mut Writer,
        now: Timestamp,
    ) -> Option<usize> {
        let last = *hashes.last()?;
        let known = self.known(endpoint, hashes, now);
        if let Some((at, _)) = known
            && at + 1 == hashes.len()
        {
            return Some(0);
        }
        let (from, whole_at) = known.unwrap_or((0, now));
        let mut continues = known.is_some();
        let mut rest = &hashes[from..];
        let mut told = 0;
        loop {
            let part = &rest[..rest.len().min(BLOCKS_MAX)];
            if !writer.prompt(endpoint, continues, part) {
                return None;
            }
            told += part.len();
            if part.len() == rest.len() {
                break;
            }
            // The next part begins with this one's last block, so that nobody takes it for more
            // than it is who missed this one.
            rest = &rest[part.len() - 1..];
            continues = true;
        }
        self.note(endpoint, last, whole_at);
        Some(told)
    }

    /// A peer told this to all others.
    pub(crate) fn heard(&mut self, entry: &PromptEntry, now: Timestamp) {
        let (Some(first), Some(last)) = (entry.hashes.first(), entry.hashes.last()) else { return };
        let whole_at = match entry.continues {
            false => Some(now),
            true => self.ends.get(&(entry.endpoint, *first)).copied(),
        };
        if let Some(whole_at) = whole_at {
            self.note(entry.endpoint, *last, whole_at);
        }
    }

    /// A peer came that knows nothing yet.
    pub(crate) fn forget(&mut self) {
        self.ends.clear();
    }

    /// The last of these blocks that ends a prompt which the peers know, and when they were told.
    fn known(
        &self,
        endpoint: u64,
        hashes: &[BlockHash],
        now: Timestamp,
    ) -> Option<(usize, Timestamp)> {
        let from = hashes.len().saturating_sub(LOOK_BACK);
        hashes[from..].iter().enumerate().rev().find_map(|(at, hash)| {
            let whole_at = *self.ends.get(&(endpoint, *hash))?;
            (now.since(whole_at) < WHOLE_AGAIN).then_some((from + at, whole_at))
        })
    }

    fn note(&mut self, endpoint: u64, last: BlockHash, whole_at: Timestamp) {
        if self.ends.len() >= ENDS_MAX {
            self.ends.clear();
        }
        self.ends.insert((endpoint, last), whole_at);
    }
}
