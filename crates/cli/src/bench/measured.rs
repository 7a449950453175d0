//! What was measured, for the terminal's table and for the report: scenarios, loads, policies, seeds.

use lab::statistics::{Better, EQUAL, Paired, THROUGHPUT_MARGIN};
use lab::{Change, Plan, Policy, RunResult};

use super::text;

/// All loads of one scenario.
pub(super) struct Section {
    pub(super) plan: Plan,
    pub(super) cells: Vec<Cell>,
}

/// All policies under one load, over the same seeds.
pub(super) struct Cell {
    pub(super) load: f64,
    /// Requests per second, on average.
    pub(super) rate: f64,
    /// Share of the prompt tokens that a cache without bounds would hold.
    pub(super) hit_bound: f64,
    pub(super) policies: Vec<Policy>,
    /// Of each policy, by seed.
    pub(super) results: Vec<Vec<RunResult>>,
}

/// A number that policies are compared by.
pub(super) struct Measure {
    pub(super) title: &'static str,
    pub(super) of: fn(&RunResult) -> f64,
    pub(super) better: Better,
    /// Of parity, as a share.
    pub(super) margin: f64,
}

pub(super) const P50: Measure =
    Measure { title: "TTFT P50", of: |result| result.ttft_p50_ms, ..P95 };
pub(super) const P95: Measure = Measure {
    title: "TTFT P95",
    of: |result| result.ttft_p95_ms,
    better: Better::Lower,
    margin: EQUAL,
};
pub(super) const P99: Measure =
    Measure { title: "TTFT P99", of: |result| result.ttft_p99_ms, ..P95 };
pub(super) const ITL: Measure = Measure { title: "ITL P99", of: |result| result.itl_p99_ms, ..P95 };
pub(super) const GOODPUT: Measure = Measure {
    title: "goodput",
    of: |result| result.goodput,
    better: Better::Higher,
    margin: EQUAL,
};
pub(super) const TOKENS: Measure = Measure {
    title: "tok/s",
    of: |result| result.output_tokens_per_second,
    better: Better::Higher,
    margin: THROUGHPUT_MARGIN,
};

/// What a policy is in a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// Our default.
    Ours,
    /// Another profile of ours.
    Variant,
    /// What one could use instead.
    Rival,
    /// Knows what nobody can know: a ruler.
    Oracle,
}

impl Role {
    pub(super) fn of(policy: Policy) -> Self {
        match policy.name() {
            "wicketgate" => Self::Ours,
            "expected-time" => Self::Variant,
            name if name.starts_with("oracle") => Self::Oracle,
            _ => Self::Rival,
        }
    }
}

impl Measure {
    /// Whether `value` beats `other`.
    pub(super) fn is_better(&self, value: f64, other: f64) -> bool {
        match self.better {
            Better::Lower => value < other,
            Better::Higher => value > other,
        }
    }

    /// By how much a change is for the worse, as a share; negative where it is for the better.
    pub(super) fn harm(&self, change: f64) -> f64 {
        match self.better {
            Better::Lower => change,
            Better::Higher => -change,
        }
    }

    /// Whether a mean says something: without an answer there is no time to the first token.
    pub(super) fn is_known(&self, mean: f64) -> bool {
        mean > 0.0 || self.better == Better::Higher
    }
}

impl Cell {
    /// By seed.
    pub(super) fn values(&self, policy: usize, measure: &Measure) -> Vec<f64> {
        let results = self.results.get(policy).map(Vec::as_slice).unwrap_or_default();
        results.iter().map(measure.of).collect()
    }

    /// Over seeds.
    pub(super) fn mean(&self, policy: usize, measure: &Measure) -> f64 {
        text::mean(&self.values(policy, measure))
    }

    pub(super) fn mean_of(&self, policy: usize, of: fn(&RunResult) -> f64) -> f64 {
        self.mean(policy, &Measure { of, ..P95 })
    }

    pub(super) fn seeds(&self) -> usize {
        self.results.first().map_or(0, Vec::len)
    }

    /// The place of our default policy, if it was asked for.
    pub(super) fn ours(&self) -> Option<usize> {
        self.policies.iter().position(|policy| Role::of(*policy) == Role::Ours)
    }

    /// Places of the policies that do not know more than anyone can.
    pub(super) fn rivals(&self) -> impl Iterator<Item = usize> {
        let is_rival =
            |(at, policy): (usize, &Policy)| (Role::of(*policy) == Role::Rival).then_some(at);
        self.policies.iter().enumerate().filter_map(is_rival)
    }

    /// The rival with the best mean.
    pub(super) fn best_rival(&self, measure: &Measure) -> Option<usize> {
        let known = self.rivals().filter(|at| measure.is_known(self.mean(*at, measure)));
        known.reduce(|best, at| {
            let is_better = measure.is_better(self.mean(at, measure), self.mean(best, measure));
            if is_better { at } else { best }
        })
    }

    /// Ours against another, seed by seed.
    pub(super) fn paired(&self, ours: usize, theirs: usize, measure: &Measure) -> Option<Paired> {
        Paired::of(&self.values(ours, measure), &self.values(theirs, measure))
    }

    /// The change from theirs to ours. Where a seed's value is 0, so that it has no ratio: that of
    /// the means, without an interval. `None` where one of them is not known or theirs is 0.
    pub(super) fn change(&self, ours: usize, theirs: usize, measure: &Measure) -> Option<Change> {
        if let Some(paired) = self.paired(ours, theirs, measure) {
            return Some(paired.change());
        }
        let (ours, theirs) = (self.mean(ours, measure), self.mean(theirs, measure));
        let is_comparable = theirs > 0.0 && measure.is_known(ours);
        is_comparable.then(|| Change { mean: ours / theirs - 1.0, interval: None })
    }

    /// Share of the requests that got no whole answer.
    pub(super) fn failed_share(&self, policy: usize) -> f64 {
        let share = |result: &RunResult| result.failed as f64 / result.requests.max(1) as f64;
        self.mean_of(policy, share)
    }
}

/// Cells without running what they hold.
#[cfg(test)]
pub(super) mod fixtures {
    use std::time::Duration;

    use lab::{Plan, Policy, RunResult, Scenario, Settings};

    use super::{Cell, Section};

    /// Numbers of a real run of two simulated seconds.
    fn some_result() -> RunResult {
        let plan = Plan::new(Scenario::find("uniform").unwrap(), Some(1)).unwrap();
        let settings = Settings::new(Duration::from_secs(2));
        let traffic = plan.traffic(0.3, 1, &settings);
        plan.result(&plan.run(&traffic, Policy::RoundRobin, &settings))
    }

    /// The same with another P95 and goodput.
    pub(in crate::bench) fn with(result: &RunResult, p95: f64, goodput: f64) -> RunResult {
        RunResult { ttft_p95_ms: p95, ttft_p99_ms: p95 * 1.5, goodput, ..result.clone() }
    }

    pub(in crate::bench) fn cell(
        load: f64,
        policies: &[Policy],
        seeds: u64,
        of: impl Fn(Policy, u64, &RunResult) -> RunResult,
    ) -> Cell {
        let result = some_result();
        let of_policy =
            |policy: &Policy| (1..=seeds).map(|seed| of(*policy, seed, &result)).collect();
        Cell {
            load,
            rate: 12.5,
            hit_bound: 0.3,
            policies: policies.to_vec(),
            results: policies.iter().map(of_policy).collect(),
        }
    }

    pub(in crate::bench) fn section(name: &str, cells: Vec<Cell>) -> Section {
        Section { plan: Plan::new(Scenario::find(name).unwrap(), None).unwrap(), cells }
    }
}
