//! The queue of a pool.

mod dispatch;
mod end;
mod forecast;
mod offer;
mod preview;
mod reload;
mod stats;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use types::{Priority, Standing, Timestamp};

use crate::band::Band;
use crate::config::Config;
use crate::held::Held;
use crate::outcome::{Ended, Expiry};
use crate::promises::Promises;
use crate::rates::Capacity;
use crate::store::{Item, Store};
use crate::work::{FlowKey, Ticket, Work};
pub use preview::Preview;
pub use stats::BandStats;

/// Bands without anything in them that are kept for their rates.
const BANDS_KEPT_MAX: usize = 64;

/// All that waits for one pool.
///
/// * `T`: what wakes the request, or whatever else belongs to it. Given back exactly once: by
///   [`next`](Self::next), [`expired`](Self::expired), [`cancel`](Self::cancel) or as evicted.
/// * `saturation`, everywhere: share of the pool's capacity in use, 0 idle, 1 and more full; what is
///   no number counts as full.
///
/// Operations take O(log n) time in requests and flows and O(bands), unless they say more.
#[derive(Debug)]
pub struct Queue<T> {
    config: Config,
    store: Store<T>,
    bands: BTreeMap<Priority, Band>,
    held: Held,
    /// By [`Item::expiry`].
    expiries: BTreeSet<(Timestamp, u32)>,
    /// Met by [`Self::next`], to be given out by [`Self::expired`].
    overdue: Vec<Ended<T, Expiry>>,
    promises: Promises,
    capacity: Capacity,
    has_endpoints: bool,
    /// The latest instant seen.
    now: Timestamp,
}

/// A request that may go now.
#[derive(Debug)]
pub struct Dispatch<T> {
    pub ticket: Ticket,
    /// As offered; `received` is the instant of its first try.
    pub work: Work,
    /// As which it goes.
    pub standing: Standing,
    pub payload: T,
    /// Since it was offered.
    pub waited: Duration,
}

/// What a request would meet if it were queued now.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Forecast {
    /// Requests ahead of it, of its own and higher bands.
    pub position: u64,
    /// Expected wait until dispatch. `None`: nothing was dispatched yet that one could reckon with.
    pub wait: Option<Duration>,
}

impl<T> Queue<T> {
    pub fn new(config: Config) -> Self {
        Self {
            config,
            store: Store::new(),
            bands: BTreeMap::new(),
            held: Held::default(),
            expiries: BTreeSet::new(),
            overdue: Vec::new(),
            promises: Promises::new(),
            capacity: Capacity::default(),
            has_endpoints: true,
            now: Timestamp::ZERO,
        }
    }

    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Requests that wait.
    pub fn len(&self) -> usize {
        self.store.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Corrects what a flow is charged, once it is known what a request of it really took.
    ///
    /// * `estimated`: the [`Work::tokens`] that it was dispatched with.
    pub fn charge(&mut self, flow: &FlowKey, estimated: u32, used: u32, now: Timestamp) {
        let now = self.tick(now);
        let cost = |tokens: u32| f64::from(tokens.clamp(1, crate::work::TOKENS_MAX));
        let difference = cost(used) - cost(estimated);
        if difference != 0.0 {
            self.band(flow.priority).flows.charge(&flow.id, difference, now);
        }
    }

    /// A dispatched request of this flow ended and made room.
    ///
    /// * `tokens`: the [`Work::tokens`] that it was dispatched with, so that what drains is measured in
    ///   the same unit as what waits.
    pub fn drained(&mut self, flow: &FlowKey, tokens: u32, now: Timestamp) {
        self.unsent(flow, tokens, now);
        let now = self.now;
        let is_busy = self.is_busy();
        let tokens = u64::from(tokens.clamp(1, crate::work::TOKENS_MAX));
        self.capacity.completed(tokens, is_busy, now);
    }

    /// Lets time go by; gives the latest instant seen.
    fn tick(&mut self, now: Timestamp) -> Timestamp {
        self.now = self.now.max(now);
        let is_busy = self.is_busy();
        self.capacity.advance(is_busy, self.now);
        while let Some(promise) = self.promises.lapsed(self.now) {
            self.unpromise(&promise.flow, promise.held);
        }
        self.now
    }

    /// Work waits, and not for want of endpoints.
    fn is_busy(&self) -> bool {
        !self.is_empty() && self.has_endpoints
    }

    /// The band of a priority, made from its settings if it is not there.
    fn band(&mut self, priority: Priority) -> &mut Band {
        if !self.bands.contains_key(&priority) {
            if self.bands.len() >= BANDS_KEPT_MAX {
                self.bands.retain(|_, band| !band.is_idle());
            }
            let band = Band::new(self.config.band(priority).clone());
            self.bands.insert(priority, band);
        }
        // Never made here: it was just looked for.
        self.bands.entry(priority).or_insert_with(|| Band::new(Default::default()))
    }

    fn unpromise(&mut self, flow: &FlowKey, held: Held) {
        if let Some(band) = self.bands.get_mut(&flow.priority) {
            band.promised.take(held);
            band.flows.unpromise(&flow.id, held, self.now);
        }
    }

    /// Takes an item out of everything, other than to serve it.
    fn remove(&mut self, place: u32) -> Option<Item<T>> {
        let item = self.store.remove(place)?;
        self.expiries.remove(&(item.expiry(), place));
        self.held.take(item.held);
        if let Some(band) = self.bands.get_mut(&item.work.flow.priority) {
            band.held.take(item.held);
            band.flows.take(item.flow, (item.key, item.number), item.held, self.now);
        }
        Some(item)
    }
}
