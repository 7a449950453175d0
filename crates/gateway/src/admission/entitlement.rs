//! A request's priority, flow and targets: from what its caller is entitled to and what it asks for.

use std::sync::Arc;
use std::time::Duration;

use config::{Objective, Spec};
use flow::FlowKey;
use types::{ObjectiveName, PoolName, Priority, Timestamp};

use crate::{Caller, Wishes};

/// What a request is entitled to in one pool.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Entitlement {
    pub(crate) flow: FlowKey,
    /// Wanted time to the first token.
    pub(crate) ttft: Option<Duration>,
    pub(crate) deadline: Option<Timestamp>,
    /// The one that holds.
    pub(crate) objective: Option<ObjectiveName>,
    /// It named an objective that is not there.
    pub(crate) is_unknown: bool,
}

impl Entitlement {
    /// The objective that the request names, else the caller's, else `Standard`; never above what the
    /// caller may ask for.
    pub(crate) fn of(
        spec: &Spec,
        pool: &PoolName,
        caller: &Caller,
        wishes: &Wishes,
        received: Timestamp,
    ) -> Self {
        let holds = in_force(spec, Some(pool), caller, wishes);
        let ttft = holds.and_then(|objective| objective.ttft);
        let priority = priority_of(spec, Some(pool), caller, wishes);
        Self {
            flow: FlowKey { id: flow_id(caller, wishes), priority },
            ttft: wishes.ttft.or(ttft),
            deadline: wishes.deadline.map(|within| received + within),
            objective: holds.map(|objective| objective.name.clone()),
            is_unknown: is_unknown_objective(spec, Some(pool), wishes),
        }
    }
}

/// Whether a request names an objective that is not there. Without a pool nobody can tell.
pub(crate) fn is_unknown_objective(spec: &Spec, pool: Option<&PoolName>, wishes: &Wishes) -> bool {
    let named = wishes.objective.as_deref().filter(|_| pool.is_some());
    named.is_some_and(|name| objective(spec, pool, name).is_none())
}

/// A request's priority; without a pool, by the objectives that hold for all.
pub(crate) fn priority_of(
    spec: &Spec,
    pool: Option<&PoolName>,
    caller: &Caller,
    wishes: &Wishes,
) -> Priority {
    let holds = in_force(spec, pool, caller, wishes);
    holds.map_or(Priority::STANDARD, |objective| objective.priority).min(caller.priority_max)
}

/// The objective that the request names, else the caller's.
fn in_force<'a>(
    spec: &'a Spec,
    pool: Option<&PoolName>,
    caller: &Caller,
    wishes: &Wishes,
) -> Option<&'a Objective> {
    let named = wishes.objective.as_deref().and_then(|name| objective(spec, pool, name));
    named.or_else(|| objective(spec, pool, caller.objective.as_ref()?.as_str()))
}

/// The one for this pool goes before the one for all.
fn objective<'a>(spec: &'a Spec, pool: Option<&PoolName>, name: &str) -> Option<&'a Objective> {
    let named = || spec.objectives.iter().filter(|objective| objective.name.as_str() == name);
    let own = named().find(|objective| pool.is_some() && objective.scheduler.as_ref() == pool);
    own.or_else(|| named().find(|objective| objective.scheduler.is_none()))
}

/// Who has an identity is one flow, whatever its requests say; else the field's fairness id counts.
fn flow_id(caller: &Caller, wishes: &Wishes) -> Arc<str> {
    match (&caller.fairness_id, &wishes.fairness_id) {
        (Some(id), _) => id.clone(),
        (None, Some(id)) if caller.is_anonymous() => id.as_ref().into(),
        _ => caller.tenant.shared().clone(),
    }
}

#[cfg(test)]
mod tests {
    use types::{ObjectiveName, TenantName};

    use super::*;
    use crate::testing::{at, document};

    fn spec() -> Spec {
        document(
            "  schedulers: [{ name: chat, modelName: llama, endpoints: [{ url: 'http://10.0.0.1' }] }]
  flowControl: {}
  objectives:
  - { name: fast, priority: Critical, ttft: 300ms }
  - { name: slow, priority: Sheddable }
  - { name: slow, priority: -20, scheduler: chat }
",
        )
        .spec
    }

    fn of(caller: &Caller, wishes: &Wishes) -> Entitlement {
        Entitlement::of(&spec(), &PoolName::new("chat"), caller, wishes, at(0))
    }

    fn wish(objective: &str) -> Wishes {
        Wishes { objective: Some(objective.into()), ..Wishes::default() }
    }

    fn team() -> Caller {
        Caller {
            tenant: TenantName::new("team"),
            credential: Some("key-1".into()),
            priority_max: Priority::STANDARD,
            objective: Some(ObjectiveName::new("slow")),
            ..(*Caller::anonymous()).clone()
        }
    }

    #[test]
    fn a_request_without_a_wish_is_standard_and_one_flow_of_its_tenant() {
        let plain = of(&Caller::anonymous(), &Wishes::default());
        assert_eq!((plain.flow.priority, &*plain.flow.id), (Priority::STANDARD, "anonymous"));
    }

    #[test]
    fn an_objective_gives_priority_and_target() {
        let fast = of(&Caller::anonymous(), &wish("fast"));
        assert_eq!(fast.flow.priority, Priority::CRITICAL);
        assert_eq!(fast.ttft, Some(Duration::from_millis(300)));
    }

    #[test]
    fn the_objective_of_the_pool_goes_before_the_one_for_all() {
        assert_eq!(of(&Caller::anonymous(), &wish("slow")).flow.priority, Priority(-20));
    }

    #[test]
    fn an_unknown_objective_counts_as_none_and_is_noted() {
        let unknown = of(&team(), &wish("fats"));
        assert!(unknown.is_unknown);
        assert_eq!(unknown.flow.priority, Priority(-20), "the caller's own holds");
        assert!(!of(&team(), &Wishes::default()).is_unknown);
    }

    #[test]
    fn a_wish_lowers_what_a_caller_gets_and_never_raises_it() {
        assert_eq!(of(&team(), &wish("fast")).flow.priority, Priority::STANDARD);
        assert_eq!(of(&team(), &wish("slow")).flow.priority, Priority(-20));
    }

    #[test]
    fn only_callers_without_an_identity_choose_their_flow() {
        let wishes = Wishes { fairness_id: Some("many".into()), ..Wishes::default() };
        assert_eq!(&*of(&Caller::anonymous(), &wishes).flow.id, "many");
        assert_eq!(&*of(&team(), &wishes).flow.id, "team");
        let own = Caller { fairness_id: Some("shared".into()), ..team() };
        assert_eq!(&*of(&own, &wishes).flow.id, "shared");
    }
}
