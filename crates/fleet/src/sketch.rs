//! Which prompts a member has cached, in four kilobytes.

/// Hashes of prompt blocks, 32 bits each.
///
/// Block hashes must be keyed with the fleet's salt, so that a hash tells nothing of the text. As each hash covers
/// all blocks before it, whoever holds a block holds those before it, and the last one found is the match.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sketch {
    /// Sorted.
    hashes: Box<[u32]>,
    /// Where the hashes of each highest byte begin; empty without hashes.
    starts: Box<[u16]>,
}

impl Sketch {
    pub const HASHES_MAX: usize = 1024;
    /// Looks for one prompt; of longer ones every second, third, … block is looked for.
    pub const LOOKS_MAX: usize = 8;

    /// The first [`Sketch::HASHES_MAX`] of them: most valuable first.
    pub fn new(hashes: impl IntoIterator<Item = u32>) -> Self {
        let mut hashes: Vec<u32> = hashes.into_iter().take(Self::HASHES_MAX).collect();
        hashes.sort_unstable();
        hashes.dedup();
        if hashes.is_empty() {
            return Self::default();
        }
        let starts = (0..=256_u64).map(|byte| {
            let start = hashes.partition_point(|hash| u64::from(*hash) < byte << 24);
            u16::try_from(start).unwrap_or(u16::MAX)
        });
        Self { starts: starts.collect(), hashes: hashes.into() }
    }

    /// What of a block's hash goes into a sketch.
    pub fn fold(hash: u64) -> u32 {
        (hash ^ (hash >> 32)) as u32
    }

    /// In ascending order.
    pub fn hashes(&self) -> &[u32] {
        &self.hashes
    }

    pub fn is_empty(&self) -> bool {
        self.hashes.is_empty()
    }

    /// How many of a prompt's blocks are held, from its beginning.
    pub fn matched(&self, blocks: &[u64]) -> usize {
        if self.is_empty() {
            return 0;
        }
        let stride = blocks.len().div_ceil(Self::LOOKS_MAX).max(1);
        let mut end = blocks.len();
        while let Some(last) = end.checked_sub(1).and_then(|last| blocks.get(last)) {
            if self.holds(Self::fold(*last)) {
                return end;
            }
            end = end.saturating_sub(stride);
        }
        0
    }

    fn holds(&self, hash: u32) -> bool {
        let byte = (hash >> 24) as usize;
        let [start, end] = [byte, byte + 1].map(|at| self.starts.get(at).copied().unwrap_or(0));
        let bucket = self.hashes.get(usize::from(start)..usize::from(end)).unwrap_or_default();
        bucket.binary_search(&hash).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_held_prefix_counts() {
        let blocks = [11, 22 << 24, 33 << 26, 44];
        let sketch = Sketch::new([22 << 24, 33 << 26].map(Sketch::fold));
        assert_eq!(sketch.matched(&blocks), 3);
        assert_eq!(sketch.matched(&blocks[..2]), 2);
        assert_eq!(sketch.matched(&[99]), 0);
        assert_eq!(sketch.matched(&[]), 0);
        assert_eq!(Sketch::default().matched(&blocks), 0);
    }

    #[test]
    fn every_hash_is_found_again() {
        let hashes: Vec<u32> = (0..1024_u32).map(|n| n.wrapping_mul(0x9e37_79b9)).collect();
        let sketch = Sketch::new(hashes.iter().copied());
        assert!(hashes.iter().all(|hash| sketch.holds(*hash)));
        assert!(sketch.holds(0) && !sketch.holds(1));
    }

    #[test]
    fn a_sketch_is_never_larger_than_its_bound() {
        assert_eq!(Sketch::new(0..100_000).hashes().len(), Sketch::HASHES_MAX);
    }
}
