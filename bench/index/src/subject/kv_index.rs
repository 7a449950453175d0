//! `kv-index`, the index of smg and of SGLang's router: `ChainIndex`, which smg uses for KV events.
//!
//! Runs of blocks in a tree, with a bitset of holders for each run; beside it a map for each worker
//! from block to place, which the one who records owns.

use anyhow::{Result, anyhow};
use kv_index::{ChainBlockMap, ChainIndex, ContentHash, SequenceHash, StoredBlock};

use super::{Index, Read, Write};

pub struct KvIndex {
    index: ChainIndex,
    workers: Vec<u32>,
}

impl KvIndex {
    pub fn new(endpoints: usize) -> Result<Self> {
        let index = ChainIndex::with_max_workers(endpoints);
        let intern = |endpoint| {
            let id = index.intern_worker(&format!("http://endpoint-{endpoint}:8000"));
            id.map_err(|error| anyhow!("no room for endpoint {endpoint}: {error:?}"))
        };
        let workers = (0..endpoints).map(intern).collect::<Result<_>>()?;
        Ok(Self { index, workers })
    }
}

impl Index for KvIndex {
    fn writer(&self) -> Result<Box<dyn Write + Send + '_>> {
        let maps = self.workers.iter().map(|_| ChainBlockMap::new()).collect();
        Ok(Box::new(Writer { index: self, maps, endpoint: 0, blocks: Vec::new() }))
    }

    fn reader(&self) -> Box<dyn Read + '_> {
        Box::new(Reader { index: self, hashes: Vec::new() })
    }
}

struct Writer<'a> {
    index: &'a KvIndex,
    maps: Vec<ChainBlockMap>,
    endpoint: usize,
    blocks: Vec<StoredBlock>,
}

impl Write for Writer<'_> {
    fn prepare(&mut self, endpoint: usize, blocks: &[u64]) -> Result<()> {
        self.endpoint = endpoint;
        self.blocks.clear();
        self.blocks.extend(blocks.iter().map(|block| StoredBlock {
            seq_hash: SequenceHash(*block),
            content_hash: ContentHash(*block),
        }));
        Ok(())
    }

    fn store(&mut self) -> Result<()> {
        let (worker, map) = (self.index.workers[self.endpoint], &mut self.maps[self.endpoint]);
        let stored = self.index.index.apply_stored(worker, &self.blocks, None, map);
        stored.map_err(|error| anyhow!("kv-index refused blocks: {error:?}"))
    }

    fn settle(&mut self) -> Result<()> {
        Ok(())
    }
}

struct Reader<'a> {
    index: &'a KvIndex,
    hashes: Vec<u64>,
}

impl Read for Reader<'_> {
    fn prepare(&mut self, blocks: &[u64]) {
        self.hashes.clear();
        self.hashes.extend_from_slice(blocks);
    }

    fn best(&mut self) -> Option<(usize, u32)> {
        let mut best: Option<(u32, u32)> = None;
        let report = |worker, blocks| {
            if best.is_none_or(|(_, most)| blocks > most) {
                best = Some((worker, blocks));
            }
        };
        self.index.index.score_into(&self.hashes, |hash| *hash, false, report);
        best.map(|(worker, blocks)| (worker as usize, blocks))
    }
}
