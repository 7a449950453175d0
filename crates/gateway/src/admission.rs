//! Who goes to a pool now, and who waits: the queue of one pool, and what moves it.
//!
//! A request that finds room goes at once. Any other waits in the queue ([`flow::Queue`]) and is called when
//! capacity frees: a request ended, a scrape told more, an endpoint came. Whoever sees that happen
//! calls [`Admission::pump`]; nothing polls. Calls leave the lock before anybody is woken.

mod entitlement;
mod refusals;
mod revocation;
mod settings;
#[cfg(test)]
mod tests;
mod time;
mod turn;
mod view;

use std::fmt;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use config::FlowControl;
use flow::{Dispatched, Evicted, FlowKey, Queue, Ticket, Work};
use sched::saturation::Room;
use telemetry::PoolMetrics;
use telemetry::metrics::FlowMetrics;
use telemetry::metrics::labels::Band;
use tokio::sync::oneshot;
use types::{PoolName, Standing, Timestamp};

pub(crate) use entitlement::{Entitlement, is_unknown_objective, priority_of};
pub(crate) use refusals::{late, refused as refused_by};
pub use revocation::Revocation;
pub(crate) use time::{FlowClock, keep};
use turn::Called;
pub use turn::{Grant, Turn};
pub use view::BandView;

use crate::{Gateway, Pool, Refusal};

/// Requests that are called between two looks at the pool.
const CALLED_AT_ONCE_MAX: usize = 64;

/// The queue of one pool. Survives changes of the catalog.
pub(crate) struct Admission {
    pool: PoolName,
    metrics: Arc<PoolMetrics>,
    state: Mutex<State>,
    /// Requests in the queue; read without the lock by those who only want to know whether to pump.
    waiting: AtomicUsize,
    /// Requests that may go and are on no endpoint's account yet.
    granted: AtomicU32,
}

struct State {
    settings: FlowControl,
    queue: Queue<oneshot::Sender<Called>>,
    dispatched: Dispatched<Arc<Revocation>>,
}

impl fmt::Debug for Admission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Admission").field("pool", &self.pool).finish_non_exhaustive()
    }
}

/// What came of asking for leave.
pub(crate) enum Asked {
    Go(Grant),
    Wait(Turn),
}

impl Admission {
    pub(crate) fn new(pool: PoolName, settings: FlowControl, metrics: Arc<PoolMetrics>) -> Self {
        metrics.flow.get_or_init(FlowMetrics::default);
        let queue = Queue::new(settings::queue_config(&settings));
        Self {
            pool,
            metrics,
            state: Mutex::new(State { settings, queue, dispatched: Dispatched::default() }),
            waiting: AtomicUsize::new(0),
            granted: AtomicU32::new(0),
        }
    }

    /// Requests that wait here.
    pub(crate) fn queued(&self) -> u32 {
        u32::try_from(self.waiting.load(Ordering::Relaxed)).unwrap_or(u32::MAX)
    }

    /// Puts other settings in force; what waits goes on waiting.
    pub(crate) fn apply(&self, settings: &FlowControl) {
        let mut state = self.lock();
        if state.settings != *settings {
            state.queue.set_config(settings::queue_config(settings));
            state.settings = settings.clone();
        }
    }

