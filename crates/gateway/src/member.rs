//! An endpoint as the gateway knows it, shared by all pools that contain it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

use sched::EndpointState;
use telemetry::EndpointGauges;
use tokio::sync::Notify;
use types::{Endpoint, EngineKind};

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
    detected: AtomicU8,
    wake: Notify,
    dozing: AtomicBool,
    doubt: Notify,
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
            detected: AtomicU8::new(0),
            wake: Notify::new(),
            dozing: AtomicBool::new(false),
            doubt: Notify::new(),
        }
    }

    /// The engine that the configuration names, else the one that its metrics gave away.
    pub fn engine(&self) -> EngineKind {
        self.engine.unwrap_or_else(|| {
            let at = usize::from(self.detected.load(Ordering::Relaxed));
            ENGINES.get(at).copied().unwrap_or_default()
        })
    }

    pub(crate) fn set_engine(&self, engine: EngineKind) {
        let at = ENGINES.iter().position(|known| *known == engine).unwrap_or(0);
        self.detected.store(u8::try_from(at).unwrap_or(0), Ordering::Relaxed);
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
