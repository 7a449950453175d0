//! Who divides.

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::hash::Hash;
use std::time::Duration;

use limits::Share;
use types::Timestamp;

use crate::lease::division::divide;
use crate::lease::{LEASE, REFRESH};

/// A holder that does not ask any more may be cut off and spending its safe part. It is reserved for so long.
const REMEMBERED: Duration = Duration::from_secs(600);

/// What a holder asks for, each [`crate::lease::REFRESH`], also if it wants nothing: so the authority knows that it
/// is there.
#[derive(Clone, Debug, PartialEq)]
pub struct Ask<K> {
    /// The same after a restart, if that can be.
    pub holder: u64,
    /// As many holders as it was last told; 0: never told.
    pub holders: u32,
    /// How long the last answer that it got still holds. Zero: it spends its safe part.
    pub leased_for: Duration,
    pub wants: Vec<Want<K>>,
}

/// One limit of an [`Ask`].
#[derive(Clone, Debug, PartialEq)]
pub struct Want<K> {
    pub key: K,
    /// Part of the limit that was asked for lately; above 1: more than all.
    pub demand: f64,
    /// What it holds now by a lease.
    pub holds: Share,
}

/// What a holder may spend.
#[derive(Clone, Debug, PartialEq)]
pub struct Grant<K> {
    pub key: K,
    pub share: Share,
}

/// The answer to an [`Ask`].
#[derive(Clone, Debug, PartialEq)]
pub struct Answer<K> {
    /// Among whom a limit is divided when the authority is gone.
    pub holders: u32,
    /// How long the grants hold, from when they were asked for.
    pub lasts: Duration,
    pub grants: Vec<Grant<K>>,
}

/// Divides limits among holders; one for all of them, or one for each part of the limits.
#[derive(Debug)]
pub struct Authority<K> {
    started: Timestamp,
    reserves: bool,
    /// Holders that there are to be, heard of or not.
    expected: u32,
    holders: HashMap<u64, Known>,
    limits: HashMap<K, Limit>,
    shares: Vec<f64>,
    demands: Vec<f64>,
}

#[derive(Clone, Copy, Debug)]
struct Known {
    asked: Timestamp,
    /// Until then it spends what was granted; from then on perhaps its safe part, unless it tells of a newer answer.
    leased_until: Timestamp,
}

#[derive(Debug, Default)]
struct Limit {
    leases: Vec<Lease>,
}

#[derive(Debug)]
struct Lease {
    holder: u64,
    demand: f64,
    asked: Timestamp,
    /// What was granted, until when; answers may be lost, so the holder knows one of them.
    granted: Vec<(Share, Timestamp)>,
}

impl<K: Clone + Eq + Hash> Authority<K> {
    /// * `reserves`: silent holders may be spending a safe part, which nobody else gets; not so where they refuse
    ///   everything or pass everything when cut off.
    /// * `expected`: holders that there are, as far as is known: those that do not ask are taken for cut off.
    pub fn new(reserves: bool, expected: u32, now: Timestamp) -> Self {
        Self {
            started: now,
            reserves,
            expected,
            holders: HashMap::new(),
            limits: HashMap::new(),
            shares: Vec::new(),
            demands: Vec::new(),
        }
    }

    /// Answers a holder.
    pub fn ask(&mut self, ask: &Ask<K>, now: Timestamp) -> Answer<K> {
        let leased_for = ask.leased_for.min(LEASE);
        let leased_until = now + leased_for;
        self.holders.insert(ask.holder, Known { asked: now, leased_until });
        self.holders.retain(|_, known| now.since(known.asked) < REMEMBERED);
        if self.is_learning(now) {
            // What a former authority knew.
            self.expected = self.expected.max(ask.holders);
        } else if now.since(self.started) >= REMEMBERED {
            self.expected = 0;
        }
        let grants = ask.wants.iter().map(|want| {
            let share = self.grant(ask.holder, want, leased_for, now);
            Grant { key: want.key.clone(), share }
        });
        Answer { grants: grants.collect(), holders: self.known(), lasts: LEASE }
    }

    /// A holder leaves and spends nothing any more.
    pub fn leave(&mut self, holder: u64) {
        if self.holders.remove(&holder).is_some() {
            self.expected = self.expected.saturating_sub(1);
        }
        for limit in self.limits.values_mut() {
            limit.leases.retain(|lease| lease.holder != holder);
        }
    }

    /// Forgets limits of which no lease is out. To be called from time to time.
    pub fn sweep(&mut self, now: Timestamp) {
        self.limits.retain(|_, limit| {
            limit.leases.retain(|lease| lease.is_known(now));
            !limit.leases.is_empty()
        });
    }

