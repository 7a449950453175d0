//! `dynamo-kv-router`, the index of NVIDIA Dynamo: `ConcurrentRadixTreeCompressed`.
//!
//! Its tree is changed by worker threads only, which take events from a channel; readers go into
//! the tree themselves. One such thread here, as there is one writer. What a record costs includes
//! the channel.

use std::sync::Arc;

use anyhow::{Result, anyhow};
use dynamo_kv_router::indexer::concurrent_radix_tree_compressed::ConcurrentRadixTreeCompressed;
use dynamo_kv_router::indexer::{SyncIndexer, WorkerTask};
use dynamo_kv_router::protocols::{
    ExternalSequenceBlockHash, KvCacheEvent, KvCacheEventData, KvCacheStoreData,
    KvCacheStoredBlockData, LocalBlockHash, RouterEvent,
};
use tokio::sync::oneshot;

use super::{Index, Read, Write};

/// Events on their way to the worker thread; few, so that a writer cannot run far ahead.
const QUEUE: usize = 4;

pub struct Dynamo {
    tree: Arc<ConcurrentRadixTreeCompressed>,
}

impl Dynamo {
    pub fn new() -> Self {
        Self { tree: Arc::new(ConcurrentRadixTreeCompressed::new()) }
    }
}

impl Index for Dynamo {
    fn writer(&self) -> Result<Box<dyn Write + Send + '_>> {
        let (tasks, inbox) = flume::bounded(QUEUE);
        let tree = Arc::clone(&self.tree);
        let thread = std::thread::spawn(move || tree.worker(inbox, None));
        Ok(Box::new(Writer { tasks, thread: Some(thread), event_id: 0, next: None }))
    }

    fn reader(&self) -> Box<dyn Read + '_> {
        Box::new(Reader { tree: &self.tree, hashes: Vec::new() })
    }
}

struct Writer {
    tasks: flume::Sender<WorkerTask>,
    thread: Option<std::thread::JoinHandle<Result<()>>>,
    event_id: u64,
    next: Option<RouterEvent>,
}

impl Write for Writer {
    fn prepare(&mut self, endpoint: usize, blocks: &[u64]) -> Result<()> {
        self.event_id += 1;
        let blocks = blocks.iter().map(|block| KvCacheStoredBlockData {
            block_hash: ExternalSequenceBlockHash(*block),
            tokens_hash: LocalBlockHash(*block),
            mm_extra_info: None,
        });
        let stored =
            KvCacheStoreData { parent_hash: None, start_position: None, blocks: blocks.collect() };
        let data = KvCacheEventData::Stored(stored);
        let event = KvCacheEvent { event_id: self.event_id, data, dp_rank: 0 };
        self.next = Some(RouterEvent::new(endpoint as u64, event));
        Ok(())
    }

    fn store(&mut self) -> Result<()> {
        let event = self.next.take().ok_or_else(|| anyhow!("no prompt was prepared"))?;
        let sent = self.tasks.send(WorkerTask::Event(event));
        sent.map_err(|_| anyhow!("Dynamo's worker thread has ended"))
    }

    fn settle(&mut self) -> Result<()> {
        let (done, wait) = oneshot::channel();
        let sent = self.tasks.send(WorkerTask::Flush(done));
        sent.map_err(|_| anyhow!("Dynamo's worker thread has ended"))?;
        wait.blocking_recv().map_err(|_| anyhow!("Dynamo's worker thread has ended"))
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        let _ = self.tasks.send(WorkerTask::Terminate);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

struct Reader<'a> {
    tree: &'a ConcurrentRadixTreeCompressed,
    hashes: Vec<LocalBlockHash>,
}

impl Read for Reader<'_> {
    fn prepare(&mut self, blocks: &[u64]) {
        self.hashes.clear();
        self.hashes.extend(blocks.iter().map(|block| LocalBlockHash(*block)));
    }

    fn best(&mut self) -> Option<(usize, u32)> {
        let matches = self.tree.find_matches(&self.hashes, false);
        let best = matches.scores.iter().max_by_key(|(_, blocks)| **blocks);
        best.map(|(worker, blocks)| (worker.worker_id as usize, *blocks))
    }
}
