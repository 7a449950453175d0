//! What is known of one endpoint, live.
//!
//! Four parties share it: the scraper writes what the engine says, requests book themselves in
//! and out, other gateways tell what they have there, the picker reads. Reads are atomic loads. The
//! parts of one scrape may be read torn while the next is written; both halves were true within one
//! scrape interval.

mod accounting;
mod adapters;
mod peers;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use types::{AdapterId, EndpointId, EndpointMetrics, Slot, Timestamp};

use crate::ejection::{Ejection, EjectionConfig, Outcome};
use crate::speed::{Dispatch, Learner};
use crate::{Candidate, LoraFit, Reservation, Scraped, Speed};
use accounting::{Foreign, Ledger};
use adapters::Adapters;
use peers::Peers;

pub use adapters::AdapterCensus;
pub use peers::Credit;

/// `u32` that stands for "the engine does not say".
const UNKNOWN: u32 = u32::MAX;
/// Scrape time that stands for "never".
const NEVER: u64 = u64::MAX;

/// Live state of one endpoint.
#[derive(Debug)]
pub struct EndpointState {
    id: EndpointId,
    slot: Slot,
    in_flight: AtomicU32,
    prefill_tokens: AtomicU64,
    prefilling: AtomicU32,
    /// Of these, those whose answers come whole, and their prompt tokens.
    whole: AtomicU32,
    whole_tokens: AtomicU64,
    /// Of these, those whose adapter must be brought in.
    loading: AtomicU32,
    /// When the request at the head of the prefills came to its turn, as far as we can see.
    progress_at: AtomicU64,
    learner: Learner,
    waiting: AtomicU32,
    waiting_deferred: AtomicU32,
    running: AtomicU32,
    running_max: AtomicU32,
    running_full: AtomicU32,
    /// Bits of an `f32`; a NaN, which no ratio can be, stands for unknown.
    kv_usage: AtomicU32,
    /// Zero stands for unknown.
    kv_tokens_max: AtomicU64,
    in_flight_at_scrape: AtomicU32,
    asleep: AtomicU32,
    scraped_at: AtomicU64,
    stale_after: AtomicU64,
    scrape_failures: AtomicU32,
    ejection: Ejection,
    adapters: Adapters,
    peers: Peers,
}

impl EndpointState {
    pub fn new(id: EndpointId, slot: Slot) -> Self {
        Self::with_ejection(id, slot, EjectionConfig::default())
    }

    pub fn with_ejection(id: EndpointId, slot: Slot, ejection: EjectionConfig) -> Self {
        Self {
            id,
            slot,
            in_flight: AtomicU32::new(0),
            prefill_tokens: AtomicU64::new(0),
            prefilling: AtomicU32::new(0),
            whole: AtomicU32::new(0),
            whole_tokens: AtomicU64::new(0),
            loading: AtomicU32::new(0),
            progress_at: AtomicU64::new(0),
            learner: Learner::default(),
            waiting: AtomicU32::new(UNKNOWN),
            waiting_deferred: AtomicU32::new(0),
            running: AtomicU32::new(UNKNOWN),
            running_max: AtomicU32::new(UNKNOWN),
            running_full: AtomicU32::new(UNKNOWN),
            kv_usage: AtomicU32::new(f32::NAN.to_bits()),
            kv_tokens_max: AtomicU64::new(0),
            in_flight_at_scrape: AtomicU32::new(0),
            asleep: AtomicU32::new(0),
            scraped_at: AtomicU64::new(NEVER),
            stale_after: AtomicU64::new(0),
            scrape_failures: AtomicU32::new(0),
            ejection: Ejection::new(ejection),
            adapters: Adapters::default(),
            peers: Peers::default(),
        }
    }

    pub fn id(&self) -> EndpointId {
        self.id
    }

    pub fn slot(&self) -> Slot {
        self.slot
    }

    /// Requests that this gateway has there now.
    pub fn in_flight(&self) -> u32 {
        self.in_flight.load(Ordering::Relaxed)
    }

