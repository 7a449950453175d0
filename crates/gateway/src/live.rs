//! The state of everything, once a second, for as many who look as there are.
//!
//! Nothing is computed while nobody asks, save one row of the history a second. Who asks gets what was
//! computed last, unless it is older than a beat: so ten pages cost what one does.

mod history;
mod pulse;
#[cfg(test)]
mod tests;
mod view;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use bytes::Bytes;
use serde::Serialize;
use telemetry::clock;
use types::{PoolName, Timestamp};

use crate::catalog::Catalog;
use crate::{Gateway, Pool};
use history::{Columns, History, ROWS_MAX};
use pulse::{Meter, Totals};
use view::{GatewayNews, News, PoolNews, Who};

/// Time between two rows of the history, and between two beats of a fleet of usual size.
pub const BEAT: Duration = Duration::from_secs(1);
/// Endpoints for each second between two beats: the cost of looking is bounded, whatever the fleet.
const ENDPOINTS_PER_SECOND: usize = 5000;
/// A beat that comes this much early is still a new one: who asks each second is never told twice the same.
const SLACK: Duration = Duration::from_millis(100);
/// Rows of history in each beat.
const RECENT_ROWS: usize = 10;
/// Decisions in each beat.
const DECISIONS_MAX: usize = 32;

/// What one who looks gets.
#[derive(Clone, Debug)]
pub struct LiveAnswer {
    /// Names these bytes, with its quotes.
    pub etag: String,
    /// JSON.
    pub body: Bytes,
}

/// The last beat, and what it takes to make the next.
#[derive(Debug)]
pub(crate) struct Live(Mutex<State>);

#[derive(Debug)]
struct State {
    /// When the process began, milliseconds since 1970.
    boot: u64,
    began: Timestamp,
    history: History,
    fleet: Meter,
    sampled_at: Option<Timestamp>,
    meters: HashMap<PoolName, Meter>,
    shape: Shape,
    beats: u64,
    beat: Option<Beat>,
}

/// Who is there, as long as the catalog is the same.
#[derive(Debug)]
struct Shape {
    number: u64,
    catalog: Weak<Catalog>,
    who: Who,
}

#[derive(Debug)]
struct Beat {
    at: Timestamp,
    news: News,
    /// Written when they are first asked for.
    brief: Option<Bytes>,
    whole: Option<Bytes>,
}

/// Everything, for who has just come.
#[derive(Serialize)]
struct Whole<'a> {
    #[serde(flatten)]
    news: &'a News,
    who: &'a Who,
    history: Columns,
}

impl Live {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(State {
            boot: wall_ms(),
            began: clock::now(),
            history: History::default(),
            fleet: Meter::default(),
            sampled_at: None,
            meters: HashMap::new(),
            shape: Shape { number: 0, catalog: Weak::new(), who: Who::new("", &[], false) },
            beats: 0,
            beat: None,
        }))
    }

    /// A panic elsewhere leaves at worst a beat unmade, and the next one makes it.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Gateway {
    /// Adds a row to the history. To be called every [`BEAT`], also while nobody looks.
    pub fn sample(&self, now: Timestamp) {
        let catalog = self.catalog();
        let (mut totals, mut in_flight) = (Totals::default(), 0);
        for pool in &catalog.pools {
            totals.add(&pool.metrics);
            in_flight += pool.metrics.requests_in_flight.get();
        }
        totals.refused = self.refused();
        let mut state = self.live.lock();
        let elapsed = state.sampled_at.map_or(Duration::ZERO, |at| now.since(at));
        state.sampled_at = Some(now);
        let pulse = state.fleet.beat(totals, in_flight, elapsed);
        state.history.push(wall_ms(), pulse);
    }

    /// The state of everything, at most a beat old.
    ///
    /// * `shape`: the one that who asks knows already; if it still holds, the answer is brief.
    pub fn live(&self, shape: Option<&str>, now: Timestamp) -> LiveAnswer {
        let mut state = self.live.lock();
        let catalog = self.catalog();
        if state.beat.as_ref().is_none_or(|beat| beat.is_over(now)) {
            state.beat(self, &catalog, now);
        }
        let State { shape: known, history, beat, .. } = &mut *state;
        let Some(beat) = beat else {
            return LiveAnswer { etag: "\"\"".to_owned(), body: Bytes::from_static(b"{}") };
        };
        let is_brief = shape == Some(&beat.news.shape);
        let news = &beat.news;
        let body = if is_brief {
            beat.brief.get_or_insert_with(|| write(news))
        } else {
            let whole = || Whole { news, who: &known.who, history: history.last(ROWS_MAX) };
            beat.whole.get_or_insert_with(|| write(&whole()))
        };
        let kind = if is_brief { 'b' } else { 'w' };
        let etag = format!("\"{}-{}-{kind}\"", news.boot, news.beat);
        LiveAnswer { etag, body: body.clone() }
    }

    fn refused(&self) -> u64 {
        use telemetry::metrics::labels::{Label, Refusal};
        let refused = &self.metrics.gateway().requests_refused;
        Refusal::ALL.iter().map(|reason| refused.of(*reason).get()).sum()
    }
}

