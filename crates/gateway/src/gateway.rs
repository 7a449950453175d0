//! What all requests share.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use arc_swap::{ArcSwap, Guard};
use config::{Additions, Document, Spec};
use engines::models::ServedModel;
use openai::Body;
use prefix::{BlockHash, PrefixIndex};
use telemetry::{AccessLog, Metrics, Recorder, Tracer};
use tokio::sync::{Notify, watch};
use types::{EndpointAddress, PoolName};

use crate::admission::{Admission, FlowClock};
use crate::authentication::Door;
use crate::catalog::{Catalog, Target};
use crate::clusters::Clusters;
use crate::decisions::Decisions;
use crate::directory::{Directory, Found, Policy};
use crate::exchange::placement::{self, PromptView};
use crate::live::Live;
use crate::member::Member;
use crate::peers::Peering;
use crate::rate_limits::RateLimits;
use crate::templates::TemplateDesk;
use crate::{Refusal, RequestId};

/// Endpoints up to which each one's news reach the catalog at once.
const REBUILT_AT_ONCE_MAX: usize = 64;

/// The state of one gateway process.
pub struct Gateway {
    catalog: ArcSwap<Catalog>,
    /// What holds: the document with what resources add.
    spec: ArcSwap<Spec>,
    written: Mutex<Written>,
    directory: Mutex<Directory>,
    /// Counts changes of membership, for those who watch endpoints.
    members_changed: watch::Sender<u64>,
    /// Set off when an endpoint serves other models than it did.
    served_news: Notify,
    pub metrics: Metrics,
    pub(crate) access_log: AccessLog,
    pub(crate) index: PrefixIndex,
    pub(crate) decisions: Decisions,
    pub(crate) live: Live,
    pub(crate) recorder: OnceLock<Recorder>,
    pub(crate) tracer: OnceLock<Tracer>,
    pub(crate) templates: TemplateDesk,
    pub(crate) body_limits: openai::Limits,
    pub(crate) peering: OnceLock<Peering>,
    pub(crate) flow_clock: FlowClock,
    pub(crate) rate_limits: RateLimits,
    clusters: OnceLock<Arc<Clusters>>,
    /// Held by copies of requests.
    pub(crate) copy_bytes: Arc<AtomicU64>,
    process_key: u64,
    /// Fixed while we run: blocks of another size would not be found again.
    block_tokens: u32,
    pub(crate) door: Door,
    body_bytes: AtomicU64,
    draining: AtomicBool,
}