    /// Prompt tokens sent there and not yet answered by a first token.
    pub fn prefill_tokens(&self) -> u64 {
        self.prefill_tokens.load(Ordering::Relaxed)
    }

    /// Failed scrapes since the last good one.
    pub fn scrape_failures(&self) -> u32 {
        self.scrape_failures.load(Ordering::Relaxed)
    }

    pub fn ejection(&self) -> &Ejection {
        &self.ejection
    }

    /// Takes over a good scrape.
    ///
    /// * `stale_after`: age at which this scrape is no longer to be believed; follows from the
    ///   interval that the scraper really achieves.
    pub fn record_scrape(&self, metrics: &EndpointMetrics, now: Timestamp, stale_after: Duration) {
        let known = |value: Option<u32>| value.map_or(UNKNOWN, |value| value.min(UNKNOWN - 1));
        self.waiting.store(known(metrics.waiting), Ordering::Relaxed);
        let deferred = metrics.waiting_deferred.unwrap_or(0);
        self.waiting_deferred.store(deferred, Ordering::Relaxed);
        self.running.store(known(metrics.running), Ordering::Relaxed);
        self.running_max.store(known(metrics.running_max), Ordering::Relaxed);
        if let (Some(waiting), Some(running @ 1..)) = (metrics.waiting, metrics.running) {
            let is_full = waiting > deferred;
            let seen = self.running_full.load(Ordering::Relaxed);
            if is_full || (seen != UNKNOWN && running > seen) {
                self.running_full.store(known(Some(running)), Ordering::Relaxed);
            }
        }
        let kv_usage = metrics.kv_usage.map_or(f32::NAN, types::Ratio::get);
        self.kv_usage.store(kv_usage.to_bits(), Ordering::Relaxed);
        let block_tokens = u64::from(metrics.block_size_tokens.unwrap_or(0));
        let kv_tokens_max = block_tokens.saturating_mul(metrics.block_count.unwrap_or(0));
        self.kv_tokens_max.store(kv_tokens_max, Ordering::Relaxed);
        self.in_flight_at_scrape.store(self.in_flight(), Ordering::Relaxed);
        self.peers.record_scrape();
        self.asleep.store(u32::from(metrics.asleep), Ordering::Relaxed);
        self.stale_after.store(nanos(stale_after), Ordering::Relaxed);
        self.scrape_failures.store(0, Ordering::Relaxed);
        self.scraped_at.store(now.as_nanos().min(NEVER - 1), Ordering::Release);
        self.adapters.record_scrape(metrics.lora.as_ref(), now);
        self.ejection.record_scrape(now);
    }

    /// Counts a failed scrape; the last good one stays, and ages.
    pub fn record_scrape_failure(&self, _now: Timestamp) {
        self.scrape_failures.fetch_add(1, Ordering::Relaxed);
    }

    /// What this gateway has there now, for its peers.
    pub fn credit(&self, now: Timestamp) -> Credit {
        let speed = self.learner.speed(now);
        Credit {
            requests: self.in_flight(),
            prefilling: self.prefilling.load(Ordering::Relaxed),
            prefill_tokens: self.prefill_tokens(),
            tokens_ahead: self.own_tokens_ahead(&speed, now) as u64,
        }
    }

    /// Takes over what this gateway's peers have there in all; it counts as if it were booked here.
    ///
    /// * `over`: the change since the last call came about within this time; [`Duration::MAX`] for a
    ///   peer that was not heard before, or that is no longer.
    pub fn set_peers(&self, credit: Credit, over: Duration, now: Timestamp) {
        let scraped_at = self.scraped_at.load(Ordering::Acquire);
        let scraped_at = (scraped_at != NEVER).then_some(Timestamp(scraped_at));
        self.peers.set(credit, over, scraped_at, now);
    }

    /// The last [`EndpointState::set_peers`].
    pub fn peers(&self) -> Credit {
        self.peers.credit()
    }