impl Beat {
    fn is_over(&self, now: Timestamp) -> bool {
        now.since(self.at) + SLACK >= Duration::from_millis(self.news.interval_ms)
    }
}

impl State {
    /// Makes the next beat.
    fn beat(&mut self, gateway: &Gateway, catalog: &Arc<Catalog>, now: Timestamp) {
        if !self.shape.is_of(catalog) {
            let version = gateway.metrics.gateway().build().version;
            self.shape = Shape {
                number: self.shape.number + 1,
                catalog: Arc::downgrade(catalog),
                who: Who::new(version, &catalog.pools, gateway.clusters().is_some()),
            };
            self.meters.retain(|name, _| catalog.pools.iter().any(|pool| pool.name == *name));
        }
        let elapsed = self.beat.as_ref().map(|beat| now.since(beat.at));
        let pools: Vec<PoolNews> =
            catalog.pools.iter().map(|pool| self.pool(gateway, pool, elapsed, now)).collect();
        let endpoints: usize = catalog.pools.iter().map(|pool| pool.members.len()).sum();
        let counts = gateway.metrics.gateway();
        self.beats += 1;
        let news = News {
            boot: self.boot,
            beat: self.beats,
            shape: format!("{}.{}", self.boot, self.shape.number),
            interval_ms: interval_ms(endpoints),
            at_ms: wall_ms(),
            gateway: GatewayNews {
                uptime_ms: crate::status::millis(now.since(self.began)),
                ready: gateway.is_ready(),
                draining: gateway.is_draining(),
                connections: counts.connections_open.get(),
                requests: counts.requests_open.get(),
            },
            pools,
            fleet: gateway.clusters().map(|clusters| clusters.view(now)),
            flow: gateway.bands(now).into_iter().filter(|band| band.requests > 0).collect(),
            decisions: gateway.decisions.summaries(DECISIONS_MAX),
            recent: self.history.last(RECENT_ROWS),
        };
        self.beat = Some(Beat { at: now, news, brief: None, whole: None });
    }

    fn pool(
        &mut self,
        gateway: &Gateway,
        pool: &Pool,
        elapsed: Option<Duration>,
        now: Timestamp,
    ) -> PoolNews {
        /// Rates over a longer time are not what happens now.
        const GAP_MAX: Duration = Duration::from_secs(60);
        let mut totals = Totals::default();
        totals.add(&pool.metrics);
        let in_flight = pool.metrics.requests_in_flight.get();
        let meter = self.meters.entry(pool.name.clone()).or_default();
        let elapsed = elapsed.unwrap_or_default();
        if elapsed > GAP_MAX {
            *meter = Meter::default();
        }
        PoolNews::of(gateway, pool, meter.beat(totals, in_flight, elapsed), now)
    }
}

impl Shape {
    fn is_of(&self, catalog: &Arc<Catalog>) -> bool {
        self.number > 0 && std::ptr::eq(self.catalog.as_ptr(), Arc::as_ptr(catalog))
    }
}

/// Time between two beats of a fleet of this size.
fn interval_ms(endpoints: usize) -> u64 {
    let beats = endpoints.div_ceil(ENDPOINTS_PER_SECOND).max(1);
    crate::status::millis(BEAT).saturating_mul(beats as u64)
}

fn write(value: &impl Serialize) -> Bytes {
    // Numbers and text only: nothing that JSON cannot say.
    serde_json::to_vec(value).unwrap_or_default().into()
}

fn wall_ms() -> u64 {
    (telemetry::clock::unix_seconds(clock::wall()) * 1000.0) as u64
}
