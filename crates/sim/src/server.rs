//! One simulated server: an engine, the HTTP in front of it, and its faults.
//!
//! Three kinds of tasks share a [`Server`]: [`drive`] runs the engine in real time, [`listen`]
//! owns the listener and the connections, and each connection answers requests. The engine's lock
//! is held for a call, never across an await.

mod admin;
mod answer;
mod clock;
mod drive;
mod generation;
mod listen;
mod log;
mod manner;
mod models;
mod route;
mod sink;
mod stream;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;
use types::{AdapterId, EngineKind, Timestamp};

use crate::engine::{Engine, EngineSpec, EngineStats, Hardware, TABLE};
use crate::fault::{Fault, FaultKind, Faults};
use crate::fleet::{ServerSpec, StartError};
use crate::metrics::{self, Books};

pub(crate) use admin::control;
pub(crate) use drive::drive;
pub(crate) use listen::listen;
pub use log::{LogPage, LoggedRequest, Outcome};

use clock::Clock;
use generation::Streams;
use log::RequestLog;

/// Whether the listener is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Up,
    Down { until: Option<Instant> },
}

#[derive(Debug)]
pub(crate) struct Server {
    spec: ServerSpec,
    hardware: &'static Hardware,
    address: SocketAddr,
    clock: Clock,
    core: Mutex<Core>,
    /// Something was submitted or cancelled.
    wake: Notify,
    faults: Mutex<Faults>,
    log: RequestLog,
    mode: watch::Sender<Mode>,
    listening: watch::Sender<bool>,
}

/// What the engine's lock guards.
#[derive(Debug)]
struct Core {
    engine: Engine,
    streams: Streams,
    books: Books,
    /// Adapters that can be asked for, by name.
    adapters: BTreeMap<String, AdapterId>,
    next_id: u64,
    /// How often the process has died.
    deaths: u64,
}

impl Server {
    pub(crate) fn new(spec: ServerSpec, address: SocketAddr) -> Result<Self, StartError> {
        let hardware = Hardware::find(&spec.hardware).ok_or_else(|| StartError::Hardware {
            name: spec.hardware.clone(),
            known: TABLE.iter().map(|row| row.name).collect::<Vec<_>>().join(", "),
        })?;
        if matches!(spec.engine, EngineKind::LlamaCpp | EngineKind::Unknown) {
            return Err(StartError::Engine(spec.engine));
        }
        if !(spec.time_scale.is_finite() && spec.time_scale > 0.0) {
            return Err(StartError::TimeScale(spec.time_scale));
        }
        let clock = Clock::new(spec.time_scale);
        let core = Core::new(&spec, hardware, &clock, 0);
        Ok(Self {
            faults: Mutex::new(Faults::new(spec.seed)),
            core: Mutex::new(core),
            hardware,
            address,
            clock,
            wake: Notify::new(),
            log: RequestLog::default(),
            mode: watch::Sender::new(Mode::Up),
            listening: watch::Sender::new(true),
            spec,
        })
    }

    pub(crate) fn spec(&self) -> &ServerSpec {
        &self.spec
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn log(&self) -> &RequestLog {
        &self.log
    }

    pub(crate) fn stats(&self) -> EngineStats {
        self.core().engine.stats()
    }

    pub(crate) fn listening(&self) -> watch::Receiver<bool> {
        self.listening.subscribe()
    }

    fn core(&self) -> MutexGuard<'_, Core> {
        self.core.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn faults(&self) -> MutexGuard<'_, Faults> {
        self.faults.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Switches a fault on. Those about the process happen at once.
    pub(crate) fn inject(&self, fault: Fault) {
        match &fault.kind {
            FaultKind::Refuse => {
                let until = fault.duration_ms.map(after);
                self.mode.send_replace(Mode::Down { until });
            }
            FaultKind::Restart { down_ms } => self.die(*down_ms),
            FaultKind::UnloadAdapter { adapter } => self.core().unload(adapter),
            _ => {
                let page = self.metrics_page();
                self.faults().add(fault, Instant::now(), page);
            }
        }
    }

    pub(crate) fn heal(&self) {
        self.faults().clear();
        self.mode.send_if_modified(|mode| std::mem::replace(mode, Mode::Up) != Mode::Up);
    }

    /// The process ends and comes back `down_ms` later: connections closed, caches cold.
    fn die(&self, down_ms: u64) {
        let mut core = self.core();
        let (deaths, next_id) = (core.deaths + 1, core.next_id);
        *core = Core::new(&self.spec, self.hardware, &self.clock, deaths);
        core.next_id = next_id;
        drop(core);
        self.wake.notify_one();
        self.mode.send_replace(Mode::Down { until: Some(after(down_ms)) });
    }

    fn metrics_page(&self) -> Bytes {
        let core = self.core();
        let names = core.adapters.iter().map(|(name, id)| (*id, name.as_str())).collect();
        let identity = metrics::Identity {
            engine: self.spec.engine,
            model: &self.spec.model,
            spec: core.engine.spec(),
            adapters: &names,
        };
        Bytes::from(self.spec.quirks.silence(metrics::page(&identity, &core.books)))
    }
}

impl Core {
    fn new(spec: &ServerSpec, hardware: &Hardware, clock: &Clock, deaths: u64) -> Self {
        let gpu_slots = spec.max_loras.unwrap_or(if spec.adapters.is_empty() { 0 } else { 4 });
        let cpu_slots = spec.max_cpu_loras.unwrap_or(gpu_slots);
        let mut engine_spec = EngineSpec::new(spec.engine, hardware, gpu_slots, cpu_slots);
        let set = |value: Option<u32>, field: &mut u32| *field = value.unwrap_or(*field).max(1);
        set(spec.max_num_seqs, &mut engine_spec.sequences_max);
        set(spec.max_num_batched_tokens, &mut engine_spec.batched_tokens_max);
        set(spec.max_model_len, &mut engine_spec.model_len_max);
        let tokens = engine_spec.block_count.saturating_mul(engine_spec.block_size);
        set(spec.quirks.block_size, &mut engine_spec.block_size);
        engine_spec.block_count = (tokens / engine_spec.block_size).max(1);
        set(spec.block_count, &mut engine_spec.block_count);
        engine_spec.prefix_caching = spec.quirks.prefix_caching;
        engine_spec.queued_requests_max = spec.max_num_queued_reqs;
        let mut engine = Engine::new(engine_spec, spec.seed.wrapping_add(deaths));
        let adapters: BTreeMap<String, AdapterId> =
            spec.adapters.iter().map(|name| (name.clone(), AdapterId::of(name))).collect();
        for adapter in spec.adapters.iter().rev() {
            engine.fetch_adapter(AdapterId::of(adapter));
        }
        let stats = engine.stats();
        Self {
            books: Books::new(stats, clock.wall()),
            engine,
            streams: Streams::default(),
            adapters,
            next_id: 0,
            deaths,
        }
    }

    /// The adapter of this name can no longer be asked for.
    fn unload(&mut self, name: &str) {
        if let Some(id) = self.adapters.remove(name) {
            self.engine.forget_adapter(id);
        }
    }

    fn publish(&mut self, now: Timestamp, wall: f64) {
        let stats = self.engine.stats();
        self.books.publish(stats, now, wall);
    }
}

fn after(millis: u64) -> Instant {
    Instant::now() + Duration::from_millis(millis)
}

/// Shared by the tasks of one server.
type Shared = Arc<Server>;
