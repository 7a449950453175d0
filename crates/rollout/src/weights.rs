//! Shares of traffic as whole numbers.

use xxhash_rust::xxh3::xxh3_64_with_seed;

/// The largest weight, as `InferenceModelRewrite` has it.
pub const WEIGHT_MAX: u32 = 1_000_000;

/// One weight for each target, in the document's order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Weights(Box<[u32]>);

impl Weights {
    pub fn new(weights: impl Into<Box<[u32]>>) -> Self {
        Self(weights.into())
    }

    pub fn get(&self, target: usize) -> u32 {
        self.0.get(target).copied().unwrap_or(0)
    }

    /// Part of the traffic, 0 to 1.
    pub fn share(&self, target: usize) -> f64 {
        match self.total(|_| true) {
            0 => 0.0,
            total => f64::from(self.get(target)) / total as f64,
        }
    }

    pub fn is_zero(&self) -> bool {
        self.total(|_| true) == 0
    }

    /// The target at a point of a [`Sequence`](crate::Sequence), of those that may be chosen; `None`
    /// if none of them has a weight.
    pub fn at(&self, point: u64, may: impl Fn(usize) -> bool) -> Option<usize> {
        let total = self.total(&may);
        // Scales the circle to the weights without a division: below `total`, always.
        let mut rest = ((u128::from(point) * u128::from(total)) >> 64) as u64;
        for (target, weight) in self.kept(&may) {
            if rest < weight {
                return Some(target);
            }
            rest -= weight;
        }
        None
    }

    /// The target that a key always gets, of those that may be chosen.
    ///
    /// Weighted rendezvous hashing: when one weight grows, keys move to that target and nowhere else.
    ///
    /// * `salts`: one for each target, which stays with it when others come and go.
    pub fn for_key(&self, key: u64, salts: &[u64], may: impl Fn(usize) -> bool) -> Option<usize> {
        let cost = |target: usize, weight: u64| {
            let salt = salts.get(target).copied().unwrap_or_default();
            let hash = xxh3_64_with_seed(&key.to_le_bytes(), salt);
            // Strictly between 0 and 1, so that the logarithm is finite and not zero.
            let uniform = ((hash >> 11) as f64 + 0.5) / (1_u64 << 53) as f64;
            -uniform.ln() / weight as f64
        };
        self.kept(&may)
            .map(|(target, weight)| (target, cost(target, weight)))
            .min_by(|(_, one), (_, other)| one.total_cmp(other))
            .map(|(target, _)| target)
    }

    /// The same, but 0 for those that may not be chosen.
    #[must_use]
    pub fn only(&self, may: impl Fn(usize) -> bool) -> Self {
        let keep = |(target, weight): (usize, &u32)| if may(target) { *weight } else { 0 };
        Self(self.0.iter().enumerate().map(keep).collect())
    }

    /// All traffic to one target.
    #[must_use]
    pub fn all_to(&self, target: usize) -> Self {
        Self((0..self.0.len()).map(|at| u32::from(at == target)).collect())
    }

    #[must_use]
    pub fn with(&self, target: usize, weight: u32) -> Self {
        let mut weights = self.0.clone();
        if let Some(place) = weights.get_mut(target) {
            *place = weight;
        }
        Self(weights)
    }

    /// Gives `target` this share (0 to 1); the others keep their proportions, and where they have none
    /// the rest goes to `otherwise`.
    #[must_use]
    pub fn stepped(&self, target: usize, share: f64, otherwise: usize) -> Self {
        let own = (share.clamp(0.0, 1.0) * f64::from(WEIGHT_MAX)).round() as u32;
        let rest = u64::from(WEIGHT_MAX - own);
        let others = self.total(|at| at != target);
        let weight = |at: usize| match at {
            _ if at == target => own,
            _ if others == 0 => {
                if at == otherwise {
                    rest as u32
                } else {
                    0
                }
            }
            _ => (u64::from(self.get(at)) * rest / others) as u32,
        };
        Self((0..self.0.len()).map(weight).collect()).reduced()
    }

    /// The smallest whole numbers with the same proportions.
    fn reduced(mut self) -> Self {
        let divisor = self.0.iter().copied().fold(0, gcd);
        if divisor > 1 {
            self.0.iter_mut().for_each(|weight| *weight /= divisor);
        }
        self
    }

    fn total(&self, may: impl Fn(usize) -> bool) -> u64 {
        self.kept(&may).map(|(_, weight)| weight).sum()
    }

    fn kept<'a>(
        &'a self,
        may: &'a impl Fn(usize) -> bool,
    ) -> impl Iterator<Item = (usize, u64)> + 'a {
        let weights = self.0.iter().enumerate();
        weights
            .filter(|(target, weight)| **weight > 0 && may(*target))
            .map(|(target, weight)| (target, u64::from(*weight)))
    }
}

