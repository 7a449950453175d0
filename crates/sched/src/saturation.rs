//! How full an endpoint or a pool is: 0.0 idle, 1.0 and more full.
//!
//! A full pool is worse than a refusal: what is sent there waits where we can no longer move it.

mod reserve;
mod room;
#[cfg(test)]
mod tests;

use types::Standing;

use crate::Candidate;
pub use reserve::Reserve;
pub use room::Room;

/// What counts as full.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Config {
    /// Waiting requests at which an endpoint is full. Default 32.
    pub queue_depth: u32,
    /// KV use at which an endpoint with a queue is full, `0.0..=1.0`. Default none: a full cache
    /// without a queue is an engine at its best.
    pub kv_usage: Option<f32>,
    /// Requests of this gateway at which an endpoint is full, scrape or not. Default none.
    pub in_flight: Option<u32>,
    /// What is kept for those within their part. Default nothing.
    pub reserve: Option<Reserve>,
}

/// Requests that an engine runs at once if it does not say: the smallest default of vLLM's server.
/// Taken too large, a burst queues at the engine until the next scrape; taken too small, it would be
/// refused by a pool with room.
const BATCH: f32 = 256.0;

impl Default for Config {
    fn default() -> Self {
        Self { queue_depth: 32, kv_usage: None, in_flight: None, reserve: None }
    }
}

impl Config {
    /// Saturation of one endpoint: the largest of its measures. A stale or unknown scrape has no
    /// say; then only our own count does.
    pub fn endpoint(&self, candidate: &Candidate) -> f32 {
        let in_flight = self.in_flight.map_or(0.0, |max| ratio(candidate.in_flight as f32, max));
        let scraped = &candidate.scraped;
        if candidate.stale || candidate.age.is_none() {
            return in_flight;
        }
        let waiting = self.waiting(candidate);
        let queue = ratio(waiting, self.queue_depth);
        let kv_usage = match (self.kv_usage, scraped.kv_usage) {
            (Some(max), Some(usage)) if waiting > 0.0 => usage / max.max(f32::MIN_POSITIVE),
            _ => 0.0,
        };
        queue.max(kv_usage).max(in_flight)
    }

    /// Saturation of a pool: the mean over endpoints, each counted up to 1.0. So 1.0 means that
    /// every endpoint is full. An empty pool is full.
    pub fn pool(&self, candidates: &[Candidate]) -> f32 {
        if candidates.is_empty() {
            return 1.0;
        }
        let sum: f32 = candidates.iter().map(|candidate| self.endpoint(candidate).min(1.0)).sum();
        sum / candidates.len() as f32
    }

    /// Requests that may still be sent before the endpoint is full, until a scrape tells more.
    ///
    /// Unlike [`Self::endpoint`] it goes by the batch that was seen to be full: who keeps a queue of its
    /// own loses nothing by sending less now and more in a moment.
    pub fn room(&self, candidate: &Candidate) -> u32 {
        let by_count = self.in_flight.map(|max| max.saturating_sub(candidate.in_flight));
        let by_count = by_count.unwrap_or(u32::MAX);
        let scraped = &candidate.scraped;
        let (Some(waiting), false) = (scraped.waiting, candidate.stale) else {
            return by_count.min(BATCH as u32);
        };
        if self.endpoint(candidate) >= 1.0 {
            return 0;
        }
        let waiting = waiting.saturating_sub(scraped.waiting_deferred) as f32;
        let since = candidate.in_flight as f32 - scraped.in_flight as f32;
        let running = scraped.running.unwrap_or(0) as f32;
        let in_batch = match scraped.running_max.or(scraped.running_full) {
            _ if waiting > 0.0 => 0.0,
            Some(max) => max as f32 - running,
            None => (BATCH - running).max(self.queue_depth as f32),
        };
        let room = self.queue_depth as f32 - waiting - since + in_batch.max(0.0);
        by_count.min(room.max(0.0) as u32)
    }

    /// Whether an endpoint that has [`Self::room`] takes requests of this standing too.
    pub fn is_open(&self, candidate: &Candidate, standing: Standing) -> bool {
        self.reserve.is_none_or(|reserve| reserve.is_open(candidate, self.in_flight, standing))
    }

    /// Requests that surely wait, but for those that only lack an adapter slot: others pass them, so
    /// they do not say that the endpoint is full. What we sent since the scrape waits only if the engine had a
    /// queue then; else it runs until the batch is full, which is taken to hold [`BATCH`] requests
    /// (and room for [`Config::queue_depth`] more) if the engine does not say.
    fn waiting(&self, candidate: &Candidate) -> f32 {
        let scraped = &candidate.scraped;
        let Some(waiting) = scraped.waiting else { return 0.0 };
        let waiting = waiting.saturating_sub(scraped.waiting_deferred);
        let since = candidate.in_flight as f32 - scraped.in_flight as f32;
        if waiting > 0 {
            return (waiting as f32 + since).max(0.0);
        }
        let running = scraped.running.unwrap_or(0) as f32;
        let room = match scraped.running_max {
            Some(max) => (max as f32 - running).max(0.0),
            None => (BATCH - running).max(self.queue_depth as f32),
        };
        (since - room).max(0.0)
    }
}

fn ratio(value: f32, max: u32) -> f32 {
    value / max.max(1) as f32
}
