//! Prompts that follow no spine far enough: the next of their kind makes a spine of them.

use types::PoolName;

use super::spine::common;
use crate::BlockHash;

/// Prompts kept. What comes again within so many strangers becomes a template; a template of a hundredth of
/// the traffic does so within seconds, and a rare one does not matter.
const PROMPTS_MAX: usize = 64;
/// Blocks that two prompts must share beyond what they share with a spine.
const STEP_MIN: usize = 2;

#[derive(Debug, Default)]
pub(super) struct Probation {
    prompts: Vec<(PoolName, Box<[BlockHash]>)>,
    next: usize,
}

impl Probation {
    /// The chain of an earlier prompt that this one shares clearly more with than with any spine, taken
    /// out, and how much; else the prompt is kept.
    ///
    /// * `shared`: blocks that it shares with the nearest spine.
    pub(super) fn meet(
        &mut self,
        pool: &PoolName,
        hashes: &[BlockHash],
        shared: usize,
    ) -> Option<(Box<[BlockHash]>, usize)> {
        let first = hashes.first()?;
        let alike = self.prompts.iter().enumerate();
        let alike = alike.filter(|(_, (owner, chain))| chain[0] == *first && owner == pool);
        let best = alike.map(|(at, (_, chain))| (at, common(chain, hashes)));
        if let Some((at, length)) = best.max_by_key(|(_, length)| *length)
            && length >= (shared + STEP_MIN).max(super::BLOCKS_MIN)
        {
            let (_, chain) = self.prompts.swap_remove(at);
            return Some((chain, length));
        }
        let prompt = (pool.clone(), Box::from(hashes));
        if self.prompts.len() < PROMPTS_MAX {
            self.prompts.push(prompt);
        } else {
            self.next = (self.next + 1) % PROMPTS_MAX;
            self.prompts[self.next] = prompt;
        }
        None
    }
}
