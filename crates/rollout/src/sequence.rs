//! Points that fill a circle evenly, however few of them are taken.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// 2⁶⁴ divided by the golden ratio, made odd.
const STEP: u64 = 0x9E37_79B9_7F4A_7C15;

/// Successive points on a circle of 2⁶⁴, each the golden angle further than the last.
///
/// Of any run of `n` points a share `s` of the circle gets `n·s` of them, give or take a handful
/// (the discrepancy grows with the logarithm of `n`; chance would miss by the root of `n`). Unlike
/// with round robin no rhythm of the clients' meets a rhythm of ours: of every second or every tenth
/// point the same is true. Threads share one atomic addition, so nothing is counted twice or skipped.
#[derive(Debug)]
pub struct Sequence(AtomicU64);

impl Sequence {
    /// * `start`: the first point; other for each gateway, so that several do not go in step.
    pub fn new(start: u64) -> Self {
        Self(AtomicU64::new(start))
    }

    pub fn next(&self) -> u64 {
        // Relaxed: the points are all that is shared.
        self.0.fetch_add(STEP, Relaxed)
    }

    /// The point that [`Self::next`] would give.
    pub fn peek(&self) -> u64 {
        self.0.load(Relaxed)
    }

    /// Takes a point; whether it is in this share of the circle (0 to 1).
    pub fn takes(&self, share: f64) -> bool {
        share >= 1.0 || (self.next() as f64) < share * (u64::MAX as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_of_any_run_is_kept_within_a_handful() {
        for share in [0.01, 0.1, 0.333, 0.5, 0.9] {
            let sequence = Sequence::new(12_345);
            let mut taken = 0_u32;
            for n in 1..=10_000 {
                taken += u32::from(sequence.takes(share));
                let wanted = f64::from(n) * share;
                assert!((f64::from(taken) - wanted).abs() < 4.0, "{taken} of {n} at {share}");
            }
        }
    }

    #[test]
    fn clients_that_take_turns_get_the_same_share_each() {
        for clients in [2, 3, 10] {
            let sequence = Sequence::new(0);
            let mut taken = vec![0_u32; clients];
            for n in 0..10_000 * clients {
                taken[n % clients] += u32::from(sequence.takes(0.5));
            }
            assert!(taken.iter().all(|count| count.abs_diff(5000) < 10), "{taken:?}");
        }
    }
}
