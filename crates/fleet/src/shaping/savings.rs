//! What choosing by price has saved.

use crate::choice::{Choice, Reason};
use crate::shaping::Money;

/// What was spent, and what it would have been at the members that answer soonest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    pub requests: u64,
    /// Of them, those that went where they went for their price.
    pub shaped: u64,
    pub spent: Money,
    pub soonest: Money,
}

/// A tally for each key: a tenant, a member.
#[derive(Clone, Debug, Default)]
pub struct Savings<K> {
    tallies: std::collections::BTreeMap<K, Tally>,
}

impl Tally {
    /// Negative: being soonest somewhere cheaper would have been possible; it is what failovers cost.
    pub fn saved_units(&self) -> f64 {
        self.soonest.units() - self.spent.units()
    }

    fn add(&mut self, choice: &Choice, went: usize) {
        let Some(pick) = choice.members().nth(went) else { return };
        self.requests += 1;
        self.shaped += u64::from(choice.reason == Reason::Shaped);
        self.spent += pick.price;
        self.soonest += choice.price_soonest;
    }
}

impl<K: Ord> Savings<K> {
    /// * `went`: 0 if the first member answered, 1 if the second.
    pub fn add(&mut self, key: K, choice: &Choice, went: usize) {
        self.tallies.entry(key).or_default().add(choice, went);
    }

    pub fn iter(&self) -> impl Iterator<Item = (&K, &Tally)> {
        self.tallies.iter()
    }

    pub fn total(&self) -> Tally {
        self.tallies.values().fold(Tally::default(), |sum, tally| Tally {
            requests: sum.requests + tally.requests,
            shaped: sum.shaped + tally.shaped,
            spent: sum.spent + tally.spent,
            soonest: sum.soonest + tally.soonest,
        })
    }
}