    /// A panic elsewhere leaves the queue as whole as its own operations do.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn flow_metrics(&self) -> &FlowMetrics {
        self.metrics.flow.get_or_init(FlowMetrics::default)
    }

    /// Lets a request go, or queues it.
    pub(crate) fn ask(
        self: &Arc<Self>,
        gateway: &Arc<Gateway>,
        work: Work,
        room: &Room,
        now: Timestamp,
    ) -> Result<Asked, Refusal> {
        let priority = work.flow.priority;
        let mut state = self.lock();
        state.queue.has_endpoints(room.has_endpoints, now);
        let saturation = room.saturation_after(self.granted.load(Ordering::Relaxed));
        if let Some(standing) = state.queue.pass(&work, saturation, now) {
            drop(state);
            self.count_dispatched(&work.flow, standing, Duration::ZERO);
            return Ok(Asked::Go(Grant::new(gateway, self, &work, standing, Duration::ZERO)));
        }
        let mut evicted = Vec::new();
        let (called, receiver) = oneshot::channel();
        let offered = state.queue.offer(work, called, saturation, now, &mut evicted);
        self.waiting.store(state.queue.len(), Ordering::Relaxed);
        if offered.is_ok() {
            gateway.flow_clock.expect(state.queue.next_expiry());
        }
        drop(state);
        self.send_away(evicted);
        match offered {
            Ok(ticket) => {
                let turn =
                    Turn { admission: self.clone(), ticket, called: receiver, is_over: false };
                self.pump(gateway, now);
                self.revoke_for(priority);
                Ok(Asked::Wait(turn))
            }
            Err(refused) => Err(refusals::refused(&refused, &self.pool, priority)),
        }
    }

    /// Calls all that may go now.
    pub(crate) fn pump(self: &Arc<Self>, gateway: &Arc<Gateway>, now: Timestamp) {
        while self.waiting.load(Ordering::Relaxed) > 0 {
            let Some(room) = self.room(gateway, now) else { return };
            let mut called = Vec::new();
            let mut state = self.lock();
            state.queue.has_endpoints(room.has_endpoints, now);
            while called.len() < CALLED_AT_ONCE_MAX {
                let saturation = room.saturation_after(self.granted.load(Ordering::Relaxed));
                let Some(next) = state.queue.next(saturation, now) else { break };
                let grant = Grant::new(gateway, self, &next.work, next.standing, next.waited);
                called.push((next.payload, grant, next.work.flow));
            }
            self.waiting.store(state.queue.len(), Ordering::Relaxed);
            drop(state);
            let is_last = called.len() < CALLED_AT_ONCE_MAX;
            let mut some_left = false;
            for (caller, grant, flow) in called {
                let (waited, standing) = (grant.waited, grant.standing);
                match caller.send(Called::Go(grant)) {
                    Ok(()) => self.count_dispatched(&flow, standing, waited),
                    // Its client left just now: somebody else may go.
                    Err(Called::Go(grant)) => {
                        grant.returned();
                        some_left = true;
                    }
                    Err(Called::Out(_)) => {}
                }
            }
            if is_last && !some_left {
                return;
            }
        }
    }

    /// `None`: the pool is served no longer, see [`Self::dismiss`].
    fn room(&self, gateway: &Arc<Gateway>, now: Timestamp) -> Option<Room> {
        let catalog = gateway.catalog();
        let pool = catalog.pools.iter().find(|pool| pool.name == self.pool)?;
        Some(room_of(pool, now))
    }

    fn count_dispatched(&self, flow: &FlowKey, standing: Standing, waited: Duration) {
        let (metrics, band) = (self.flow_metrics(), Band::from(flow.priority));
        metrics.dispatched.of(band).inc();
        if standing == Standing::Beyond {
            metrics.dispatched_beyond.of(band).inc();
        }
        metrics.queue_duration.of(band).observe(waited);
    }

    /// Takes a request out whose client left.
    fn cancel(&self, ticket: Ticket) {
        let mut state = self.lock();
        state.queue.cancel(ticket);
        self.waiting.store(state.queue.len(), Ordering::Relaxed);
    }

    /// A request that had leave came to its end.
    ///
    /// * `used`: tokens that it really took, if an endpoint had it and said so.
    pub(crate) fn ended(
        self: &Arc<Self>,
        gateway: &Arc<Gateway>,
        flow: &FlowKey,
        estimated: u32,
        used: Option<u32>,
        now: Timestamp,
    ) {
        let mut state = self.lock();
        if let Some(used) = used {
            state.queue.charge(flow, estimated, used, now);
        }
        state.queue.drained(flow, estimated, now);
        drop(state);
        self.pump(gateway, now);
    }

    /// A request that had leave was not sent.
    fn unsent(&self, flow: &FlowKey, tokens: u32, now: Timestamp) {
        self.lock().queue.unsent(flow, tokens, now);
    }

    fn send_away(&self, evicted: Vec<Evicted<oneshot::Sender<Called>>>) {
        for one in evicted {
            let refusal = refusals::evicted(one.why, &self.pool, one.retry_after);
            // An error: its client left just now.
            let _ = one.payload.send(Called::Out(Box::new(refusal)));
        }
    }

    /// Tells those whose time is over. When to look again.
    pub(crate) fn expire(&self, now: Timestamp) -> Option<Timestamp> {
        let mut expired = Vec::new();
        let mut state = self.lock();
        state.queue.expired(now, &mut expired);
        self.waiting.store(state.queue.len(), Ordering::Relaxed);
        let next = state.queue.next_expiry();
        drop(state);
        for one in expired {
            let waited = now.since(one.work.received);
            let refusal = refusals::expired(one.why, &self.pool, waited, one.retry_after);
            let _ = one.payload.send(Called::Out(Box::new(refusal)));
        }
        next
    }

    /// Nobody queues here any more: all that waits goes now, to a pool that may be gone by then, which
    /// the choice of an endpoint finds out.
    pub(crate) fn dismiss(self: &Arc<Self>, gateway: &Arc<Gateway>, now: Timestamp) {
        let mut called = Vec::new();
        let mut state = self.lock();
        state.queue.has_endpoints(true, now);
        while let Some(next) = state.queue.next(0.0, now) {
            let grant = Grant::new(gateway, self, &next.work, next.standing, next.waited);
            called.push((next.payload, grant));
        }
        self.waiting.store(state.queue.len(), Ordering::Relaxed);
        drop(state);
        for (caller, grant) in called {
            // An error: its client left just now.
            let _ = caller.send(Called::Go(grant));
        }
    }

    fn grant(&self) {
        self.granted.fetch_add(1, Ordering::Relaxed);
    }

    fn grant_is_over(&self) {
        self.granted.fetch_sub(1, Ordering::Relaxed);
    }
}

/// How much more a pool takes now.
fn room_of(pool: &Pool, now: Timestamp) -> Room {
    let candidates = pool.members.iter().map(|member| member.member.state.observe(None, now));
    Room::of(&pool.settings.saturation, candidates)
}
