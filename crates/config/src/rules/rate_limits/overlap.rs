//! Rules of which one makes the other idle: a key's limit above its tenant's.

use std::collections::BTreeSet;

use limits::{Amount, Kind, Match, Per, Rule};

use super::Written;
use crate::report::Report;

pub(super) fn check(rules: &[Written<'_>], report: &mut Report<'_>) {
    for inner in rules {
        for outer in rules {
            if inner.index == outer.index || outer.rule.shadow || !contains(outer.rule, inner.rule)
            {
                continue;
            }
            for (kind, what) in idle(inner.rule, outer.rule) {
                let message = format!(
                    "`{what}` of rule `{}` is never reached: `{}` (line {}) covers the same requests and allows no more",
                    inner.rule.name,
                    outer.rule.name,
                    outer.place().line,
                );
                report.warning(
                    inner.view.get(kind.as_str()).place(),
                    &inner.path(&format!(".{}", kind.as_str())),
                    message,
                    Some("lower it below the other's, raise the other, or leave one out"),
                );
            }
        }
    }
}

/// Whether every bucket of `inner` lies within one of `outer`.
fn contains(outer: &Rule, inner: &Rule) -> bool {
    // With overrides some buckets differ, and then it is no longer plain.
    outer.overrides.is_empty()
        && inner.overrides.is_empty()
        && is_coarser(outer.per, inner.per)
        && (outer.per != inner.per || outer.matches != inner.matches)
        && is_wider(&outer.matches, &inner.matches)
}

fn is_coarser(outer: Per, inner: Per) -> bool {
    let pairs = [
        // A key belongs to one tenant.
        (outer.tenant && !inner.key, inner.tenant),
        (outer.key, inner.key),
        (outer.model, inner.model),
        (outer.route, inner.route),
    ];
    let same_or_less = |(outer, inner): &(bool, bool)| !outer || *inner;
    pairs.iter().all(same_or_less)
}

fn is_wider(outer: &Match, inner: &Match) -> bool {
    fn holds<T: Ord>(outer: &BTreeSet<T>, inner: &BTreeSet<T>) -> bool {
        outer.is_empty() || (!inner.is_empty() && inner.is_subset(outer))
    }
    holds(&outer.tenants, &inner.tenants)
        && holds(&outer.keys, &inner.keys)
        && holds(&outer.models, &inner.models)
        && holds(&outer.routes, &inner.routes)
        && holds(&outer.priorities, &inner.priorities)
}

/// What of `inner` can never be reached before `outer`.
fn idle(inner: &Rule, outer: &Rule) -> Vec<(Kind, &'static str)> {
    let mut idle = Vec::new();
    for ((kind, own), (_, other)) in inner.amounts().into_iter().zip(outer.amounts()) {
        let differs = kind == Kind::Tokens && inner.output_weight != outer.output_weight;
        if differs || own.periods().next().is_none() {
            continue;
        }
        if own.periods().all(|(period, _)| is_idle(own, other, period)) {
            idle.push((kind, kind.as_str()));
        }
    }
    if let (Some(own), Some(other)) = (inner.concurrent, outer.concurrent)
        && own >= other
    {
        idle.push((Kind::Concurrent, Kind::Concurrent.as_str()));
    }
    idle
}

fn is_idle(own: Amount, other: Amount, period: limits::Period) -> bool {
    let of = |amount: Amount| amount.periods().find(|(known, _)| *known == period);
    let (Some((_, own_number)), Some((_, other_number))) = (of(own), of(other)) else {
        return false;
    };
    let burst = |amount: Amount, number| amount.burst.unwrap_or(number);
    own_number >= other_number && burst(own, own_number) >= burst(other, other_number)
}
