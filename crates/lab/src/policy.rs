//! Who chooses: our profile, the field's, and the rivals.

mod cache_aware;
mod dynamo;
mod few;
mod least_load;
mod oracle;
mod profiles;

use std::time::Duration;

use prefix::BlockHash;
use rand::RngExt;
use rand_pcg::Pcg64Mcg;
use sched::{Candidate, EjectedFilter, Filter, Profile, Receipt, RequestView, Scratch, Weights};
use types::Timestamp;

use cache_aware::CacheAware;
use dynamo::Dynamo;
use few::Sticky;
use least_load::LeastLoad;
pub(crate) use oracle::{Progress, Truth};

/// A policy by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Policy {
    Wicketgate,
    Reference,
    RoundRobin,
    ConnectionSticky,
    Random,
    LeastRequest,
    PowerOfTwo,
    SglangCacheAware,
    DynamoKv,
    SmgLeastLoad,
    LMetric,
    OracleTtft,
    OracleE2e,
}

/// A name that no policy bears.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no policy `{0}`")]
pub struct UnknownPolicy(pub String);

impl Policy {
    pub const ALL: [Policy; 13] = [
        Self::Wicketgate,
        Self::Reference,
        Self::RoundRobin,
        Self::ConnectionSticky,
        Self::Random,
        Self::LeastRequest,
        Self::PowerOfTwo,
        Self::SglangCacheAware,
        Self::DynamoKv,
        Self::SmgLeastLoad,
        Self::LMetric,
        Self::OracleTtft,
        Self::OracleE2e,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::Wicketgate => "wicketgate",
            Self::Reference => "reference",
            Self::RoundRobin => "round-robin",
            Self::ConnectionSticky => "connection-sticky",
            Self::Random => "random",
            Self::LeastRequest => "least-request",
            Self::PowerOfTwo => "power-of-two",
            Self::SglangCacheAware => "sglang-cache-aware",
            Self::DynamoKv => "dynamo-kv",
            Self::SmgLeastLoad => "smg-least-load",
            Self::LMetric => "lmetric",
            Self::OracleTtft => "oracle-ttft",
            Self::OracleE2e => "oracle-e2e",
        }
    }

    pub fn about(self) -> &'static str {
        match self {
            Self::Wicketgate => "our default: least expected time by learned speed",
            Self::Reference => "queue 2, KV 2, prefix 3 on pages scraped every 50 ms",
            Self::RoundRobin => "each endpoint in turn",
            Self::ConnectionSticky => "64 connections, each bound to a random endpoint",
            Self::Random => "uniform",
            Self::LeastRequest => "fewest requests in flight",
            Self::PowerOfTwo => "of two random ones that with fewer requests in flight",
            Self::SglangCacheAware => {
                "best match above 0.3 unless 64 requests and 1.5 times out of balance, else \
                 fewest in flight"
            }
            Self::DynamoKv => "least blocks to prefill, less those held, and blocks in use",
            Self::SmgLeastLoad => "least tokens / throughput + memory pressure, polled every 10 s",
            Self::LMetric => "least (pending + uncached prompt tokens) x (requests + 1)",
            Self::OracleTtft => "shortest time to first token, knowing the engines' true state",
            Self::OracleE2e => "shortest time to last token, knowing the answers' lengths as well",
        }
    }

    pub fn find(name: &str) -> Result<Policy, UnknownPolicy> {
        let found = Self::ALL.into_iter().find(|policy| policy.name() == name);
        found.ok_or_else(|| UnknownPolicy(name.to_owned()))
    }

    /// Knows what no gateway can know.
    pub fn is_clairvoyant(self) -> bool {
        matches!(self, Self::OracleTtft | Self::OracleE2e)
    }

    /// How it reads metrics pages.
    pub(crate) fn scrapes(self) -> Scrapes {
        match self {
            Self::Wicketgate => Scrapes::Cadence,
            Self::Reference => Scrapes::Staggered(REFERENCE_INTERVAL),
            Self::SmgLeastLoad => Scrapes::Together(least_load::POLL),
            _ => Scrapes::Never,
        }
    }

    /// Rests on an expected time, and on what answers say was cached.
    pub(crate) fn is_ours(self) -> bool {
        self == Self::Wicketgate
    }

    /// Is a profile, which names substitutes for an endpoint that fails at once.
    pub(crate) fn names_substitutes(self) -> bool {
        matches!(
            self,
            Self::Wicketgate
                | Self::Reference
                | Self::RoundRobin
                | Self::Random
                | Self::LeastRequest
        )
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
                | Self::SmgLeastLoad
        )
    }
}

