//! What waits, for metrics and for people.

use std::sync::atomic::Ordering;
use std::time::Duration;

use flow::{Preview, Work};
use sched::saturation::Room;
use serde::{Deserialize, Serialize};
use telemetry::metrics::labels::{Band, Label};
use types::Timestamp;

use super::Admission;
use crate::Gateway;

/// One band of one pool's queue. The names of the fields are stable.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct BandView {
    pub pool: String,
    /// `Critical`, `Standard`, `Sheddable`, or the priority as a number.
    pub band: String,
    pub priority: i32,
    pub requests: u64,
    pub bytes: u64,
    pub tokens: u64,
    /// Flows with something queued.
    pub flows: u64,
    /// How long the oldest has waited.
    pub oldest_ms: Option<u64>,
    /// Refused requests for which a place is kept.
    pub promises: u64,
}

impl Gateway {
    /// Every band that holds something, of every pool; empty without flow control.
    pub fn bands(&self, now: Timestamp) -> Vec<BandView> {
        let catalog = self.catalog();
        let admissions = catalog.pools.iter().filter_map(|pool| pool.admission.as_ref());
        admissions.flat_map(|admission| admission.bands(now)).collect()
    }
}

/// What would become of a request that came now.
#[derive(Debug)]
pub(crate) struct Seen {
    pub(crate) preview: Preview,
    /// For a flow that stands as this one does.
    pub(crate) saturation: f32,
    /// Of its band.
    pub(crate) ceiling: f32,
}

impl Admission {
    /// Looks at what [`Self::ask`] would do. Nothing is queued, granted or promised.
    pub(crate) fn preview(&self, work: &Work, room: &Room, now: Timestamp) -> Seen {
        let saturation = room.saturation_after(self.granted.load(Ordering::Relaxed));
        let state = self.lock();
        let preview = state.queue.preview(work, saturation, now);
        let saturation = saturation.of(state.queue.standing(&work.flow, now));
        let ceiling = state.queue.config().band(work.flow.priority).ceiling.get();
        Seen { preview, saturation, ceiling }
    }

    fn bands(&self, now: Timestamp) -> Vec<BandView> {
        let stats = self.lock().queue.stats();
        let millis = |age: Duration| u64::try_from(age.as_millis()).unwrap_or(u64::MAX);
        let view = |band: flow::BandStats| BandView {
            pool: self.pool.as_str().to_owned(),
            band: band.priority.to_string(),
            priority: band.priority.0,
            requests: band.requests,
            bytes: band.bytes,
            tokens: band.tokens,
            flows: band.flows,
            oldest_ms: band.oldest.map(|oldest| millis(now.since(oldest))),
            promises: band.promises,
        };
        stats.into_iter().map(view).collect()
    }

    /// Brings the gauges up to date.
    pub(crate) fn refresh_gauges(&self) {
        let mut sums = [(0_u64, 0_u64, 0_u64); Band::ALL.len()];
        for band in self.lock().queue.stats() {
            let (requests, tokens, bytes) = &mut sums[Band::from(band.priority).index()];
            *requests += band.requests;
            *tokens += band.tokens;
            *bytes += band.bytes;
        }
        let metrics = self.flow_metrics();
        let signed = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
        for (band, (requests, tokens, bytes)) in Band::ALL.iter().zip(sums) {
            metrics.queue_requests.of(*band).set(signed(requests));
            metrics.queue_tokens.of(*band).set(signed(tokens));
            metrics.queue_bytes.of(*band).set(signed(bytes));
        }
    }
}
