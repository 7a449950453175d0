//! Spreads prompts that hit no cache over endpoints by turns, so that caches fill evenly.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::Scorer;
use crate::{Candidate, RequestView};

/// A request with any cache hit: 0.5 for all. A cold one: 1 − rank / (n − 1), ranked by when the
/// endpoint last got a cold request, longest ago first; never is best, and all of those tie.
///
/// Source: `no-hit-lru-scorer` of llm-d.
#[derive(Debug, Default)]
pub struct NoHitLruScorer {
    order: Mutex<Order>,
}

const NONE: u16 = u16::MAX;

/// Slots from longest ago to just now, as a linked list inside arrays indexed by slot.
#[derive(Debug)]
struct Order {
    oldest: u16,
    newest: u16,
    links: Vec<Link>,
    lookup: u32,
}

#[derive(Clone, Copy, Debug)]
struct Link {
    older: u16,
    newer: u16,
    is_listed: bool,
    /// The lookup in which the slot was last a candidate, and its rank there.
    lookup: u32,
    rank: u32,
}

const UNLISTED: Link = Link { older: NONE, newer: NONE, is_listed: false, lookup: 0, rank: 0 };

impl Default for Order {
    fn default() -> Self {
        Self { oldest: NONE, newest: NONE, links: Vec::new(), lookup: 0 }
    }
}

impl Scorer for NoHitLruScorer {
    fn name(&self) -> &'static str {
        "no-hit-lru"
    }

    fn score(&self, _request: &RequestView<'_>, candidates: &[Candidate], scores: &mut [f32]) {
        if !is_cold(candidates) {
            scores.fill(0.5);
            return;
        }
        if candidates.len() == 1 {
            scores.fill(1.0);
            return;
        }
        let mut order = self.lock();
        order.rank(candidates);
        // In f64 as the source does it, so that the rounded score is the same.
        let last = (candidates.len() - 1) as f64;
        for (score, candidate) in scores.iter_mut().zip(candidates) {
            let rank = f64::from(order.links[candidate.slot.index()].rank);
            *score = (1.0 - (rank / last).min(1.0)) as f32;
        }
    }

    fn picked(&self, _request: &RequestView<'_>, candidates: &[Candidate], picked: &Candidate) {
        if is_cold(candidates) {
            self.lock().touch(picked.slot.0);
        }
    }
}

impl NoHitLruScorer {
    fn lock(&self) -> MutexGuard<'_, Order> {
        self.order.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_cold(candidates: &[Candidate]) -> bool {
    candidates.iter().all(|candidate| candidate.matched_blocks == 0)
}

impl Order {
    /// Writes each candidate's rank: never used 0, then by age behind those.
    fn rank(&mut self, candidates: &[Candidate]) {
        self.lookup = self.lookup.wrapping_add(1);
        let mut rank = 0;
        for candidate in candidates {
            self.grow(candidate.slot.0);
            let link = &mut self.links[candidate.slot.index()];
            link.lookup = self.lookup;
            link.rank = 0;
            rank += u32::from(!link.is_listed);
        }
        let mut slot = self.oldest;
        while slot != NONE {
            let link = &mut self.links[usize::from(slot)];
            if link.lookup == self.lookup {
                link.rank = rank;
                rank += 1;
            }
            slot = link.newer;
        }
    }

    fn touch(&mut self, slot: u16) {
        if slot == NONE || self.newest == slot {
            return;
        }
        self.grow(slot);
        let link = self.links[usize::from(slot)];
        if link.is_listed {
            match self.links.get_mut(usize::from(link.older)) {
                Some(older) => older.newer = link.newer,
                None => self.oldest = link.newer,
            }
            if let Some(newer) = self.links.get_mut(usize::from(link.newer)) {
                newer.older = link.older;
            }
        }
        match self.links.get_mut(usize::from(self.newest)) {
            Some(newest) => newest.newer = slot,
            None => self.oldest = slot,
        }
        let link = &mut self.links[usize::from(slot)];
        (link.older, link.newer, link.is_listed) = (self.newest, NONE, true);
        self.newest = slot;
    }

    fn grow(&mut self, slot: u16) {
        if self.links.len() <= usize::from(slot) {
            self.links.resize(usize::from(slot) + 1, UNLISTED);
        }
    }
}