/// Where the spec in force comes from.
struct Written {
    document: Arc<Spec>,
    additions: Additions,
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
        let rate_limits = RateLimits::new(&spec, &metrics);
        let gateway = Arc::new(Self {
            catalog: ArcSwap::default(),
            spec: ArcSwap::new(spec.clone()),
            written: Mutex::new(Written { document: spec, additions: Additions::default() }),
            directory: Mutex::new(Directory::new(policy)),
            members_changed: watch::Sender::new(0),
            served_news: Notify::new(),
            metrics,
            access_log,
            index: PrefixIndex::new(prefix::Config { bytes_max }),
            decisions: Decisions::default(),
            live: Live::new(),
            recorder: OnceLock::new(),
            tracer: OnceLock::new(),
            templates: TemplateDesk::default(),
            body_limits: openai::Limits::default(),
            peering: OnceLock::new(),
            flow_clock: FlowClock::default(),
            rate_limits,
            clusters: OnceLock::new(),
            copy_bytes: Arc::default(),
            process_key: placement::process_key(),
            block_tokens,
            door: Door::default(),
            body_bytes: AtomicU64::new(0),
            draining: AtomicBool::new(false),
        });
        gateway.rebuild();
        gateway
    }

    /// Makes this gateway a router over clusters. To be called once, before traffic.
    pub fn use_clusters(&self, clusters: Arc<Clusters>) {
        clusters.seat(self);
        // Whoever came first stays: there is one caller.
        let _ = self.clusters.set(clusters);
    }

    /// The members, where this gateway is a router over clusters.
    pub fn clusters(&self) -> Option<&Arc<Clusters>> {
        self.clusters.get()
    }

    /// Traces requests from now on. Only the first call counts.
    pub fn trace_with(&self, tracer: Tracer) {
        // A second one would leave spans of the first without their parents.
        let _ = self.tracer.set(tracer);
    }

    /// Puts a new document in force. Requests under way go on with what they were given.
    pub fn apply(self: &Arc<Self>, document: &Document) {
        let mut written = self.written();
        written.document = Arc::new(document.spec.clone());
        self.enforce(&written);
    }

    /// Puts in force what resources of a cluster add to the document, in place of what they added before.
    /// Whether that changed anything.
    pub fn set_additions(self: &Arc<Self>, additions: Additions) -> bool {
        let mut written = self.written();
        let is_news = written.additions != additions;
        if is_news {
            written.additions = additions;
            self.enforce(&written);
        }
        is_news
    }

    /// The document alone, without what resources add.
    pub fn document(&self) -> Arc<Spec> {
        self.written().document.clone()
    }

    fn enforce(self: &Arc<Self>, written: &Written) {
        let spec = Arc::new(written.document.with(&written.additions));
        self.spec.store(spec.clone());
        self.rate_limits.apply(&spec, &self.metrics);
        self.rebuild();
    }

    fn written(&self) -> std::sync::MutexGuard<'_, Written> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts the endpoints in force that were found for each scheduler, in place of those found before.
    /// They join those that the document names. Whether that changed anything.
    pub fn set_found(self: &Arc<Self>, found: HashMap<PoolName, Arc<[Found]>>) -> bool {
        let is_news = self.directory().note_found(found);
        if is_news {
            self.rebuild();
        }
        is_news
    }

    /// Notes which models an endpoint serves.
    pub fn note_served(self: &Arc<Self>, address: &EndpointAddress, models: Vec<ServedModel>) {
        let news = self.directory().note_served(address, models);
        if news {
            self.rebuild();
        }
    }

    /// The same; where endpoints are many the catalog follows later, so that thousands that tell one after
    /// the other make it anew a few times, not thousands of times.
    pub(crate) fn hear_served(
        self: &Arc<Self>,
        address: &EndpointAddress,
        models: Vec<ServedModel>,
    ) {
        let mut directory = self.directory();
        let (is_news, are_many) =
            (directory.note_served(address, models), directory.len() > REBUILT_AT_ONCE_MAX);
        drop(directory);
        match is_news {
            true if are_many => self.served_news.notify_one(),
            true => self.rebuild(),
            false => {}
        }
    }

    /// Resolves when [`Self::hear_served`] has heard something new since the last time.
    pub(crate) async fn served_news(&self) {
        self.served_news.notified().await;
    }

    /// The queues of all pools.
    pub(crate) fn admissions(&self) -> Vec<Arc<Admission>> {
        self.directory().admissions()
    }

    pub(crate) fn rebuild(self: &Arc<Self>) {
        let spec = self.spec.load_full();
        let usage = &spec.observability.usage;
        self.metrics.usage().set_bounds(usage.tenants_max, usage.tenant_series_max);
        self.templates.set_pace(spec.observability.prefix_alarm.within);
        let mut directory = self.directory();
        let authorization = |source: Option<&_>| self.endpoint_authorization(source);
        let rebuilt = directory.rebuild(&spec, &self.metrics, &authorization);
        for slot in rebuilt.freed {
            self.index.clear(slot);
        }
        for warning in &rebuilt.warnings {
            tracing::warn!("{warning}");
        }
        self.catalog.store(Arc::new(rebuilt.catalog));
        let queues = directory.admissions();
        drop(directory);
        let now = telemetry::clock::now();
        rebuilt.dismissed.iter().for_each(|queue| queue.dismiss(self, now));
        // Endpoints may have come.
        queues.iter().for_each(|queue| queue.pump(self, now));
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

    /// Tells whenever endpoints have come or gone.
    pub fn members_changed(&self) -> watch::Receiver<u64> {
        self.members_changed.subscribe()
    }

    /// Ready: not draining, at least one pool has an endpoint, or a queue to wait for one, and the keys of
    /// each issuer of tokens were there once.
    pub fn is_ready(&self) -> bool {
        !self.is_draining()
            && self.waits_for_keys().is_none()
            && self.catalog().pools.iter().any(|pool| pool.takes_requests())
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

    /// Tokens of one prefix block; fixed while the process runs.
    pub fn block_tokens(&self) -> u32 {
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
        let own_key = self.process_key;
        placement::hash_prompt(
            self.peering.get().map_or(own_key, |peering| peering.hash_key),
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

    /// Bytes of body that are held now.
    pub(crate) fn body_bytes(&self) -> u64 {
        self.body_bytes.load(Ordering::Relaxed)
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