/// How often the reference reads a page.
const REFERENCE_INTERVAL: Duration = Duration::from_millis(50);

/// Whether and how often pages are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scrapes {
    Never,
    /// The product's rhythm.
    Cadence,
    /// One endpoint after the other within the interval, which is kinder to the reference than all at
    /// once.
    Staggered(Duration),
    /// All at once: what was sent since is then comparable.
    Together(Duration),
}

/// A request before its choice.
#[derive(Clone, Copy)]
pub(crate) struct Asked<'a> {
    pub(crate) view: RequestView<'a>,
    pub(crate) block_tokens: u32,
    /// Of the prompt's whole blocks; empty for policies that do not ask.
    pub(crate) hashes: &'a [BlockHash],
    /// Length of the answer. Nobody but the clairvoyant looks.
    pub(crate) output_tokens: u32,
    /// This decision is to be explained.
    pub(crate) is_sampled: bool,
}

impl Asked<'_> {
    /// Tokens of the prompt that the index believes to be there.
    pub(crate) fn held(&self, candidate: &Candidate) -> u32 {
        candidate.matched_blocks * self.block_tokens
    }

    pub(crate) fn uncached(&self, candidate: &Candidate) -> u32 {
        self.view.prompt_tokens.saturating_sub(self.held(candidate))
    }
}

/// A policy at work.
pub(crate) enum Chooser {
    Profile(Box<Profile>, Scratch, Receipt),
    Sticky(Sticky),
    PowerOfTwo,
    CacheAware(CacheAware),
    Dynamo(Dynamo),
    LeastLoad(LeastLoad),
    LMetric,
    OracleTtft,
    OracleE2e,
}

impl Chooser {
    /// * `weights`: for our own profile, instead of the default.
    pub(crate) fn new(
        policy: Policy,
        weights: Option<&Weights>,
        endpoints: usize,
        rng: &mut Pcg64Mcg,
    ) -> Self {
        let profile =
            |profile| Self::Profile(Box::new(profile), Scratch::default(), Receipt::default());
        match policy {
            Policy::Wicketgate => {
                profile(weights.map_or_else(profiles::wicketgate, Profile::from_weights))
            }
            Policy::Reference => profile(profiles::reference()),
            Policy::RoundRobin => profile(Profile::round_robin()),
            Policy::LeastRequest => profile(Profile::least_request()),
            Policy::Random => profile(profiles::random()),
            Policy::ConnectionSticky => Self::Sticky(Sticky::new(endpoints, rng)),
            Policy::PowerOfTwo => Self::PowerOfTwo,
            Policy::SglangCacheAware => Self::CacheAware(CacheAware::new(endpoints)),
            Policy::DynamoKv => Self::Dynamo(Dynamo::new(endpoints)),
            Policy::SmgLeastLoad => Self::LeastLoad(LeastLoad::new(endpoints)),
            Policy::LMetric => Self::LMetric,
            Policy::OracleTtft => Self::OracleTtft,
            Policy::OracleE2e => Self::OracleE2e,
        }
    }