    /// Sets the adapters that the endpoint can serve, as its `/v1/models` lists them. Until then
    /// it is taken to serve every adapter of its pool.
    pub fn set_served_adapters(&self, served: &[AdapterId]) {
        self.adapters.set_served(served);
    }

    /// The adapters that it has and could have, for people to look at.
    pub fn adapter_census(&self) -> AdapterCensus {
        self.adapters.census()
    }

    /// The adapters that count as resident, in the order in which they came.
    pub fn resident_adapters(&self) -> Vec<AdapterId> {
        self.adapters.resident()
    }

    /// Tells how a request there ended.
    pub fn record_outcome(&self, outcome: Outcome, now: Timestamp) {
        self.ejection.record(outcome, now);
    }

    /// Books a request of the base model with so many prompt tokens that must be computed. Takes the
    /// trial if the endpoint is due for one.
    pub fn reserve(self: &Arc<Self>, uncached_tokens: u32, now: Timestamp) -> Reservation {
        self.reserve_with(uncached_tokens, None, now)
    }

    /// The same for a request with an adapter, which counts as resident from now on, idle or not.
    pub fn reserve_with(
        self: &Arc<Self>,
        uncached_tokens: u32,
        adapter: Option<AdapterId>,
        now: Timestamp,
    ) -> Reservation {
        self.in_flight.fetch_add(1, Ordering::Relaxed);
        self.book(uncached_tokens, adapter, now)
    }

