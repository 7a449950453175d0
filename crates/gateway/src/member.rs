//! An endpoint as the gateway knows it, shared by all pools that contain it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};

use sched::{BusyBook, EndpointState};
use telemetry::EndpointGauges;
use tokio::sync::Notify;
use types::{Endpoint, EngineKind, Timestamp};

use crate::heard::Heard;
use crate::pool::Secret;
use crate::prediction::PredictionBook;
use crate::seen::Seen;

/// One endpoint: who it is, how it does, and how to wake whoever watches it.
#[derive(Debug)]
pub struct Member {
    pub endpoint: Endpoint,
    /// `host:port`, for `Host` headers, metrics and logs.
    pub authority: String,
    pub state: Arc<EndpointState>,
    /// Where its metrics are, below its address.
    pub metrics_path: String,
    /// The engine that the configuration names; `None`: found out from its metrics.
    pub engine: Option<EngineKind>,
    /// What it asks for, where it is not what all ask for.
    pub(crate) authorization: Option<Secret>,
    detected: AtomicU8,
    wake: Notify,
    dozing: AtomicBool,
    doubt: Notify,
    /// Tokens in one KV block and number of blocks, as last scraped; 0: not known.
    block_size_tokens: AtomicU32,
    block_count: AtomicU64,
    pub(crate) predictions: PredictionBook,
    /// It listed its models.
    pub(crate) listed: Heard,
    /// It answered a request.
    pub(crate) answered: Heard,
    pub(crate) seen: Seen,
    pub(crate) busy: BusyBook,
}

impl Member {
    pub(crate) fn new(
        endpoint: Endpoint,
        state: Arc<EndpointState>,
        metrics_path: String,
        engine: Option<EngineKind>,
    ) -> Self {
        Self {
            authority: endpoint.address.authority(),
            endpoint,
            state,
            metrics_path,
            engine,
            authorization: None,
            detected: AtomicU8::new(0),
            wake: Notify::new(),
            dozing: AtomicBool::new(false),
            doubt: Notify::new(),
            block_size_tokens: AtomicU32::new(0),
            block_count: AtomicU64::new(0),
            predictions: PredictionBook::default(),
            listed: Heard::default(),
            answered: Heard::default(),
            seen: Seen::default(),
            busy: BusyBook::default(),
        }
    }

    pub(crate) fn authorization(&self) -> Option<&str> {
        self.authorization.as_ref().map(|secret| &*secret.0)
    }

    /// The engine that the configuration names, else the one that its metrics gave away.
    pub fn engine(&self) -> EngineKind {
        self.engine.unwrap_or_else(|| {
            let at = usize::from(self.detected.load(Ordering::Relaxed));
            ENGINES.get(at).copied().unwrap_or_default()
        })
    }

    /// Looks at what its answers taught of its speed.
    pub(crate) fn look_at_speed(&self, now: Timestamp) {
        let speed = self.state.speed(now);
        if speed.prefill_samples > 0.0 {
            self.seen.note_prefill_speed(1000.0 / f64::from(speed.prefill_ms_per_token));
        }
    }

    pub(crate) fn set_engine(&self, engine: EngineKind) {
        let at = ENGINES.iter().position(|known| *known == engine).unwrap_or(0);
        self.detected.store(u8::try_from(at).unwrap_or(0), Ordering::Relaxed);
    }

    /// Tokens in one block of the engine's KV cache, and its number of blocks.
    pub(crate) fn blocks(&self) -> Option<(u32, u64)> {
        let size = self.block_size_tokens.load(Ordering::Relaxed);
        let count = self.block_count.load(Ordering::Relaxed);
        (size > 0 && count > 0).then_some((size, count))
    }

    pub(crate) fn set_blocks(&self, size_tokens: u32, count: u64) {
        self.block_size_tokens.store(size_tokens, Ordering::Relaxed);
        self.block_count.store(count, Ordering::Relaxed);
    }

    /// The endpoint did not know a model that it should serve: ask it anew.
    pub(crate) fn doubt_models(&self) {
        self.doubt.notify_one();
    }

    pub(crate) async fn models_doubted(&self) {
        self.doubt.notified().await;
    }

    /// A request came to an idle endpoint: its metrics are worth reading again soon.
    pub(crate) fn wake(&self) {
        // Relaxed: a lost race costs one scrape interval, never a request.
        if self.dozing.swap(false, Ordering::Relaxed) {
            self.wake.notify_one();
        }
    }

    /// Resolves when [`Self::wake`] is called. Only the watcher waits here.
    pub(crate) async fn woken(&self) {
        self.dozing.store(true, Ordering::Relaxed);
        self.wake.notified().await;
    }
}

const ENGINES: [EngineKind; 6] = [
    EngineKind::Unknown,
    EngineKind::Vllm,
    EngineKind::Sglang,
    EngineKind::Tgi,
    EngineKind::TensorRtLlm,
    EngineKind::LlamaCpp,
];

/// A member with its series in one pool.
#[derive(Clone, Debug)]
pub struct PoolMember {
    pub member: Arc<Member>,
    pub gauges: Arc<EndpointGauges>,
}
