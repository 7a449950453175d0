//! What all requests share.

use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::{ArcSwap, Guard};
use config::{Document, Spec};
use engines::models::ServedModel;
use openai::Body;
use prefix::{BlockHash, PrefixIndex};
use telemetry::{AccessLog, Metrics};
use tokio::sync::watch;
use types::EndpointAddress;

use crate::catalog::{Catalog, Target};
use crate::decisions::Decisions;
use crate::directory::{Directory, Policy};
use crate::exchange::placement::{self, PromptView};
use crate::member::Member;
use crate::{Refusal, RequestId};

/// The state of one gateway process.
pub struct Gateway {
    catalog: ArcSwap<Catalog>,
    spec: ArcSwap<Spec>,
    directory: Mutex<Directory>,
    /// Counts changes of membership, for those who watch endpoints.
    members_changed: watch::Sender<u64>,
    pub metrics: Metrics,
    pub(crate) access_log: AccessLog,
    pub(crate) index: PrefixIndex,
    pub(crate) decisions: Decisions,
    pub(crate) body_limits: openai::Limits,
    process_key: u64,
    /// Fixed while we run: blocks of another size would not be found again.
    block_tokens: u32,
    body_bytes: AtomicU64,
    draining: AtomicBool,
}

thread_local! {
    /// Buffers for block hashes, used again from request to request.
    static HASHES: RefCell<Vec<Vec<BlockHash>>> = const { RefCell::new(Vec::new()) };
}

/// Buffers that one thread keeps.
const HASH_BUFFERS_MAX: usize = 64;

impl Gateway {
    pub fn new(
        document: &Document,
        policy: Policy,
        metrics: Metrics,
        access_log: AccessLog,
    ) -> Arc<Self> {
        let spec = Arc::new(document.spec.clone());
        let block_tokens = spec.prefix_index.block_tokens.get();
        let bytes_max = usize::try_from(spec.prefix_index.bytes_max).unwrap_or(usize::MAX);
        let gateway = Arc::new(Self {
            catalog: ArcSwap::default(),
            spec: ArcSwap::new(spec),
            directory: Mutex::new(Directory::new(policy)),
            members_changed: watch::Sender::new(0),
            metrics,
            access_log,
            index: PrefixIndex::new(prefix::Config { bytes_max }),
            decisions: Decisions::default(),
            body_limits: openai::Limits::default(),
            process_key: placement::process_key(),
            block_tokens,
            body_bytes: AtomicU64::new(0),
            draining: AtomicBool::new(false),
        });
        gateway.rebuild();
        gateway
    }

    /// Puts a new document in force. Requests under way go on with what they were given.
    pub fn apply(&self, document: &Document) {
        self.spec.store(Arc::new(document.spec.clone()));
        self.rebuild();
    }

    /// Notes which models an endpoint serves.
    pub fn note_served(&self, address: &EndpointAddress, models: Vec<ServedModel>) {
        let news = self.directory().note_served(address, models);
        if news {
            self.rebuild();
        }
    }

    fn rebuild(&self) {
        let spec = self.spec.load_full();
        let mut directory = self.directory();
        let rebuilt = directory.rebuild(&spec, &self.metrics);
        for slot in rebuilt.freed {
            self.index.clear(slot);
        }
        for warning in &rebuilt.warnings {
            tracing::warn!("{warning}");
        }
        self.catalog.store(Arc::new(rebuilt.catalog));
        drop(directory);
        self.members_changed.send_modify(|changes| *changes += 1);
    }

    fn directory(&self) -> std::sync::MutexGuard<'_, Directory> {
        self.directory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn catalog(&self) -> Guard<Arc<Catalog>> {
        self.catalog.load()
    }

    pub fn spec(&self) -> Guard<Arc<Spec>> {
        self.spec.load()
    }

    /// All endpoints, in the order in which they came.
    pub fn members(&self) -> Vec<Arc<Member>> {
        self.directory().members()
    }

    pub(crate) fn members_changed(&self) -> watch::Receiver<u64> {
        self.members_changed.subscribe()
    }

    /// Ready: not draining, and at least one pool has an endpoint to send requests to.
    pub fn is_ready(&self) -> bool {
        !self.is_draining() && self.catalog().pools.iter().any(|pool| !pool.members.is_empty())
    }

    pub fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Relaxed)
    }

    pub fn start_draining(&self) {
        self.draining.store(true, Ordering::Relaxed);
    }

    /// Counts and logs a request that was refused before it became an exchange.
    pub fn count_refused(
        &self,
        refusal: &Refusal,
        id: Option<&RequestId>,
        method: &str,
        client: std::net::SocketAddr,
    ) {
        self.metrics.gateway().requests_refused.of(refusal.reason).inc();
        self.access_log.record(&telemetry::Entry {
            time: telemetry::clock::wall(),
            request_id: id.map_or("", RequestId::as_str),
            client: Some(client),
            method,
            status: refusal.status,
            component: Some(refusal.component.as_str()),
            code: Some(refusal.code),
            outcome: telemetry::metrics::labels::Outcome::ClientError,
            closed_by: telemetry::access_log::ClosedBy::Gateway,
            ..telemetry::Entry::default()
        });
    }

    pub(crate) fn block_tokens(&self) -> u32 {
        self.block_tokens
    }

    pub(crate) fn hash_prompt(
        &self,
        target: &Target,
        body: &[u8],
        said: &Body,
        session: Option<u64>,
        hashes: &mut Vec<BlockHash>,
    ) -> PromptView {
        placement::hash_prompt(
            self.process_key,
            self.block_tokens(),
            target,
            body,
            said,
            session,
            hashes,
        )
    }

    pub(crate) fn lend_hashes(&self) -> Vec<BlockHash> {
        HASHES.with_borrow_mut(Vec::pop).unwrap_or_default()
    }

    pub(crate) fn give_back_hashes(&self, mut hashes: Vec<BlockHash>) {
        if hashes.capacity() == 0 {
            return;
        }
        hashes.clear();
        HASHES.with_borrow_mut(|kept| {
            if kept.len() < HASH_BUFFERS_MAX {
                kept.push(hashes);
            }
        });
    }

    /// Holds `bytes` of body against the limit over all requests; `None` when it is reached.
    pub fn hold_body(self: &Arc<Self>, bytes: u64, memory_bytes: Option<u64>) -> Option<HeldBody> {
        let most = self.spec.load().limits.buffered_body_bytes(memory_bytes);
        let held = self.body_bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
        let hold = HeldBody { gateway: self.clone(), bytes };
        self.metrics.gateway().buffered_body_bytes.add(i64::try_from(bytes).unwrap_or(i64::MAX));
        (held <= most).then_some(hold)
    }
}

/// Bytes of body in memory; gives them back when dropped.
pub struct HeldBody {
    gateway: Arc<Gateway>,
    bytes: u64,
}

impl Drop for HeldBody {
    fn drop(&mut self) {
        self.gateway.body_bytes.fetch_sub(self.bytes, Ordering::Relaxed);
        let bytes = i64::try_from(self.bytes).unwrap_or(i64::MAX);
        self.gateway.metrics.gateway().buffered_body_bytes.add(-bytes);
    }
}
