//! Whose request it is, and which bucket that leads to.

use std::sync::Arc;

use types::{ModelName, Priority, TenantName};

use crate::rule::{Match, Per};

/// What rules look at.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    pub tenant: &'a TenantName,
    /// The credential's name; `None`: the request has none.
    pub key: Option<&'a Arc<str>>,
    /// What the request gets. `None` while the body is not here.
    pub model: Option<&'a ModelName>,
    /// What its client asked for, where that is another name of a closed list: rules fit by either, and
    /// buckets bear this one. `None`: the same, or a name that anybody could make up.
    pub asked_model: Option<&'a ModelName>,
    pub route: &'static str,
    pub priority: Priority,
}

/// Names a bucket of a rule; properties that the rule does not tell apart are `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct BucketName {
    pub tenant: Option<TenantName>,
    pub key: Option<Arc<str>>,
    pub model: Option<ModelName>,
    pub route: Option<&'static str>,
}

impl Subject<'_> {
    /// Whether a rule is for this request, as far as its head tells.
    pub(crate) fn fits(&self, matches: &Match) -> bool {
        let key = self.key.map(|key| &**key);
        (matches.tenants.is_empty() || matches.tenants.contains(self.tenant.as_str()))
            && (matches.keys.is_empty() || key.is_some_and(|key| matches.keys.contains(key)))
            && (matches.models.is_empty() || self.named_in(matches).is_some())
            && (matches.routes.is_empty() || matches.routes.contains(self.route))
            && (matches.priorities.is_empty() || matches.priorities.contains(&self.priority))
    }

    /// * `matches`: of the rule, which the request fits.
    pub(crate) fn bucket(&self, per: Per, matches: &Match) -> BucketName {
        let mut models = self.models();
        let model = if matches.models.is_empty() { models.next() } else { self.named_in(matches) };
        BucketName {
            tenant: per.tenant.then(|| self.tenant.clone()),
            key: self.key.filter(|_| per.key).cloned(),
            model: model.filter(|_| per.model).cloned(),
            route: per.route.then_some(self.route),
        }
    }

    /// The client's name before the one that it stands for.
    fn models(&self) -> impl Iterator<Item = &ModelName> {
        self.asked_model.into_iter().chain(self.model)
    }

    fn named_in(&self, matches: &Match) -> Option<&ModelName> {
        self.models().find(|model| matches.models.contains(model.as_str()))
    }
}

impl BucketName {
    /// Whether an override is for this bucket.
    pub(crate) fn fits(&self, matches: &Match) -> bool {
        let is_in = |set: &std::collections::BTreeSet<Box<str>>, own: Option<&str>| {
            set.is_empty() || own.is_some_and(|own| set.contains(own))
        };
        is_in(&matches.tenants, self.tenant.as_ref().map(TenantName::as_str))
            && is_in(&matches.keys, self.key.as_deref())
            && is_in(&matches.models, self.model.as_ref().map(ModelName::as_str))
            && is_in(&matches.routes, self.route)
    }
}
