//! Other models than those that clients ask for: which rule a name has, and where it leads.
//!
//! A rule looks at the name that the client wrote and gives it a target's; the target is then
//! resolved as if the client had named it, but no rule sees it again. Splits live in
//! [`rollout::Rollout`], which outlive changes of the catalog; what they lead to is looked up here
//! each time the catalog is made.

mod actions;
mod build;
mod copies;
#[cfg(test)]
mod tests;
mod view;

use std::collections::HashMap;
use std::hash::Hasher;
use std::sync::Arc;

use config::Sticky;
use rollout::{Rollout, Sample};
use telemetry::metrics::labels;
use telemetry::metrics::{Counter, RewriteMetrics};
use types::{ModelName, PoolName, Timestamp};

use crate::catalog::{Catalog, Target};
use crate::exchange::placement::WAIT_FOR_ENDPOINTS;
use crate::{Caller, Component, Refusal};
pub use actions::{ActionRefused, RolloutAction};
pub(crate) use build::Rollouts;
pub(crate) use copies::CopyPermit;
use copies::Mirroring;
pub use view::{MirrorView, RewriteView, RolloutView, TargetView};

/// The rules in force.
#[derive(Debug, Default)]
pub struct Rewrites {
    exact: HashMap<ModelName, Arc<Matched>>,
    /// Rules without matches, in order.
    catch_all: Vec<Arc<Matched>>,
    /// Those that are of one pool, and what they are asked by where a route has chosen it.
    of_pools: HashMap<PoolName, OfPool>,
    /// All of them, in document order.
    rules: Vec<Arc<Rule>>,
}

/// The rules of one pool; the first of a name counts.
#[derive(Debug, Default)]
struct OfPool {
    exact: HashMap<ModelName, Arc<Matched>>,
    catch_all: Option<Arc<Matched>>,
}

/// A rule by the way that a request came to it.
#[derive(Debug)]
pub(crate) struct Matched {
    pub(crate) rule: Arc<Rule>,
    /// In the order of the rule's targets.
    decisions: Vec<Arc<Counter>>,
}

/// One rule, with what its targets stand for now.
#[derive(Debug)]
pub(crate) struct Rule {
    /// Name of the rewrite that it belongs to.
    pub(crate) rewrite: Arc<str>,
    /// Position in it.
    index: usize,
    pool: Option<PoolName>,
    matches: Vec<ModelName>,
    sticky: Sticky,
    rollout: Arc<Rollout>,
    pub(crate) targets: Vec<RuleTarget>,
    pub(crate) mirroring: Option<Mirroring>,
}

#[derive(Debug)]
pub(crate) struct RuleTarget {
    /// As the endpoint is asked for it.
    pub(crate) name: ModelName,
    /// `None`: nobody serves it.
    pub(crate) found: Option<Target>,
    metrics: Arc<RewriteMetrics>,
}

/// What a request has that could keep it at its target.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Keys<'a> {
    pub(crate) session: Option<u64>,
    /// `user` in the body.
    pub(crate) user: Option<&'a [u8]>,
    pub(crate) caller: &'a Caller,
}

impl Rewrites {
    pub(crate) fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// The rule for a name that a client wrote.
    pub(crate) fn find(&self, name: &str, catalog: &Catalog) -> Option<&Arc<Matched>> {
        if let Some(exact) = self.exact.get(name) {
            return Some(exact);
        }
        let home = catalog.get(name).map(|target| &target.pool.name);
        let home = home.or(catalog.catch_all.as_ref().map(|pool| &pool.name));
        self.catch_all
            .iter()
            .find(|matched| matched.rule.pool.is_none() || matched.rule.pool.as_ref() == home)
    }

    /// The rule for a name in a pool that a route has chosen.
    pub(crate) fn find_in(&self, pool: &PoolName, name: &str) -> Option<&Arc<Matched>> {
        let rules = self.of_pools.get(pool)?;
        rules.exact.get(name).or(rules.catch_all.as_ref())
    }

    /// Names of rules that nobody serves; clients can use them all the same.
    pub(crate) fn aliases<'a>(
        &'a self,
        catalog: &'a Catalog,
    ) -> impl Iterator<Item = (&'a ModelName, &'a Rule)> + 'a {
        let unserved = self.exact.iter().filter(|(name, _)| catalog.get(name.as_str()).is_none());
        unserved.map(|(name, matched)| (name, &*matched.rule))
    }
}

