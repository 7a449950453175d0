//! How long a request would wait, and when a refused one should come back.

use std::time::Duration;

use types::{Priority, Timestamp};

use super::{Forecast, Queue};
use crate::band::Band;
use crate::config::Fairness;
use crate::held::Held;
use crate::promises::Return;
use crate::rates::seconds;
use crate::work::{FlowKey, TOKENS_MAX, Work};

/// What is told before anything is known of the pool, and where no drain rate could help.
pub(super) const UNKNOWN: Duration = Duration::from_secs(5);
/// Who comes back comes so much before its turn, that the queue never runs dry for those who are late.
const CUSHION: f64 = 2.0;
/// The same as part of the time in which a full band drains: where only little may wait, those who come back
/// early find it full.
const CUSHION_SHARE: f64 = 0.25;
/// Part of what is told that is spread, so that those who round alike do not come alike.
const JITTER: f64 = 0.05;
/// Share of promises that is taken to be kept before it is known. When to come back is told as if all
/// came, so that nobody comes in vain.
const ALL_COME: f64 = 1.0;
/// Who may wait is decided as if few came: places for those who never come are lost to those who are
/// there.
pub(super) const FEW_COME: f64 = 0.1;
/// Whether a deadline can be met, as if half came.
pub(super) const HALF_COME: f64 = 0.5;
/// Part of its capacity that a pool is reckoned to have for any band.
const LEAST: f64 = 0.02;

impl<T> Queue<T> {
    /// What a request of this flow and size would meet now.
    pub fn forecast(&self, flow: &FlowKey, tokens: u32, now: Timestamp) -> Forecast {
        let cost = u64::from(tokens.clamp(1, TOKENS_MAX));
        let wait = self.wait(flow, cost, FEW_COME, now.max(self.now));
        Forecast { position: self.position(flow), wait }
    }

    /// Requests that would go before one of this flow.
    pub(super) fn position(&self, flow: &FlowKey) -> u64 {
        self.ahead(flow, 1, |held| held.requests, 0.0) as u64
    }

    /// When a request that is refused for other reasons (revoked, say) should come back; a place is
    /// kept for it then, as for those that [`offer`](Self::offer) refuses.
    pub fn retry_after(&mut self, work: &Work, now: Timestamp) -> Duration {
        let now = self.tick(now);
        self.promise(work, now)
    }

    /// Time until what is ahead has drained, promises included.
    ///
    /// * `assumed`: share of promises that is taken to be kept before it is known.
    pub(super) fn wait(
        &self,
        flow: &FlowKey,
        cost: u64,
        assumed: f64,
        now: Timestamp,
    ) -> Option<Duration> {
        let shown = self.promises.shown(assumed);
        let ahead = self.ahead(flow, cost, |held| held.tokens, shown);
        self.time_for(ahead, flow.priority, now)
    }

    /// The same for one that comes back when it was told to: only higher bands go first, and those of
    /// its own that came back before it, who are not many.
    pub(super) fn wait_when_due(&self, priority: Priority, now: Timestamp) -> Option<Duration> {
        self.time_for(self.higher(priority, |held| held.tokens, 0.0), priority, now)
    }

    /// * `shown`: share of promises that is reckoned with.
    fn ahead(&self, flow: &FlowKey, cost: u64, of: fn(&Held) -> u64, shown: f64) -> f64 {
        let mut ahead = self.higher(flow.priority, of, shown);
        if let Some(band) = self.bands.get(&flow.priority) {
            ahead += ahead_in_band(band, &flow.id, cost as f64, of, shown);
        }
        ahead
    }

    fn higher(&self, priority: Priority, of: fn(&Held) -> u64, shown: f64) -> f64 {
        let higher = self.bands.range(priority..).filter(|(other, _)| **other > priority);
        higher.map(|(_, band)| of(&band.held) as f64 + shown * of(&band.promised) as f64).sum()
    }

    /// Time in which so many tokens drain to the use of a band: higher ones take what comes to them
    /// meanwhile, lower ones their reserved share.
    fn time_for(&self, tokens: f64, priority: Priority, now: Timestamp) -> Option<Duration> {
        if tokens <= 0.0 {
            return Some(Duration::ZERO);
        }
        let capacity = self.capacity.per_second(now)?;
        let (mut above, mut reserved, mut own) = (0.0, 0.0, 0.0);
        for (other, band) in &self.bands {
            let share = f64::from(band.config.reserved_share.get());
            if *other > priority {
                above += band.arrivals.per_second(now);
            } else if *other == priority {
                own = share;
            } else if band.has_work() {
                reserved += share;
            }
        }
        let rate = capacity * (1.0 - reserved) - above;
        Some(seconds(tokens / rate.max(capacity * own.max(LEAST))))
    }

