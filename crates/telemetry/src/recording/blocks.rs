//! Numbers blocks in the order of first sight.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// Blocks that are remembered at least after their last use; twice as many at most. With 64 tokens
/// each they stand for 34 million tokens of prompt and take some 40 MiB.
const REMEMBERED: usize = 1 << 19;

/// From hashes to numbers. A block that was not seen for long is forgotten and gets a new number.
#[derive(Debug)]
pub(super) struct Numbers {
    remembered: usize,
    /// Used since the last turn, and before it.
    recent: Map,
    old: Map,
    next: u64,
}

type Map = HashMap<u64, u64, BuildHasherDefault<Hashed>>;

impl Default for Numbers {
    fn default() -> Self {
        Self::new(REMEMBERED)
    }
}

impl Numbers {
    pub(super) fn new(remembered: usize) -> Self {
        Self { remembered, recent: Map::default(), old: Map::default(), next: 0 }
    }

    /// The numbers of a prompt's blocks as runs.
    pub(super) fn runs(&mut self, hashes: &[u64]) -> Vec<(u64, u32)> {
        let mut runs: Vec<(u64, u32)> = Vec::new();
        for hash in hashes {
            let number = self.number(*hash);
            match runs.last_mut() {
                Some((first, length)) if *first + u64::from(*length) == number => *length += 1,
                _ => runs.push((number, 1)),
            }
        }
        runs
    }

    fn number(&mut self, hash: u64) -> u64 {
        if let Some(number) = self.recent.get(&hash) {
            return *number;
        }
        let number = self.old.remove(&hash).unwrap_or_else(|| {
            self.next += 1;
            self.next - 1
        });
        if self.recent.len() >= self.remembered {
            self.old = std::mem::take(&mut self.recent);
        }
        self.recent.insert(hash, number);
        number
    }
}

/// The keys are hashes already, under a key that no client knows.
#[derive(Debug, Default)]
pub(super) struct Hashed(u64);

impl Hasher for Hashed {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_prompt_is_one_run_and_a_shared_start_is_another() {
        let mut numbers = Numbers::default();
        assert_eq!(numbers.runs(&[10, 11, 12]), [(0, 3)]);
        assert_eq!(numbers.runs(&[10, 11, 90, 91]), [(0, 2), (3, 2)]);
        assert_eq!(numbers.runs(&[10, 11, 90, 91]), [(0, 2), (3, 2)]);
        assert_eq!(numbers.runs(&[]), []);
    }

    #[test]
    fn what_is_used_is_remembered_and_what_is_not_is_forgotten() {
        let mut numbers = Numbers::new(100);
        numbers.runs(&[1]);
        numbers.runs(&[2]);
        for other in 0..1000 {
            numbers.runs(&[1, 1000 + other]);
        }
        assert_eq!(numbers.runs(&[1]), [(0, 1)]);
        assert!(numbers.runs(&[2])[0].0 > 1000, "it got a new number");
        assert!(numbers.recent.len() + numbers.old.len() <= 200);
    }
}