    /// The same, if fewer than `most` requests are there, those of other gateways included. `None`: it is full.
    ///
    /// Of several that ask at the same instant no more get one than there is room for.
    pub fn reserve_within(
        self: &Arc<Self>,
        most: u32,
        uncached_tokens: u32,
        adapter: Option<AdapterId>,
        now: Timestamp,
    ) -> Option<Reservation> {
        let own_max = most.saturating_sub(self.peers.credit().requests);
        let one_more = |own: u32| (own < own_max).then_some(own + 1);
        let booked = self.in_flight.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more);
        booked.is_ok().then(|| self.book(uncached_tokens, adapter, now))
    }

    /// The rest of a booking, once the request itself is counted.
    fn book(
        self: &Arc<Self>,
        uncached_tokens: u32,
        adapter: Option<AdapterId>,
        now: Timestamp,
    ) -> Reservation {
        let speed = self.learner.speed(now);
        let mut dispatch = self.dispatch(&speed, uncached_tokens, now);
        if let Some(adapter) = adapter {
            dispatch.loads_adapter = self.adapters.fit(adapter).accounted.must_load();
            self.loading.fetch_add(u32::from(dispatch.loads_adapter), Ordering::Relaxed);
            self.adapters.record_use(adapter, now);
            dispatch.may_be_deferred = self.waiting_deferred.load(Ordering::Relaxed) > 0;
        }
        self.prefill_tokens.fetch_add(u64::from(uncached_tokens), Ordering::Relaxed);
        if self.prefilling.fetch_add(1, Ordering::Relaxed) == 0 {
            let on_its_way = half_base(&speed);
            self.progress_at.store((now + on_its_way).as_nanos(), Ordering::Relaxed);
        }
        Reservation::new(Arc::clone(self), dispatch, self.ejection.take_trial(now), now)
    }

    /// Answers being written there, by our own count, our peers' and the last scrape's count of others.
    pub fn decoding(&self, now: Timestamp) -> f32 {
        self.decoding_of(self.in_flight(), now)
    }

    /// The same, of so many requests of ours.
    fn decoding_of(&self, in_flight: u32, now: Timestamp) -> f32 {
        let peers = self.peers.credit();
        let own = in_flight.saturating_sub(self.prefilling.load(Ordering::Relaxed));
        let theirs = peers.requests.saturating_sub(peers.prefilling);
        own as f32 + theirs as f32 + self.foreign(now).running
    }

    /// How fast it has proved to be.
    pub fn speed(&self, now: Timestamp) -> Speed {
        self.learner.speed(now)
    }

    /// A snapshot for one decision; `matched_blocks` and `saturation` are left at zero.
    #[inline]
    pub fn observe(&self, adapter: Option<AdapterId>, now: Timestamp) -> Candidate {
        let (age, stale_after) = self.scrape_age(now);
        let peers = self.peers.credit();
        let in_flight = self.in_flight().saturating_add(peers.requests);
        let mut scraped = self.scraped();
        let lora = match adapter {
            None => LoraFit::Unknown,
            Some(adapter) => {
                let fit = self.adapters.fit(adapter);
                scraped.lora = fit.reported;
                fit.accounted
            }
        };
        let freshness = accounting::freshness(age, stale_after);
        let ledger = Ledger::new(&scraped, in_flight, freshness);
        let foreign = Foreign::new(&scraped, freshness);
        let health = self.ejection.health(in_flight, now);
        let speed = self.learner.speed(now);
        let own_prefilling = self.prefilling.load(Ordering::Relaxed);
        let prefilling = own_prefilling.saturating_add(peers.prefilling);
        let kv_tokens_max = self.kv_tokens_max.load(Ordering::Relaxed);
        Candidate {
            endpoint: self.id,
            slot: self.slot,
            scraped,
            waiting: ledger.waiting,
            running: ledger.running,
            in_flight,
            peers_in_flight: peers.requests,
            prefill_tokens: self.prefill_tokens().saturating_add(peers.prefill_tokens),
            prefilling,
            whole: self.whole.load(Ordering::Relaxed),
            whole_tokens: self.whole_tokens.load(Ordering::Relaxed),
            stuck_ms: self.stuck_ms(&speed, now),
            loading: self.loading.load(Ordering::Relaxed),
            tokens_ahead: self.own_tokens_ahead(&speed, now) + peers.tokens_ahead as f32,
            decoding: in_flight.saturating_sub(prefilling) as f32 + foreign.running,
            foreign_waiting: foreign.waiting,
            kv_tokens_max: (kv_tokens_max > 0).then_some(kv_tokens_max as f32),
            speed,
            age: age.map(Duration::from_nanos),
            freshness,
            stale: age.is_some_and(|age| age > stale_after),
            lora,
            matched_blocks: 0,
            health,
            ejected: !health.usable(),
            asleep: self.asleep.load(Ordering::Relaxed) != 0,
            saturation: 0.0,
        }
    }

    fn stuck_ms(&self, speed: &Speed, now: Timestamp) -> f32 {
        if self.prefilling.load(Ordering::Relaxed) == 0 {
            return 0.0;
        }
        let begun = Timestamp(self.progress_at.load(Ordering::Relaxed));
        let working_ms = now.since(begun).as_secs_f32() * 1000.0;
        let all_ms = self.prefill_tokens() as f32 * speed.prefill_ms_per_token;
        (working_ms - 2.0 * speed.base_ms - 1.5 * all_ms).max(0.0)
    }

    pub(crate) fn learner(&self) -> &Learner {
        &self.learner
    }

    /// Requests there by our own count, our peers' and the last scrape's count of others.
    pub(crate) fn present(&self, now: Timestamp) -> f32 {
        let foreign = self.foreign(now);
        self.in_flight() as f32 + self.peers.requests() as f32 + foreign.waiting + foreign.running
    }

    /// A prompt is computed.
    pub(crate) fn give_back_prefill(&self, dispatch: &Dispatch, now: Timestamp) {
        let on_its_way = half_base(&self.learner.speed(now));
        let computed_at = now.as_duration().saturating_sub(on_its_way);
        self.progress_at.fetch_max(nanos(computed_at), Ordering::Relaxed);
        self.drop_prefill(dispatch);
    }

    /// A prompt is computed, or never will be.
    pub(crate) fn drop_prefill(&self, dispatch: &Dispatch) {
        self.prefill_tokens.fetch_sub(u64::from(dispatch.uncached_tokens), Ordering::Relaxed);
        self.prefilling.fetch_sub(1, Ordering::Relaxed);
        self.loading.fetch_sub(u32::from(dispatch.loads_adapter), Ordering::Relaxed);
    }

    /// A prompt that is booked here will be answered in one piece.
    pub(crate) fn book_whole(&self, dispatch: &Dispatch) {
        self.whole.fetch_add(1, Ordering::Relaxed);
        self.whole_tokens.fetch_add(u64::from(dispatch.uncached_tokens), Ordering::Relaxed);
    }

    /// It is answered, or never will be.
    pub(crate) fn drop_whole(&self, dispatch: &Dispatch) {
        self.whole.fetch_sub(1, Ordering::Relaxed);
        self.whole_tokens.fetch_sub(u64::from(dispatch.uncached_tokens), Ordering::Relaxed);
    }

    pub(crate) fn give_back_request(&self) {
        self.in_flight.fetch_sub(1, Ordering::Relaxed);
    }

    /// The circumstances of a request that is sent now and counted already.
    fn dispatch(&self, speed: &Speed, uncached_tokens: u32, now: Timestamp) -> Dispatch {
        let peers = self.peers.credit();
        let foreign = self.foreign(now);
        Dispatch {
            uncached_tokens,
            tokens_ahead: self.own_tokens_ahead(speed, now) + peers.tokens_ahead as f32,
            decoding: self.decoding_of(self.in_flight().saturating_sub(1), now),
            foreign_waiting: foreign.waiting,
            loads_ahead: self.loading.load(Ordering::Relaxed),
            loads_adapter: false,
            may_be_deferred: false,
        }
    }

    fn foreign(&self, now: Timestamp) -> Foreign {
        let (age, stale_after) = self.scrape_age(now);
        Foreign::new(&self.scraped(), accounting::freshness(age, stale_after))
    }

    /// Prefill tokens booked here and not computed yet. Of the request at the head, which is taken to be
    /// of mean length, up to nine tenths count as done by the time that it has had its turn; an
    /// endpoint whose speed is unknown has done nothing.
    fn own_tokens_ahead(&self, speed: &Speed, now: Timestamp) -> f32 {
        let tokens = self.prefill_tokens() as f32;
        if tokens <= 0.0 {
            return 0.0;
        }
        let prefilling = self.prefilling.load(Ordering::Relaxed).max(1) as f32;
        let begun = Timestamp(self.progress_at.load(Ordering::Relaxed));
        let working_ms = now.since(begun).as_secs_f32() * 1000.0;
        let done = (working_ms / speed.prefill_ms_per_token).clamp(0.0, 0.9 * tokens / prefilling);
        tokens - speed.prefill_trust() * done
    }

    /// Age of the last good scrape and the age at which it is stale, nanoseconds.
    fn scrape_age(&self, now: Timestamp) -> (Option<u64>, u64) {
        let scraped_at = self.scraped_at.load(Ordering::Acquire);
        let age = (scraped_at != NEVER).then(|| now.as_nanos().saturating_sub(scraped_at));
        (age, self.stale_after.load(Ordering::Relaxed))
    }

    fn scraped(&self) -> Scraped {
        let known = |cell: &AtomicU32| Some(cell.load(Ordering::Relaxed)).filter(|v| *v != UNKNOWN);
        let kv_usage = f32::from_bits(self.kv_usage.load(Ordering::Relaxed));
        Scraped {
            waiting: known(&self.waiting),
            waiting_deferred: self.waiting_deferred.load(Ordering::Relaxed),
            running: known(&self.running),
            running_max: known(&self.running_max),
            running_full: known(&self.running_full),
            kv_usage: Some(kv_usage).filter(|usage| !usage.is_nan()),
            in_flight: self
                .in_flight_at_scrape
                .load(Ordering::Relaxed)
                .saturating_add(self.peers.at_scrape()),
            lora: LoraFit::Unknown,
        }
    }
}

/// How long a request is on its way to the engine's batch, and its first token on its way back: the
/// constant part of the time to a first token, taken to fall on both in equal shares.
fn half_base(speed: &Speed) -> Duration {
    Duration::try_from_secs_f32(0.0005 * speed.base_ms).unwrap_or_default()
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
