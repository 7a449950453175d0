//! Places kept for refused requests, so that a `Retry-After` is a promise.
//!
//! A refused request is told when what is ahead of it will have drained, and what was promised to
//! others before counts as ahead: so no two get the same place. It is known by its fingerprint when it
//! comes back. From its time on until it lapses it is let in ahead of fresh ones, and as what it was refused:
//! within its flow's part if that was so when it was told, for the time assumes that rate. Before its time it is
//! a fresh one like others, and is told the same instant again.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use types::{Standing, Timestamp};

use crate::held::Held;
use crate::work::FlowKey;

/// Clocks differ, and a second was rounded up.
const EARLY: Duration = Duration::from_millis(250);
/// How late a client may come, beside a tenth of what it was told.
const LATE: Duration = Duration::from_secs(5);
const LATE_MAX: Duration = Duration::from_secs(30);
/// Part of the table that a flow may have once half of it is taken.
const FLOW_SHARE: usize = 8;
/// What an older promise's outcome weighs against that of the next.
const FADE: f64 = 0.98;
/// Outcomes that what is assumed beforehand counts for.
const ASSUMED: f64 = 10.0;
/// However few come back, so much is reckoned with.
const SHOWN_MIN: f64 = 0.1;

/// A place kept.
#[derive(Clone, Debug)]
pub(crate) struct Promise {
    pub(crate) flow: FlowKey,
    /// When its request was received first.
    pub(crate) received: Timestamp,
    pub(crate) at: Timestamp,
    lapse: Timestamp,
    pub(crate) held: Held,
    /// As what its request was refused.
    standing: Standing,
}

#[derive(Debug)]
pub(crate) struct Promises {
    by_fingerprint: HashMap<u64, Promise>,
    /// By the instant from which they hold no more.
    lapses: BTreeSet<(Timestamp, u64)>,
    /// Those who came back and those who did not, fading.
    came: f64,
    stayed_away: f64,
}

/// What is known of a request that comes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Return {
    /// Not refused before, or too long ago.
    Fresh,
    /// Before its time.
    Early { at: Timestamp },
    /// As it was told.
    Due { received: Timestamp, standing: Standing },
}

impl Return {
    /// As what it was refused, if it comes as it was told.
    pub(crate) fn returned(&self) -> Option<Standing> {
        match self {
            Self::Due { standing, .. } => Some(*standing),
            Self::Fresh | Self::Early { .. } => None,
        }
    }
}

impl Promises {
    pub(crate) fn new() -> Self {
        Self {
            by_fingerprint: HashMap::new(),
            lapses: BTreeSet::new(),
            came: 0.0,
            stayed_away: 0.0,
        }
    }

    /// Share of promised work that is reckoned with, above 0 to 1.
    ///
    /// * `assumed`: before anyone could come back.
    pub(crate) fn shown(&self, assumed: f64) -> f64 {
        let known = self.came + self.stayed_away + ASSUMED;
        ((self.came + assumed * ASSUMED) / known).max(SHOWN_MIN)
    }

    pub(crate) fn find(&self, fingerprint: Option<u64>, now: Timestamp) -> Return {
        let found = fingerprint.and_then(|fingerprint| self.by_fingerprint.get(&fingerprint));
        match found {
            None => Return::Fresh,
            Some(promise) if now + EARLY < promise.at => Return::Early { at: promise.at },
            Some(promise) => Return::Due { received: promise.received, standing: promise.standing },
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Promise> {
        self.by_fingerprint.values()
    }

    /// Whether there is room for one more of a flow that has so many.
    pub(crate) fn has_room(&self, flow_has: u64, max: usize) -> bool {
        let (taken, is_small) = (self.by_fingerprint.len(), flow_has < (max / FLOW_SHARE) as u64);
        taken < max && (is_small || taken < max.div_ceil(2))
    }

    /// The fingerprint must not be there yet.
    pub(crate) fn insert(
        &mut self,
        fingerprint: u64,
        flow: FlowKey,
        received: Timestamp,
        (held, standing): (Held, Standing),
        (now, after): (Timestamp, Duration),
    ) {
        let at = now + after;
        let lapse = at + (LATE + after / 10).min(LATE_MAX);
        self.lapses.insert((lapse, fingerprint));
        let promise = Promise { flow, received, at, lapse, held, standing };
        self.by_fingerprint.insert(fingerprint, promise);
    }

    /// Takes one out because its request was let in.
    ///
    /// * `is_kept`: it came when it was told to.
    pub(crate) fn remove(&mut self, fingerprint: u64, is_kept: bool) -> Option<Promise> {
        let promise = self.by_fingerprint.remove(&fingerprint)?;
        self.lapses.remove(&(promise.lapse, fingerprint));
        if is_kept {
            self.learn(1.0, 0.0);
        }
        Some(promise)
    }

    /// Takes one out that nobody came for.
    pub(crate) fn lapsed(&mut self, now: Timestamp) -> Option<Promise> {
        let (lapse, fingerprint) = *self.lapses.first()?;
        if lapse > now {
            return None;
        }
        self.lapses.pop_first();
        self.learn(0.0, 1.0);
        self.by_fingerprint.remove(&fingerprint)
    }

    fn learn(&mut self, came: f64, stayed_away: f64) {
        self.came = self.came * FADE + came;
        self.stayed_away = self.stayed_away * FADE + stayed_away;
    }
}
