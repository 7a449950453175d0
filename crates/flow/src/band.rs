//! All flows of one priority.

use types::{Saturation, Standing, Timestamp};

use crate::config::{BandConfig, Ordering};
use crate::flows::Flows;
use crate::held::Held;
use crate::lately::Lately;
use crate::rates::Fading;
use crate::store::{Item, Store};

#[derive(Debug)]
pub(crate) struct Band {
    pub(crate) config: BandConfig,
    pub(crate) flows: Flows,
    pub(crate) held: Held,
    /// Refused, with a place kept.
    pub(crate) promised: Held,
    /// Tokens by which it lags behind its reserved share while it has work. See [`Self::account`].
    pub(crate) owed: f64,
    /// Tokens that were let in.
    pub(crate) arrivals: Fading,
    pub(crate) lately: Lately,
}

impl Band {
    pub(crate) fn new(config: BandConfig) -> Self {
        Self {
            flows: Flows::new(config.fairness),
            config,
            held: Held::default(),
            promised: Held::default(),
            owed: 0.0,
            arrivals: Fading::default(),
            lately: Lately::default(),
        }
    }

    pub(crate) fn has_work(&self) -> bool {
        self.held.requests > 0
    }

    /// Nothing queued, promised or remembered.
    pub(crate) fn is_idle(&self) -> bool {
        !self.has_work() && self.promised.requests == 0 && self.flows.is_forgotten()
    }

    pub(crate) fn is_below_ceiling(&self, saturation: f32) -> bool {
        saturation < self.config.ceiling.get()
    }

    /// A flow of it against its equal part.
    ///
    /// * `promised`: as what the request was refused before, if it came back when told to.
    /// * `is_below_higher`: a higher band asked lately.
    pub(crate) fn standing(
        &self,
        id: &str,
        promised: Option<Standing>,
        is_below_higher: bool,
        now: Timestamp,
    ) -> Standing {
        let is_promised_more = promised.is_some_and(|promised| promised != Standing::Beyond);
        let others = || self.lately.anybody_but(id, now);
        if !is_promised_more && others() && self.flows.is_beyond(id) {
            Standing::Beyond
        } else if is_below_higher {
            Standing::Lower
        } else {
            Standing::Within
        }
    }

    /// The item that goes next, if one may, and with what standing.
    pub(crate) fn first<T>(
        &self,
        store: &Store<T>,
        saturation: Saturation,
        is_below_higher: bool,
        now: Timestamp,
    ) -> Option<(u32, Standing)> {
        self.flows.first(|flow, place| {
            let promised = store.get(place).and_then(|item| item.returned);
            let standing = self.standing(flow.id(), promised, is_below_higher, now);
            self.is_below_ceiling(saturation.of(standing)).then_some(standing)
        })
    }

    pub(crate) fn is_due(&self) -> bool {
        self.config.reserved_share.get() > 0.0 && self.owed > 0.0 && self.has_work()
    }

    /// Keeps count of the reserved share: so much of every dispatch is owed to a band that has work.
    /// What it gets beyond that is no debt for later, or one that was alone for an hour would starve
    /// for the next.
    ///
    /// * `share`: the reserved one, scaled.
    /// * `own`: the dispatch was of this band.
    pub(crate) fn account(&mut self, share: f64, cost: f64, own: bool) {
        if !self.has_work() {
            self.owed = self.owed.min(0.0);
        } else {
            self.owed += share * cost;
        }
        if own {
            self.owed = (self.owed - cost).max(-cost);
        }
    }

    /// The item's place in its flow: smaller goes first.
    pub(crate) fn order_key<T>(&self, item: &Item<T>) -> u64 {
        let work = &item.work;
        let late = work.received + self.config.ttl;
        match self.config.ordering {
            Ordering::Fcfs => work.received.0,
            Ordering::Deadline => work.deadline.unwrap_or(late).0,
            Ordering::TtftTarget => work.ttft.map_or(late, |ttft| work.received + ttft).0,
        }
    }
}