    /// Appends where to send, the best first; nothing refuses the request. A profile names
    /// substitutes for a failing endpoint, as the product takes them; the others are asked again
    /// with [`RequestView::excluded`]. Gives the milliseconds to a first token that it expects, if
    /// it expects any and the decision is sampled.
    ///
    /// * `candidates`: one for each endpoint, at least one; they may be reordered and dropped.
    pub(crate) fn choose(
        &mut self,
        asked: &Asked<'_>,
        candidates: &mut Vec<Candidate>,
        truth: &Truth<'_>,
        rng: &mut Pcg64Mcg,
        order: &mut Vec<Choice>,
    ) -> Option<f32> {
        let choice = |candidate: &Candidate| Choice {
            endpoint: candidate.endpoint.0 as usize,
            held_tokens: asked.held(candidate),
        };
        if let Self::Profile(profile, scratch, receipt) = self {
            let explained = asked.is_sampled.then_some(&mut *receipt);
            let picked = profile.pick(&asked.view, candidates, scratch, rng, explained).ok()?;
            order.extend(picked.iter().map(|at| choice(&candidates[*at as usize])));
            if !asked.is_sampled {
                return None;
            }
            let first = receipt.order.first()?;
            let chosen = receipt.candidates.iter().find(|entry| entry.candidate.endpoint == *first);
            return chosen?.predicted_ms;
        }
        keep_usable(&asked.view, candidates);
        if candidates.is_empty() {
            return None;
        }
        let chosen = match self {
            Self::Profile(..) => None,
            Self::Sticky(sticky) => Some(sticky.choose(candidates, rng)),
            Self::PowerOfTwo => Some(few::power_of_two(candidates, rng)),
            Self::CacheAware(policy) => policy.choose(asked, candidates, rng),
            Self::Dynamo(policy) => policy.choose(asked, candidates, rng),
            Self::LeastLoad(policy) => policy.choose(candidates, rng),
            Self::LMetric => few::lmetric(asked, candidates, rng),
            Self::OracleTtft => {
                least(candidates.iter().map(|other| truth.ttft_seconds(asked, other)), rng)
            }
            Self::OracleE2e => {
                least(candidates.iter().map(|other| truth.e2e_seconds(asked, other)), rng)
            }
        };
        order.extend(chosen.map(|at| choice(&candidates[at])));
        None
    }

    /// The request went there.
    pub(crate) fn sent(&mut self, choice: Choice, request: u32, asked: &Asked<'_>) {
        match self {
            Self::CacheAware(policy) => {
                let uncached = asked.view.prompt_tokens.saturating_sub(choice.held_tokens);
                policy.sent(choice.endpoint, uncached);
            }
            Self::Dynamo(policy) => policy.sent(choice.endpoint, request, asked),
            Self::LeastLoad(policy) => policy.sent(choice.endpoint, asked),
            _ => {}
        }
    }

    /// The request left again, however it ended.
    pub(crate) fn ended(&mut self, endpoint: usize, request: u32) {
        if let Self::Dynamo(policy) = self {
            policy.ended(endpoint, request);
        }
    }

    /// A page was read.
    ///
    /// * `generated`: tokens that the engine counts since its start.
    pub(crate) fn scraped(&mut self, endpoint: usize, generated: u64, now: Timestamp) {
        if let Self::LeastLoad(policy) = self {
            policy.polled(endpoint, generated, now);
        }
    }
}

/// An endpoint chosen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Choice {
    pub(crate) endpoint: usize,
    /// Tokens of the prompt that the index believes to be there.
    pub(crate) held_tokens: u32,
}

/// Drops those excluded and ejected, as the product's own profiles do: every policy has the same
/// protection against broken endpoints, so that only choices are compared.
fn keep_usable(view: &RequestView<'_>, candidates: &mut Vec<Candidate>) {
    candidates.retain(|candidate| !view.excluded.contains(&candidate.endpoint));
    if candidates.iter().any(|candidate| candidate.ejected) {
        let mut keep = vec![true; candidates.len()];
        EjectedFilter::default().filter(view, candidates, &mut keep);
        let mut keep = keep.into_iter();
        candidates.retain(|_| keep.next().unwrap_or(true));
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
