//! A router's own counters as rates, for those who have no PromQL.
//!
//! Looked at as often as the cluster's, over the same window: the counts of each look are kept, the oldest leave.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use telemetry::metrics::labels::{Label, LimitKind, MemberReason, NoMember};
use telemetry::{Metrics, names};
use types::Timestamp;

use super::Clusters;

const WINDOW: Duration = Duration::from_secs(names::CLUSTER_WINDOW_SECONDS);

/// What a router does a second, over the last five minutes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FleetRates {
    /// Requests that no member could get.
    pub refusals: f64,
    /// Requests that a rate limit refused.
    pub limit_refusals: f64,
    pub failovers: f64,
    pub members: BTreeMap<String, MemberRates>,
}

/// What a router does a second with one member.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MemberRates {
    pub requests: f64,
    pub failovers: f64,
    /// Money, by estimate; `None` where nothing has cost anything yet.
    pub spent: Option<f64>,
}

/// The counts of the last looks.
#[derive(Debug, Default)]
pub(super) struct Pace(VecDeque<(Timestamp, Counts)>);

#[derive(Clone, Debug, Default, PartialEq)]
struct Counts {
    refusals: u64,
    limit_refusals: u64,
    members: BTreeMap<String, MemberCounts>,
}

#[derive(Clone, Debug, Default, PartialEq)]
struct MemberCounts {
    requests: u64,
    failovers: u64,
    spent: Option<f64>,
}

impl Pace {
    fn push(&mut self, counts: Counts, now: Timestamp) {
        self.0.push_back((now, counts));
        while self.0.len() > 2 && self.0.get(1).is_some_and(|(at, _)| now.since(*at) >= WINDOW) {
            self.0.pop_front();
        }
    }

    fn rates(&self) -> FleetRates {
        let (Some((begin, first)), Some((end, last))) = (self.0.front(), self.0.back()) else {
            return FleetRates::default();
        };
        let seconds = end.since(*begin).as_secs_f64();
        let rate = |now: u64, then: u64| {
            if seconds > 0.0 { now.saturating_sub(then) as f64 / seconds } else { 0.0 }
        };
        let none = MemberCounts::default();
        let mut rates = FleetRates {
            refusals: rate(last.refusals, first.refusals),
            limit_refusals: rate(last.limit_refusals, first.limit_refusals),
            ..FleetRates::default()
        };
        for (name, now) in &last.members {
            let then = first.members.get(name).unwrap_or(&none);
            let failovers = rate(now.failovers, then.failovers);
            let spent = now.spent.map(|spent| {
                let more = (spent - then.spent.unwrap_or(0.0)).max(0.0);
                if seconds > 0.0 { more / seconds } else { 0.0 }
            });
            rates.failovers += failovers;
            let requests = rate(now.requests, then.requests);
            rates.members.insert(name.clone(), MemberRates { requests, failovers, spent });
        }
        rates
    }
}

impl Clusters {
    /// Takes a look at the counters. To be called every few seconds.
    pub(crate) fn advance(&self, metrics: &Metrics, now: Timestamp) {
        let counts = self.counts(metrics);
        self.pace().push(counts, now);
    }

    pub fn rates(&self) -> FleetRates {
        self.pace().rates()
    }

    fn counts(&self, metrics: &Metrics) -> Counts {
        let table = self.table();
        let refusals = &self.metrics().refusals;
        let mut counts = Counts {
            refusals: NoMember::ALL.iter().map(|reason| refusals.of(*reason).get()).sum(),
            limit_refusals: metrics
                .rate_limit_rules()
                .iter()
                .map(|rule| -> u64 {
                    LimitKind::ALL.iter().map(|kind| rule.refusals.of(*kind).get()).sum()
                })
                .sum(),
            members: BTreeMap::new(),
        };
        for seat in table.seats.all() {
            let decisions = &seat.metrics.decisions;
            let spent = self.purses.savings(|savings| {
                savings.iter().find(|(name, _)| **name == seat.name).map(|(_, t)| t.spent.units())
            });
            let member = MemberCounts {
                requests: MemberReason::ALL.iter().map(|reason| decisions.of(*reason).get()).sum(),
                failovers: seat.metrics.failovers.get(),
                spent: spent.filter(|spent| *spent > 0.0),
            };
            counts.members.insert(seat.name.to_string(), member);
        }
        counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Timestamp {
        Timestamp::from_duration(Duration::from_secs(seconds))
    }

    fn counts(requests: u64, spent: f64) -> Counts {
        let west = MemberCounts { requests, failovers: requests / 10, spent: Some(spent) };
        Counts {
            refusals: requests / 5,
            members: BTreeMap::from([("west".to_owned(), west)]),
            ..Counts::default()
        }
    }

    #[test]
    fn rates_are_of_the_window_alone_and_the_fleet_fails_over_as_its_members_do() {
        let mut pace = Pace::default();
        pace.push(counts(1000, 5.0), at(0));
        assert_eq!(pace.rates().members["west"].requests, 0.0, "one look has no rate");
        for step in 1..=120 {
            pace.push(counts(1000 + 10 * step, 5.0 + step as f64), at(5 * step));
        }
        let rates = pace.rates();
        let west = &rates.members["west"];
        assert_eq!((west.requests, west.failovers, west.spent), (2.0, 0.2, Some(0.2)));
        assert_eq!((rates.failovers, rates.refusals), (0.2, 0.4));
        assert!(pace.0.len() <= 62, "{}", pace.0.len());
    }

    #[test]
    fn a_member_that_joins_has_counted_from_zero() {
        let mut pace = Pace::default();
        pace.push(Counts::default(), at(0));
        pace.push(counts(50, 1.0), at(10));
        assert_eq!(pace.rates().members["west"].requests, 5.0);
    }
}