    /// Keeps a place for a refused request and tells when to come for it, in whole seconds.
    pub(super) fn promise(&mut self, work: &Work, now: Timestamp) -> Duration {
        match self.promises.find(work.fingerprint, now) {
            Return::Early { at } => return whole_seconds(at.since(now).as_secs_f64()),
            // It came, and there was no room after all.
            Return::Due { .. } => self.redeem(work.fingerprint, now),
            Return::Fresh => {}
        }
        let (flow, cost) = (&work.flow, work.cost());
        let wait = self.wait(flow, cost, ALL_COME, now).unwrap_or(UNKNOWN).as_secs_f64();
        let spread = f64::from(scattered(work.fingerprint.unwrap_or(self.store.next_number())));
        let told = (wait - self.cushion(flow.priority, cost, now)).max(0.0);
        let after = whole_seconds(told + spread * (JITTER * told + 1.0));
        let max = self.config.promise_max.max(Duration::from_secs(1));
        if after > max {
            // No place so far ahead; a little spread remains.
            return whole_seconds(max.as_secs_f64() * (1.0 + JITTER * spread));
        }
        let standing = self.standing(flow, now);
        let promises_max = self.config.promises_max;
        let own = self.band(flow.priority).flows.get(&flow.id).map_or(0, |f| f.promised.requests);
        if let Some(fingerprint) = work.fingerprint
            && self.promises.has_room(own, promises_max)
        {
            let held = Held { requests: 1, bytes: 0, tokens: cost };
            let flow = flow.clone();
            let band = self.band(flow.priority);
            band.promised.add(held);
            band.flows.promise(&flow.id, held, now);
            self.promises.insert(fingerprint, flow, work.received, (held, standing), (now, after));
        }
        after
    }

    /// When a refused request would be told to come back, before that is spread.
    pub(super) fn told(&self, work: &Work, now: Timestamp) -> Duration {
        let wait = self.wait(&work.flow, work.cost(), ALL_COME, now).unwrap_or(UNKNOWN);
        whole_seconds(wait.as_secs_f64() - self.cushion(work.flow.priority, work.cost(), now))
    }

    /// How long before its turn one is told to come, seconds.
    fn cushion(&self, priority: Priority, cost: u64, now: Timestamp) -> f64 {
        let Some(most) = self.config.band(priority).limits.requests_max else { return CUSHION };
        let band = self.bands.get(&priority).filter(|band| band.has_work());
        let usual = band.map_or(cost, |band| band.held.tokens / band.held.requests.max(1));
        let rate = self.capacity.per_second(now).unwrap_or(f64::INFINITY);
        CUSHION.min(CUSHION_SHARE * (most as f64) * (usual as f64) / rate.max(f64::MIN_POSITIVE))
    }

    /// Gives back the place that was kept for a request, if one was.
    pub(super) fn redeem(&mut self, fingerprint: Option<u64>, now: Timestamp) {
        let Some(fingerprint) = fingerprint else { return };
        let is_kept = matches!(self.promises.find(Some(fingerprint), now), Return::Due { .. });
        if let Some(promise) = self.promises.remove(fingerprint, is_kept) {
            self.unpromise(&promise.flow, promise.held);
        }
    }
}

/// What goes before a newcomer of a flow: all that its flow has, and of the other flows as much each
/// at most as fairness gives them meanwhile.
fn ahead_in_band(band: &Band, id: &str, cost: f64, of: fn(&Held) -> u64, shown: f64) -> f64 {
    let both = |held: &Held, promised: &Held| of(held) as f64 + shown * of(promised) as f64;
    let total = both(&band.held, &band.promised);
    if band.config.fairness == Fairness::GlobalOrder {
        return total;
    }
    let own = band.flows.get(id).map_or(0.0, |flow| both(&flow.held, &flow.promised));
    let claimants = if shown > 0.0 { band.flows.claimants() } else { band.flows.active() };
    let others = claimants.saturating_sub(u64::from(own > 0.0)) as f64;
    total.min(own + (own + cost) * others)
}

fn whole_seconds(seconds: f64) -> Duration {
    Duration::from_secs(seconds.clamp(1.0, 86_400.0).ceil() as u64)
}

/// A number from 0 to below 1, the same for the same (SplitMix64's finish).
fn scattered(number: u64) -> f32 {
    let mut z = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((z ^ (z >> 31)) >> 40) as f32 / (1_u64 << 24) as f32
}
