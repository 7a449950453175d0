//! KV blocks: reference counts, the prefix cache, and one LRU list of blocks nobody refers to.
//!
//! As vLLM V1 does it. A block whose count falls to 0 keeps its hash and goes to the end of the
//! free list; an allocation takes the head and forgets its hash; a hit takes a block out of the
//! list. Two blocks of equal content may exist at once (two requests computed it in parallel); the
//! cache knows the first, the other one is never found.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// Hash of a full block: its tokens, everything before them, adapter and cache salt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlockHash(pub u64);

/// A place in the pool.
pub(super) type Block = u32;

const NONE: Block = Block::MAX;

#[derive(Clone, Copy, Debug)]
struct Entry {
    /// Meaningless unless `is_named`.
    hash: BlockHash,
    is_named: bool,
    references: u32,
    /// Neighbours in the free list; meaningless while referenced.
    before: Block,
    after: Block,
}

/// All blocks of one engine.
#[derive(Debug)]
pub(super) struct BlockPool {
    total: u32,
    /// Blocks that were ever used. The others come first in the free list, which is not written
    /// out for them: an idle engine costs no memory.
    entries: Vec<Entry>,
    cached: HashMap<BlockHash, Block, BuildHasherDefault<Identity>>,
    head: Block,
    tail: Block,
    free: u32,
}

/// The hashes are already uniform, so the table uses them as they are.
#[derive(Debug, Default)]
pub(super) struct Identity(u64);

impl Hasher for Identity {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u64(&mut self, value: u64) {
        self.0 = value;
    }
}

impl BlockPool {
    pub(super) fn new(total: u32) -> Self {
        Self {
            total,
            entries: Vec::new(),
            cached: HashMap::default(),
            head: NONE,
            tail: NONE,
            free: total,
        }
    }

    pub(super) fn total(&self) -> u32 {
        self.total
    }

    /// Blocks that nobody refers to, cached ones included.
    pub(super) fn free(&self) -> u32 {
        self.free
    }

    /// Blocks whose content would be found again.
    pub(super) fn cached(&self) -> usize {
        self.cached.len()
    }

    /// The longest run of `hashes` from the start that is cached: its length, and how many of its
    /// blocks nobody refers to.
    pub(super) fn longest_hit(&self, hashes: impl Iterator<Item = BlockHash>) -> (u32, u32) {
        let (mut length, mut unreferenced) = (0, 0);
        for hash in hashes {
            let Some(block) = self.cached.get(&hash) else { break };
            length += 1;
            unreferenced += u32::from(self.entries[*block as usize].references == 0);
        }
        (length, unreferenced)
    }

    /// Refers to the cached block of this hash.
    pub(super) fn share(&mut self, hash: BlockHash) -> Option<Block> {
        let block = *self.cached.get(&hash)?;
        if self.entries[block as usize].references == 0 {
            self.unlink(block);
        }
        self.entries[block as usize].references += 1;
        Some(block)
    }

    /// Takes the block that was unused for longest. `None`: every block is referred to.
    pub(super) fn allocate(&mut self) -> Option<Block> {
        let fresh = self.entries.len() as u32;
        if fresh < self.total {
            self.entries.push(Entry {
                hash: BlockHash(0),
                is_named: false,
                references: 1,
                before: NONE,
                after: NONE,
            });
            self.free -= 1;
            return Some(fresh);
        }
        if self.head == NONE {
            return None;
        }
        let block = self.head;
        self.unlink(block);
        let entry = &mut self.entries[block as usize];
        entry.references = 1;
        if std::mem::take(&mut entry.is_named) {
            self.cached.remove(&entry.hash);
        }
        Some(block)
    }

    /// Makes a full block findable. A second block of the same content stays nameless.
    pub(super) fn name(&mut self, block: Block, hash: BlockHash) {
        if let std::collections::hash_map::Entry::Vacant(vacant) = self.cached.entry(hash) {
            vacant.insert(block);
            let entry = &mut self.entries[block as usize];
            (entry.hash, entry.is_named) = (hash, true);
        }
    }

    /// Gives a request's blocks back, last first, so that the end of a prompt is evicted before
    /// its beginning.
    pub(super) fn release(&mut self, blocks: &mut Vec<Block>) {
        while let Some(block) = blocks.pop() {
            let entry = &mut self.entries[block as usize];
            entry.references -= 1;
            if entry.references == 0 {
                self.append(block);
            }
        }
    }

    fn append(&mut self, block: Block) {
        let tail = self.tail;
        let entry = &mut self.entries[block as usize];
        entry.before = tail;
        entry.after = NONE;
        match tail {
            NONE => self.head = block,
            tail => self.entries[tail as usize].after = block,
        }
        self.tail = block;
        self.free += 1;
    }

    fn unlink(&mut self, block: Block) {
        let Entry { before, after, .. } = self.entries[block as usize];
        match before {
            NONE => self.head = after,
            before => self.entries[before as usize].after = after,
        }
        match after {
            NONE => self.tail = before,
            after => self.entries[after as usize].before = before,
        }
        self.free -= 1;
    }

    /// Hashes of the free list, next to be evicted first.
    #[cfg(test)]
    pub(super) fn free_hashes(&self) -> Vec<Option<u64>> {
        let mut hashes = vec![None; self.total as usize - self.entries.len()];
        let mut at = self.head;
        while at != NONE {
            let entry = &self.entries[at as usize];
            hashes.push(entry.is_named.then_some(entry.hash.0));
            at = entry.after;
        }
        hashes
    }

    /// Checks the books against who holds what: every block is either in the free list, once, or
    /// held by as many holders as its count says; every cached hash names the block that bears it.
    #[cfg(test)]
    pub(super) fn audit<'a>(&self, held: impl Iterator<Item = &'a Vec<Block>>) {
        let mut references = vec![0_u32; self.entries.len()];
        for blocks in held {
            for block in blocks {
                references[*block as usize] += 1;
            }
        }
        let mut listed = vec![false; self.entries.len()];
        let (mut at, mut before, mut length) = (self.head, NONE, 0);
        while at != NONE {
            let entry = &self.entries[at as usize];
            assert!(
                !std::mem::replace(&mut listed[at as usize], true),
                "block {at} is listed twice"
            );
            assert_eq!(entry.before, before, "free list is torn at {at}");
            (before, at, length) = (at, entry.after, length + 1);
        }
        let fresh = self.total - self.entries.len() as u32;
        assert_eq!((length + fresh, self.tail), (self.free, before));
        for (block, entry) in self.entries.iter().enumerate() {
            assert_eq!(entry.references, references[block], "references of block {block}");
            assert_eq!(listed[block], references[block] == 0, "block {block} is free and in use");
            if entry.is_named {
                assert_eq!(self.cached.get(&entry.hash), Some(&(block as Block)), "block {block}");
            }
        }
        assert_eq!(self.cached.len(), self.entries.iter().filter(|entry| entry.is_named).count());
    }
}
