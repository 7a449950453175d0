//! GPU time by pool and tenant. Bounded: beyond a number of tenants the rest is one.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;

use types::{PoolName, TenantName};

use super::cell::{By, Counter, Seconds};
use super::labels::{Label, Work};
use super::series::Owned;
use crate::names;

/// Stands for the tenants of a pool beyond its bound.
pub const OTHER_TENANT: &str = "_other";

/// Of one tenant in one pool. Endpoint-seconds: an endpoint with eight GPUs that is busy for a second counts
/// one here.
#[derive(Debug, Default)]
pub struct Usage {
    pub requests: Counter,
    pub input_tokens: Counter,
    pub cached_input_tokens: Counter,
    pub output_tokens: Counter,
    pub seconds: By<Work, Seconds>,
    /// What prompts did not take because their beginning was cached.
    pub saved_seconds: Seconds,
}

impl Usage {
    fn add_seconds(&self, other: &Self) {
        let add = |to: &Seconds, from: &Seconds| to.add(Duration::from_secs_f64(from.get()));
        for kind in Work::ALL {
            add(self.seconds.of(*kind), other.seconds.of(*kind));
        }
        add(&self.saved_seconds, &other.saved_seconds);
    }

    pub(super) fn write(&self, out: &mut Owned<'_, '_>) {
        out.seconds_by(&names::TENANT_GPU_SECONDS, &self.seconds);
        out.seconds(&names::TENANT_GPU_SAVED_SECONDS, &self.saved_seconds);
    }
}

type Tenants = BTreeMap<TenantName, Arc<Usage>>;

/// All rows of [`Usage`].
#[derive(Debug)]
pub struct UsageBook(RwLock<Rows>);

#[derive(Debug)]
struct Rows {
    pools: BTreeMap<PoolName, Tenants>,
    tenants_max: usize,
    series_max: usize,
    /// Those that have series of their own: the first that came.
    named: BTreeSet<TenantName>,
}

impl Default for UsageBook {
    fn default() -> Self {
        Self(RwLock::new(Rows {
            pools: BTreeMap::new(),
            tenants_max: 1000,
            series_max: 20,
            named: BTreeSet::new(),
        }))
    }
}

impl UsageBook {
    /// * `tenants_max`: tenants of one pool that are told apart.
    /// * `series_max`: tenants in all that have series of their own on the page.
    pub fn set_bounds(&self, tenants_max: u32, series_max: u32) {
        let mut rows = self.write();
        rows.tenants_max = tenants_max as usize;
        if rows.series_max == series_max as usize {
            return;
        }
        rows.series_max = series_max as usize;
        rows.named.clear();
        let known: Vec<_> = rows.pools.values().flat_map(BTreeMap::keys).cloned().collect();
        for tenant in &known {
            rows.name(tenant);
        }
    }

    /// The row of a tenant, made on the first call; [`OTHER_TENANT`]'s where there is no room.
    pub fn of(&self, pool: &PoolName, tenant: &TenantName) -> Arc<Usage> {
        let known = self.read();
        if let Some(row) = known.pools.get(pool).and_then(|tenants| tenants.get(tenant)) {
            return Arc::clone(row);
        }
        drop(known);
        let mut rows = self.write();
        let most = rows.tenants_max;
        let tenants = rows.pools.entry(pool.clone()).or_default();
        if tenants.len() < most || tenants.contains_key(tenant) {
            let row = Arc::clone(tenants.entry(tenant.clone()).or_default());
            rows.name(tenant);
            return row;
        }
        Arc::clone(tenants.entry(TenantName::new(OTHER_TENANT)).or_default())
    }

    /// All rows, by pool and tenant.
    pub fn rows(&self) -> Vec<(PoolName, TenantName, Arc<Usage>)> {
        let known = self.read();
        let rows = known.pools.iter().flat_map(|(pool, tenants)| {
            tenants.iter().map(|(tenant, row)| (pool.clone(), tenant.clone(), Arc::clone(row)))
        });
        rows.collect()
    }

    /// The rows that stand on the page: those of the first tenants that came, and in each pool the sum of
    /// all others. A tenant that has series keeps them, so no counter goes back.
    pub(super) fn series(&self) -> Vec<(PoolName, TenantName, Arc<Usage>)> {
        let known = self.read();
        let mut series = Vec::new();
        if known.series_max == 0 {
            return series;
        }
        for (pool, tenants) in &known.pools {
            let (named, others): (Vec<_>, Vec<_>) =
                tenants.iter().partition(|(tenant, _)| known.named.contains(*tenant));
            let of = |(tenant, row): (&TenantName, &Arc<Usage>)| {
                (pool.clone(), tenant.clone(), Arc::clone(row))
            };
            series.extend(named.into_iter().map(of));
            if !others.is_empty() {
                let sum = Usage::default();
                others.iter().for_each(|(_, row)| sum.add_seconds(row));
                series.push((pool.clone(), TenantName::new(OTHER_TENANT), Arc::new(sum)));
            }
        }
        series
    }

    pub(super) fn forget(&self, pool: &PoolName) {
        self.write().pools.remove(pool);
    }

    // A panic elsewhere leaves the rows whole: they are only inserted and removed.
    fn read(&self) -> RwLockReadGuard<'_, Rows> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Rows> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Rows {
    /// Gives a tenant series of its own, while there is room.
    fn name(&mut self, tenant: &TenantName) {
        if self.named.len() < self.series_max && tenant.as_str() != OTHER_TENANT {
            self.named.insert(tenant.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tenants_beyond_the_bound_are_one() {
        let book = UsageBook::default();
        book.set_bounds(2, 0);
        let pool = PoolName::new("chat");
        for name in ["a", "b", "c", "d", "a"] {
            book.of(&pool, &TenantName::new(name)).requests.inc();
        }
        let rows: Vec<_> = book
            .rows()
            .into_iter()
            .map(|(_, tenant, row)| (tenant.as_str().to_owned(), row.requests.get()))
            .collect();
        assert_eq!(rows, [("_other".into(), 2), ("a".into(), 2), ("b".into(), 1)]);
    }

    #[test]
    fn the_first_tenants_have_series_and_the_others_are_one_that_never_goes_back() {
        let book = UsageBook::default();
        book.set_bounds(10, 2);
        let pool = PoolName::new("chat");
        let use_one_second = |name| {
            let row = book.of(&pool, &TenantName::new(name));
            row.seconds.of(Work::Decode).add(Duration::from_secs(1));
        };
        let shown = || -> Vec<(String, f64)> {
            let rows = book.series().into_iter();
            let decode = |row: &Usage| row.seconds.of(Work::Decode).get();
            rows.map(|(_, tenant, row)| (tenant.as_str().to_owned(), decode(&row))).collect()
        };
        ["m", "z"].into_iter().for_each(use_one_second);
        assert_eq!(shown(), [("m".into(), 1.0), ("z".into(), 1.0)]);
        // Before the others in the alphabet, but later.
        ["a", "b", "a"].into_iter().for_each(use_one_second);
        assert_eq!(shown(), [("m".into(), 1.0), ("z".into(), 1.0), ("_other".into(), 3.0)]);
        book.set_bounds(10, 0);
        assert!(shown().is_empty());
    }
}
