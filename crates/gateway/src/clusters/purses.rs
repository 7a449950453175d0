//! What tenants have spent, and what shaping has saved.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use fleet::Choice;
use fleet::shaping::{Budget, Money, Overdrawn, Purse, Savings, Stance};
use types::TenantName;

/// Of each tenant with a budget, and of all members.
#[derive(Debug, Default)]
pub(crate) struct Purses {
    purses: Mutex<HashMap<TenantName, Purse>>,
    savings: Mutex<Savings<Arc<str>>>,
}

impl Purses {
    pub(crate) fn ask(
        &self,
        tenant: &TenantName,
        budget: &Budget,
        unix: Duration,
    ) -> Result<Stance, Overdrawn> {
        let mut purses = lock(&self.purses);
        match purses.get_mut(tenant) {
            Some(purse) => purse.ask(budget, unix),
            None => purses.entry(tenant.clone()).or_default().ask(budget, unix),
        }
    }

    pub(crate) fn spend(&self, tenant: &TenantName, budget: &Budget, cost: Money, unix: Duration) {
        lock(&self.purses).entry(tenant.clone()).or_default().spend(budget, cost, unix);
    }

    pub(crate) fn remaining(&self, tenant: &TenantName, budget: &Budget) -> Money {
        lock(&self.purses).get(tenant).map_or(budget.amount, |purse| purse.remaining(budget))
    }

    /// * `went`: 0 if the first member answered, 1 if the second.
    pub(crate) fn save(&self, member: &Arc<str>, choice: &Choice, went: usize) {
        lock(&self.savings).add(member.clone(), choice, went);
    }

    pub(crate) fn savings<T>(&self, with: impl FnOnce(&Savings<Arc<str>>) -> T) -> T {
        with(&lock(&self.savings))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
