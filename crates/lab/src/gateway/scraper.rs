//! Reads one endpoint's page, again and again.

use std::time::Duration;

use engines::cadence::{Cadence, Config as CadenceConfig, Outcome};
use sched::EndpointState;
use types::{EndpointId, EndpointMetrics, Timestamp};

use crate::policy::Scrapes;

/// How long the product believes a page at least, by its defaults: two idle intervals and a
/// time-out.
const STALE_MIN: Duration = Duration::from_secs(5);
/// From how many intervals on a rival takes a page for stale, and at least.
const RIVAL_STALE: (u32, Duration) = (3, Duration::from_secs(2));

pub(super) struct Scraper {
    rhythm: Rhythm,
    pub(super) due: Timestamp,
    begun: Option<Timestamp>,
    last: EndpointMetrics,
}

enum Rhythm {
    Cadence(Box<Cadence>),
    Every(Duration),
    Never,
}

impl Scraper {
    /// * `interval`: instead of the policy's own.
    pub(super) fn new(
        scrapes: Scrapes,
        interval: Option<Duration>,
        at: usize,
        endpoints: usize,
    ) -> Self {
        let (rhythm, due) = match scrapes {
            Scrapes::Never => (Rhythm::Never, Timestamp::ZERO),
            Scrapes::Staggered(own) => {
                let interval = interval.unwrap_or(own);
                let share = at as f64 / endpoints.max(1) as f64;
                (Rhythm::Every(interval), Timestamp::ZERO + interval.mul_f64(share))
            }
            Scrapes::Together(own) => (Rhythm::Every(interval.unwrap_or(own)), Timestamp::ZERO),
            Scrapes::Cadence => {
                let id = EndpointId(u32::try_from(at).unwrap_or(u32::MAX));
                let own = CadenceConfig::default();
                let busy = interval.unwrap_or(own.busy);
                let config = CadenceConfig { busy, idle: own.idle.max(busy), ..own };
                let mut cadence = Cadence::new(config, id);
                let due = cadence.first(Timestamp::ZERO);
                (Rhythm::Cadence(Box::new(cadence)), due)
            }
        };
        Self { rhythm, due, begun: None, last: EndpointMetrics::default() }
    }

    /// Whether a scrape ordered for `now` is still to be made; then it has begun.
    pub(super) fn begin(&mut self, now: Timestamp) -> bool {
        if self.begun.is_some() || self.due != now {
            return false;
        }
        self.begun = Some(now);
        true
    }

    /// Takes over a page, `None` if none came; gives when to scrape next.
    pub(super) fn end(
        &mut self,
        page: Option<EndpointMetrics>,
        state: &EndpointState,
        now: Timestamp,
    ) -> Timestamp {
        let begun = self.begun.take().unwrap_or(now);
        let outcome = match page {
            Some(page) => {
                state.record_scrape(&page, now, self.stale_after());
                let changed = page != self.last;
                self.last = page;
                Outcome::Good { changed }
            }
            None => {
                state.record_scrape_failure(now);
                Outcome::Failed
            }
        };
        self.due = match &mut self.rhythm {
            Rhythm::Cadence(cadence) => {
                cadence.after_scrape(now, outcome, state.in_flight(), now.since(begun))
            }
            Rhythm::Every(interval) => (begun + *interval).max(now),
            Rhythm::Never => now,
        };
        self.due
    }

    /// A request goes there: its page will change. The next scrape, if that moved it.
    pub(super) fn wake(&mut self, now: Timestamp) -> Option<Timestamp> {
        let Rhythm::Cadence(cadence) = &mut self.rhythm else { return None };
        if self.begun.is_some() {
            return None;
        }
        let due = cadence.woken(now).max(now);
        (std::mem::replace(&mut self.due, due) != due).then_some(due)
    }

    fn stale_after(&self) -> Duration {
        match &self.rhythm {
            Rhythm::Cadence(cadence) => cadence.stale_after().max(STALE_MIN),
            Rhythm::Every(interval) => (*interval * RIVAL_STALE.0).max(RIVAL_STALE.1),
            Rhythm::Never => Duration::ZERO,
        }
    }
}
