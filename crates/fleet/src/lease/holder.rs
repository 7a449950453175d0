//! Who spends.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use limits::{Allowance, BucketName, Limiter, Moment, Share};
use types::Timestamp;

use crate::lease::LEASE;
use crate::lease::authority::{Answer, Ask, Want};

/// How fast demand is forgotten.
const FORGOTTEN: f64 = 10.0;
/// Demand below this is none; the limit is not asked for any more.
const NONE: f64 = 1e-4;

/// What holds once a lease has ended and no other came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Outage {
    /// An equal part for each router that was known last. Together they keep the limit.
    #[default]
    Safe,
    /// Nothing passes.
    Closed,
    /// Everything passes that this router alone would pass: with `n` routers up to `n` times the limit.
    Open,
}

/// A limit: the rule's name and its bucket.
pub type Key = (Arc<str>, BucketName);

/// A router's side: turns a limiter's demands into asks, and answers into allowances.
#[derive(Debug)]
pub struct Holder {
    id: u64,
    outage: Outage,
    holders: u32,
    asked: Option<Timestamp>,
    /// Of the last answer.
    leased_until: Timestamp,
    limits: HashMap<Key, Held>,
}

#[derive(Debug)]
struct Held {
    demand: f64,
    share: Share,
    until: Timestamp,
    /// The bucket was told of it, and not yet that it is over.
    is_in_force: bool,
}

impl Holder {
    /// * `id`: the same after a restart, if that can be, and no other router's.
    /// * `holders`: routers that there are, as far as is known; at least 1.
    pub fn new(id: u64, outage: Outage, holders: u32) -> Self {
        Self {
            id,
            outage,
            holders: holders.max(1),
            asked: None,
            leased_until: Timestamp::ZERO,
            limits: HashMap::new(),
        }
    }

    /// What limits may be spent of which nothing was granted, for [`Limiter::set_allowance`].
    pub fn unasked(&self) -> Allowance {
        let share = self.without_lease();
        Allowance { share, until: Timestamp::ZERO, after: share }
    }

    /// To be called each [`crate::lease::REFRESH`]. The instant is to be given to [`Self::answered`].
    pub fn ask(&mut self, limiter: &Limiter, moment: Moment) -> Ask<Key> {
        let now = moment.now;
        self.lift(limiter, moment);
        let passed = self.asked.map_or(1.0, |asked| now.since(asked).as_secs_f64().max(1e-3));
        self.asked = Some(now);
        let left = (-passed / FORGOTTEN).exp();
        self.limits.values_mut().for_each(|held| held.demand *= left);
        limiter.demands(|demand| {
            let key = (Arc::from(demand.rule), demand.bucket.clone());
            let rate = demand.seconds / passed;
            let held = self.limits.entry(key).or_insert_with(|| {
                // The first look is all that is known.
                let (share, until) = (Share::NONE, Timestamp::ZERO);
                Held { demand: rate * left, share, until, is_in_force: false }
            });
            held.demand += rate * (1.0 - left);
        });
        self.limits.retain(|_, held| held.demand > NONE || held.is_in_force);
        // What nobody asks for any more is let end.
        let wanted = self.limits.iter().filter(|(_, held)| held.demand > NONE);
        let wants = wanted.map(|(key, held)| Want {
            key: key.clone(),
            demand: held.demand,
            holds: if now < held.until { held.share } else { Share::NONE },
        });
        let leased_for = self.leased_until.since(now);
        Ask { holder: self.id, holders: self.holders, leased_for, wants: wants.collect() }
    }

    /// Puts what was granted into force.
    ///
    /// * `asked`: when it was asked for; leases count from then, so that they end here first.
    pub fn answered(
        &mut self,
        limiter: &Limiter,
        answer: &Answer<Key>,
        asked: Timestamp,
        moment: Moment,
    ) {
        self.holders = answer.holders.max(1);
        let after = self.without_lease();
        let until = asked + answer.lasts;
        self.leased_until = self.leased_until.max(until);
        for grant in &answer.grants {
            let Some(held) = self.limits.get_mut(&grant.key) else { continue };
            if until < held.until {
                // A later answer has overtaken this one.
                continue;
            }
            (held.share, held.until, held.is_in_force) = (grant.share, until, true);
            // What this one did not use may have been granted to others for as long again.
            let after = if self.outage == Outage::Safe { after.min(grant.share) } else { after };
            let allowance = Allowance { share: grant.share, until, after };
            limiter.shift(&grant.key.0, &grant.key.1, allowance, moment);
        }
    }

    /// Routers that were known last.
    pub fn holders(&self) -> u32 {
        self.holders
    }

    /// Limits that are asked for.
    pub fn len(&self) -> usize {
        self.limits.len()
    }

    pub fn is_empty(&self) -> bool {
        self.limits.is_empty()
    }

    /// How long the last answer still holds; zero: what holds without one is in force.
    pub fn leased_for(&self, now: Timestamp) -> Duration {
        self.leased_until.since(now)
    }

    /// Leases that ended so long ago that nobody has been granted on their account any more.
    fn lift(&mut self, limiter: &Limiter, moment: Moment) {
        let allowance = self.unasked();
        for (key, held) in &mut self.limits {
            if held.is_in_force && moment.now >= held.until + LEASE {
                held.is_in_force = false;
                limiter.shift(&key.0, &key.1, allowance, moment);
            }
        }
    }

    fn without_lease(&self) -> Share {
        match self.outage {
            Outage::Safe => Share::of(1, self.holders.into()),
            Outage::Closed => Share::NONE,
            Outage::Open => Share::ALL,
        }
    }
}