    /// Limits of which leases are out.
    pub fn limits(&self) -> usize {
        self.limits.len()
    }

    /// Leases of a limit: holder, share, time left.
    pub fn leases(&self, key: &K, now: Timestamp) -> Vec<(u64, Share, Duration)> {
        let limit = self.limits.get(key);
        let leases = limit.into_iter().flat_map(|limit| &limit.leases);
        let live = leases.filter(|lease| lease.outstanding(now) > 0);
        live.map(|lease| {
            let share = Share::of_parts(lease.outstanding(now));
            let until = lease.granted.iter().map(|(_, until)| *until).max();
            (lease.holder, share, until.map_or(Duration::ZERO, |until| until.since(now)))
        })
        .collect()
    }

    /// Before all leases of a former authority have ended, nothing is known of who holds what.
    fn is_learning(&self, now: Timestamp) -> bool {
        now.since(self.started) < LEASE
    }

    /// Holders that are there or may be.
    fn known(&self) -> u32 {
        u32::try_from(self.holders.len()).unwrap_or(u32::MAX).max(self.expected).max(1)
    }

    /// What one that was cut off may be spending, in 65536ths.
    fn safe(&self) -> u32 {
        if self.reserves { Share::ALL.parts().div_ceil(self.known()) } else { 0 }
    }

    fn grant(
        &mut self,
        holder: u64,
        want: &Want<K>,
        leased_for: Duration,
        now: Timestamp,
    ) -> Share {
        let (safe, all) = (self.safe(), Share::ALL.parts());
        let is_learning = self.is_learning(now);
        let unheard = self.known().saturating_sub(u32::try_from(self.holders.len()).unwrap_or(0));
        let limit = self.limits.entry(want.key.clone()).or_default();
        limit.leases.retain(|lease| lease.is_known(now));
        let at = limit.leases.iter().position(|lease| lease.holder == holder);
        let at = at.unwrap_or_else(|| {
            limit.leases.push(Lease::new(holder, now));
            limit.leases.len() - 1
        });
        let demand = if want.demand.is_finite() { want.demand.max(0.0) } else { 0.0 };
        (limit.leases[at].demand, limit.leases[at].asked) = (demand, now);
        limit.leases[at].acknowledge(want.holds, leased_for, now);
        // What the others may be spending at this instant, and what of that is out of reach for longer.
        let (mut spent, mut reserved) = (unheard * safe, unheard * safe);
        for (other, known) in self.holders.iter().filter(|(other, _)| **other != holder) {
            let mut leases = limit.leases.iter().filter(|lease| lease.holder == *other);
            let leased = leases.next().map_or(0, |lease| lease.outstanding(now));
            let is_leased = now < known.leased_until;
            spent += if is_leased { leased } else { leased.max(safe) };
            reserved += if is_leased { 0 } else { safe };
        }
        let free = all.saturating_sub(spent);
        let share = if is_learning {
            want.holds.parts().min(free)
        } else {
            self.demands.clear();
            self.demands.extend(limit.leases.iter().map(|lease| lease.demand_at(now)));
            let whole = all.saturating_sub(reserved);
            divide(&self.demands, f64::from(whole) / f64::from(all), &mut self.shares);
            let fair = self.shares.get(at).copied().unwrap_or(0.0) * f64::from(all);
            (fair as u32).min(free)
        };
        limit.leases[at].renew(Share::of_parts(share), now);
        Share::of_parts(share)
    }
}

impl Lease {
    fn new(holder: u64, now: Timestamp) -> Self {
        Self { holder, demand: 0.0, asked: now, granted: Vec::new() }
    }

    fn is_known(&self, now: Timestamp) -> bool {
        now.since(self.asked) < LEASE || self.outstanding(now) > 0
    }

    fn demand_at(&self, now: Timestamp) -> f64 {
        if now.since(self.asked) < LEASE { self.demand } else { 0.0 }
    }

    /// What the holder may be spending, in 65536ths.
    fn outstanding(&self, now: Timestamp) -> u32 {
        let live = self.granted.iter().filter(|(_, until)| now < *until);
        live.map(|(share, _)| share.parts()).max().unwrap_or(0)
    }

    /// The holder tells what it knows of; what was granted earlier it has given up.
    fn acknowledge(&mut self, holds: Share, leased_for: Duration, now: Timestamp) {
        let until = now + leased_for;
        self.granted.retain(|(_, granted)| *granted + REFRESH / 2 >= until && now < *granted);
        self.granted.push((holds, until));
    }

    fn renew(&mut self, share: Share, now: Timestamp) {
        self.granted.push((share, now + LEASE));
    }
}