impl Matched {
    /// Books that a request goes to this target.
    pub(crate) fn count(&self, target: usize) {
        if let Some(decisions) = self.decisions.get(target) {
            decisions.inc();
        }
    }

    /// Nobody serves a target that has a weight.
    pub(crate) fn no_target(&self) -> Refusal {
        Refusal::new(
            503,
            "no_endpoints",
            Component::Picker,
            labels::Refusal::Overloaded,
            format!("nobody serves any target of the rewrite `{}` now", self.rule.rewrite),
        )
        .with_retry_after(WAIT_FOR_ENDPOINTS)
    }
}

impl Rule {
    /// The target of the next request; `None` if nobody serves any that has a weight.
    pub(crate) fn choose(&self, keys: Keys<'_>) -> Option<usize> {
        self.rollout.choose(self.key(keys), |at| self.is_served(at))
    }

    /// What [`Self::choose`] would say; nothing is dealt out.
    pub(crate) fn preview(&self, keys: Keys<'_>) -> Option<usize> {
        self.rollout.preview(self.key(keys), |at| self.is_served(at))
    }

    /// The pool that a name of this rule is at home in: the stable target's, else the first's.
    pub(crate) fn home(&self) -> Option<&Target> {
        let stable = self.targets.get(self.rollout.stable()).and_then(|one| one.found.as_ref());
        stable.or_else(|| self.targets.iter().find_map(|target| target.found.as_ref()))
    }

    /// Notes how a request to a target ended, and takes the target back if that was one too many.
    pub(crate) fn record(
        &self,
        target: usize,
        outcome: labels::Outcome,
        sample: Sample,
        now: Timestamp,
    ) {
        let Some(known) = self.targets.get(target) else { return };
        known.metrics.requests.of(outcome).inc();
        // Time that a client gave up after is no time to a token.
        if let (Some(ttft), Some(_)) = (sample.ttft, sample.failed) {
            known.metrics.ttft.observe(ttft);
        }
        let Some(back) = self.rollout.record(target, sample, now) else { return };
        let status = self.rollout.status(now);
        let Some(back) = status.targets.get(back) else { return };
        let reason = back.rolled_back.as_ref().map(|back| back.reason.to_string());
        let (rewrite, rule, target) = (&*self.rewrite, self.index, &*back.name);
        tracing::warn!(
            %rewrite,
            rule,
            %target,
            reason = reason.unwrap_or_default(),
            "rolled back: the target gets no more requests until `wicketgate rollout resume`"
        );
        self.publish(now);
    }

    fn is_served(&self, target: usize) -> bool {
        self.targets.get(target).is_some_and(|target| target.found.is_some())
    }

    fn key(&self, keys: Keys<'_>) -> Option<u64> {
        let hashed = |parts: &[&[u8]]| {
            let mut hasher = std::hash::DefaultHasher::new();
            for part in parts {
                hasher.write(part);
                hasher.write_u8(0xff);
            }
            hasher.finish()
        };
        match self.sticky {
            Sticky::None => None,
            Sticky::Session => keys.session,
            Sticky::User => {
                let caller = keys.caller;
                let credential = caller.credential.as_deref();
                let known = credential.map(|credential| {
                    hashed(&[caller.tenant.as_str().as_bytes(), credential.as_bytes()])
                });
                keys.user.map(|user| hashed(&[caller.tenant.as_str().as_bytes(), user])).or(known)
            }
        }
    }

    /// Shows shares and rollbacks in the metrics.
    fn publish(&self, now: Timestamp) {
        let weights = self.rollout.weights().only(|at| self.is_served(at));
        let status = self.rollout.status(now);
        for (at, (target, status)) in self.targets.iter().zip(&status.targets).enumerate() {
            target.metrics.share.set(weights.share(at));
            let was_back = target.metrics.rolled_back.get() != 0;
            target.metrics.rolled_back.set(i64::from(status.rolled_back.is_some()));
            if let (Some(back), false) = (&status.rolled_back, was_back) {
                let reason = match back.reason.kind() {
                    "error_rate" => labels::Rollback::ErrorRate,
                    "ttft" => labels::Rollback::Ttft,
                    _ => labels::Rollback::Operator,
                };
                target.metrics.rollbacks.of(reason).inc();
            }
        }
    }
}
