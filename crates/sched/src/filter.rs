//! Drops endpoints that must not, or had better not, get the request.
//!
//! A filter that protects against our own wrong beliefs (stale, ejected) never empties the list:
//! a pool that looks wholly broken is tried all the same.

mod labels;
mod prefix_affinity;
mod room;
#[cfg(test)]
mod tests;

pub use labels::LabelFilter;
pub use prefix_affinity::{ExpectedWait, PrefixAffinityFilter};
pub use room::{Ceiling, CeilingFilter, ConcurrencyFilter, UtilizationFilter};

use crate::{Candidate, Health, LoraFit, RequestView};

/// Says which candidates stay.
pub trait Filter: Send + Sync {
    /// Name in configuration, metrics and receipts; never changes once released.
    fn name(&self) -> &'static str;

    /// Sets `keep` to `false` for each candidate that is dropped.
    ///
    /// * `candidates`, `keep`: same length `n >= 1`; `keep` comes in all `true`.
    ///
    /// Not called when no candidate is excluded and all are in order ([`Candidate::is_in_order`]),
    /// unless [`Self::knows_more`].
    ///
    /// Cannot fail. Request path: no I/O, no allocation.
    fn filter(&self, request: &RequestView<'_>, candidates: &[Candidate], keep: &mut [bool]);

    /// Whether it may drop a candidate that is in order.
    fn knows_more(&self) -> bool {
        false
    }
}

/// Drops endpoints that cannot serve the request's adapter, and those that the request excludes.
#[derive(Clone, Copy, Debug, Default)]
pub struct NotServingFilter;

impl Filter for NotServingFilter {
    fn name(&self) -> &'static str {
        "not-serving"
    }

    fn filter(&self, request: &RequestView<'_>, candidates: &[Candidate], keep: &mut [bool]) {
        for (keep, candidate) in keep.iter_mut().zip(candidates) {
            *keep = candidate.lora != LoraFit::NotServed
                && !request.excluded.contains(&candidate.endpoint);
        }
    }
}

/// Drops endpoints whose engine sleeps, even if none is left: nothing would answer.
#[derive(Clone, Copy, Debug, Default)]
pub struct AsleepFilter;

impl Filter for AsleepFilter {
    fn name(&self) -> &'static str {
        "asleep"
    }

    fn filter(&self, _request: &RequestView<'_>, candidates: &[Candidate], keep: &mut [bool]) {
        for (keep, candidate) in keep.iter_mut().zip(candidates) {
            *keep = !candidate.asleep;
        }
    }
}

/// Drops ejected endpoints.
///
/// When more than `failing_max` of the pool answer with failures, the fault is likelier shared
/// (a bad deployment, the network) than theirs: those stay (panic). Endpoints that take no
/// connection stay out as long as any other is left.
#[derive(Clone, Copy, Debug)]
pub struct EjectedFilter {
    /// Largest share of the pool to drop for failures, `0.0..=1.0`. Default 0.5.
    pub failing_max: f32,
}

impl EjectedFilter {
    pub(crate) const NAME: &str = "ejected";
}

impl Default for EjectedFilter {
    fn default() -> Self {
        Self { failing_max: 0.5 }
    }
}

impl Filter for EjectedFilter {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn filter(&self, _request: &RequestView<'_>, candidates: &[Candidate], keep: &mut [bool]) {
        let count = |health: Health| candidates.iter().filter(|c| c.health == health).count();
        if candidates.iter().all(|candidate| !candidate.ejected) {
            return;
        }
        let failing = count(Health::Failing);
        let is_panic = failing as f32 > self.failing_max * candidates.len() as f32;
        let is_usable = |candidate: &Candidate| {
            !candidate.ejected || (is_panic && candidate.health == Health::Failing)
        };
        let keep_only = |keep: &mut [bool], wanted: &dyn Fn(&Candidate) -> bool| {
            for (keep, candidate) in keep.iter_mut().zip(candidates) {
                *keep = wanted(candidate);
            }
        };
        if candidates.iter().any(is_usable) {
            keep_only(keep, &is_usable);
        } else if count(Health::Held) > 0 {
            keep_only(keep, &|candidate| candidate.health == Health::Held);
        }
    }
}

/// Drops endpoints whose last scrape is past its limit, unless that is more than half of them: then
/// the fault is likelier ours than theirs, and what we account ourselves decides. Were the first that is
/// read again to stand alone, it would get everything.
#[derive(Clone, Copy, Debug, Default)]
pub struct StaleFilter;

impl Filter for StaleFilter {
    fn name(&self) -> &'static str {
        "stale"
    }

    fn filter(&self, _request: &RequestView<'_>, candidates: &[Candidate], keep: &mut [bool]) {
        let stale = candidates.iter().filter(|candidate| candidate.stale).count();
        if 2 * stale > candidates.len() {
            return;
        }
        for (keep, candidate) in keep.iter_mut().zip(candidates) {
            *keep = !candidate.stale;
        }
    }
}
