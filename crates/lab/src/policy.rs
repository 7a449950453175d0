//! Who chooses: our profile, the field's, and the rivals.

mod oracle;

use rand::RngExt;
use rand_pcg::Pcg64Mcg;
use sched::{Candidate, Picker, Profile, RequestView, Scratch, Signals, Weights};
use types::Timestamp;

pub(crate) use oracle::{Progress, Truth};

/// A policy by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Policy {
    Wicketgate,
    ExpectedTime,
    Reference,
    RoundRobin,
    ConnectionSticky,
    Random,
    LeastRequest,
    PowerOfTwo,
    LMetric,
    OracleTtft,
}

/// A name that no policy bears.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no policy `{0}`")]
pub struct UnknownPolicy(pub String);

/// Connections that clients keep open through a Kubernetes Service.
const CONNECTIONS: usize = 64;

impl Policy {
    pub const ALL: [Policy; 10] = [
        Self::Wicketgate,
        Self::ExpectedTime,
        Self::Reference,
        Self::RoundRobin,
        Self::ConnectionSticky,
        Self::Random,
        Self::LeastRequest,
        Self::PowerOfTwo,
        Self::LMetric,
        Self::OracleTtft,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::Wicketgate => "wicketgate",
            Self::ExpectedTime => "expected-time",
            Self::Reference => "reference",
            Self::RoundRobin => "round-robin",
            Self::ConnectionSticky => "connection-sticky",
            Self::Random => "random",
            Self::LeastRequest => "least-request",
            Self::PowerOfTwo => "power-of-two",
            Self::LMetric => "lmetric",
            Self::OracleTtft => "oracle-ttft",
        }
    }

    pub fn about(self) -> &'static str {
        match self {
            Self::Wicketgate => "our default profile, on accounted signals",
            Self::ExpectedTime => {
                "least expected time by learned speed (weights.predictedLatency alone)"
            }
            Self::Reference => "queue 2, KV 2, prefix 3 on pages scraped every 50 ms",
            Self::RoundRobin => "each endpoint in turn",
            Self::ConnectionSticky => "64 connections, each bound to a random endpoint",
            Self::Random => "uniform",
            Self::LeastRequest => "fewest requests in flight",
            Self::PowerOfTwo => "of two random ones that with fewer requests in flight",
            Self::LMetric => "least (pending + uncached prompt tokens) x (requests + 1)",
            Self::OracleTtft => "shortest time to first token, knowing the engines' true state",
        }
    }

    pub fn find(name: &str) -> Result<Policy, UnknownPolicy> {
        let found = Self::ALL.into_iter().find(|policy| policy.name() == name);
        found.ok_or_else(|| UnknownPolicy(name.to_owned()))
    }

    /// Reads metrics pages.
    pub(crate) fn scrapes(self) -> bool {
        matches!(self, Self::Wicketgate | Self::ExpectedTime | Self::Reference)
    }

    /// Asks who holds a prompt's beginning.
    pub(crate) fn matches_prefixes(self) -> bool {
        !matches!(
            self,
            Self::RoundRobin
                | Self::ConnectionSticky
                | Self::Random
                | Self::LeastRequest
                | Self::PowerOfTwo
        )
    }
}

/// A policy at work.
pub(crate) enum Chooser {
    Profile(Box<Profile>, Scratch),
    /// The endpoint of each connection.
    Sticky(Vec<usize>),
    PowerOfTwo,
    LMetric,
    Oracle,
}

impl Chooser {
    pub(crate) fn new(policy: Policy, endpoints: usize, rng: &mut Pcg64Mcg) -> Self {
        let profile = |profile| Self::Profile(Box::new(profile), Scratch::default());
        match policy {
            Policy::Wicketgate => profile(Profile::from_weights(&Weights {
                lora_affinity: 2.0,
                ..Weights::default()
            })),
            Policy::ExpectedTime => {
                profile(Profile::from_weights(&Weights { expected_time: 1.0, ..Weights::ZERO }))
            }
            Policy::Reference => profile(Profile {
                saturation: None,
                ..Profile::from_weights(&Weights {
                    signals: Signals::Scraped,
                    ..Weights::default()
                })
            }),
            Policy::RoundRobin => profile(Profile::round_robin()),
            Policy::LeastRequest => profile(Profile::least_request()),
            Policy::Random => profile(Profile { picker: Picker::Random, ..Profile::round_robin() }),
            Policy::ConnectionSticky => {
                Self::Sticky((0..CONNECTIONS).map(|_| rng.random_range(0..endpoints)).collect())
            }
            Policy::PowerOfTwo => Self::PowerOfTwo,
            Policy::LMetric => Self::LMetric,
            Policy::OracleTtft => Self::Oracle,
        }
    }

    /// The index of the endpoint to send to; `None` refuses the request.
    ///
    /// * `candidates`: one for each endpoint, at least one; they may be reordered.
    pub(crate) fn choose(
        &mut self,
        view: &RequestView<'_>,
        candidates: &mut [Candidate],
        truth: &Truth<'_>,
        block_tokens: u32,
        now: Timestamp,
        rng: &mut Pcg64Mcg,
    ) -> Option<usize> {
        let all = candidates.len();
        match self {
            Self::Profile(profile, scratch) => {
                let order = profile.pick(view, candidates, scratch, rng, None).ok()?;
                let first = *order.first()?;
                Some(candidates[first as usize].endpoint.0 as usize)
            }
            Self::Sticky(connections) => {
                let connection = rng.random_range(0..connections.len());
                connections.get(connection).copied()
            }
            Self::PowerOfTwo => {
                let first = rng.random_range(0..all);
                if all == 1 {
                    return Some(first);
                }
                let second = (first + rng.random_range(1..all)) % all;
                let is_less = candidates[second].in_flight < candidates[first].in_flight;
                Some(if is_less { second } else { first })
            }
            Self::LMetric => {
                let cost = |candidate: &Candidate| {
                    let held = u64::from(candidate.matched_blocks * block_tokens);
                    let own = u64::from(view.prompt_tokens).saturating_sub(held);
                    ((candidate.prefill_tokens + own) * u64::from(candidate.in_flight + 1)) as f64
                };
                least(candidates.iter().map(cost), rng)
            }
            Self::Oracle => {
                let ttft = |candidate: &Candidate| {
                    let held = candidate.matched_blocks * block_tokens;
                    let endpoint = candidate.endpoint.0 as usize;
                    truth.ttft_seconds(endpoint, view.prompt_tokens, held, now)
                };
                least(candidates.iter().map(ttft), rng)
            }
        }
    }
}

/// The place of the smallest; equals at random.
fn least(costs: impl Iterator<Item = f64>, rng: &mut Pcg64Mcg) -> Option<usize> {
    let mut best: Option<(f64, u32, usize)> = None;
    for (at, cost) in costs.enumerate() {
        let tie = rng.random::<u32>();
        if best.is_none_or(|(other, other_tie, _)| (cost, tie) < (other, other_tie)) {
            best = Some((cost, tie, at));
        }
    }
    best.map(|(_, _, at)| at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_policy_is_found_by_its_name_and_nothing_else_is() {
        for policy in Policy::ALL {
            assert_eq!(Policy::find(policy.name()), Ok(policy));
        }
        assert!(Policy::find("fastest").is_err());
    }
}
