//! Chooses from rated candidates: an ordered list, best first, so that a retry has a next one.

#[cfg(test)]
mod tests;

use std::sync::atomic::{AtomicU32, Ordering};

use rand::Rng;

use crate::Candidate;

/// Endpoints in one answer at most.
pub const PICKS_MAX: usize = 4;

/// How to choose from totals.
#[derive(Debug)]
pub enum Picker {
    /// Highest total first; equals in random order.
    MaxScore,
    /// Without replacement, with probability in proportion to the total; zero totals come last,
    /// all zero is uniform. A-Res: order by U^(1/total) (Efraimidis and Spirakis 2006).
    WeightedRandom,
    /// Uniform, whatever the totals.
    Random,
    /// Each endpoint in turn by id, whatever the totals; holds the turn.
    RoundRobin(AtomicU32),
}

impl Picker {
    pub fn name(&self) -> &'static str {
        match self {
            Self::MaxScore => "max-score",
            Self::WeightedRandom => "weighted-random",
            Self::Random => "random",
            Self::RoundRobin(_) => "round-robin",
        }
    }

    /// Writes the indices of the best `picks_max` candidates (at most [`PICKS_MAX`]), best first.
    ///
    /// * `candidates`, `totals`: same length `n >= 1`.
    pub(crate) fn pick<R: Rng + ?Sized>(
        &self,
        candidates: &[Candidate],
        totals: &[f32],
        picks_max: usize,
        order: &mut Vec<u32>,
        rng: &mut R,
    ) {
        order.clear();
        let picks_max = picks_max.clamp(1, PICKS_MAX);
        match self {
            Self::MaxScore => best(totals.iter().copied(), picks_max, order, rng),
            Self::WeightedRandom => {
                // ln U / total orders like U^(1/total) without underflow.
                let mut best = Best::new(picks_max);
                for (index, total) in totals.iter().enumerate() {
                    let uniform = (rng.next_u32() as f32 + 1.0) / (u32::MAX as f32 + 1.0);
                    let key = if *total > 0.0 { uniform.ln() / *total } else { f32::NEG_INFINITY };
                    best.offer(index, key, rng);
                }
                best.write(order);
            }
            Self::Random => best(totals.iter().map(|_| 0.0), picks_max, order, rng),
            Self::RoundRobin(turn) => {
                let by_id = |index: &u32| candidates[*index as usize].endpoint;
                order.extend(0..candidates.len() as u32);
                if !order.is_sorted_by_key(by_id) {
                    order.sort_unstable_by_key(by_id);
                }
                let turn = turn.fetch_add(1, Ordering::Relaxed) as usize % order.len();
                order.rotate_left(turn);
                order.truncate(picks_max);
            }
        }
    }
}

fn best<R: Rng + ?Sized>(
    keys: impl Iterator<Item = f32>,
    picks_max: usize,
    order: &mut Vec<u32>,
    rng: &mut R,
) {
    let mut best = Best::new(picks_max);
    for (index, key) in keys.enumerate() {
        best.offer(index, key, rng);
    }
    best.write(order);
}

/// The best few of a stream, equals in random order.
struct Best {
    picks_max: usize,
    len: usize,
    /// Sorted, best first: key, tie-break, index.
    entries: [(f32, u32, u32); PICKS_MAX],
}

impl Best {
    fn new(picks_max: usize) -> Self {
        Self { picks_max, len: 0, entries: [(0.0, 0, 0); PICKS_MAX] }
    }

    fn offer<R: Rng + ?Sized>(&mut self, index: usize, key: f32, rng: &mut R) {
        let is_full = self.len == self.picks_max;
        if is_full && key < self.entries[self.len - 1].0 {
            return;
        }
        // Each candidate draws its own tie-break, so every order of equals is equally likely.
        let tie = rng.next_u32();
        let is_better = |entry: &(f32, u32, u32)| (key, tie) > (entry.0, entry.1);
        let mut at = self.len;
        while at > 0 && is_better(&self.entries[at - 1]) {
            at -= 1;
        }
        if at == self.picks_max {
            return;
        }
        let end = (self.len + 1).min(self.picks_max);
        self.entries.copy_within(at..end - 1, at + 1);
        self.entries[at] = (key, tie, index as u32);
        self.len = end;
    }

    fn write(&self, order: &mut Vec<u32>) {
        order.extend(self.entries[..self.len].iter().map(|(_, _, index)| *index));
    }
}