fn gcd(one: u32, other: u32) -> u32 {
    if other == 0 { one } else { gcd(other, one % other) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::Sequence;

    const ALL: fn(usize) -> bool = |_| true;

    fn weights(of: &[u32]) -> Weights {
        Weights::new(of)
    }

    fn dealt(weights: &Weights, requests: usize, targets: usize) -> Vec<usize> {
        let sequence = Sequence::new(7);
        let mut counts = vec![0; targets];
        for _ in 0..requests {
            counts[weights.at(sequence.next(), ALL).unwrap()] += 1;
        }
        counts
    }

    #[test]
    fn ten_thousand_requests_at_ninety_to_ten_are_within_one_per_mille() {
        let counts = dealt(&weights(&[90, 10]), 10_000, 2);
        assert!(counts[1].abs_diff(1000) <= 10, "{counts:?}");
    }

    #[test]
    fn threads_that_race_keep_the_split_together() {
        let weights = weights(&[90, 10]);
        let sequence = Sequence::new(0);
        let canary: usize = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8)
                .map(|_| {
                    scope.spawn(|| {
                        let points = (0..1250).map(|_| sequence.next());
                        points.filter(|point| weights.at(*point, ALL) == Some(1)).count()
                    })
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        assert!(canary.abs_diff(1000) <= 10, "{canary}");
    }

    #[test]
    fn a_target_without_weight_is_never_chosen_and_none_if_all_are() {
        assert_eq!(dealt(&weights(&[0, 5, 0]), 1000, 3), [0, 1000, 0]);
        assert_eq!(weights(&[0, 0]).at(u64::MAX, ALL), None);
        assert_eq!(weights(&[1, 0]).for_key(3, &[1, 2], |target| target != 0), None);
    }

    #[test]
    fn keys_keep_the_weights_too() {
        let weights = weights(&[90, 10]);
        let canary = (0..10_000_u64).filter(|key| weights.for_key(*key, &[1, 2], ALL) == Some(1));
        assert!(canary.count().abs_diff(1000) < 100);
    }

    #[test]
    fn when_a_canary_grows_only_those_who_must_move_and_only_to_it() {
        let salts = [11, 22];
        let (before, after) = (weights(&[90, 10]), weights(&[80, 20]));
        let mut moved = 0_u32;
        for key in 0..10_000 {
            let (from, to) = (before.for_key(key, &salts, ALL), after.for_key(key, &salts, ALL));
            if from != to {
                assert_eq!((from, to), (Some(0), Some(1)));
                moved += 1;
            }
        }
        assert!(moved.abs_diff(1000) < 100, "{moved}");
    }

    #[test]
    fn a_target_that_leaves_moves_nobody_else() {
        let (salts, all) = ([1, 2, 3], weights(&[50, 30, 20]));
        for key in 0..2000 {
            let before = all.for_key(key, &salts, ALL).unwrap();
            let after = all.for_key(key, &salts, |target| target != 1).unwrap();
            assert!(before == 1 || before == after);
        }
    }

    #[test]
    fn a_step_keeps_the_proportions_of_the_others() {
        assert_eq!(weights(&[90, 10]).stepped(1, 0.25, 0), weights(&[3, 1]));
        assert_eq!(weights(&[60, 30, 10]).stepped(2, 0.4, 0), weights(&[2, 1, 2]));
        assert_eq!(weights(&[0, 10]).stepped(1, 0.25, 0), weights(&[3, 1]));
        assert_eq!(weights(&[90, 10]).stepped(1, 1.0, 0), weights(&[0, 1]));
    }

    proptest! {
        #[test]
        fn every_point_has_a_target_and_shares_are_kept(
            of in proptest::collection::vec(0_u32..=WEIGHT_MAX, 1..6),
            start: u64,
        ) {
            let weights = weights(&of);
            prop_assume!(!weights.is_zero());
            let sequence = Sequence::new(start);
            let mut counts = vec![0_u32; of.len()];
            for _ in 0..2000 {
                counts[weights.at(sequence.next(), ALL).unwrap()] += 1;
            }
            for (target, count) in counts.into_iter().enumerate() {
                let wanted = weights.share(target) * 2000.0;
                prop_assert!((f64::from(count) - wanted).abs() < 8.0, "{count} for {wanted}");
            }
        }

        #[test]
        fn a_step_gives_the_share_that_was_asked_for(
            of in proptest::collection::vec(0_u32..=WEIGHT_MAX, 2..6), per_mille in 0_u32..=1000,
        ) {
            let share = f64::from(per_mille) / 1000.0;
            let stepped = weights(&of).stepped(1, share, 0);
            prop_assert!((stepped.share(1) - share).abs() < 1e-4);
        }
    }
}
