//! Ours, with room enough that nothing is evicted: the others do not evict by themselves.

use anyhow::Result;
use prefix::{BlockHash, Config, Matches, PrefixIndex};
use types::Slot;

use super::{Index, Read, Write};

/// The gateway's default.
const BYTES_MAX: usize = 256 << 20;

pub struct Wicketgate {
    index: PrefixIndex,
}

impl Wicketgate {
    pub fn new(endpoints: usize) -> Self {
        let index = PrefixIndex::new(Config { bytes_max: BYTES_MAX });
        for endpoint in 0..endpoints {
            index.set_capacity(slot(endpoint), u64::from(u32::MAX));
        }
        Self { index }
    }
}

fn slot(endpoint: usize) -> Slot {
    Slot(u16::try_from(endpoint).unwrap_or(u16::MAX))
}

impl Index for Wicketgate {
    fn writer(&self) -> Result<Box<dyn Write + Send + '_>> {
        Ok(Box::new(Writer { index: &self.index, slot: Slot(0), hashes: Vec::new() }))
    }

    fn reader(&self) -> Box<dyn Read + '_> {
        let (hashes, matches) = (Vec::new(), Matches::default());
        Box::new(Reader { index: &self.index, hashes, matches })
    }
}

struct Writer<'a> {
    index: &'a PrefixIndex,
    slot: Slot,
    hashes: Vec<BlockHash>,
}

impl Write for Writer<'_> {
    fn prepare(&mut self, endpoint: usize, blocks: &[u64]) -> Result<()> {
        self.slot = slot(endpoint);
        self.hashes.clear();
        self.hashes.extend(blocks.iter().map(|block| BlockHash(*block)));
        Ok(())
    }

    fn store(&mut self) -> Result<()> {
        self.index.record(self.slot, &self.hashes);
        Ok(())
    }

    fn settle(&mut self) -> Result<()> {
        Ok(())
    }
}

struct Reader<'a> {
    index: &'a PrefixIndex,
    hashes: Vec<BlockHash>,
    matches: Matches,
}

impl Read for Reader<'_> {
    fn prepare(&mut self, blocks: &[u64]) {
        self.hashes.clear();
        self.hashes.extend(blocks.iter().map(|block| BlockHash(*block)));
    }

    fn best(&mut self) -> Option<(usize, u32)> {
        self.index.longest_matches(&self.hashes, &mut self.matches);
        let best = self.matches.iter().max_by_key(|(_, blocks)| *blocks);
        best.map(|(slot, blocks)| (slot.index(), blocks))
    }
}
